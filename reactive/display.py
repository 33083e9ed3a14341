"""Rows for people: a table in the terminal, HTML in notebooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from reactive.zset import Row

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# `rich` and `html` are imported where something is shown: they would take a third of all.

LIMIT = 20
Named = Any
"""A view or table: a collection with a `name`, which may be None."""


def show(rows: Named, limit: int) -> None:
    """Print the first rows."""
    from rich.console import Console

    Console().print(table(rows, limit))


def table(rows: Named, limit: int = LIMIT) -> RichTable:
    """The first rows as a `rich` table, one column per field or binding."""
    from rich.table import Table
    from rich.text import Text

    header, lines, more = _cells(rows, limit)
    title, caption = _title(rows), f"{more} more rows" if more else ""
    width = max(len(title), len(caption))
    result = Table(title=title, caption=caption or None, min_width=width)
    for name in header:
        result.add_column(Text(name))
    for line in lines:
        result.add_row(*map(Text, line))
    return result


def html(rows: Named, limit: int = LIMIT) -> str:
    """The same as an HTML table."""
    header, lines, more = _cells(rows, limit)
    parts = ["<table>", f"<caption>{_escaped(_title(rows))}</caption>"]
    parts += _html_row("th", header)
    for line in lines:
        parts += _html_row("td", line)
    parts.append("</table>")
    return "".join(parts) + (f"<p>{more} more rows</p>" if more else "")


def _html_row(tag: str, cells: Iterable[str]) -> list[str]:
    return ["<tr>", *(f"<{tag}>{_escaped(cell)}</{tag}>" for cell in cells), "</tr>"]


def _title(rows: Named) -> str:
    count = len(rows)
    return f"{rows.name or 'view'}: {count} row" + "s" * (count != 1)


def _cells(rows: Collection[Row], limit: int) -> tuple[list[str], list[list[str]], int]:
    """Column names, the first rows as text, and how many more rows there are."""
    first = list(islice(rows, limit))
    names = getattr(rows, "columns", None)
    columns = [_columns(row, names) for row in first]
    header = list(columns[0]) if columns else ["row"]
    if any(list(c) != header for c in columns):
        header, columns = ["row"], [{"row": row} for row in first]
    lines = [[_text(value) for value in c.values()] for c in columns]
    return header, lines, len(rows) - len(first)


def _columns(row: Row, names: list[str] | None) -> dict[str, Any]:
    """A row as named values: the names of the view, fields of a record, positions of a tuple."""
    if names is not None and all(hasattr(row, name) for name in names):
        return {name: getattr(row, name) for name in names}
    if names is not None:
        values = row if len(names) > 1 else (row,)
        return dict(zip(names, values, strict=True))
    if dataclasses.is_dataclass(row):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if isinstance(row, tuple):
        names = getattr(row, "_fields", None) or [str(n) for n in range(len(row))]
        return dict(zip(names, row, strict=True))
    return {"row": row}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)

"""Rows for people: a table in the terminal, HTML in notebooks.

name   n  day              header: the names; in HTML also the types of the values
Ann    3  2026-05-01       numbers are aligned to the right; dates are written as dates
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import date, time, timedelta
from itertools import islice
from numbers import Number
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from optimizer.kinds.fields import compared_names
from optimizer.record import record
from reactive.engine.collections.zset import Row
from reactive.errors import ClosedError, TableError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

# `rich` and `html` are imported at the first use: they take a third of the time of all imports

LIMIT = 20
MOST_TYPES = 3
"""The most types that a header names."""
DATES = (date, time, timedelta)
Named = Any
"""A view or table: a collection with a `name`, which may be None."""


@record
class DisplayColumn:
    """A column of a displayed table."""

    name: str
    values: tuple[Any, ...]

    @property
    def type(self) -> str:
        """The names of the value types; empty without values, or if there are too many types."""
        kinds = set(map(type, self.values))
        names = sorted(kind.__name__ for kind in kinds if kind is not NoneType)
        names += ["None"] * (NoneType in kinds)
        return " | ".join(names) if len(names) <= MOST_TYPES else ""

    @property
    def side(self) -> Literal["left", "right"]:
        """The alignment: numbers, also beside None, to the right."""
        known = [value for value in self.values if value is not None]
        return "right" if known and all(map(_is_number, known)) else "left"

    def texts(self) -> list[str]:
        """Return the values as text."""
        return list(map(_text, self.values))


@record
class DisplayedRows:
    """The first rows, as columns, with a title for all rows."""

    title: str
    columns: list[DisplayColumn]
    more: int
    """The number of rows that are not shown."""

    @property
    def caption(self) -> str:
        """Return the text below the table, empty if it shows all rows."""
        return f"{self.more} more rows" if self.more else ""

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield the texts of each row."""
        return zip(*(column.texts() for column in self.columns), strict=True)


def show(rows: Named, limit: int, called: str = "view") -> None:
    """Print the first rows."""
    from rich.console import Console

    Console().print(table(rows, limit, called))


def table(rows: Named, limit: int = LIMIT, called: str = "view") -> RichTable:
    """Return the first rows as a `rich` table, with one column per field or binding."""
    from rich.table import Table
    from rich.text import Text

    shown = _first_rows_shown(rows, limit, called)
    width = max(len(shown.title), len(shown.caption))
    result = Table(title=shown.title, caption=shown.caption or None, min_width=width)
    for column in shown.columns:
        result.add_column(Text(column.name), justify=column.side)
    for line in shown.lines():
        result.add_row(*map(Text, line))
    return result


def html(rows: Named, limit: int = LIMIT) -> str:
    """Return the first rows as an HTML table with types in its header, or the reason for none."""
    try:
        shown = _first_rows_shown(rows, limit, "view")
    except (ClosedError, TableError) as error:
        return html_of_text(str(error))
    sides = [column.side for column in shown.columns]
    header = [_head(column) for column in shown.columns]
    parts = ["<table>", f"<caption>{_escape_html(shown.title)}</caption>"]
    parts += _html_row("th", header, sides)
    for line in shown.lines():
        parts += _html_row("td", map(_escape_html, line), sides)
    parts.append("</table>")
    return "".join(parts) + (f"<p>{shown.caption}</p>" if shown.more else "")


def html_of_text(text: str) -> str:
    """Return a text as HTML, line by line."""
    return f"<pre>{_escape_html(text)}</pre>"


def _head(column: DisplayColumn) -> str:
    """Return the HTML of a column's head: its name, and the type of its values if known."""
    kind = f"<br><small>{_escape_html(column.type)}</small>" if column.type else ""
    return _escape_html(column.name) + kind


def _html_row(tag: str, cells: Any, sides: list[Any]) -> Iterator[str]:
    """Yield the HTML of one row, with a `tag` per cell, each aligned to its side."""
    yield "<tr>"
    for cell, side in zip(cells, sides, strict=True):  # notebooks have them to the right else
        yield f'<{tag} style="text-align: {side}">{cell}</{tag}>'
    yield "</tr>"


def _first_rows_shown(rows: Named, limit: int, called: str) -> DisplayedRows:
    """Return the first rows; as values of one column if they are of several kinds."""
    first, count = list(islice(rows, limit)), len(rows)
    copies: list[int] = []
    if not hasattr(rows, "index") and _has_copies(first):
        pairs = [pair for pair in rows.zset().items() if pair[1] > 0]
        first, copies = [row for row, _ in pairs[:limit]], [n for _, n in pairs[:limit]]
    names = getattr(rows, "columns", None)
    named = [_name_values(row, names) for row in first]
    header = list(named[0]) if named else ["row"]
    if any(list(values) != header for values in named):
        header, named = ["row"], [{"row": row} for row in first]
    columns = [DisplayColumn(name, tuple(values[name] for values in named)) for name in header]
    title = f"{rows.name or called}: {count} row" + "s" * (count != 1)
    if not copies:
        return DisplayedRows(title, columns, count - len(first))
    columns.append(
        DisplayColumn("count" if "count" not in header else "count of rows", tuple(copies))
    )
    return DisplayedRows(f"{title}, {len(pairs)} different", columns, len(pairs) - len(first))


def _has_copies(rows: list[Row]) -> bool:
    """Return True if two rows are equal; False if a row has no hash."""
    try:
        return len(set(rows)) < len(rows)
    except TypeError:  # a row in an order may have no hash
        return False


def _name_values(row: Row, names: list[str] | None) -> dict[str, Any]:
    """Return a row as named values: view columns, record fields, or tuple positions."""
    if names is not None and all(hasattr(row, name) for name in names):
        return {name: getattr(row, name) for name in names}
    if names is not None:
        values = row if isinstance(row, tuple) and len(row) == len(names) else (row,)
        return dict(zip(names, values, strict=True))
    if dataclasses.is_dataclass(row):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row)}
    if isinstance(row, tuple):
        names = getattr(row, "_fields", None) or [str(n) for n in range(len(row))]
        return dict(zip(names, row, strict=True))
    return {name: getattr(row, name) for name in compared_names(type(row))} or {"row": row}


def _text(value: Any) -> str:
    """Return how a cell shows a value: texts, dates and numbers by `str`, others by `repr`."""
    if isinstance(value, (str, *DATES)) or _is_number(value):
        return str(value)
    return repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _escape_html(text: str) -> str:
    from html import escape

    return escape(text)

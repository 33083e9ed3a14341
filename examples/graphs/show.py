"""Show edits: for each edit, the inserted and deleted rows of some views.

Beside them is the work of the edit: the rows that the operators below a view touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from reactive import Database, Delta, View

LIMIT = 12
WIDTH = 110


class Story:
    """Prints some views of a database, and then what each edit does to them.

    Parameters
    ----------
    title: what this is about.
    db: the database. All changes of an edit are one commit of it.
    views: what to show, by name.
    limit: rows to show of a view, and changed rows of it per edit.
    out: where to print.
    """

    def __init__(
        self,
        title: str,
        db: Database,
        views: Mapping[str, View[Any]],
        *,
        limit: int = LIMIT,
        out: Console | None = None,
    ) -> None:
        self._db = db
        self._views = dict(views)
        self._limit = limit
        self._out = console() if out is None else out
        self._out.print(Text(title, style="bold underline"))

    def begin(self) -> None:
        """Print what the views hold."""
        table = _table("view", "rows", "")
        for name, view in self._views.items():
            rows = sorted(map(str, view))
            table.add_row(name, f"{len(rows):,}", _lines("", "", rows, self._limit))
        self._out.print("at the beginning", table, sep="\n")

    @contextmanager
    def edit(self, what: str) -> Iterator[None]:
        """Commit the changes of tables in the block at its end, and print what that did."""
        deltas: dict[str, list[Delta[Any]]] = {name: [] for name in self._views}
        listening = [view.subscribe(deltas[name].append) for name, view in self._views.items()]
        before, start = self._touched(), perf_counter()
        with self._db.transaction():
            yield
        milliseconds = (perf_counter() - start) * 1000
        for subscription in listening:
            subscription.close()
        table = _table("view", "rows", "touched", "changes")
        for name, touched in self._touched().items():
            rows, work = len(self._views[name]), touched - before[name]
            table.add_row(name, f"{rows:,}", f"{work:,}", self._changes(deltas[name]))
        self._out.print(Text(f"\n{what} ({milliseconds:,.1f} ms)"), table, sep="\n")

    def _touched(self) -> dict[str, int]:
        """Return the rows that operators have looked at so far, for each view."""
        return {name: view.stats().touched for name, view in self._views.items()}

    def _changes(self, deltas: list[Delta[Any]]) -> Text:
        """Return the rows of the one delta of a commit, or that there is none."""
        if not deltas:
            return Text("none", style="dim")
        old, new = (sorted(map(str, rows)) for rows in (deltas[0].removed, deltas[0].added))
        gone = _lines("- ", "red", old, self._limit)
        came = _lines("+ ", "green", new, self._limit)
        return Text("\n").join(part for part in (gone, came) if part)


def console() -> Console:
    """Return the console for examples, wide enough where the output is no terminal."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=WIDTH)


def _table(*columns: str) -> Table:
    table = Table(*columns)
    for column in table.columns[1:-1]:
        column.justify = "right"
    return table


def _lines(sign: str, style: str, rows: list[str], limit: int) -> Text:
    """Return the rows, a line each, as many as there is room for."""
    shown: Iterable[str] = islice(rows, limit)
    lines = [Text(f"{sign}{row}", style=style) for row in shown]
    if len(rows) > limit:
        lines.append(Text(f"{sign}... {len(rows) - limit:,} more", style=style))
    return Text("\n").join(lines)

"""Play statements and queries in a database and in SQLite, and compare value by value.

Both sides get the text; rows are compared in order if the query has one. Classes of values count: 1
and 1.0 are two, as are 'a' and b'a'. A text that SQLite refuses must be refused, or give an error
row.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from reactive import Database, PlanError
from reactive.errors import ReactiveError

ERROR = "an error"


class Both:
    """A database of each kind, with the same tables."""

    def __init__(self, *statements: str) -> None:
        self.other = sqlite3.connect(":memory:", isolation_level=None)
        self.other.execute("pragma automatic_index = off")  # whose joins know no collation
        self.db = Database(dialect="sqlite")
        self.cases = 0
        self.wrong: list[str] = []
        self.refused: list[str] = []
        for text in statements:
            self.execute(text)

    def execute(self, text: str, values: Sequence[Any] = ()) -> None:
        """A statement, which both have to take or both have to refuse."""
        self.cases += 1
        theirs: Any = None
        mine: Any = None
        try:
            theirs = self.other.execute(text).rowcount
        except sqlite3.Error as error:
            theirs = f"{ERROR}: {error}"
        try:
            mine = self.db.execute(text)
        except ReactiveError as error:
            mine = f"{ERROR}: {error}"
        counts = text.split()[0] in ("insert", "update", "delete")
        if isinstance(theirs, str) != isinstance(mine, str) or (
            counts and isinstance(mine, int) and mine != theirs
        ):
            self.wrong.append(f"{text}\n  {mine!s:.200} for {theirs!s:.200}")

    def ask(self, text: str, *, may_refuse: bool = False) -> None:
        """A query."""
        self.cases += 1
        try:
            theirs: Any = self.other.execute(text).fetchall()
        except sqlite3.Error as error:
            theirs = f"{ERROR}: {error}"
        try:
            with self.db.sql(text).materialize() as view:
                mine: Any = [tuple(row) for row in view]
                if view.errors:
                    mine = f"{ERROR}: {next(iter(view.errors))!s:.200}"
        except PlanError as error:
            if not isinstance(theirs, str):
                (self.refused if may_refuse else self.wrong).append(f"{text}\n  {error}")
            return
        if " union " in text and not isinstance(mine, str) and not isinstance(theirs, str):
            mine, theirs = ([tuple(map(_folded, r)) for r in rows] for rows in (mine, theirs))
        difference = _difference(mine, theirs, ordered="order by" in text)
        if difference:
            self.wrong.append(f"{text}\n  {difference}")

    def view(self, text: str) -> Any:
        """A view that is kept; None if the query is refused."""
        try:
            return self.db.sql(text.removesuffix(" --fold")).materialize()
        except PlanError as error:
            self.refused.append(f"{text}\n  {error}")
            return None

    def same(self, text: str, view: Any) -> None:
        """Compare a view with its query.

        With `--fold` at its end, all texts that are equal under a collation count as equal.
        """
        if view is None:
            return
        self.cases += 1
        theirs: Any = self.other.execute(text.removesuffix(" --fold")).fetchall()
        mine: Any = [tuple(row) for row in view]
        if view.errors:
            mine = f"{ERROR}: {next(iter(view.errors))!s:.200}"
        elif text.endswith(" --fold"):
            mine, theirs = ([tuple(map(_folded, r)) for r in rows] for rows in (mine, theirs))
        difference = _difference(mine, theirs, ordered="order by" in text)
        if difference:
            self.wrong.append(f"{text}\n  {difference}")


def _folded(value: Any) -> Any:
    if isinstance(value, int | float):
        return float(value)  # of 1 and 1.0, which are equal, one is shown
    return value.lower().rstrip(" ") if isinstance(value, str) and value.isascii() else value


def _difference(mine: Any, theirs: Any, *, ordered: bool) -> str | None:
    if isinstance(mine, str) or isinstance(theirs, str):
        return None if isinstance(mine, str) and isinstance(theirs, str) else f"{mine} for {theirs}"
    ours, other = [tuple(map(_key, r)) for r in mine], [tuple(map(_key, r)) for r in theirs]
    same = ours == other if ordered else Counter(ours) == Counter(other)
    if same:
        return None
    places = [n for n, pair in enumerate(zip(ours, other, strict=False)) if pair[0] != pair[1]]
    few = [(mine[n], theirs[n]) for n in places[:3]]
    return f"{len(mine)} rows for {len(theirs)}; {few}" if few else f"{mine} for {theirs}"


def _key(value: Any) -> Any:
    """A value with its class; a float without its last digits."""
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        return ("float", float(f"{value:.13g}") + 0.0)
    return (type(value).__name__, value)

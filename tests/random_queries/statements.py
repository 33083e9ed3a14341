"""The effect of statements on tables that are lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tests.random_queries.histories import Held, Model, Statement
from tests.random_queries.rows import bag, frozen, once
from tests.random_queries.values import small

Call = tuple[str, int, tuple[Any, ...]]
"""A verb of a table, the table's place, and its arguments."""


def part_of(row: Any) -> int:
    """One of four parts of a table that a row is in."""
    for name in ("k", "id", "a"):
        if hasattr(row, name):
            return small(getattr(row, name))
    return small(row[0]) if type(row) is tuple and row else small(row)


def in_part(part: int) -> Callable[[Any], bool]:
    return lambda row: part_of(row) == part


def calls(model: Model, held: Sequence[Held], statements: Iterable[Statement]) -> list[Call]:
    """The calls that statements are for these tables, which they change; no-ops are left out."""
    found: list[Call] = []
    for verb, place, *arguments in statements:
        if verb in MOVES:
            found.append(MOVES[verb](model, held, place, *arguments))
            continue
        table = _Table(model, place, held[place])
        made = getattr(table, verb)(*arguments)
        if made is not None:
            found.append(made)
    for place, table_held in enumerate(held):
        if table_held.lateness is not None:
            moments = [row.at for row in model.tables[place]]
            if moments:
                model.marks[place] = max(moments) - timedelta(minutes=table_held.lateness)
    return found


def _advance(model: Model, held: Sequence[Held], place: int, seconds: float) -> Call:
    """Advance the clock; rows whose time is up are deleted."""
    if seconds:
        model.now += timedelta(seconds=seconds)
        for rows, table in zip(model.tables, held, strict=True):
            if table.expires is not None:
                name, minutes = table.expires
                limit = model.now - timedelta(minutes=minutes)
                rows[:] = [row for row in rows if (at := getattr(row, name)) is None or at > limit]
    return "advance", 0, (model.now,)


def _set(model: Model, held: Sequence[Held], place: int, value: int) -> Call:
    model.values[place] = value
    return "set", place, (value,)


MOVES: Mapping[str, Callable[..., Call]] = {"advance": _advance, "set": _set}
"""Statements that are of no table."""


class _Table:
    """A table of a model, while a statement changes it."""

    def __init__(self, model: Model, place: int, held: Held) -> None:
        self._model = model
        self._place = place
        self._held = held

    @property
    def _rows(self) -> list[Any]:
        return self._model.tables[self._place]

    def _call(self, verb: str, *arguments: Any) -> Call:
        return verb, self._place, arguments

    def _at(self, fraction: float) -> Any:
        return self._rows[int(fraction * len(self._rows))]

    def _key(self, row: Any) -> Any:
        assert self._held.key is not None
        return getattr(row, self._held.key)

    def _take(self, row: Any) -> None:
        """Remove one copy of a row."""
        place = next(i for i, held in enumerate(self._rows) if frozen(held) == frozen(row))
        del self._rows[place]

    def _put(self, row: Any) -> None:
        """Add one copy of a row, or cancel an earlier deletion; a late event goes elsewhere."""
        mark = self._model.marks.get(self._place)
        if mark is not None and row.at < mark:
            self._model.tables[self._place + 1].append(row)
            return
        debts = self._model.debts
        for i, (place, owed) in enumerate(debts):
            if place == self._place and frozen(owed) == frozen(row):
                del debts[i]
                return
        self._rows.append(row)

    def _are_new(self, rows: Sequence[Any]) -> list[Any]:
        """Return the rows whose keys are new, one row per key."""
        if self._held.key is None:
            return [*rows]
        keys = {self._key(row) for row in self._rows}
        return [*{self._key(row): row for row in rows if self._key(row) not in keys}.values()]

    def add(self, row: Any, count: int = 1) -> Call:
        for _ in range(count):
            self._put(row)
        return self._call("add", row, count)

    def add_all(self, *rows: Any) -> Call:
        new = self._are_new(rows)
        for row in new:
            self._put(row)
        return self._call("add_all", new)

    def upsert(self, row: Any) -> Call:
        for other in [other for other in self._rows if self._key(other) == self._key(row)]:
            self._take(other)
        self._put(row)
        return self._call("upsert", row)

    def delete(self, fraction: float) -> Call | None:
        if not self._rows:
            return None
        row = self._at(fraction)
        self._take(row)
        return self._call("delete", self._key(row))

    def remove(self, fraction: float, count: int) -> Call | None:
        if not self._rows:
            return None
        row = self._at(fraction)
        times = min(count, bag(self._rows)[frozen(row)])
        for _ in range(times):
            self._take(row)
        return self._call("remove", row, times)

    def remove_all(self, *fractions: float) -> Call:
        rows = []
        for fraction in fractions:
            if self._rows:
                rows.append(self._at(fraction))
                self._take(rows[-1])
        return self._call("remove_all", rows)

    def discard(self, fraction: float) -> Call | None:
        if not self._rows or not self._held.stored:
            return None
        row = self._at(fraction)
        self._take(row)
        return self._call("discard", row)

    def update(self, fraction: float, new: Any) -> Call | None:
        if not self._rows:
            return None
        old = self._at(fraction)
        if self._held.key and self._key(old) != self._key(new) and not self._are_new([new]):
            return None
        self._take(old)
        self._put(new)
        return self._call("update", old, new)

    def clear(self) -> Call:
        self._rows.clear()
        return self._call("clear")

    def replace_all(self, *rows: Any) -> Call:
        self._rows.clear()
        self._rows.extend(self._are_new(rows))
        return self._call("replace_all", [*self._rows])

    def replace_where(self, part: int, *rows: Any) -> Call:
        is_in = in_part(part)
        self._rows[:] = [row for row in self._rows if not is_in(row)]
        new = self._are_new([row for row in rows if is_in(row)])
        self._rows.extend(new)
        return self._call("replace_where", is_in, new)

    def owe(self, row: Any) -> Call:
        """Delete a row that may not be inserted yet."""
        if frozen(row) in bag(self._rows):
            self._take(row)
        else:
            self._model.debts.append((self._place, row))
        return self._call("remove", row, 1)


def paid(model: Model) -> list[Call]:
    """Return the inserts that balance all earlier deletions."""
    found: list[Call] = [("add", place, (row, 1)) for place, row in model.debts]
    model.debts.clear()
    return found


def absent(model: Model, place: int, rows: Sequence[Any]) -> Any:
    """One of some rows that a table does not have; None if it has them all."""
    there = bag(model.tables[place])
    return next((row for row in once(rows) if frozen(row) not in there), None)

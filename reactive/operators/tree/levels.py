"""A level of a tree: a flat relation, arranged by its labels, and how its rows are seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer.expressions.naming import Level as Naming
from optimizer.expressions.naming import Nesting
from reactive.collections.bag import Bag, changed
from reactive.collections.index import NO_MATCH
from reactive.collections.zset import Row, canonical

Label = Any
Path = tuple[Any, ...]


class Level:
    """A level of the tree, and how its rows are seen.

    Parameters
    ----------
    naming: what it is called, and what tells its rows apart.
    kind: the class of its rows with others inside; None if they have none.
    is_made: whether a row is a tuple of its parts, of the only one if it has nothing inside.
    width: how many parts a row has.
    rows: the port of its rows by their label; of the top by the label of what is inside first.
    label: of a row; None of the top.
    """

    __slots__ = (
        *("bags", "inside", "is_made", "kind", "label", "name", "naming", "number", "parent"),
        *("place", "port", "rows", "shown_in", "under", "width"),
    )

    def __init__(
        self,
        number: int,
        naming: Nesting | Naming,
        kind: Any,
        *,
        is_made: bool,
        width: int,
        rows: Any,
        port: int,
        label: Callable[[Row], Label] | None,
    ) -> None:
        self.number = number
        self.naming = naming
        self.name = getattr(naming, "name", "")
        self.kind = kind
        self.is_made = is_made
        self.width = width
        self.rows = rows
        self.port = port
        self.label = label
        self.inside: list[Level] = []
        self.parent: Level | None = None
        self.place = 0
        """Its column in the rows that show it."""
        self.shown_in: Any = None
        """The rows that show it, by their label of it."""
        self.under: Callable[[Row], Label] = _no_label
        """The label of a row that shows it."""
        self.bags: dict[Label, Kept] = {}
        """Those that are kept."""

    def put(self, level: Level, place: int, shown_in: Any, under: Callable[[Row], Label]) -> None:
        """Have rows of another level inside."""
        level.parent, level.place, level.shown_in, level.under = self, place, shown_in, under
        self.inside.append(level)

    def parts(self, row: Row) -> tuple[Any, ...]:
        """What is shown of a row, without what is inside."""
        if self.is_made:
            return row[: self.width]  # type: ignore[no-any-return]
        return (row,) if self.width == 1 else row

    def seen(self, row: Row, bag: Callable[[Level, Label], Bag[Any]]) -> Row:
        """A row as it is shown, with the bags that a function gives of labels."""
        if not self.inside:
            return row[0] if self.is_made else row
        shown = list(self.parts(row))
        for level in self.inside:
            shown.insert(level.place, bag(level, level.under(row)))
        return self.kind(*shown)

    def beginning(self, row: Row) -> Any:
        """What a row of before has in common with the one that takes its place: all but what is
        inside of it."""
        if self.inside:
            return self.parts(row)[: self.kind.roots]
        is_whole = self.is_made and bool(self.naming.levels)
        return row[0][: self.naming.kind.roots] if is_whole else row

    def weight(self, label: Label, row: Row) -> int:
        """How often a row is there."""
        if self.label is None:
            label = self.inside[0].under(row)
        return int(self.rows.weight(label, row))

    def path(self, row: Row, path: Path, inside: Level) -> Path:
        """The path of what is inside of a row."""
        return (*path, self.naming.key(self.parts(row)), inside.name)


class Kept:
    """A bag that was read, and what has come to it since."""

    __slots__ = ("_bag", "_changes")

    def __init__(self, bag: Bag[Any]) -> None:
        self._bag = bag
        self._changes: dict[Any, int] = {}

    def add(self, row: Row, weight: int) -> None:
        """Note a change."""
        changes, row = self._changes, canonical(row)
        new = changes.get(row, 0) + weight
        if new:
            changes[row] = new
        else:
            changes.pop(row, 0)

    def bag(self) -> Bag[Any]:
        """It as of now."""
        if self._changes:
            self._bag, self._changes = changed(self._bag, self._changes, None), {}
        return self._bag


def _no_label(row: Row) -> Label:
    return NO_MATCH

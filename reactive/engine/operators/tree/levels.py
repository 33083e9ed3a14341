"""A level of a tree: a flat relation, arranged by its labels, and how its rows are seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer.expressions.naming import Level as Naming
from optimizer.expressions.naming import Nesting
from reactive.engine.collections.index import NO_MATCH
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.operators.tree.sequences import RowOrder, Sequences

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
    rows: its rows by their label; of the top by the label of what is inside first. None of those
        in an order.
    handle: what tells its rows apart.
    port: by which they come.
    label: of a row; None of the top.
    order: of the rows of a label, if they stand in one.
    """

    __slots__ = (
        *("bags", "handle", "inside", "is_made", "kind", "label", "name", "naming", "number"),
        *("parent", "place", "port", "rows", "sequences", "shown_in", "under", "width"),
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
        handle: Callable[[Row], Any],
        port: int,
        label: Callable[[Row], Label] | None,
        order: RowOrder | None = None,
    ) -> None:
        self.number = number
        self.naming = naming
        self.name = getattr(naming, "name", "")
        self.kind = kind
        self.is_made = is_made
        self.width = width
        self.rows = rows
        self.handle = handle
        self.port = port
        self.label = label
        self.sequences = None if order is None else Sequences(order, self.held)
        """The rows of each label, if they stand in an order."""
        self.inside: list[Level] = []
        self.parent: Level | None = None
        self.place = 0
        """Its column in the rows that show it."""
        self.shown_in: Any = None
        """The rows that show it, by their label of it."""
        self.under: Callable[[Row], Label] = _no_label
        """The label of a row that shows it."""
        self.bags: dict[Label, Any] = {}
        """What is inside of labels, where it is kept: a bag, or a sequence."""

    def put(self, level: Level, place: int, shown_in: Any, under: Callable[[Row], Label]) -> None:
        """Have rows of another level inside."""
        level.parent, level.place, level.shown_in, level.under = self, place, shown_in, under
        self.inside.append(level)

    def parts(self, row: Row) -> tuple[Any, ...]:
        """What is shown of a row, without what is inside."""
        if self.is_made:
            return row[: self.width]  # type: ignore[no-any-return]
        return (row,) if self.width == 1 else row

    @property
    def is_at_hand(self) -> bool:
        """Whether what is shown of a label is there, and is not to be made."""
        return self.sequences is not None and not self.inside

    def held(self, row: Row) -> Row:
        """What an order has of a row: what is shown, or, if others are inside, itself."""
        return row if self.inside else canonical(row[0] if self.is_made else row)

    def shown(self, held: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """What is shown of what an order has."""
        return self.seen(held, bag) if self.inside else held

    def seen(self, row: Row, bag: Callable[[Level, Label], Any]) -> Row:
        """A row as it is shown, with what a function gives of labels."""
        if not self.inside:
            return canonical(row[0] if self.is_made else row)
        shown = [canonical(part) for part in self.parts(row)]
        for level in self.inside:
            shown.insert(level.place, bag(level, level.under(row)))
        return self.kind(*shown)

    def both(self, row: Row, bags: Callable[[Level, Label], tuple[Any, Any]]) -> tuple[Row, Row]:
        """The same as of before and of now; one object where nothing differs."""
        old = [canonical(part) for part in self.parts(row)]
        new = old.copy()
        is_same = True
        for level in self.inside:
            before, now = bags(level, level.under(row))
            is_same = is_same and before is now
            old.insert(level.place, before)
            new.insert(level.place, now)
        shown = self.kind(*new)
        return (shown if is_same else self.kind(*old)), shown

    def beginning(self, held: Row) -> Any:
        """What a row of before has in common with the one that takes its place: all but what is
        inside of it."""
        if self.inside:
            return self.parts(held)[: self.kind.roots]
        is_whole = self.is_made and bool(self.naming.levels)
        return held[: self.naming.kind.roots] if is_whole else held

    def weight(self, label: Label, row: Row) -> int:
        """How often a row is there."""
        if self.rows is not None:
            label = self.inside[0].under(row) if self.label is None else label
            return int(self.rows.weight(label, row))
        first = self.inside[0]
        return int(first.shown_in.weight(first.under(row), row))

    def path(self, row: Row, path: Path, inside: Level) -> Path:
        """The path of what is inside of a row."""
        return (*path, self.naming.key(self.parts(row)), inside.name)


def _no_label(row: Row) -> Label:
    return NO_MATCH

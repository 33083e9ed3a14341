"""The smallest changes of rows that have bags: what came and went in which bag.

    removed  Customer(1, "Ann", {o7})        the fields beside the bag are the same:
    added    Customer(1, "Ann", {o7, o8})    Edit(path=(1, "orders"), row=o8, weight=1)

A row whose other fields are those of one that went is that row, and its bags are compared, level by
level. A path is that of `Patch`: rows inside are named as they were before any of the edits. Of
what is there several times, all come and go.

Cost:   of each level, the difference of two bags (`Bag.difference`).
Source: deep updates [slender].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from reactive.engine.collections.bag import Bag, changed_values
from reactive.engine.collections.edits import Edit
from reactive.engine.collections.inner_changes import fields_of, mark
from reactive.engine.collections.zset import Pair, Row

Path = tuple[Any, ...]


def has_bags(pairs: Iterable[Pair]) -> bool:
    """Whether one of the rows has a bag."""
    return any(value.__class__ is Bag for row, _ in pairs for _, value in fields_of(row))


def edits_of(
    key: Callable[[Row], Any] | None, pairs: Sequence[Pair], path: Path = ()
) -> Iterator[Edit]:
    """The edits of rows that a key tells apart, or else the row itself, from those that came and
    went.

    >>> old, new = (1, Bag("a")), (1, Bag("ab"))
    >>> list(edits_of(lambda row: row[0], [(old, -1), (new, 1)]))
    [Edit(path=(1, 1), position=None, row='b', weight=1)]
    """
    came = [pair for pair in pairs if pair[1] > 0]
    by_mark: dict[Any, list[Pair]] = {}
    for row, weight in reversed(came):
        by_mark.setdefault(beside(row), []).append((row, weight))
    stays: list[tuple[Row, Row]] = []
    for row, weight in pairs:
        if weight < 0:
            alike = by_mark.get(beside(row), []) if weight == -1 else []
            if alike and alike[-1][1] == 1:
                stays.append((row, alike.pop()[0]))
            else:
                yield Edit(None, row, weight, path=path)
    for old, new in stays:
        yield from inside_of(old, new, (*path, old if key is None else key(old)))
    kept = {id(new) for _, new in stays}
    for row, weight in came:
        if id(row) not in kept:
            yield Edit(None, row, weight, path=path)


def inside_of(old: Row, new: Row, path: Path) -> Iterator[Edit]:
    """The edits of the bags of a row that is the same otherwise."""
    for (field, before), (_, after) in zip(fields_of(old), fields_of(new), strict=True):
        if before is not after and before.__class__ is Bag:
            yield from edits_of(None, changed_values(before, after), (*path, field))


def values_of(old: Row, new: Row, path: Path) -> Iterator[Edit]:
    """The same of the bags of the row alone: what is inside of their values is not looked at, so
    that edits can be taken one after the other."""
    for (field, before), (_, after) in zip(fields_of(old), fields_of(new), strict=True):
        if before is not after and before.__class__ is Bag:
            for value, weight in sorted(changed_values(before, after), key=itemgetter(1)):
                yield Edit(None, value, weight, path=(*path, field))


def beside(row: Row) -> tuple[Any, ...]:
    """What a row is, but for its bags."""
    fields = fields_of(row)
    if not fields:
        return (mark(row),)
    return (row.__class__, *[_but_bags(value) for _, value in fields])


def _but_bags(value: Any) -> Any:
    return None if value.__class__ is Bag else mark(value)

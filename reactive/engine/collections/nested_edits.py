"""Smallest edits of rows with inner bags: of nests, and of records.

Nested edits: insertions and deletions at each level of a nest.

    removed  (ann, {o7: {tea}})         the row is the same, and its inner rows differ:
    added    (ann, {o7: {tea, milk}})   Edit(path=(ann, "orders", o7, "lines"), row=milk, weight=1)

An inserted row with the same roots as a deleted one is the same row; their inner rows are compared,
level by level. Edits of one level are ordered: deletions, inner changes, insertions.

Cost:   for each level, the difference of two inner values (`Bag.difference`,
        `sequence_differences`).
Source: deep updates [slender].

Record edits: insertions and deletions in the bags of records.

    removed  Customer(1, "Ann", {o7})        the other fields are the same:
    added    Customer(1, "Ann", {o7, o8})    Edit(path=(1, "orders"), row=o8, weight=1)

An inserted row whose other fields equal those of a deleted one is the same row, and their bags are
compared, level by level. A path is that of `Patch`: it names inner rows as they were before all
edits. Rows that occur several times are deleted and inserted as a whole.

Cost:   for each level, the difference of two bags (`Bag.difference`).
Source: deep updates [slender].
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from optimizer.expressions.text import Level, Nesting
from reactive.engine.collections.bag import Bag, value_changes
from reactive.engine.collections.inner_changes import named_fields, value_mark
from reactive.engine.collections.long_tuple import sequence_differences
from reactive.engine.collections.order import Edit, fewest_edits, longest_increasing
from reactive.engine.collections.order_tree import Part
from reactive.engine.collections.zset import Pair, Row

Path = tuple[Any, ...]


class NestedKey:
    """Key of rows with inner rows."""

    __slots__ = ("_key", "is_ordered", "nesting")

    def __init__(self, nesting: Nesting | Level, *, is_ordered: bool = False) -> None:
        self.nesting = nesting
        self.is_ordered = is_ordered
        self._key = nesting.key

    def __call__(self, row: Row) -> Any:
        return self._key(row)


def keyed_edits(
    key: Callable[[Row], Any] | None, pairs: Iterable[Pair], edits: Sequence[Edit]
) -> Iterable[Edit]:
    """Return the edits of rows with this key, with paths if they have inner rows.

    edits: the edits of whole rows, if they have an order.
    """
    if not isinstance(key, NestedKey):
        is_whole = bool(edits) or not has_bags(pairs)
        return edits if is_whole else record_edits(key, list(pairs))
    if key.is_ordered:
        return _inside_of_ordered(key.nesting, edits)
    find: Callable[[], Iterable[Edit] | None] | None = getattr(pairs, "edits", None)
    found = None if find is None else find()
    return edits_of(key.nesting, pairs) if found is None else found


def _inside_of_ordered(nesting: Nesting | Level, edits: Sequence[Edit]) -> Sequence[Edit]:
    """Return the edits of ordered rows; a row that is deleted and inserted between the same
    neighbours, with the same roots, is the same row.

    The old place minus the deleted rows before it, and the new place minus the inserted rows before
    it, are both the number of staying rows before a row.
    """
    if len(edits) < 2:
        return edits
    fewer = fewest_edits(edits)
    gone = [edit for edit in fewer if edit.weight < 0][::-1]
    came = [edit for edit in fewer if edit.weight > 0]
    gaps: defaultdict[tuple[int, Any], list[int]] = defaultdict(list)
    roots = nesting.kind.roots
    for number in range(len(gone) - 1, -1, -1):
        gaps[gone[number].position - number, gone[number].row[:roots]].append(number)
    found = [(n, gaps.get((came[n].position - n, came[n].row[:roots]))) for n in range(len(came))]
    kept = longest_increasing([(number, before.pop()) for number, before in found if before])
    if not kept:
        return fewer
    stayed, stays = {was for _, was in kept}, {now for now, _ in kept}
    made = [edit for number, edit in enumerate(gone) if number not in stayed][::-1]
    changed = {nesting.key(came[now].row): (gone[was].row, came[now].row) for now, was in kept}
    for old, new in changed.values():
        made += inner_edits(nesting, old, new, ())
    return [*made, *(edit for number, edit in enumerate(came) if number not in stays)]


def edits_of(nesting: Nesting | Level, pairs: Iterable[Pair], path: Path = ()) -> Iterator[Edit]:
    """Yield the edits of rows without an order, from deleted and inserted rows.

    >>> level = Level("words", None, lambda row: row, False)
    >>> list(edits_of(level, [("to", 1), ("be", -2)], ("key", "words")))[0]
    Edit(path=('key', 'words'), position=None, row='be', weight=-2)
    """
    gone, stays, came = _match_rows(nesting, pairs)
    for row, weight in gone:
        yield Edit(None, row, weight, path=path)
    for old, new in stays:
        yield from inner_edits(nesting, old, new, path)
    for row, weight in came:
        yield Edit(None, row, weight, path=path)


Matched = tuple[list[Pair], list[tuple[Row, Row]], list[Pair]]


def _match_rows(nesting: Nesting | Level, pairs: Iterable[Pair]) -> Matched:
    """Return the deleted rows, the rows that changed inside, and the inserted rows."""
    if not nesting.levels:
        every = list(pairs)
        return [p for p in every if p[1] < 0], [], [p for p in every if p[1] > 0]
    roots = nesting.kind.roots
    old = {row[:roots]: (row, -weight) for row, weight in pairs if weight < 0}
    gone: list[Pair] = []
    stays: list[tuple[Row, Row]] = []
    came: list[Pair] = []
    for row, weight in pairs:
        if weight > 0:
            before, count = old.pop(row[:roots], (None, 0))
            if count:
                stays.append((before, row))
            if count > weight:
                gone.append((before, weight - count))
            elif count < weight:
                came.append((row, weight - count))
    gone += [(row, -count) for row, count in old.values()]
    if gone and came:
        stays += _match_alike(nesting, gone, came)
    return gone, stays, came


def _match_alike(
    nesting: Nesting | Level, gone: list[Pair], came: list[Pair]
) -> Iterator[tuple[Row, Row]]:
    """Match rows of equal keys whose roots differ only in bags; remove them from both lists."""

    def marked(row: Row) -> tuple[Any, ...]:
        roots = row[: nesting.kind.roots]
        return (nesting.key(row), *map(fields_without_bags, roots))

    by_mark = {marked(pair[0]): pair for pair in gone if pair[1] == -1}
    for pair in list(came):
        before = by_mark.pop(marked(pair[0]), None) if pair[1] == 1 else None
        if before is not None:
            gone.remove(before)
            came.remove(pair)
            yield before[0], pair[0]


def inner_edits(
    nesting: Nesting | Level, old: Row, new: Row, path: Path, without: Collection[int] = ()
) -> Iterator[Edit]:
    """Yield the edits inside a row, except at the places `without`."""
    begin = nesting.kind.roots
    if old[:begin] != new[:begin]:
        for was, now in zip(old[:begin], new[:begin], strict=True):
            yield from bag_value_edits(was, now, (*path, nesting.key(old)))
    for place, level in enumerate(nesting.levels, begin):
        before, after = old[place], new[place]
        if before is not after and place not in without:
            inner = (*path, nesting.key(new), level.name)
            if level.is_sequence:
                yield from sequence_edits(level, before, after, inner)
            else:
                yield from edits_of(level, after.difference(before).items(), inner)


def sequence_edits(
    level: Level, old: Sequence[Row], new: Sequence[Row], path: Path
) -> Iterator[Edit]:
    """Yield the edits of rows with an order: deletions from the end first."""
    roots = level.kind.roots if level.levels else 0

    def inside(pairs: Iterable[tuple[Row, Row]]) -> Iterator[Edit]:
        for before, after in {level.key(new): (old, new) for old, new in pairs}.values():
            yield from inner_edits(level, before, after, path)

    return edits_of_parts(
        sequence_differences(old, new),
        (lambda row: row[:roots]) if roots else _itself,
        path,
        inside=inside if roots else None,
    )


def edits_of_parts(
    parts: Sequence[Part],
    begins: Callable[[Row], Any],
    path: Path,
    *,
    was: Callable[[Row], Row] | None = None,
    now: Callable[[Row], Row] | None = None,
    inside: Callable[[Iterable[tuple[Row, Row]]], Iterable[Edit]] | None = None,
) -> Iterator[Edit]:
    """Yield the edits for the differences of two sequences.

    Parameters
    ----------
    begins: returns the part of a row that it shares with its replacement.
    was, now: return the shown form of old and new rows, if it differs from the row.
    inside: returns the edits inside of rows that stay, given as pairs of old and new rows.
    """
    known = [(part, _match_staying(begins, part[1], part[3])) for part in parts]
    for (start, gone, _, _), kept in reversed(known):
        stayed = {place for _, place in kept}
        for place in range(len(gone) - 1, -1, -1):
            if place not in stayed:
                row = gone[place] if was is None else was(gone[place])
                yield Edit(start + place, row, -1, path=path)
    if inside is not None:
        yield from inside(
            (gone[was], came[now]) for (_, gone, _, came), kept in known for now, was in kept
        )
    for (_, _, start, came), kept in known:
        here = {place for place, _ in kept}
        for place, row in enumerate(came):
            if place not in here:
                yield Edit(start + place, row if now is None else now(row), 1, path=path)


def _match_staying(
    begins: Callable[[Row], Any], old: Sequence[Row], new: Sequence[Row]
) -> list[tuple[int, int]]:
    """Return the new and old places of rows that stay in the same order."""
    if not old or not new:
        return []
    places: dict[Any, list[int]] = {}
    for place in range(len(old) - 1, -1, -1):
        places.setdefault(begins(old[place]), []).append(place)
    found = [(place, places.get(begins(row))) for place, row in enumerate(new)]
    return longest_increasing([(place, before.pop()) for place, before in found if before])


def _itself(row: Row) -> Row:
    return row


def has_bags(pairs: Iterable[Pair]) -> bool:
    """Return True if a row has a bag."""
    return any(value.__class__ is Bag for row, _ in pairs for _, value in named_fields(row))


def record_edits(
    key: Callable[[Row], Any] | None, pairs: Sequence[Pair], path: Path = ()
) -> Iterator[Edit]:
    """Yield the edits of records, from deleted and inserted rows.

    Without a `key`, the key of a row is the row.

    >>> old, new = (1, Bag("a")), (1, Bag("ab"))
    >>> list(record_edits(lambda row: row[0], [(old, -1), (new, 1)]))
    [Edit(path=(1, 1), position=None, row='b', weight=1)]
    """
    came = [pair for pair in pairs if pair[1] > 0]
    by_mark: dict[Any, list[Pair]] = {}
    for row, weight in reversed(came):
        by_mark.setdefault(fields_without_bags(row), []).append((row, weight))
    stays: list[tuple[Row, Row]] = []
    for row, weight in pairs:
        if weight < 0:
            alike = by_mark.get(fields_without_bags(row), []) if weight == -1 else []
            if alike and alike[-1][1] == 1:
                stays.append((row, alike.pop()[0]))
            else:
                yield Edit(None, row, weight, path=path)
    for old, new in stays:
        yield from edits_of_bags(old, new, (*path, old if key is None else key(old)))
    kept = {id(new) for _, new in stays}
    for row, weight in came:
        if id(row) not in kept:
            yield Edit(None, row, weight, path=path)


def edits_of_bags(old: Row, new: Row, path: Path) -> Iterator[Edit]:
    """Yield the edits of the bags of a row that is unchanged otherwise."""
    for (field, before), (_, after) in zip(named_fields(old), named_fields(new), strict=True):
        if before is not after and before.__class__ is Bag:
            yield from record_edits(None, value_changes(before, after), (*path, field))


def bag_value_edits(old: Row, new: Row, path: Path) -> Iterator[Edit]:
    """Yield the edits of the bags of a row, without looking into their values, so that the edits
    can be applied in order."""
    for (field, before), (_, after) in zip(named_fields(old), named_fields(new), strict=True):
        if before is not after and before.__class__ is Bag:
            for value, weight in sorted(value_changes(before, after), key=itemgetter(1)):
                yield Edit(None, value, weight, path=(*path, field))


def fields_without_bags(row: Row) -> tuple[Any, ...]:
    """Return a value that identifies a row except for its bags."""
    fields = named_fields(row)
    if not fields:
        return (value_mark(row),)
    return (row.__class__, *[_mark_unless_bag(value) for _, value in fields])


def _mark_unless_bag(value: Any) -> Any:
    """Return the mark of a value; None for a bag, so that rows with other bags are alike."""
    return None if value.__class__ is Bag else value_mark(value)

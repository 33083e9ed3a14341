"""Order of an ordered relation, and edits of its sequences.

Order: total, and independent of the history.

Rows are sorted by key. Rows with equal keys are sorted by themselves if they are comparable (None
before numbers before strings before tuples, element by element; a dataclass only if it has
`order=True`), else by order of arrival. A NaN in a key sorts last. Several keys, their directions
and a place for None are combined into one key in `sorting.py`.

Edits: changes of a sequence, and the net effect of several edits.

    window of 2      b d  ->  a b (d)  ->  a c (b)  ->  a c
    edits            insert a at 0, delete d from 2; ...
    fewest           delete d from 1, delete b from 0, insert a at 0, insert c at 1

An ordered view reports the changes of its window as edits, to be applied in order. `EditedSequence`
applies any edits and returns the fewest edits with the same effect.
"""

from __future__ import annotations

import dataclasses
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import accumulate
from operator import eq, itemgetter
from typing import Any, NamedTuple, Self, overload

from optimizer.kinds.fields import by_recent_class
from reactive.engine.collections.zset import DECIMAL_NAN, Row, canonical, is_nan


class _Last:
    """Greater than everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self


class _First:
    """Less than everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return other is not self

    def __gt__(self, other: object) -> bool:
        return False


LAST, FIRST = _Last(), _First()
NO_ORDER = getattr(object, "__lt__")  # noqa: B009
EXACT_ORDER = frozenset([int, str, bytes])


def sort_key(key: Any) -> Any:
    """Replace every NaN in the key, or in a tuple key, by a value that sorts last.

    A tuple of exact types, and a tuple with an order of its own, stay as they are.
    """
    if isinstance(key, tuple) and key.__class__.__lt__ is tuple.__lt__:
        for part in key:
            if part.__class__ not in EXACT_ORDER:
                return tuple(map(sort_key, key))
        return key
    key = canonical(key)
    return LAST if is_nan(key) else key


class _TupleKey(tuple[Any, ...]):
    """Sort key of a tuple, with the tuple."""

    value: tuple[Any, ...]


def to_sortable(value: Any) -> Any:
    """Return the value, or its sort key if it is a tuple with a NaN.

    >>> to_sortable((2, "a")), to_sortable((2, float("nan"))) > (2, 5.0)
    ((2, 'a'), True)
    """
    if not isinstance(value, tuple):
        return value
    key = sort_key(value)
    if key == value:
        return value
    found = _TupleKey(key)
    found.value = value
    return found


def from_sortable(place: Any) -> Any:
    """Undo `to_sortable`."""
    return place.value if place.__class__ is _TupleKey else place


def tie_key(value: Any) -> tuple[Any, ...]:
    """Return a tuple by which values of different classes compare.

    The tuples of all values without an order are equal. Values of one class may still raise.
    """
    kind: Any = type(value)
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value) if value == value else (2,)
    if canonical(value) is DECIMAL_NAN:
        return (2,)
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, bytes):
        return (4, value)
    if isinstance(value, tuple):
        return (5, tuple(map(tie_key, value)))
    if hasattr(kind, "__dataclass_fields__") and kind.__lt__ is not NO_ORDER:
        fields = (getattr(value, f.name) for f in dataclasses.fields(kind) if f.compare)
        return (6, kind.__qualname__, tuple(map(tie_key, fields)))
    if kind.__lt__ is NO_ORDER or isinstance(value, Set | complex):
        return (9,)
    try:
        if value.__lt__(value) is NotImplemented:
            return (9,)
    except TypeError:
        pass  # a comparison of its parts raises later
    aware = getattr(value, "tzinfo", None) is not None  # dates and times of two kinds
    return (7, kind.__qualname__, aware, value)


def add_none_note(error: BaseException) -> None:
    """Add a note to an error that a None among the keys has caused."""
    if isinstance(error, TypeError) and "'NoneType'" in str(error):
        error.add_note('  nulls="first" or nulls="last" gives None a place')


@by_recent_class(64)
def has_order(kind: Any) -> bool:
    """Return False if no value of a class compares: `Struct` of msgspec has a method, but `order=`.

    >>> has_order(int), has_order(object)
    (True, False)
    """
    config = getattr(kind, "__struct_config__", None)
    is_shared = config is not None and not getattr(config, "order", True)
    method = kind.__lt__
    if is_shared and method.__objclass__.__module__.partition(".")[0] == "msgspec":
        return False
    return method is not NO_ORDER


def is_comparable_class(kind: Any) -> bool:
    """Return True if rows of a class with equal keys are sorted by themselves, not by arrival."""
    if not has_order(kind):
        return kind is type(None)
    return not issubclass(kind, Set | complex)


def are_plainly_comparable(rows: Sequence[Row]) -> bool:
    """Return True if rows compare like their tie keys: tuples, or values, of equal plain classes.

    >>> are_plainly_comparable([("a", 1), ("b", 2)])
    True
    >>> are_plainly_comparable([("a", 1), ("b", None)])
    False
    """
    kinds: set[Any] = set(map(type, rows))
    if len(kinds) != 1:
        return False
    (kind,) = kinds
    if not issubclass(kind, tuple):
        return _is_plain_column(rows)
    width = len(rows[0])
    if kind.__lt__ is not tuple.__lt__ or kind.__eq__ is not tuple.__eq__:
        return False
    if set(map(len, rows)) != {width} or kind.__getitem__ is not tuple.__getitem__:
        return False
    return all(_is_plain_column(list(map(itemgetter(n), rows))) for n in range(width))


def pairs_in_order(
    pairs: Iterable[tuple[Any, Row]], descending: bool, tie: Callable[[Row], Any] | None = None
) -> list[tuple[Any, Row]]:
    """Sort keys and rows by key, as `order_by` does.

    tie: the value that sorts rows with equal keys, if not the row itself.
    """
    every = list(pairs)
    rows = [row for _, row in every] if tie is None else [tie(row) for _, row in every]
    if tie is None or not every:
        every.sort(key=_ROW if are_plainly_comparable(rows) else _tie_of_row)
    else:
        ties = rows if are_plainly_comparable(rows) else list(map(tie_key, rows))
        every = [every[n] for n in sorted(range(len(every)), key=ties.__getitem__)]
    keys = [key for key, _ in every]
    every.sort(key=_KEY if are_plainly_comparable(keys) else _order_of_key, reverse=descending)
    return every


_KEY, _ROW = itemgetter(0), itemgetter(1)


def _order_of_key(pair: tuple[Any, Any]) -> Any:
    return sort_key(pair[0])


def _tie_of_row(pair: tuple[Any, Any]) -> Any:
    return tie_key(pair[1])


def _is_plain_column(values: Sequence[Any]) -> bool:
    """Return True if all values have one plain class, and none is NaN: their order is Python's."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return all(map(eq, values, values))  # no NaN
    return len(kinds) == 1 and kinds <= EXACT_ORDER


class EditParts(NamedTuple):
    """Position, row and weight of an edit."""

    position: Any
    row: Row
    weight: int


class Edit(EditParts):
    """One change of a sequence or bag of rows; apply edits in order.

    `weight` 1: insert `row` before `position`; -1: delete it at `position`. Rows without an order
    have no position, and are inserted or deleted `weight` times.

    `path` tells what changes: `()` the rows of the relation; for a `nest`, for example,
    `(key, "orders", key, "lines")` the lines of the order with the second key, of the customer with
    the first. A key is the key of a keyed table; for other tables it is the row.

    >>> from reactive import Database
    >>> numbers = Database().table(int)
    >>> watching = numbers.order_by(lambda n: n).subscribe(lambda delta: print(delta.edits))
    >>> numbers.add(7)
    (Edit(position=0, row=7, weight=1),)
    >>> Edit(None, 7, -1, path=("odd", "numbers"))
    Edit(path=('odd', 'numbers'), position=None, row=7, weight=-1)
    """

    path: tuple[Any, ...] = ()

    def __new__(cls, position: Any, row: Row, weight: int, *, path: tuple[Any, ...] = ()) -> Self:
        made = tuple.__new__(cls, (position, row, weight))
        if path:
            made.path = path
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edit):
            return NotImplemented
        return tuple.__eq__(self, other) and self.path == other.path

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.path))

    def __getnewargs_ex__(self) -> Any:
        return tuple(self), {"path": self.path}

    def __repr__(self) -> str:
        text = super().__repr__()
        return text if not self.path else f"Edit(path={self.path!r}, {text.partition('(')[2]}"


class Insertions(Sequence[Edit]):
    """Edits that turn an empty sequence into these rows, created when they are read.

    >>> list(Insertions(["a", "b"]))
    [Edit(position=0, row='a', weight=1), Edit(position=1, row='b', weight=1)]
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @overload
    def __getitem__(self, place: int) -> Edit: ...
    @overload
    def __getitem__(self, place: slice) -> list[Edit]: ...
    def __getitem__(self, place: int | slice) -> Edit | list[Edit]:
        places = range(len(self._rows))[place]
        if isinstance(places, int):
            return Edit(places, self._rows[places], 1)
        return [Edit(each, self._rows[each], 1) for each in places]

    def __len__(self) -> int:
        return len(self._rows)


def checked_count(value: Any) -> int:
    """Return a number of rows; raise `ValueError` if it is none."""
    if type(value) is not int or value < 0:
        raise ValueError(f"a limit counts rows, from 0 on, and is not {value!r:.100}")
    return value


def fewest_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Return the fewest edits with the same effect; rows that are inserted and deleted are left
    out.

    >>> fewest_edits([Edit(0, "a", 1), Edit(2, "c", -1), Edit(0, "a", -1), Edit(1, "d", 1)])
    [Edit(position=1, row='c', weight=-1), Edit(position=1, row='d', weight=1)]
    """
    sequence = EditedSequence()
    sequence.edit(edits)
    return sequence.edits()


def drop_copied_edits(edits: list[Edit], row_at: Callable[[int], Row], size: int) -> list[Edit]:
    """Drop edits that delete a copy of a row at one end of its copies and insert one at the other.

    Copies of a row are neighbours, and cannot be told apart.

    Parameters
    ----------
    edits: the fewest edits: deletions from the end, then insertions in order.
    row_at, size: the new sequence.
    """
    out = [edit for edit in edits if edit.weight < 0][::-1]
    into = [edit for edit in edits if edit.weight > 0]
    copied = {edit.row for edit in out} & {edit.row for edit in into}
    if not copied:
        return edits
    before = [edit.position - n for n, edit in enumerate(into)]  # number of rows that stayed
    dropped: set[Edit] = set()
    for n, gone in enumerate(out):
        stayed = gone.position - n
        first, last = stayed + bisect_left(before, stayed), stayed + bisect_right(before, stayed)
        for came in into if gone.row in copied else ():
            if _is_copy(came.row, gone.row) and came not in dropped:
                start, end = _copies_around(came.position, row_at, size)
                if first <= end and last >= start:
                    dropped |= {gone, came}
                    break
    return [edit for edit in edits if edit not in dropped]


def _copies_around(position: int, row_at: Callable[[int], Row], size: int) -> tuple[int, int]:
    """Return the start and end of the copies of the row at a position."""
    row, start, end = row_at(position), position, position + 1
    while start and _is_copy(row_at(start - 1), row):
        start -= 1
    while end < size and _is_copy(row_at(end), row):
        end += 1
    return start, end


def _is_copy(row: Row, other: Row) -> bool:
    """Return True if rows are copies of each other, also if they are NaN."""
    return row is other or bool(row == other)


class EditedSequence:
    """Edited sequence, in terms of its original.

    State:  an item per edit that does not cancel another.
    Cost:   O(sqrt(edits)) to apply an edit, at any position.

    >>> numbers = EditedSequence()
    >>> numbers.edit([Edit(1, "a", -1), Edit(3, "b", 1), Edit(1, "a", 1), Edit(4, "b", -1)])
    >>> numbers.edits()
    []
    """

    __slots__ = ("_came", "_gone", "_items")

    def __init__(self) -> None:
        self._items = _SequenceItems()
        self._gone: dict[int, Row] = {}  # deleted rows, by their old place
        self._came = 0

    @property
    def is_edited(self) -> bool:
        """True if the sequence may differ from its original."""
        return bool(self._came or self._gone)

    def edit(self, edits: Iterable[Edit]) -> None:
        """Apply edits."""
        items = self._items
        for position, row, weight in edits:
            if weight > 0:
                items.insert(position, (row,))
                self._came += 1
                continue
            item = items.pop(position)
            if item.__class__ is int:
                self._gone[item] = row
            else:
                self._came -= 1

    def edits(self) -> list[Edit]:
        """Return the edits from the old to the new sequence: deletions from the end, then
        insertions."""
        gone, came = self._differences()
        out = [Edit(place, row, -1) for place, row in sorted(gone.items(), key=_old_place)[::-1]]
        return out + [Edit(position, row, 1) for position, row in came]

    def _differences(self) -> tuple[dict[int, Row], list[tuple[int, Row]]]:
        """Return the deleted rows by old place, and the inserted rows by new position.

        A row that was deleted and inserted between the same two rows is left out, as long as the
        rows left out keep their old order.
        """
        gone, came = dict(self._gone), list[tuple[int, Row]]()
        gap: list[tuple[int, Row]] = []
        places = sorted(gone)
        position = start = 0
        for item in self._items:
            if item.__class__ is tuple:
                gap.append((position, item[0]))
                position += 1
                continue
            end = bisect_left(places, item.start)
            if gap:
                kept = _match_unmoved(gap, [(place, gone[place]) for place in places[start:end]])
                for place in kept.values():
                    del gone[place]
                came += [pair for pair in gap if pair[0] not in kept]
                gap = []
            start = end
            position += len(item)
        return gone, came


class _SequenceItems:
    """Items of a sequence: inserted rows, each in a tuple, and ranges of old places.

    The last range has no end. Items are stored in blocks, so that a position is found without a
    scan of all items.
    """

    __slots__ = ("_blocks", "_sizes")

    def __init__(self) -> None:
        self._blocks: list[list[Any]] = [[range(sys.maxsize)]]
        self._sizes = [sys.maxsize]  # places and rows of each block

    def __iter__(self) -> Iterator[Any]:
        for block in self._blocks:
            yield from block

    def insert(self, position: int, item: tuple[Row]) -> None:
        """Insert a row before a position."""
        block, index, within = self._find(position)
        items = self._blocks[block]
        if within:
            run = items[index]
            items[index : index + 1] = [run[:within], item, run[within:]]
        else:
            items.insert(index, item)
        self._sizes[block] += 1
        self._keep_short(block)

    def pop(self, position: int) -> Any:
        """Remove the item at a position: a row in its tuple, or an old place."""
        block, index, within = self._find(position)
        items = self._blocks[block]
        item = items[index]
        self._sizes[block] -= 1
        if item.__class__ is tuple:
            del items[index]
            return item
        items[index : index + 1] = [run for run in (item[:within], item[within + 1 :]) if run]
        self._keep_short(block)
        return item[within]

    def _find(self, position: int) -> tuple[int, int, int]:
        """Return the block of a position, the item in the block, and the place within the item."""
        block = 0
        if len(self._sizes) > 1:
            block, position = _locate(self._sizes, position)
        index, within = _locate(map(len, self._blocks[block]), position)
        return block, index, within

    def _keep_short(self, block: int) -> None:
        """Split a block that has more than `LONG` items."""
        items = self._blocks[block]
        if len(items) > LONG:
            middle = len(items) // 2
            halves = items[:middle], items[middle:]
            self._blocks[block : block + 1] = halves
            self._sizes[block : block + 1] = [sum(map(len, half)) for half in halves]


LONG = 512
"""Most items of a block; longer ones are split."""


def _locate(sizes: Iterable[int], position: int) -> tuple[int, int]:
    """Return the index of the size that a position falls into, and the offset in it."""
    ends = list(accumulate(sizes))
    at = bisect_right(ends, position)
    return at, position - (ends[at - 1] if at else 0)


def _match_unmoved(
    came: Sequence[tuple[int, Row]], gone: Sequence[tuple[int, Row]]
) -> dict[int, int]:
    """Return new position -> old place of rows that were deleted and inserted in the same order."""
    places: defaultdict[Row, list[int]] = defaultdict(list)
    for place, row in reversed(gone):
        places[row].append(place)
    pairs = [(position, places[row].pop()) for position, row in came if places.get(row)]
    return dict(longest_increasing(pairs))


def longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of `pairs` whose second items strictly increase.

    O(n log n).
    """
    ends: list[int] = []  # the least end of an increasing run of each length
    last: list[int] = []  # the pair at that end
    before: list[int | None] = []  # the pair before each in its longest run
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        ends[length : length + 1], last[length : length + 1] = [place], [number]
        before.append(last[length - 1] if length else None)
    run: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]


def _old_place(pair: tuple[int, Row]) -> int:
    return pair[0]

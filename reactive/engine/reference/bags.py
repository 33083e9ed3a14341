"""Bags, joins and orders evaluated from scratch.

Joins evaluated from scratch: pairs of rows, of which the whole predicate is asked.

    join, left_join, ...   keys as written, and then the predicate
    where of a product     the same, without keys
    product                all pairs

Pairs that cannot match by what the predicate says must be equal are not looked at
(`keys.py`). Some of those are asked all the same: if one of them matches, the predicate
has been misread, and all pairs are asked.

Cost: one look-up per row, and one call per pair that agrees; all pairs where nothing must be equal.

An order evaluated from scratch: rows sorted by their keys, and those that tie by themselves.

Cost: O(n log n); rows are compared with each other only where their keys do not tell them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.plans.properties import below_wheres, bindings
from optimizer.record import record
from optimizer.rewriting.clashing import RefusedValues
from optimizer.rewriting.lookups import looked_up
from optimizer.rewriting.own_values import hash_of
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.index import ERROR_KEY, FILTERED, NO_MATCH, itself, match_key
from reactive.engine.collections.order import LAST, sort_key, tie_key
from reactive.engine.collections.sorting import sorted_by
from reactive.engine.collections.zset import Pair, Row, canonical, repeat
from reactive.engine.reference.keys import Place, places
from reactive.engine.runtime.progress import SILENT, Progress

TRIED = 1_000
"""Pairs, at most, that are asked though they need not be."""
STRIDE = 2_654_435_761
"""Spreads the pairs that are asked without need over all pairs."""
JOINS = (plan.Product, plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin)
Placed = tuple[Any, Row, int]
"""A row with its weight, after what must be equal to that of its partners."""
Found = tuple[Row, int, Row, int]
"""A row of the left and one of the right that match, with their weights."""


@record
class PairedInputs:
    """Two inputs, and when their rows match: if the keys are equal, and then the predicates true,
    in their order."""

    left: plan.Node
    right: plan.Node
    keys: tuple[Function, Function] | None
    predicates: tuple[Function, ...]


def pairing(node: plan.Node) -> PairedInputs | None:
    """The rows that a node pairs; None if it does not. Wheres of pairs belong to it."""
    kinds = (plan.Product, plan.Join) if isinstance(node, plan.Where) else JOINS
    below = below_wheres(node)
    if not isinstance(below, kinds):
        return None
    wheres: list[Function] = []
    while isinstance(node, plan.Where):
        wheres.append(node.predicate)
        node = node.input
    match = plan.Match() if isinstance(below, plan.Product) else below.match
    keys = None
    if match.left_key is not None and match.right_key is not None:
        keys = match.left_key, match.right_key
    own = () if match.on is None else (match.on,)
    return PairedInputs(below.left, below.right, keys, (*own, *reversed(wheres)))


def joined(node: plan.Node, found: PairedInputs, of: Of, progress: Progress = SILENT) -> Bag:
    """The rows of a join of any kind, or of wheres of one."""
    left, right = of(found.left), of(found.right)
    match node:
        case plan.SemiJoin() | plan.AntiJoin() if (key := looked_up(node.match)) is not None:
            return _by_hash(node, key, left, right)
        case plan.SemiJoin():
            partners = _partners(found, left, right, progress)
            return bag_of({a: n for a, n in left.items() if partners[a] > 0})
        case plan.AntiJoin():
            partners = _partners(found, left, right, progress)
            return bag_of({a: n for a, n in left.items() if partners[a] <= 0})
        case plan.OuterJoin():
            return _outer(node, found, left, right, progress)
        case _:
            pair = paired(found.left)
            return bag_of(
                {pair(a, b): n * m for a, n, b, m in matches(found, left, right, progress)}
            )


def _by_hash(
    node: plan.SemiJoin | plan.AntiJoin,
    key: tuple[Function, RefusedValues],
    left: Bag,
    right: Bag,
) -> Bag:
    """The rows whose values have a hash of the right, or one of values that are refused."""
    value, memory = caller(key[0], node.left), key[1]
    hashes, wanted = {hash_ for hash_, n in right.items() if n > 0}, isinstance(node, plan.SemiJoin)
    found = ((row, n, hash_of(value(row))) for row, n in left.items())
    asked = ((row, n, of in hashes or memory.has_hash(of)) for row, n, of in found)
    return Counter({row: n for row, n, is_one in asked if is_one is wanted})


def _partners(found: PairedInputs, left: Bag, right: Bag, progress: Progress) -> Bag:
    """What the partners of each left row weigh. All pairs are asked, as asking one may raise."""
    if found.keys is None and not found.predicates:
        return bag_of(dict.fromkeys(left, right.total()))
    return _weighed((a, m) for a, _, _, m in matches(found, left, right, progress))


def _weighed(pairs: Iterable[Pair]) -> Bag:
    """What is there of each row, which is a canonical one already."""
    total: Bag = Counter()
    for row, weight in pairs:
        total[row] += weight
    return total


def _outer(
    node: plan.OuterJoin, found: PairedInputs, left: Bag, right: Bag, progress: Progress
) -> Bag:
    pair, count = paired(node.left), bindings(node.left)
    matched = list(matches(found, left, right, progress))
    lefts = _weighed((a, m) for a, _, _, m in matched)
    rights = _weighed((b, n) for _, n, b, _ in matched)
    nothing = None if count == 1 else (None,) * count
    pairs: Iterable[Pair] = ((pair(a, b), n * m) for a, n, b, m in matched)
    if node.kind != "right":
        pairs = chain(pairs, ((pair(a, None), n) for a, n in left.items() if lefts[a] <= 0))
    if node.kind != "left":
        pairs = chain(pairs, ((pair(nothing, b), m) for b, m in right.items() if rights[b] <= 0))
    return added(pairs)


def matches(
    found: PairedInputs, left: Bag, right: Bag, progress: Progress = SILENT
) -> Iterator[Found]:
    """Pairs of rows that match, with their weights."""
    matching = EqualityMatching(found)
    lefts, rights = matching.left.placed(left), matching.right.placed(right)
    if matching.spares and _is_misread(matching, lefts, rights):
        matching = EqualityMatching(found, spare=False)
        lefts, rights = matching.left.placed(left), matching.right.placed(right)
    for place, row, weight in rights:
        matching.right.add(place, row, weight)
    fits, agreeing = matching.fits, matching.right.agreeing
    for place, row, weight in progress.over(lefts):
        for other, times in agreeing(place):
            if fits(row, other):
                yield row, weight, other, times


def _is_misread(
    matching: EqualityMatching, left: Sequence[Placed], right: Sequence[Placed]
) -> bool:
    """Whether some pair matches that is not looked at; not all of them are asked."""
    for number in range(min(TRIED, len(left) * len(right))):
        place, row, _ = left[number * STRIDE % len(left)]
        other_place, other, _ = right[number * STRIDE**2 % len(right)]
        if not _agree(place, other_place) and matching.fits(row, other):
            return True
    return False


def _agree(place: Any, other: Any) -> bool:
    """Whether a pair is looked at."""
    if place is ERROR_KEY or other is ERROR_KEY:
        return True
    return place is not FILTERED and bool(place == other)


class EqualityMatching:
    """The rows of two sides, by what must be equal in them. Of the predicates that say so, only
    `tests` are asked."""

    def __init__(
        self, found: PairedInputs, *, spare: bool = True, tests: Sequence[Function] | None = None
    ) -> None:
        self.fits = _fits(found.left, found.predicates if tests is None else tests)
        """Whether the predicates are true of a pair."""
        self.spares = False
        """Whether pairs are spared because of what the predicates say."""
        self.left, self.right = self._sides(found, spare=spare)

    def partners(self, row: Row) -> list[Pair]:
        """The right rows that match a left one."""
        agreeing = self.right.agreeing(self.left.place(row))
        return [(other, times) for other, times in agreeing if self.fits(row, other)]

    def partnered(self, other: Row) -> list[Pair]:
        """The left rows that match a right one."""
        agreeing = self.left.agreeing(self.right.place(other))
        return [(row, weight) for row, weight in agreeing if self.fits(row, other)]

    def _sides(self, found: PairedInputs, *, spare: bool) -> tuple[SideRows, SideRows]:
        if found.keys is not None:
            of_left, of_right = caller(found.keys[0], found.left), callable_of(found.keys[1])
            return SideRows(lambda row: match_key(of_left(row))), SideRows(
                lambda b: match_key(of_right(b))
            )
        read = places(found.predicates, bindings(found.left)) if spare else None
        if read is None:
            return SideRows(_anywhere), SideRows(_anywhere)
        self.spares = True
        return SideRows(read[0]), SideRows(read[1])


class SideRows:
    """Rows of one side, in their places."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._rows: dict[Any, dict[Row, int]] = {}

    def placed(self, rows: Bag) -> list[Placed]:
        """Rows with their places; all keys are asked for before any pair is looked at."""
        place = self.place
        return [(place(row), row, weight) for row, weight in rows.items()]

    def add(self, place: Any, row: Row, weight: int) -> None:
        """Add a row, or take it away."""
        rows = self._rows.get(place)
        if rows is None:
            rows = self._rows[place] = {}
        total = rows.get(row, 0) + weight
        if total:
            rows[row] = total
        else:
            rows.pop(row, None)

    def move(self, row: Row, weight: int) -> None:
        """Add a row, or take it away, where its place is not known yet."""
        self.add(self.place(row), row, weight)

    def agreeing(self, place: Any) -> Iterable[Pair]:
        """The rows that may match one of the other side, by the place of that."""
        if place is NO_MATCH:
            return ()
        if place is ERROR_KEY:
            return [pair for rows in self._rows.values() for pair in rows.items()]
        rows = self._rows.get(place) if place is not FILTERED else None
        suspects = self._rows.get(ERROR_KEY)
        if suspects:
            return [*(rows or {}).items(), *suspects.items()]
        return rows.items() if rows else ()


def _anywhere(row: Row) -> tuple[()]:
    return ()


def _fits(left: plan.Node, predicates: Sequence[Function]) -> Callable[[Row, Row], object]:
    """What asks the predicates of a pair."""
    calls, pair = [callable_of(predicate) for predicate in predicates], paired(left)
    if not calls:
        return lambda row, other: True
    (first, *others) = calls

    def fits(row: Row, other: Row) -> object:
        arguments = pair(row, other)
        if not others:
            return first(*arguments)
        return first(*arguments) and all(call(*arguments) for call in others)

    return fits


# Bags of rows, and callables over them: what all of an evaluation from scratch needs.

Bag = Counter[Row]
"""Rows with their weights. Between nodes one may be negative, as below `negate`; none is zero."""
Variables = Mapping[tuple[Any, int], Bag]
"""The rows that recursive relations have so far, by level and place."""
Tables = Callable[[plan.Table], Iterable[Pair]]
Of = Callable[[plan.Node], Bag]
"""The rows of an input."""
_empty, _fill = dict.__new__, dict.update
"""Make and fill a `Counter` without its `__init__`, which looks at what it is given."""


def added(pairs: Iterable[Pair]) -> Bag:
    """A bag of rows that may come several times.

    >>> added([("a", 1), ("b", 1), ("a", 2)])
    Counter({'a': 3, 'b': 1})
    """
    bag: Bag = Counter()
    get = bag.get
    for row, weight in pairs:
        row = canonical(row)
        bag[row] = get(row, 0) + weight
    return net(bag)


def bag_of(weights: Mapping[Row, int]) -> Bag:
    """A bag of rows with these weights, none of which is zero; a fifth of the time of `Counter`."""
    bag: Bag = _empty(Counter)
    _fill(bag, weights)
    return bag


def net(bag: Bag) -> Bag:
    """Return the rows whose weight is not zero."""
    return bag_of({row: n for row, n in bag.items() if n}) if 0 in bag.values() else bag


def both(left: Bag, right: Bag) -> Bag:
    """The weights of two bags, added.

    >>> both(Counter(a=1, b=2), Counter(a=-1, b=1, c=-1))
    Counter({'b': 3, 'c': -1})
    """
    total = bag_of(left)
    grow(total, right)
    return total


def there(bag: Bag) -> Bag:
    """The rows of positive weight."""
    return bag_of({row: n for row, n in bag.items() if n > 0})


def once(rows: Iterable[Row]) -> Bag:
    """Each row once."""
    return bag_of(dict.fromkeys(rows, 1))


def asked(function: Function, source: plan.Node) -> Callable[[Row], Any]:
    """A callable of the rows of a node, whose answer is looked at and not kept."""
    call = callable_of(function)
    return call if bindings(source) == 1 else lambda row: call(*row)


def caller(function: Function, source: plan.Node) -> Callable[[Row], Any]:
    """A callable of the rows of a node; making one takes longer than calling it."""
    call = callable_of(function)
    if bindings(source) == 1:
        return lambda row: canonical(call(row))
    return lambda row: canonical(call(*row))


def members(key: Function, source: plan.Node, rows: Bag) -> dict[Any, list[Pair]]:
    """The rows of each group that are there, by its key."""
    return by_key(caller(key, source), there(rows).items())


def by_key(key_of: Callable[[Row], Any], rows: Iterable[Pair]) -> dict[Any, list[Pair]]:
    """Some rows by the key of their groups."""
    groups: dict[Any, list[Pair]] = {}
    for pair in rows:
        groups.setdefault(key_of(pair[0]), []).append(pair)
    return groups


def paired(left: plan.Node) -> Callable[[Row, Row], Row]:
    """What makes a row of one of a node and of one binding more."""
    if bindings(left) == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)


def grow(bag: Bag, change: Bag) -> None:
    """Add a change to a bag, in which no row is left with a weight of zero."""
    for row, weight in change.items():
        total = bag.get(row, 0) + weight
        if total:
            bag[row] = total
        else:
            bag.pop(row, None)


def difference(bag: Bag, before: Bag) -> Bag:
    """The change from one bag to another."""
    change = bag_of(bag)
    for row, weight in before.items():
        total = change.get(row, 0) - weight
        if total:
            change[row] = total
        else:
            change.pop(row, None)
    return change


Keyed = tuple[Any, Row]
"""What a row is sorted by, and the row."""


def in_order(node: plan.OrderBy, bag: Bag) -> list[Row]:
    """The rows that an order shows, of all rows."""
    rows = [row for alike in settled(node, bag) for row in alike]
    last = len(rows) if node.limit is None else node.offset + node.limit
    return rows[node.offset : last]


def settled(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """All rows in their order, as they are shown; those that no order tells apart together."""
    for rows in runs(node, bag):
        yield from _by_themselves(rows) if len(rows) > 1 else [rows]


def runs(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """Yield all rows in their order, as they are shown; rows with equal keys together."""
    key = order_key(node)
    keyed = [(key(row), row) for row in repeat(bag.items())]
    if any(key is LAST for key, _ in keyed):
        keyed.sort(key=lambda pair: _SortKey(pair[0]), reverse=node.descending)
    else:
        keyed.sort(key=_key_of, reverse=node.descending)
    show = node.show or itself
    for tied in _runs(keyed, descending=node.descending):
        yield [*map(show, tied)]


def order_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    """What gives the value that a row is sorted by."""
    read = sorted_by(node.keys, [caller(key.function, node.input) for key in node.keys])
    return lambda row: sort_key(read(row))


def _key_of(keyed: Keyed) -> Any:
    return keyed[0]


def _runs(keyed: list[Keyed], *, descending: bool) -> Iterator[list[Row]]:
    """Rows that the order does not tell apart, together."""
    run: list[Row] = []
    before: Any = None
    for key, row in keyed:
        lesser, greater = (key, before) if descending else (before, key)
        if run and _SortKey(lesser) < _SortKey(greater):
            yield run
            run = []
        run.append(row)
        before = key
    if run:
        yield run


def _by_themselves(tied: list[Row]) -> Iterator[list[Row]]:
    """Rows of which the keys are equal."""
    return (list(rows) for _, rows in groupby(sorted(tied, key=tie_key), key=tie_key))


class _SortKey:
    """A sort key that may be `LAST`."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: _SortKey) -> bool:
        if other.key is LAST:
            return self.key is not LAST
        return self.key is not LAST and bool(self.key < other.key)


# The first rows of each group, evaluated from scratch: each group sorted by itself.


def topped(node: plan.Top, rows: Bag) -> Bag:
    """The rows that an order of each group shows."""
    found: Bag = Counter()
    for group in members(node.key, node.input, rows).values():
        found.update(in_order(node.order, Counter(dict(group))))
    return found


def are_as_good(node: plan.Top, shown: Bag, expected: Bag, rows: Bag) -> bool:
    """Whether rows differ only in which of those are there that no order tells apart."""
    return not shown - rows and _places(node, shown) == _places(node, expected)


def _places(node: plan.Top, bag: Bag) -> dict[Any, list[Any]]:
    """What decides where the rows of each group stand."""
    key = order_key(node.order)
    whole = plan.OrderBy(node.input, node.keys, None, 0)
    return {
        name: [(key(row), tie_key(row)) for row in in_order(whole, Counter(dict(group)))]
        for name, group in members(node.key, node.input, bag).items()
    }

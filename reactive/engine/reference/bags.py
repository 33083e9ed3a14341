"""Bags, joins and orders evaluated from scratch.

A join tests the complete predicate on pairs of rows.

    join, left_join, ...   keys as written, and then the predicate
    where of a product     the same, without keys
    product                all pairs

Pairs whose rows differ in values that the predicate equates are skipped (`keys.py`). Some of them
are tested nevertheless: if one matches, the predicate was misread, and all pairs are tested.

Cost: one look-up per row, and one call per pair that agrees; all pairs where nothing must be equal.

An order sorts rows by their keys, and rows with equal keys by their values.

Cost: O(n log n); rows are compared with each other only where their keys are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from reactive.engine.collections.order import LAST, checked_count, sort_key, tie_key
from reactive.engine.collections.sorting import make_sort_key
from reactive.engine.collections.zset import Pair, Row, canonical, repeat_by_weight
from reactive.engine.reference.keys import Place, places
from reactive.engine.runtime.progress import SILENT, Progress

TRIED = 1_000
"""Maximum number of skipped pairs that are tested nevertheless."""
STRIDE = 2_654_435_761
"""Spreads the tested ones over all skipped pairs."""
JOINS = (plan.Product, plan.Join, plan.SemiJoin, plan.AntiJoin, plan.OuterJoin)
Placed = tuple[Any, Row, int]
"""A key, a row and its weight; rows with different keys do not match."""
Found = tuple[Row, int, Row, int]
"""A row of the left and one of the right that match, with their weights."""


@record
class PairedInputs:
    """Two inputs, and the conditions under which their rows match.

    The keys must be equal, and then the predicates true, in their order.
    """

    left: plan.Node
    right: plan.Node
    keys: tuple[Function, Function] | None
    predicates: tuple[Function, ...]


def pairing(node: plan.Node) -> PairedInputs | None:
    """Return the inputs that a node pairs, with all filters above; None if it pairs none."""
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


def join_rows(node: plan.Node, found: PairedInputs, of: Of, progress: Progress = SILENT) -> Bag:
    """Return the rows of a join of any kind, or of filters above one.

    `found` is `pairing(node)`; `of` returns the rows of an input.
    """
    left, right = of(found.left), of(found.right)
    match node:
        case plan.SemiJoin() | plan.AntiJoin() if (key := looked_up(node.match)) is not None:
            return _by_hash(node, key, left, right)
        case plan.SemiJoin():
            partners = _partners(found, left, right, progress)
            return make_bag({a: n for a, n in left.items() if partners[a] > 0})
        case plan.AntiJoin():
            partners = _partners(found, left, right, progress)
            return make_bag({a: n for a, n in left.items() if partners[a] <= 0})
        case plan.OuterJoin():
            return _outer(node, found, left, right, progress)
        case _:
            pair = pair_maker(found.left)
            return make_bag(
                {pair(a, b): n * m for a, n, b, m in matching_pairs(found, left, right, progress)}
            )


def _by_hash(
    node: plan.SemiJoin | plan.AntiJoin,
    key: tuple[Function, RefusedValues],
    left: Bag,
    right: Bag,
) -> Bag:
    """Return the left rows whose value has a hash in `right`, or in the refused values.

    An anti-join returns the other left rows.
    """
    value, memory = caller(key[0], node.left), key[1]
    hashes, wanted = {hash_ for hash_, n in right.items() if n > 0}, isinstance(node, plan.SemiJoin)
    found = ((row, n, hash_of(value(row))) for row, n in left.items())
    asked = ((row, n, of in hashes or memory.has_hash(of)) for row, n, of in found)
    return Counter({row: n for row, n, is_one in asked if is_one is wanted})


def _partners(found: PairedInputs, left: Bag, right: Bag, progress: Progress) -> Bag:
    """Return the total weight of the partners of each left row.

    All pairs are tested, since a test may raise.
    """
    if found.keys is None and not found.predicates:
        return make_bag(dict.fromkeys(left, right.total()))
    return _sum_weights((a, m) for a, _, _, m in matching_pairs(found, left, right, progress))


def _sum_weights(pairs: Iterable[Pair]) -> Bag:
    """Sum the weights of canonical rows."""
    total: Bag = Counter()
    for row, weight in pairs:
        total[row] += weight
    return total


def _outer(
    node: plan.OuterJoin, found: PairedInputs, left: Bag, right: Bag, progress: Progress
) -> Bag:
    """Return the rows of an outer join: the matching pairs, and rows without a partner."""
    pair, count = pair_maker(node.left), bindings(node.left)
    matched = list(matching_pairs(found, left, right, progress))
    lefts = _sum_weights((a, m) for a, _, _, m in matched)
    rights = _sum_weights((b, n) for _, n, b, _ in matched)
    nothing = None if count == 1 else (None,) * count
    pairs: Iterable[Pair] = ((pair(a, b), n * m) for a, n, b, m in matched)
    if node.kind != "right":
        pairs = chain(pairs, ((pair(a, None), n) for a, n in left.items() if lefts[a] <= 0))
    if node.kind != "left":
        pairs = chain(pairs, ((pair(nothing, b), m) for b, m in right.items() if rights[b] <= 0))
    return sum_pairs(pairs)


def matching_pairs(
    found: PairedInputs, left: Bag, right: Bag, progress: Progress = SILENT
) -> Iterator[Found]:
    """Yield the pairs of rows that match, with their weights."""
    matching = EqualityMatching(found)
    lefts, rights = matching.left.key_rows(left), matching.right.key_rows(right)
    if matching.spares and _is_pair_misread(matching, lefts, rights):
        matching = EqualityMatching(found, spare=False)
        lefts, rights = matching.left.key_rows(left), matching.right.key_rows(right)
    for place, row, weight in rights:
        matching.right.add(place, row, weight)
    fits, agreeing = matching.fits, matching.right.agreeing
    for place, row, weight in progress.over(lefts):
        for other, times in agreeing(place):
            if fits(row, other):
                yield row, weight, other, times


def _is_pair_misread(
    matching: EqualityMatching, left: Sequence[Placed], right: Sequence[Placed]
) -> bool:
    """Return True if a skipped pair matches; only some of them are tested."""
    for number in range(min(TRIED, len(left) * len(right))):
        place, row, _ = left[number * STRIDE % len(left)]
        other_place, other, _ = right[number * STRIDE**2 % len(right)]
        if not _is_pair_compared(place, other_place) and matching.fits(row, other):
            return True
    return False


def _is_pair_compared(place: Any, other: Any) -> bool:
    """Return True if a pair is not skipped."""
    if place is ERROR_KEY or other is ERROR_KEY:
        return True
    return place is not FILTERED and bool(place == other)


class EqualityMatching:
    """The rows of two sides by their keys. Of the predicates, only `tests` are tested, if given."""

    def __init__(
        self, found: PairedInputs, *, spare: bool = True, tests: Sequence[Function] | None = None
    ) -> None:
        self.fits = _make_pair_test(found.left, found.predicates if tests is None else tests)
        """Returns True if the predicates are true of a pair."""
        self.spares = False
        """True if pairs are skipped by equations in the predicates."""
        self.left, self.right = self._sides(found, spare=spare)

    def partners(self, row: Row) -> list[Pair]:
        """Return the right rows that match a left one."""
        agreeing = self.right.agreeing(self.left.place(row))
        return [(other, times) for other, times in agreeing if self.fits(row, other)]

    def left_partners(self, other: Row) -> list[Pair]:
        """Return the left rows that match a right one."""
        agreeing = self.left.agreeing(self.right.place(other))
        return [(row, weight) for row, weight in agreeing if self.fits(row, other)]

    def _sides(self, found: PairedInputs, *, spare: bool) -> tuple[SideRows, SideRows]:
        """Return both sides, each with a function that gives the place of a row.

        Without keys, and unless `spare` finds equations, all rows of a side are in one
        place.
        """
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
    """The rows of one side, by their keys."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._rows: dict[Any, dict[Row, int]] = {}

    def key_rows(self, rows: Bag) -> list[Placed]:
        """Return rows with their keys; all keys are computed before any pair is tested."""
        place = self.place
        return [(place(row), row, weight) for row, weight in rows.items()]

    def add(self, place: Any, row: Row, weight: int) -> None:
        """Add `weight` to a row; at weight 0 the row is removed."""
        rows = self._rows.get(place)
        if rows is None:
            rows = self._rows[place] = {}
        total = rows.get(row, 0) + weight
        if total:
            rows[row] = total
        else:
            rows.pop(row, None)

    def move(self, row: Row, weight: int) -> None:
        """Add a row, or remove it, after computing its key."""
        self.add(self.place(row), row, weight)

    def agreeing(self, place: Any) -> Iterable[Pair]:
        """Return the rows that may match a row of the other side, given the key of that row.

        An error key may match every row, and is itself among the rows of each key.
        """
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


def _make_pair_test(
    left: plan.Node, predicates: Sequence[Function]
) -> Callable[[Row, Row], object]:
    """Return the function that tests the predicates on a pair."""
    calls, pair = [callable_of(predicate) for predicate in predicates], pair_maker(left)
    if not calls:
        return lambda row, other: True
    (first, *others) = calls

    def fits(row: Row, other: Row) -> object:
        arguments = pair(row, other)
        if not others:
            return first(*arguments)
        return first(*arguments) and all(call(*arguments) for call in others)

    return fits


# Bags of rows, and callables over them, for all evaluation from scratch.

Bag = Counter[Row]
"""Rows with their weights. Between nodes a weight may be negative, as below `negate`; none is zero.
"""
Variables = Mapping[tuple[Any, int], Bag]
"""The rows that recursive relations have so far, by level and place."""
Tables = Callable[[plan.Table], Iterable[Pair]]
Of = Callable[[plan.Node], Bag]
"""Returns the rows of an input."""
_empty, _fill = dict.__new__, dict.update
"""Create and fill a `Counter` without its slow `__init__`."""


def sum_pairs(pairs: Iterable[Pair]) -> Bag:
    """Sum pairs of row and weight to a bag.

    >>> sum_pairs([("a", 1), ("b", 1), ("a", 2)])
    Counter({'a': 3, 'b': 1})
    """
    bag: Bag = Counter()
    get = bag.get
    for row, weight in pairs:
        row = canonical(row)
        bag[row] = get(row, 0) + weight
    return net(bag)


def make_bag(weights: Mapping[Row, int]) -> Bag:
    """Return a bag with the given weights, none of them zero; five times as fast as `Counter`."""
    bag: Bag = _empty(Counter)
    _fill(bag, weights)
    return bag


def net(bag: Bag) -> Bag:
    """Return the rows whose weight is not zero."""
    return make_bag({row: n for row, n in bag.items() if n}) if 0 in bag.values() else bag


def both(left: Bag, right: Bag) -> Bag:
    """Return the sum of two bags.

    >>> both(Counter(a=1, b=2), Counter(a=-1, b=1, c=-1))
    Counter({'b': 3, 'c': -1})
    """
    total = make_bag(left)
    apply_changes(total, right)
    return total


def there(bag: Bag) -> Bag:
    """Return the rows of positive weight."""
    return make_bag({row: n for row, n in bag.items() if n > 0})


def once(rows: Iterable[Row]) -> Bag:
    """Return a bag with each row once."""
    return make_bag(dict.fromkeys(rows, 1))


def make_row_test(function: Function, source: plan.Node) -> Callable[[Row], Any]:
    """Return a callable of the rows of a node, whose result is tested and not stored."""
    call = callable_of(function)
    return call if bindings(source) == 1 else lambda row: call(*row)


def caller(function: Function, source: plan.Node) -> Callable[[Row], Any]:
    """Return a callable of the rows of a node; creating it takes longer than calling it."""
    call = callable_of(function)
    if bindings(source) == 1:
        return lambda row: canonical(call(row))
    return lambda row: canonical(call(*row))


def group_members(key: Function, source: plan.Node, rows: Bag) -> dict[Any, list[Pair]]:
    """Return the present rows of each group, by its key."""
    return group_by_key(caller(key, source), there(rows).items())


def group_by_key(key_of: Callable[[Row], Any], rows: Iterable[Pair]) -> dict[Any, list[Pair]]:
    """Group rows by their key."""
    groups: dict[Any, list[Pair]] = {}
    for pair in rows:
        groups.setdefault(key_of(pair[0]), []).append(pair)
    return groups


def pair_maker(left: plan.Node) -> Callable[[Row, Row], Row]:
    """Return the function that appends a binding to the row of a node."""
    if bindings(left) == 1:
        return lambda row, other: (row, other)
    return lambda row, other: (*row, other)


def apply_changes(bag: Bag, change: Bag) -> None:
    """Add `change` to `bag` in place; rows whose weight becomes zero are removed."""
    for row, weight in change.items():
        total = bag.get(row, 0) + weight
        if total:
            bag[row] = total
        else:
            bag.pop(row, None)


def bag_delta(bag: Bag, before: Bag) -> Bag:
    """Return the change from one bag to another."""
    change = make_bag(bag)
    for row, weight in before.items():
        total = change.get(row, 0) - weight
        if total:
            change[row] = total
        else:
            change.pop(row, None)
    return change


Keyed = tuple[Any, Row]
"""The sort key of a row, and the row."""


def with_known_limit(node: plan.OrderBy, of: Callable[[plan.Node], Bag]) -> plan.OrderBy:
    """Return an order with the current value of a parameter in the place of its limit."""
    if not isinstance(node.limit, plan.Table):
        return node
    (limit,) = of(node.limit)
    return replace(node, limit=checked_count(limit))


def ordered_rows(node: plan.OrderBy, bag: Bag) -> list[Row]:
    """Return the rows that an order shows, given all rows."""
    rows = [row for alike in ordered_runs(node, bag) for row in alike]
    assert not isinstance(node.limit, plan.Table)
    last = len(rows) if node.limit is None else node.offset + node.limit
    return rows[node.offset : last]


def ordered_runs(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """Yield all rows in order, as they are shown; rows that compare equal are yielded together."""
    for rows in runs(node, bag):
        yield from _by_themselves(rows) if len(rows) > 1 else [rows]


def runs(node: plan.OrderBy, bag: Bag) -> Iterator[list[Row]]:
    """Yield all rows in their order, as they are shown; rows with equal keys together."""
    key = reference_sort_key(node)
    keyed = [(key(row), row) for row in repeat_by_weight(bag.items())]
    if any(key is LAST for key, _ in keyed):
        keyed.sort(key=lambda pair: _SortKey(pair[0]), reverse=node.descending)
    else:
        keyed.sort(key=_sort_key_of, reverse=node.descending)
    show = node.show or itself
    for tied in _runs(keyed, descending=node.descending):
        yield [*map(show, tied)]


def reference_sort_key(node: plan.OrderBy) -> Callable[[Row], Any]:
    """Return the function that computes the sort key of a row."""
    read = make_sort_key(node.keys, [caller(key.function, node.input) for key in node.keys])
    return lambda row: sort_key(read(row))


def _sort_key_of(keyed: Keyed) -> Any:
    return keyed[0]


def _runs(keyed: list[Keyed], *, descending: bool) -> Iterator[list[Row]]:
    """Yield runs of rows with equal sort keys."""
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
    """Yield runs of equal rows, sorted by their values."""
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


# The first rows of each group, evaluated from scratch: each group is sorted.


def top_rows(node: plan.Top, rows: Bag) -> Bag:
    """Return the rows that an order of each group shows."""
    found: Bag = Counter()
    for group in group_members(node.key, node.input, rows).values():
        found.update(ordered_rows(node.order, Counter(dict(group))))
    return found


def are_as_good(node: plan.Top, shown: Bag, expected: Bag, rows: Bag) -> bool:
    """Return True if the shown rows differ from the expected ones only in ties."""
    return not shown - rows and _sort_keys_by_group(node, shown) == _sort_keys_by_group(
        node, expected
    )


def _sort_keys_by_group(node: plan.Top, bag: Bag) -> dict[Any, list[Any]]:
    """Return the sort keys of the rows of each group, in order."""
    key = reference_sort_key(node.order)
    whole = plan.OrderBy(node.input, node.keys, None, 0)
    return {
        name: [(key(row), tie_key(row)) for row in ordered_rows(whole, Counter(dict(group)))]
        for name, group in group_members(node.key, node.input, bag).items()
    }

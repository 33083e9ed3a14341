"""Bags of rows, and callables over them: what all of an evaluation from scratch needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from optimizer import plan
from optimizer.expr import Function
from optimizer.plans.properties import bindings
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Pair, Row, canonical

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

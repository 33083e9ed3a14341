"""Rows of tables, views and recursions, found by the values of expressions over them.

    the whole row                a look-up
    one field of a table         the index of `rows_by_field`, which follows the commits
    anything else                an index that is made at the first question, for one version

State:  indexes, as long as the source exists; those of other versions are made again.
Cost:   O(rows) for a new index, then O(rows found).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer.expr import (
    Attribute,
    Constant,
    Expr,
    Item,
    Parameter,
    all_parameters,
    constant,
)
from reactive.engine.collections.zset import Pair, Row
from reactive.engine.provenance.wanted import UNKNOWN, Evaluator, Wanted
from reactive.engine.reference.bags import Bag
from reactive.engine.transactions.rows_by_field import RowsByField

MOST = 64
"""Number of tuples of values up to which wanted values are put together."""
FEW = 32
"""Number of rows below which every row is tested."""


class RowSource:
    """The rows of one table, view or relation of a recursion, as of one version.

    Parameters
    ----------
    pairs: returns all rows with their weights.
    weight: returns the weight of a row.
    size: returns the number of rows.
    by_field: the indexes of a table by its fields, and its store.
    """

    def __init__(
        self,
        pairs: Callable[[], Iterable[Pair]],
        weight: Callable[[Row], int],
        size: Callable[[], int],
        by_field: tuple[RowsByField, Any] | None = None,
    ) -> None:
        self._pairs, self._weight, self._size = pairs, weight, size
        self._by_field = by_field
        self._indexes: dict[tuple[Expr, ...], dict[Any, list[Pair]]] = {}
        self.scanned = 0
        """The number of rows that indexes were made of, or that were tested."""

    def rows(
        self,
        asked: Sequence[Wanted],
        count: int,
        evaluate: Evaluator,
        width: int | None = None,
    ) -> Bag:
        """Return the rows with all wanted values.

        Parameters
        ----------
        count: the number of bindings of a row.
        width: of rows that are one binding, and tuples: the number of their items; else None.
        """
        if not asked:
            self.scanned += self._size()
            return Counter(dict(self._pairs()))
        asked = _joined(asked, count, width)
        first = min(asked, key=lambda each: self._estimate(each, count))
        rest = [each for each in asked if each is not first]
        tests = [(evaluate.of(each.exprs, count), each.values) for each in rest]
        found = Counter[Row]()
        for row, weight in self._candidates(first, count, evaluate):
            if all((made := of(row)) is UNKNOWN or made in values for of, values in tests):
                found[row] = weight
        return found

    def estimate(self, asked: Sequence[Wanted], count: int) -> int:
        """Return about how many rows `rows` will look at."""
        return min([self._estimate(each, count) for each in asked], default=self._size())

    def _estimate(self, asked: Wanted, count: int) -> int:
        if _is_whole(asked.exprs, count):
            return len(asked.values)
        index = self._indexes.get(asked.exprs)
        if index is not None:
            return sum(len(index.get(value, ())) for value in asked.values)
        size = self._size()
        share: int = size // 10 ** len(asked.exprs)
        return min(size, 1 + len(asked.values) * max(1, share))

    def _candidates(self, asked: Wanted, count: int, evaluate: Evaluator) -> Iterable[Pair]:
        """Yield the rows with wanted values, and those whose values cannot be computed."""
        if _is_whole(asked.exprs, count):
            for value in asked.values:
                row = value[0] if count == 1 else value
                weight = self._weight(row)
                if weight:
                    yield row, weight
            return
        near = self._rows_by_field(asked)
        if near is not None:
            pairs: Iterable[Pair] = ((row, self._weight(row)) for row in near)
        elif self._size() <= FEW:
            pairs = self._pairs()
        else:
            index = self._index(asked.exprs, count, evaluate)
            yield from index.get(UNKNOWN, ())
            for value in asked.values:
                yield from index.get(value, ())
            return
        of = evaluate.of(asked.exprs, count)
        for row, weight in pairs:
            self.scanned += 1
            made = of(row)
            if made is UNKNOWN or made in asked.values:
                yield row, weight

    def _rows_by_field(self, asked: Wanted) -> list[Row] | None:
        """Return the rows that the index of a field has for wanted values; None without one."""
        if self._by_field is None or len(asked.values) > self._size():
            return None
        indexes, store = self._by_field
        for place, expr in enumerate(asked.exprs):
            match expr:
                case Attribute(Parameter(0), str() as name):
                    field: Any = name
                case Item(Parameter(0), Constant(int() as name)) if name >= 0:
                    field = name
                case _:
                    continue
            values = list({value[place] for value in asked.values})
            found = indexes.find([(field, values)], store, made_at=1)
            if found is not None:
                return found
        return None

    def _index(
        self, exprs: tuple[Expr, ...], count: int, evaluate: Evaluator
    ) -> dict[Any, list[Pair]]:
        found = self._indexes.get(exprs)
        if found is None:
            found = {}
            of = evaluate.of(exprs, count)
            for pair in self._pairs():
                self.scanned += 1
                found.setdefault(of(pair[0]), []).append(pair)
            self._indexes[exprs] = found
        return found


def _is_whole(exprs: tuple[Expr, ...], count: int) -> bool:
    """Return True if the expressions are all bindings of a row, in their order."""
    return len(exprs) == count and all(
        isinstance(expr, Parameter) and expr.index == place for place, expr in enumerate(exprs)
    )


def _joined(asked: Sequence[Wanted], count: int, width: int | None) -> list[Wanted]:
    """Return the same wanted values, those of few values together as one.

    If these are all items of a row, or all of its bindings, they are the whole row.
    """
    if len(asked) == 1 and width is None:
        return list(asked)
    found = [*sorted(asked, key=lambda each: len(each.values))]
    one = found.pop(0)
    while found and len(one.values) * len(found[0].values) <= MOST:
        one = _both(one, found.pop(0))
    items = [Item(Parameter(0), constant(place)) for place in range(width or 0)]
    if width and count == 1 and set(one.exprs) == set(items):
        places = [one.exprs.index(item) for item in items]
        rows = frozenset((tuple(value[place] for place in places),) for value in one.values)
        one = Wanted((Parameter(0),), rows)
    elif count > 1 and set(one.exprs) == set(all_parameters(count)):
        places = [one.exprs.index(each) for each in all_parameters(count)]
        rows = frozenset(tuple(value[place] for place in places) for value in one.values)
        one = Wanted(all_parameters(count), rows)
    return [one, *found]


def _both(one: Wanted, other: Wanted) -> Wanted:
    """Return the wanted values of both, as one."""
    new = [place for place, expr in enumerate(other.exprs) if expr not in one.exprs]
    same = [
        (one.exprs.index(expr), place)
        for place, expr in enumerate(other.exprs)
        if expr in one.exprs
    ]
    values = frozenset(
        (*mine, *[theirs[place] for place in new])
        for mine in one.values
        for theirs in other.values
        if all(mine[place] == theirs[other_place] for place, other_place in same)
    )
    return Wanted((*one.exprs, *[other.exprs[place] for place in new]), values)


def source_of_bag(bag: Bag) -> RowSource:
    """Return the rows of a bag as a source."""
    return RowSource(bag.items, lambda row: bag.get(row, 0), lambda: len(bag))

"""Rounds over a layout: columns in, columns out, and no rows in between.

    pairs     positions of the round's rows and constant columns, arranged by group
    a round   values of pairs -> totals of groups -> fields of the round's rows, by position

A group has the position of the row that is computed from it, so the next round finds each result
where it reads its rows. That is sound while the keys of the groups are those of the previous round.
The groups depend on the keys alone, so if the keys are equal once, they stay equal: this is checked
when the layout is arranged. There is no arrangement otherwise, or if equal keys are not
interchangeable (`1` and `1.0`).

State:  the arranged layout, for one evaluation.
Cost:   one visit of each pair for the arrangement; in each round, one of each pair and group.

Totals: results of aggregates for groups whose values are lists, without a state.

Sums of floats use `math.fsum`, sums of integers `sum`, with the same results as running sums. One
pass over all values finds their classes. Other values are added by the accumulator of the
aggregate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from operator import itemgetter, ne
from typing import Any

from optimizer import plan
from optimizer.expr import Constant, Expr, Local, Operation
from reactive.engine.codegen.loop_expressions import Column
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.accumulators import (
    AvgAccumulator,
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
)
from reactive.engine.operators.loops.layout import GroupLayout, Layout, PairColumn, Pairs

Row = Any
SINGLE = frozenset({int, str, bytes, type(None)})
"""Key classes whose equal instances are interchangeable; `bool` is one if no key is an `int`."""


@dataclass(frozen=True, slots=True)
class ArrangedPairs:
    """The pairs of a loop, sorted by group.

    at: the position of the round's row of each pair. ends: start and end of each group.
    """

    pairs: Pairs
    at: list[int]
    ends: list[tuple[int, int]]
    kept: list[Column]
    kinds: dict[Local, type]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The constant parts of an aggregate; `names` are the keys of its groups by position."""

    groups: GroupLayout
    names: Column
    parts: list[ArrangedPairs]
    given: list[list[list[Any]]]
    """For each aggregate of values, the constant values of each group, if there are any."""
    kinds: list[set[type]]
    counts: list[int]
    """Number of rows of each group."""


class KeptRounds:
    """Rounds of one evaluation."""

    def __init__(
        self, layout: Layout, fields: list[list[Column]], arranged: dict[int, Arrangement]
    ) -> None:
        self._layout = layout
        self._fields = fields
        self._arranged = arranged
        self._forms: dict[int, list[int]] = {relation: [] for relation in arranged}
        for form, relation in enumerate(layout.relations):
            self._forms[relation].append(form)

    def run(self, times: int) -> dict[int, list[Row]]:
        """Return the rows of all aggregates after `times` rounds, by their slots."""
        made: dict[int, list[Column]] = {}
        for _ in range(times):
            later: list[tuple[int, list[Column]]] = []
            for relation, arrangement in self._arranged.items():
                made[relation] = _totals(arrangement, self._fields)
                for form in self._forms[relation]:
                    columns = self._compute_fields(form, made[relation])
                    if self._layout.is_now[form]:
                        self._fields[form] = columns
                    else:
                        later.append((form, columns))
            for form, columns in later:
                self._fields[form] = columns
        return {a.groups.slot: rows_from_columns(made[r]) for r, a in self._arranged.items()}

    def count_touched(self) -> int:
        """Return the number of pairs and groups that a round touches."""
        return sum(len(a.names) + sum(a.counts) for a in self._arranged.values())

    def _compute_fields(self, form: int, columns: list[Column]) -> list[Column]:
        """Compute the fields of a form from the keys and totals of groups."""
        found = list(self._fields[form])
        for place, make in self._layout.of_totals[form].items():
            values = make(*columns)
            if place >= 0:
                found[place] = _canonical(values)
        return found


def arrange_rounds(
    layout: Layout, slots: list[Any], rows: Sequence[list[Row]]
) -> KeptRounds | None:
    """Return the rounds that start with `rows`; None if the keys may change."""
    arranging = _Arranging(layout, slots, rows)
    arranged = {}
    for relation, groups in layout.groups.items():
        found = arranging.arrange(relation, groups)
        if found is None:
            return None
        arranged[relation] = found
    return KeptRounds(layout, arranging.fields, arranged)


class _Arranging:
    """Builds the arrangement of an aggregate."""

    def __init__(self, layout: Layout, slots: list[Any], rows: Sequence[list[Row]]) -> None:
        self._layout = layout
        self._slots = slots
        self._rows = rows
        self.fields: list[list[Column]] = [
            [_canonical(read(some)) for read in readers]
            for readers, some in zip(layout.readers, rows, strict=False)
        ]
        self.fields += [[[]] * len(readers) for readers in layout.readers[len(rows) :]]
        self._sizes = list(map(len, rows))

    def arrange(self, relation: int, groups: GroupLayout) -> Arrangement | None:
        """Return the arrangement of an aggregate; None if its keys may change in later rounds."""
        met = []
        for pairs in groups.pairs:
            found = self._met(pairs)
            if found is None:
                return None
            outer, at = found
            met.append((outer, at, _canonical(self._column(pairs, pairs.key, outer, at))))
        given: dict[Any, list[Any]] = defaultdict(list)
        for loop in groups.given:
            loop(self._slots, given)
        position = self._positions(relation, [*(keys for *_, keys in met), list(given)])
        if position is None:
            return None
        names: Column = [None] * len(position)
        for name, place in position.items():
            names[place] = name
        size = len(names)
        self._sizes[relation] = size
        self._stay(relation, names)
        parts = [
            self._sort_pairs(pairs, outer, at, list(map(position.__getitem__, keys)), size)
            for pairs, (outer, at, keys) in zip(groups.pairs, met, strict=True)
        ]
        own = list(map(given.__getitem__, names))
        of_values = (
            _values_by_aggregate(own, len(groups.valued_accumulators)) if groups.given else []
        )
        kinds = [set(map(type, chain.from_iterable(some))) for some in of_values]
        counts = list(map(len, own))
        for part in parts:
            counts = [n + end - begin for n, (begin, end) in zip(counts, part.ends, strict=True)]
        return Arrangement(groups, names, parts, of_values, kinds, counts)

    def _met(self, pairs: Pairs) -> tuple[list[Row], list[int]] | None:
        """Return the constant row and the position of the round's row, of all pairs.

        Return None if a row of the round has no key.
        """
        size = self._sizes[self._layout.relations[pairs.form]]
        if pairs.outer is None or pairs.keys is None or pairs.inner is None:
            return [], list(range(size))
        keys = [match_key(key) for key in self._column(pairs, pairs.inner, [], list(range(size)))]
        if NO_MATCH in keys:
            return None
        asked, outer = pairs.keys(self._slots[pairs.outer])
        spots = dict(zip(keys, range(size), strict=True))
        if len(spots) == size:
            at = list(map(spots.get, asked))
            if None not in at:
                return outer, at  # type: ignore[return-value]
            both = [(row, place) for row, place in zip(outer, at, strict=True) if place is not None]
        else:
            several: dict[Any, list[int]] = {}
            for place, key in enumerate(keys):
                several.setdefault(key, []).append(place)
            both = [
                (row, place)
                for row, key in zip(outer, asked, strict=True)
                for place in several.get(key, ())
            ]
        return [row for row, _ in both], [place for _, place in both]

    def _column(self, pairs: Pairs, value: PairColumn, outer: list[Row], at: list[int]) -> Column:
        """Return a constant column of pairs."""
        fields = self.fields[pairs.form]
        rows = [at] if pairs.outer is None else [at, outer]
        return value.make(*rows[: value.width], *(fields[place] for place in value.found))

    def _stay(self, relation: int, names: Column) -> None:
        """Compute the constant fields of a relation that this round computes."""
        for form, of_keys in enumerate(self._layout.of_keys):
            if self._layout.is_now[form] and self._layout.relations[form] == relation:
                for place, make in of_keys.items():
                    self.fields[form][place] = _canonical(make(names))

    def _positions(self, relation: int, columns: list[Column]) -> dict[Any, int] | None:
        """Return the positions of groups: each equals the position of the row computed from it.

        Return None if groups and rows do not correspond one to one, or if keys or fields
        are of mixed kinds.
        """
        keys = list(chain.from_iterable(columns))
        if not are_alike(keys):
            return None
        names = list(dict.fromkeys(keys))
        of_keys, fields = self._layout.of_keys[relation], self.fields[relation]
        if not of_keys:  # no loop reads the rows of the previous round
            return dict(zip(names, range(len(names)), strict=True))
        size = self._sizes[relation]
        places = dict(
            zip(_zip_columns([fields[place] for place in of_keys]), range(size), strict=True)
        )
        own = {place: _canonical(make(names)) for place, make in of_keys.items()}
        found = [places.get(key) for key in _zip_columns(list(own.values()))]
        if len(places) != size or None in found or not len({*found}) == len(names) == size:
            return None
        if not all(are_alike([*fields[place], *values]) for place, values in own.items()):
            return None
        return dict(zip(names, found, strict=True))

    def _sort_pairs(
        self, pairs: Pairs, outer: list[Row], at: list[int], of: list[int], size: int
    ) -> ArrangedPairs:
        """Return the pairs sorted by group; `of` are their groups."""
        members: list[list[int]] = [[] for _ in range(size)]
        for number, group in enumerate(of):
            members[group].append(number)
        order = list(chain.from_iterable(members))
        ends, begin = [], 0
        for some in members:
            ends.append((begin, begin + len(some)))
            begin += len(some)
        columns = [self._column(pairs, value, outer, at) for value in pairs.kept]
        kept = [_reorder_column(values, order) for values in columns]
        kinds = {Local(f"kept_{place}"): kind for place, kind in _single_class_columns(columns)}
        return ArrangedPairs(pairs, _reorder_column(at, order), ends, kept, kinds)


def are_alike(keys: Column) -> bool:
    """Return True if equal keys cannot be distinguished in any way."""
    kinds = set(map(type, keys))
    if kinds <= SINGLE or (bool in kinds and kinds <= SINGLE - {int} | {bool}):
        return True
    if float in kinds and kinds <= SINGLE - {int} | {float}:
        zeros = {str(key) for key in keys if key == 0}
        if len(zeros) < 2 and not any(map(ne, keys, keys)):
            return True
    if len(kinds) == 1 and tuple in kinds:
        lengths = set(map(len, keys))
        return len(lengths) == 1 and all(are_alike(list(some)) for some in zip(*keys, strict=True))
    first: dict[Any, Any] = {}
    return all(first.setdefault(key, key) is key for key in keys)


def class_of_values(expr: Expr, kinds: dict[Local, type]) -> type | None:
    """Return the class of all values of an expression; None if its variables do not decide it."""
    match expr:
        case Constant(value):
            return type(value)
        case Local():
            return kinds.get(expr)
        case Operation("+" | "-" | "*" | "/" as symbol, (left, right)):
            both = {class_of_values(left, kinds), class_of_values(right, kinds)}
            if not both <= {int, float}:
                return None
            return int if both == {int} and symbol != "/" else float
    return None


def _totals(arrangement: Arrangement, forms: list[list[Column]]) -> list[Column]:
    """Return the keys of groups, and the results of their aggregates in a round."""
    valued = iter(range(len(arrangement.groups.valued_accumulators)))
    fields = [forms[part.pairs.form] for part in arrangement.parts]
    for part, columns in zip(arrangement.parts, fields, strict=True):
        for value in part.pairs.checked:
            _compute_pair_values(part, value, columns)
    found = [arrangement.names]
    for aggregate in arrangement.groups.node.aggregates:
        if isinstance(aggregate.accumulator, CountAccumulator):
            found.append(arrangement.counts)
        else:
            found.append(_group_results(arrangement, aggregate.accumulator, next(valued), fields))
    return found


def _group_results(
    arrangement: Arrangement, accumulator: Any, place: int, fields: list[list[Column]]
) -> Column:
    """Return the results of an aggregate of values for all groups."""
    lists: list[list[Any]] | None = arrangement.given[place] if arrangement.given else None
    kinds = set(arrangement.kinds[place]) if arrangement.given else set()
    for part, columns in zip(arrangement.parts, fields, strict=True):
        value = part.pairs.values[place]
        flat = _compute_pair_values(part, value, columns)
        known = {
            Local(f"found_{j}[pair]"): kind
            for j, kind in _single_class_columns(columns, value.found)
        }
        kind = class_of_values(value.expr, {**part.kinds, **known})
        kinds |= set(map(type, flat)) if kind is None else {kind} if flat else set()
        if lists is None:
            lists = [flat[a:b] for a, b in part.ends]
        else:
            lists = [flat[a:b] + more for (a, b), more in zip(part.ends, lists, strict=True)]
    return totals(accumulator, lists or [], kinds)


def _compute_pair_values(part: ArrangedPairs, value: PairColumn, columns: list[Column]) -> Column:
    """Compute the values of all pairs of a loop, from its constant columns and those of a round."""
    kept = [part.kept[place] for place in value.kept]
    return value.make(part.at, *kept, *[columns[place] for place in value.found])


def _single_class_columns(
    columns: list[Column], places: Iterable[int] | None = None
) -> list[tuple[int, type]]:
    """Return the columns whose values have a single class, with that class."""
    found = []
    for place in range(len(columns)) if places is None else places:
        kinds = set(map(type, columns[place]))
        if len(kinds) == 1:
            found.append((place, kinds.pop()))
    return found


def _values_by_aggregate(groups: list[list[Any]], count: int) -> list[list[list[Any]]]:
    """Return the values of groups, for each of `count` aggregates."""
    if count == 1:
        return [groups]
    return [[[value[place] for value in some] for some in groups] for place in range(count)]


def _canonical(values: Column) -> Column:
    """Replace every NaN by the one that rows hold; return a column without NaN as it is."""
    kinds = set(map(type, values))
    if kinds <= SINGLE | {bool}:
        return values
    if kinds == {float} and not any(map(ne, values, values)):
        return values
    return list(map(canonical, values))


def _zip_columns(columns: list[Column]) -> Iterable[Any]:
    """Return the rows of columns; a single column is returned itself."""
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _reorder_column(values: Column, order: list[int]) -> Column:
    """Return the values at the places `order`."""
    if len(order) < 2:
        return [values[place] for place in order]
    return list(itemgetter(*order)(values))


Values = list[Any]
Show = Callable[[list[Values]], list[Any]]
"""Returns the result of each group."""
PLAIN = frozenset({int, str, tuple})
"""Classes whose values `min` and `max` compare correctly."""


def totals_of(node: plan.Aggregate) -> Callable[[dict[Any, Values]], list[Any]]:
    """Return the function that computes the rows of an aggregate from the values of its groups.

    A group has one entry per row: the value, or the tuple of values, of the aggregates except
    counts.
    """
    accumulators = [a.accumulator for a in node.aggregates]
    valued = [a for a in accumulators if not isinstance(a, CountAccumulator)]
    is_one = len(valued) == 1

    def rows(groups: dict[Any, Values]) -> list[Any]:
        shown = iter(range(len(valued)))
        columns: list[Sequence[Any]] = [] if node.key is None else [list(groups)]
        for accumulator in accumulators:
            if isinstance(accumulator, CountAccumulator):
                columns.append(list(map(len, groups.values())))
                continue
            place = next(shown)
            every: Iterable[Values] = groups.values()
            if not is_one:
                every = [list(map(itemgetter(place), values)) for values in every]
            columns.append(totals(accumulator, list(every)))
        return rows_from_columns(columns)

    return rows


def rows_from_columns(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the rows of an aggregate, from its key and its results."""
    return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))


def totals(accumulator: Any, groups: list[Values], kinds: set[type] | None = None) -> list[Any]:
    """Return the result of an aggregate for each group; `kinds` are the value classes, if known."""
    if kinds is None:
        kinds = set(map(type, chain.from_iterable(groups)))
    if accumulator.skip_none and type(None) in kinds:
        groups = [[value for value in values if value is not None] for values in groups]
        kinds = kinds - {type(None)}
    quick, careful = _quick(accumulator, kinds), _careful(accumulator)
    if quick is None:
        return careful(groups)
    try:
        return quick(groups)
    except (OverflowError, ValueError):  # infinities, or a sum that overflows midway
        return careful(groups)


def _quick(accumulator: Any, kinds: set[type]) -> Show | None:
    """Return a fast function for values of the classes `kinds`; None if there is none."""
    match accumulator:
        case SumAccumulator() if kinds == {int}:
            return lambda groups: list(map(sum, groups))
        case SumAccumulator() if kinds == {float}:
            return _float_sums
        case AvgAccumulator() if kinds == {float}:
            return lambda groups: list(map(_float_mean, groups))
        case AvgAccumulator() if kinds == {int}:
            return lambda groups: list(map(_integer_mean, groups))
        case MinAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [min(values, default=None) for values in groups]
        case MaxAccumulator() if kinds and kinds <= PLAIN:
            return lambda groups: [max(values, default=None) for values in groups]
        case _:
            return None


def _float_sums(groups: list[Values]) -> list[Any]:
    """Return the sum of floats of each group; an empty group has 0."""
    found = list(map(fsum, groups))
    if all(groups) and not any(map(ne, found, found)):
        return found
    return [canonical(total) if some else 0 for total, some in zip(found, groups, strict=True)]


def _float_mean(values: Values) -> Any:
    return canonical(fsum(values) / len(values)) if values else None


def _integer_mean(values: Values) -> Any:
    return sum(values) / len(values) if values else None


def _careful(accumulator: Any) -> Show:
    """Return the function that computes each result by the accumulator itself, value by value."""

    def show(values: Values) -> Any:
        state = accumulator.zero()
        for value in values:
            state = accumulator.add(state, value, 1)
        return accumulator.result(state)

    return lambda groups: list(map(show, groups))

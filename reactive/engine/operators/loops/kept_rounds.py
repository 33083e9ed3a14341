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
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter, ne
from typing import Any

from optimizer.expr import Constant, Expr, Local, Operation
from reactive.engine.codegen.loop_expressions import Column
from reactive.engine.collections.index import NO_MATCH, match_key
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.accumulators import CountAccumulator
from reactive.engine.operators.loops.layout import GroupLayout, Layout, PairColumn, Pairs
from reactive.engine.operators.loops.totals import rows_from_columns, totals

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
class Places:
    """The groups of an aggregate, by number, and the positions of the rows computed from them.

    Parameters
    ----------
    names: the keys of the groups.
    rows: in a left join with the groups, the constant row of each.
    alone: the constant rows without a group, which come after the groups.
    order: the number of the group, or of the row alone, at each position; None if that is the
        position.
    """

    names: Column
    rows: Column | None = None
    alone: Sequence[Row] = ()
    order: list[int] | None = None

    @property
    def constant(self) -> list[Column]:
        """The key and the constant row of each group, if it has one."""
        return [self.names] if self.rows is None else [self.names, self.rows]

    @property
    def size(self) -> int:
        """The number of positions."""
        return len(self.names) + len(self.alone)

    def by_position(self, values: Column, alone: Column) -> Column:
        """Return the values of groups and of rows alone by position."""
        if self.order is None:
            return values
        return _reorder_column([*values, *alone], self.order)

    def by_group(self, values: Column) -> Column:
        """Return the values of groups by number, of values by position."""
        if self.order is None:
            return values
        found: Column = [None] * len(values)
        for number, value in zip(self.order, values, strict=True):
            found[number] = value
        return found[: len(self.names)]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The constant parts of an aggregate."""

    groups: GroupLayout
    places: Places
    parts: list[ArrangedPairs]
    given: list[list[list[Any]]]
    """For each aggregate of values, the constant values of each group, if there are any."""
    kinds: list[set[type]]
    counts: list[int]
    """Number of rows of each group."""


class KeptRounds:
    """Rounds of one evaluation."""

    def __init__(
        self,
        layout: Layout,
        fields: list[list[Column]],
        alone: list[list[Column]],
        arranged: dict[int, Arrangement],
    ) -> None:
        self.layout = layout
        self.fields = fields
        """The columns of all forms; the first forms are those of the relations."""
        self.alone = alone
        """The fields of rows without a group, by form."""
        self.arranged = arranged
        self.forms: dict[int, list[int]] = {relation: [] for relation in arranged}
        """The forms of each relation."""
        for form, relation in enumerate(layout.relations):
            self.forms[relation].append(form)

    def run(self, times: int) -> dict[int, list[Row]]:
        """Return the rows of all aggregates after `times` rounds, by their slots."""
        made: dict[int, list[Column]] = {}
        for _ in range(times):
            made, later = self.compute()
            for form, columns in later.items():
                self.fields[form] = columns
        return {a.groups.slot: rows_from_columns(made[r]) for r, a in self.arranged.items()}

    def compute(self) -> tuple[dict[int, list[Column]], dict[int, list[Column]]]:
        """Compute a round; return totals by relation, and the relations' fields for the next one.

        Fields that are read in the round itself are set.
        """
        made: dict[int, list[Column]] = {}
        later: dict[int, list[Column]] = {}
        for relation, arrangement in self.arranged.items():
            made[relation] = _totals(arrangement, self.fields)
            for form in self.forms[relation]:
                columns = self._compute_fields(form, arrangement.places, made[relation])
                if self.layout.is_now[form]:
                    self.fields[form] = columns
                else:
                    later[form] = columns
        return made, later

    def places(self, relation: int) -> Places:
        """Return the places of the groups of a relation."""
        return self.arranged[relation].places

    def count_touched(self) -> int:
        """Return the number of pairs and groups that a round touches."""
        return sum(len(a.places.names) + sum(a.counts) for a in self.arranged.values())

    def _compute_fields(self, form: int, places: Places, columns: list[Column]) -> list[Column]:
        """Compute the fields of a form from the keys and totals of groups."""
        found, alone = list(self.fields[form]), self.alone[form]
        for place, total in self.layout.of_totals[form].items():
            values = total.make(*columns, *places.constant[1:])
            if place >= 0:
                found[place] = places.by_position(_canonical(values), alone[place])
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
    return KeptRounds(layout, arranging.fields, arranging.alone, arranged)


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
        self.alone: list[list[Column]] = [[[]] * len(readers) for readers in layout.readers]
        """The fields of constant rows without a group, by form."""
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
        places = self._places(relation, [*(keys for *_, keys in met), list(given)])
        if places is None:
            return None
        self._sizes[relation] = places.size
        self._stay(relation, places)
        number = {name: place for place, name in enumerate(places.names)}
        parts = [
            self._sort_pairs(pairs, outer, at, list(map(number.__getitem__, keys)), len(number))
            for pairs, (outer, at, keys) in zip(groups.pairs, met, strict=True)
        ]
        own = list(map(given.__getitem__, places.names))
        of_values = (
            _values_by_aggregate(own, len(groups.valued_accumulators)) if groups.given else []
        )
        kinds = [set(map(type, chain.from_iterable(some))) for some in of_values]
        counts = list(map(len, own))
        for part in parts:
            counts = [n + end - begin for n, (begin, end) in zip(counts, part.ends, strict=True)]
        return Arrangement(groups, places, parts, of_values, kinds, counts)

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

    def _stay(self, relation: int, places: Places) -> None:
        """Compute the constant fields of a relation that this round computes."""
        for form, of_keys in enumerate(self._layout.of_keys):
            if self._layout.is_now[form] and self._layout.relations[form] == relation:
                self._read_alone(form, places.alone)
                for place, make in of_keys.items():
                    own = _canonical(make(*places.constant))
                    self.fields[form][place] = places.by_position(own, self.alone[form][place])

    def _read_alone(self, form: int, rows: Sequence[Row]) -> None:
        """Compute the fields of constant rows without a group."""
        of_alone = self._layout.of_alone[form]
        if of_alone is not None and rows:
            made = of_alone(list(rows))
            self.alone[form] = [_canonical(read(made)) for read in self._layout.readers[form]]

    def _places(self, relation: int, columns: list[Column]) -> Places | None:
        """Return the positions of groups: each equals the position of the row computed from it.

        Return None if groups and rows do not correspond one to one, or if keys or fields
        are of mixed kinds.
        """
        keys = list(chain.from_iterable(columns))
        if not are_alike(keys):
            return None
        names = list(dict.fromkeys(keys))
        padding = self._layout.paddings[relation]
        if padding is None:
            return self._placed(relation, Places(names))
        found = padding.split(self._slots[padding.slot], names)
        return None if found is None else self._placed(relation, Places(names, *found))

    def _placed(self, relation: int, given: Places) -> Places | None:
        """Return the places in the order of the rows; None if they do not correspond."""
        of_keys, fields = self._layout.of_keys[relation], self.fields[relation]
        self._read_alone(relation, given.alone)
        if not of_keys:  # no loop reads the rows of the previous round
            order = list(range(given.size)) if given.alone else None
            return replace(given, order=order)
        size = self._sizes[relation]
        places = dict(
            zip(_zip_columns([fields[place] for place in of_keys]), range(size), strict=True)
        )
        own = {
            place: [*_canonical(make(*given.constant)), *self.alone[relation][place]]
            for place, make in of_keys.items()
        }
        found = [places.get(key) for key in _zip_columns(list(own.values()))]
        if len(places) != size or None in found or not len({*found}) == given.size == size:
            return None
        if not all(are_alike([*fields[place], *values]) for place, values in own.items()):
            return None
        order = sorted(range(size), key=found.__getitem__)  # type: ignore[arg-type]
        if given.alone:
            return replace(given, order=order)
        return Places(*[_reorder_column(each, order) for each in given.constant])

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
    found = [arrangement.places.names]
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

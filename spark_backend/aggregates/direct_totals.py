"""An aggregate in a flush of this process: sums of groups as integers, values as they are.

    rows that change --by group--> n, sums in units of 2**-96, values with weights
    + the sums of these groups, from the tables  =  after

The tables get the same limbs and values as from Spark columns, so that both can add to them.

State:  only the tables.
Cost:   O(changed rows + values of their groups, for aggregates that need values).
Source: `summed.py` and `value_tables.py`, whose results are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from functools import cached_property
from operator import add
from typing import Any

import pyarrow as pa

from optimizer import plan
from optimizer.expr import Function
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.zset import Pair, Row, canonical
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.reference.bags import Bag
from spark_backend.aggregates.parts import GroupParts, Parts
from spark_backend.aggregates.summed import (
    LARGEST,
    LIMB,
    POINT,
    WIDE,
    AggregateInput,
    SummedValue,
    aggregate_input,
    combine_total,
    make_output_row,
    stored_result,
)
from spark_backend.aggregates.value_tables import StoredValue, ValuedAggregate
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.schema import Digits, Plain, Typed, Whole
from spark_backend.direct.flush import DirectFlush, Lookup, TooMany, leaf_fields
from spark_backend.state.one_job import TableSpec, net_table

Odd = tuple[Any, ...]
"""For each value that may be odd: a value without limbs, or None."""
Sums = list[int]
"""The number of rows, and for each value its sum and the number that are not None."""
InParts = dict[Any, tuple[GroupParts, GroupParts]]
"""The parts before and after of large groups."""
_MASK = (1 << LIMB) - 1
_SCALE = 2.0**POINT


@dataclass(slots=True)
class Group:
    """The state of a group: sums by odd values, and values by the name of their column."""

    sums: dict[Odd, Sums] = field(default_factory=dict)
    values: dict[str, Counter[Any]] = field(default_factory=dict)
    parted: dict[str, GroupParts] = field(default_factory=dict)
    """The values of a large group, in parts."""

    def plus(self, other: Group) -> Group:
        """Return the sum of both states as a new one, without the parts of large groups.

        It may share lists of sums with `other`.
        """
        found = Group({odd: list(sums) for odd, sums in self.sums.items()})
        for odd, sums in other.sums.items():
            there = found.sums.get(odd)
            found.sums[odd] = (
                sums if there is None else [a + b for a, b in zip(there, sums, strict=True)]
            )
        for name in self.values.keys() | other.values.keys():
            both = Counter(self.values.get(name, ()))
            for value, weight in other.values.get(name, Counter()).items():
                both[value] += weight
            found.values[name] = both
        return found

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(sums[0] for sums in self.sums.values())


class DirectTotals:
    """The groups of an aggregate.

    Parameters
    ----------
    key, kept: the types of keys and rows of the output; without a key there is one group.
    count: the number of bindings of a row.
    """

    def __init__(
        self,
        node: plan.Aggregate,
        key: Typed,
        kept: Typed,
        count: int,
        spec: TableSpec,
        summed: dict[AggregateInput, SummedValue],
        valued: dict[AggregateInput, StoredValue],
    ) -> None:
        self._node, self._key, self._kept, self._spec = node, key, kept, spec
        self._summed, self._valued = summed, valued
        self._count = count
        self._columns = [(s.limbs, s.count) for s in summed.values()]
        self._odd = [s for s in summed.values() if s.may_be_odd]
        self._lookup = Lookup(leaf_types(key), leaf_fields(key, "key"))
        look = self._lookup
        self._parts = {
            of.name: Parts(of, key, look, _fold_values)
            for of in valued.values()
            if of.parts is not None
        }

    def delta(self, flush: DirectFlush, given: Iterable[Pair]) -> Bag:
        """Return how the rows of the output change.

        Raises `TooMany` for an aggregate by workers that leaves None out.
        """
        if any(of.skips_none and _has_worker_aggregates(of) for of in self._valued.values()):
            raise TooMany("an aggregate by workers, that leaves None out")
        change = self._groups(given)
        self._keep(flush, change)
        before, parted = self._read_before(flush, change)
        found: Bag = Counter()
        for key, group in change.items():
            was = before.get(key, Group())
            now = was.plus(group)
            for name, of in parted.items():
                if key in of:
                    was.parted[name], now.parted[name] = of[key]
            shown = self._row(key, was), self._row(key, now)
            if shown[0] != shown[1]:
                for row, weight in zip(shown, (-1, 1), strict=True):
                    if row is not None:
                        found[row[0]] += weight
        return found

    def _groups(self, given: Iterable[Pair]) -> dict[Any, Group]:
        """Return the change of the state of each group, by key."""
        found: dict[Any, Group] = {}
        key_of, valued = self._key_of, self._valued.items()
        summed = [(of, self._reads[what]) for what, of in self._summed.items()]
        for row, weight in given:
            key = canonical(key_of(row))
            group = found.get(key)
            if group is None:
                group = found[key] = Group()
            odd: Odd = ()
            sums = [weight]
            for of, read_of in summed:
                number, count, strange = _scale_value(of, read_of(row))
                sums += (number * weight, count * weight)
                if of.may_be_odd:
                    odd += (strange,)
            _merge_sums(group, odd, sums)
            for what, values in valued:
                value = canonical(self._reads[what](row))
                if value is not None or not values.skips_none:
                    group.values.setdefault(values.name, Counter())[value] += weight
        return found

    @cached_property
    def _key_of(self) -> Callable[[Row], Any]:
        key = self._node.key
        return (lambda row: 0) if key is None else spread_bindings(key, self._count, compiled_of)

    @cached_property
    def _reads(self) -> dict[AggregateInput, Callable[[Row], Any]]:
        return {what: _row_reader(what[0], self._count) for what in (*self._summed, *self._valued)}

    # Tables.

    def _keep(self, flush: DirectFlush, change: dict[Any, Group]) -> None:
        """Add the changed sums and values of the groups to the tables of the aggregate."""
        if not change:
            return
        flat = [(key, odd, sums) for key, of in change.items() for odd, sums in of.sums.items()]
        columns = {"key": to_arrow(self._key, [key for key, _, _ in flat])}
        for place, of in enumerate(self._odd):
            kind = pa.float64() if of.is_float else pa.decimal128(38, 0)
            columns[f"{of.name}_odd"] = pa.array([odd[place] for _, odd, _ in flat], kind)
        limbs = [self._limbs(sums) for _, _, sums in flat]
        for name in self._spec.added:
            columns[name] = pa.array([one[name] for one in limbs], pa.int64())
        flush.put(self._spec, columns)
        for values in self._valued.values():
            self._keep_values(flush, values, change)

    def _keep_values(self, flush: DirectFlush, of: StoredValue, change: dict[Any, Group]) -> None:
        """Add the changed values of the groups, with nonzero weights, to the table of the values
        `of`."""
        flat = [
            (key, value, weight)
            for key, group in change.items()
            for value, weight in group.values.get(of.name, Counter()).items()
            if weight
        ]
        if flat:
            keys, values, weights = zip(*flat, strict=True)
            columns = {
                "key": to_arrow(self._key, keys),
                "value": to_arrow(of.value.of, values),
                **({} if of.parts is None else {"part": _part_column(of, values)}),
                "weight": pa.array(weights, pa.int64()),
            }
            flush.put(of.spec, columns)

    def _limbs(self, sums: Sums) -> dict[str, int]:
        """Split sums into the limb columns."""
        found = {"n": sums[0]}
        for place, (limbs, count) in enumerate(self._columns):
            rest = sums[1 + 2 * place]
            for limb in limbs[:-1]:
                found[limb] = rest & _MASK
                rest >>= LIMB
            found[limbs[-1]] = rest
            found[count] = found["n"] if count == "n" else sums[2 + 2 * place]
        return found

    def _read_before(
        self, flush: DirectFlush, change: dict[Any, Group]
    ) -> tuple[dict[Any, Group], dict[str, InParts]]:
        """Return the state of groups in the tables; and for large groups, by values, the parts
        before and after the change."""
        parted: dict[str, InParts] = {}
        if not change:
            return {}, parted
        keys = {tuple(flattened_values(self._key, key)) for key in change}
        found: dict[Any, Group] = {}
        table = net_table(self._spec, flush.found(self._spec, self._lookup, keys))
        for key, odd, sums in self._read_sums(table):
            if key in change:
                _merge_sums(found.setdefault(key, Group()), odd, sums)
        for of in self._valued.values():
            if of.name in self._parts:
                new = {k: g.values.get(of.name, Counter()) for k, g in change.items()}
                counts = {key: group.rows for key, group in found.items()}
                known = self._parts[of.name].known(flush, new, counts)
                parted[of.name] = known.parted
                for key, values in known.values.items():
                    found.setdefault(key, Group()).values[of.name] = values
                continue
            for key, value, weight, _ in of.read(
                flush.found(of.spec, self._lookup, keys), self._key
            ):
                if key in change:
                    group = found.setdefault(key, Group())
                    group.values.setdefault(of.name, Counter())[value] += weight
        return found, parted

    def _read_sums(self, table: pa.Table) -> Iterable[tuple[Any, Odd, Sums]]:
        """Yield the rows of the table of sums."""
        if not table.num_rows:
            return
        keys = from_arrow(self._key, table.column("key").combine_chunks())
        odd = [_read_odd_values(table.column(f"{of.name}_odd"), of) for of in self._odd]
        odds = list(zip(*odd, strict=True)) if odd else [()] * len(keys)
        numbers = {name: table.column(name).to_pylist() for name in self._spec.added}
        for place, key in enumerate(keys):
            sums = [numbers["n"][place]]
            for limbs, count in self._columns:
                each = (numbers[limb][place] << LIMB * n for n, limb in enumerate(limbs))
                sums += [sum(each), numbers[count][place]]
            yield key, odds[place], sums

    # Results.

    def _row(self, key: Any, group: Group) -> tuple[Any] | None:
        """Return the output row of a group in a tuple.

        Return None for an empty group, which has no row.
        """
        if self._node.key is not None and group.rows <= 0:
            return None
        results = [self._result(folded, group) for folded in self._node.aggregates]
        return (
            make_output_row(self._kept, results if self._node.key is None else [key, *results]),
        )

    def _result(self, folded: plan.Folded, group: Group) -> Any:
        """Return the result of one aggregate for a group: from its parts, its values, its sums or
        its row count."""
        what = aggregate_input(folded)
        values = self._valued.get(what)
        if values is not None:
            places = enumerate(values.asked)
            place, asked = next(((n, one) for n, one in places if one.folded == folded), (0, None))
            if asked is not None and values.name in group.parted:
                return group.parted[values.name].result(asked, place, _fold_values)
            if asked is not None:
                return _fold_values(asked, group.values.get(values.name, Counter()))
        of = self._summed.get(what)
        return group.rows if of is None else self._result_of_sums(folded, of, group)

    def _result_of_sums(self, folded: plan.Folded, of: SummedValue, group: Group) -> Any:
        """Return the Sum or Avg of a group, computed exactly from its sums.

        Return None for an Avg of no values.
        """
        place = 1 + 2 * list(self._summed.values()).index(of)
        number = sum(sums[place] for sums in group.sums.values())
        count = sum(sums[place + 1] for sums in group.sums.values())
        odd = []
        if of.may_be_odd:
            which = self._odd.index(of)
            odd = [(o[which], sums[0]) for o, sums in group.sums.items() if o[which] is not None]
        total = combine_total(number, count, [(v, n) for v, n in odd if n], is_float=of.is_float)
        if type(folded.accumulator).__name__ == "SumAccumulator":
            return total
        return canonical(total / count) if count > 0 else None


def _merge_sums(group: Group, odd: Odd, sums: Sums) -> None:
    """Add `sums` to the sums that the group has for the odd values `odd`.

    If it has none, it stores the list itself, without a copy.
    """
    there = group.sums.get(odd)
    if there is None:
        group.sums[odd] = sums
    else:
        there[:] = map(add, there, sums)


def _row_reader(function: Function | None, count: int) -> Callable[[Row], Any]:
    """Return a function that reads a value of a row of `count` bindings, or else the row."""
    return (lambda row: row) if function is None else spread_bindings(function, count, compiled_of)


def _scale_value(of: SummedValue, value: Any) -> tuple[int, int, Any]:
    """Return the number to sum for a value, the number of values that it counts as, and the value
    if it is odd."""
    if value is None:
        return 0, 0, None
    if of.is_float:
        scaled = value * _SCALE
        if -LARGEST < value < LARGEST and scaled.is_integer():
            return int(scaled), 1, None
        return 0, 1, canonical(value)
    number = int(value)
    if of.may_be_odd and not -(1 << 63) <= number < 1 << 63:
        return 0, 1, number
    return number, 1, None


def _read_odd_values(column: pa.ChunkedArray, of: SummedValue) -> list[Any]:
    return from_arrow(Plain(float, optional=True) if of.is_float else WIDE, column.combine_chunks())


def _part_column(of: StoredValue, values: Sequence[Any]) -> pa.Array:
    return pa.array(map(of.part_of, values), pa.int64())


def _has_worker_aggregates(of: StoredValue) -> bool:
    """Return True if Python workers compute some of the aggregates."""
    return not all(asked.is_column for asked in of.asked)


def _fold_values(asked: ValuedAggregate, values: Counter[Any]) -> Any:
    """Fold the present values, with their counts, in the order that workers use, so that both
    compute equal results."""
    accumulator = asked.folded.accumulator
    there = [(value, weight) for value, weight in values.items() if weight > 0]
    if not asked.is_column:
        there.sort(key=lambda pair: sorting_key(pair[0]))
    state = accumulator.zero()
    for value, weight in there:
        state = accumulator.add(state, value, weight)
    found = stored_result(accumulator, accumulator.result(state))
    is_text = isinstance(asked.of, Whole) and asked.of.kind is Digits
    return Decimal(found) if is_text and found is not None else found


def sorting_key(value: Any) -> Any:
    """Return a key that sorts values of one type as Spark does: None first, NaN last, records by
    fields."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(map(sorting_key, value)))
    if is_dataclass(value):
        return (1, tuple(sorting_key(getattr(value, f.name)) for f in fields(value)))
    return (1, value) if value == value else (2,)

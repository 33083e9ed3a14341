"""The values of large groups in parts by their hash: a change recomputes the results of one part.

    values of a group    --hash-->    part 0        part 1        ...    part 1,023
    Min, count of each                3, 97         5, 101               4, 95
    Min of the group                  the least of these

A group is large if it has `LARGE` values: by the counts stored with its parts, or by reading all of
its values. The results of parts are rows of a table of their own. A job, which reads whole groups,
drops that table, and the next flush of this process that changes a large group builds its parts
again.

Sound:  equal values are of one part; the results of parts are a function of the values, and the
        result of the group is one of these (least, greatest, sum of counts).
State:  a row for each part of a large group.
Cost:   per flush and large group O(values in the parts that change + parts); O(values) once after a
        job. For other groups O(values).
Source: partial aggregation under skew: salted keys; [slender] heavy labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from reactive.engine.operators.accumulators import CountDistinctAccumulator
from spark_backend.aggregates.value_tables import StoredValue, ValuedAggregate
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values
from spark_backend.codec.schema import Typed
from spark_backend.direct.flush import DirectFlush, Lookup

LARGE = 2_000
"""The least number of distinct values of a group with parts."""
SHRUNK = 4
"""A group keeps its parts until it has less than `LARGE` over this many values."""
MOST_PARTED = 300_000
"""The most values of groups that the process splits into parts."""
Values = Counter[Any]
Result = Callable[[ValuedAggregate, Values], Any]
"""The result of an aggregate for values."""


@dataclass(slots=True)
class GroupParts:
    """The parts of a group: the number of values of each, and its results."""

    parts: dict[int, tuple[Any, ...]]

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(part[0] for part in self.parts.values())

    def result(self, asked: ValuedAggregate, place: int, of: Result) -> Any:
        """Return the result of the group, from the results of its parts."""
        found = [part[1 + place] for part in self.parts.values()]
        if isinstance(asked.folded.accumulator, CountDistinctAccumulator):
            return sum(found)
        return of(asked, Counter(found))


@dataclass(slots=True)
class KnownGroups:
    """The state of groups before a flush: all values of some, and the new parts of groups that
    become large; for others, the parts before and after."""

    values: dict[Any, Values] = field(default_factory=dict)
    made: dict[Any, GroupParts] = field(default_factory=dict)
    parted: dict[Any, tuple[GroupParts, GroupParts]] = field(default_factory=dict)


class Parts:
    """The values of groups, in parts if the group is large.

    Parameters
    ----------
    of: the values; they have a table of parts.
    key: the type of the group key; `look` finds rows by it.
    """

    def __init__(self, of: StoredValue, key: Typed, look: Lookup, result: Result) -> None:
        assert of.parts is not None
        self._of, self._spec = of, of.parts
        self._key, self._look, self._result = key, look, result

    def known(
        self, flush: DirectFlush, change: Mapping[Any, Values], counts: Mapping[Any, int]
    ) -> KnownGroups:
        """Return the state of the groups that change, and record how their parts change.

        Parameters
        ----------
        counts: the number of rows of a group, which is stored with its sums.

        Raises
        ------
        TooMany: there are many values to read.
        """
        large = self._read_parts(flush, change)
        found = KnownGroups()
        small = {key: values for key, values in change.items() if key not in large}
        is_new = any(counts.get(key, 0) >= LARGE for key in small)
        self._read_small(flush, small, found, MOST_PARTED if is_new else None)
        self._read_large(flush, {key: change[key] for key in large}, large, found)
        self._keep(flush, found)
        return found

    def _read_parts(self, flush: DirectFlush, keys: Iterable[Any]) -> dict[Any, GroupParts]:
        """Return the groups that are in parts."""
        if not flush.tables.rows_near(self._spec):
            return {}
        table = flush.found(self._spec, self._look, self._flatten_keys(keys))
        names = [name for name in self._spec.schema.names if name not in ("key", "weight")]
        types = self._of.part_types
        columns = [
            from_arrow(types[name], table.column(name).combine_chunks()) if table.num_rows else []
            for name in names
        ]
        groups = from_arrow(self._key, table.column("key").combine_chunks())
        found: dict[Any, Counter[tuple[Any, ...]]] = {}
        weights = table.column("weight").to_pylist()
        for key, weight, *part in zip(groups, weights, *columns, strict=True):
            found.setdefault(key, Counter())[tuple(part)] += weight
        there = {
            key: GroupParts({part[0]: part[1:] for part, n in found[key].items() if n > 0})
            for key in keys
            if key in found
        }
        return {key: of for key, of in there.items() if of.parts}

    def _read_small(
        self,
        flush: DirectFlush,
        change: Mapping[Any, Values],
        found: KnownGroups,
        most: int | None,
    ) -> None:
        """Read all values of the groups into `found.values`, and make the parts of groups that
        become large in `found.made`."""
        if not change:
            return
        keys = self._flatten_keys(change)
        table = flush.found(self._of.spec, self._look, keys, most=most)
        for key, value, weight, _ in self._of.read(table, self._key):
            if key in change:
                found.values.setdefault(key, Counter())[value] += weight
        for key, added in change.items():
            after = _apply_weights(found.values.get(key, Counter()), added)
            if len(after) >= LARGE:
                found.made[key] = self._split_values(after)

    def _split_values(self, values: Values) -> GroupParts:
        """Split the values of a group into parts by their hash, and compute the results of each
        part."""
        by_part: dict[int, Values] = {}
        for value, weight in values.items():
            by_part.setdefault(self.part(value), Counter())[value] = weight
        return GroupParts({part: self._results(some) for part, some in by_part.items()})

    def _read_large(
        self,
        flush: DirectFlush,
        change: Mapping[Any, Values],
        large: Mapping[Any, GroupParts],
        found: KnownGroups,
    ) -> None:
        """Store the parts of large groups before and after the change in `found.parted`; only the
        parts that change are computed."""
        added: dict[tuple[Any, int], Values] = {}
        for key, values in change.items():
            for value, weight in values.items():
                added.setdefault((key, self.part(value)), Counter())[value] = weight
        before = self._values_of(flush, added)
        for key in change:
            found.parted[key] = large[key], GroupParts(dict(large[key].parts))
        for (key, part), values in added.items():
            after = _apply_weights(before.get((key, part), Counter()), values)
            parts = found.parted[key][1].parts
            if after:
                parts[part] = self._results(after)
            else:
                parts.pop(part, None)

    def _values_of(
        self, flush: DirectFlush, parts: Iterable[tuple[Any, int]]
    ) -> dict[tuple[Any, int], Values]:
        """Return the values of parts of groups, before the flush."""
        wanted = set(parts)
        found: dict[tuple[Any, int], Values] = {}
        if not wanted:
            return found
        hashes = self._look.hashes(self._flatten_keys({key for key, _ in wanted}))
        numbers = pa.array(sorted({part for _, part in wanted}), pa.int64())
        table = flush.tables.sought(self._of.spec, hashes, (("part",), numbers))
        for key, value, weight, part in self._of.read(table, self._key):
            if (key, part) in wanted:
                found.setdefault((key, part), Counter())[value] += weight
        return found

    def _keep(self, flush: DirectFlush, found: KnownGroups) -> None:
        """Add the changes of parts to their table; a group that has shrunk has none."""
        rows: list[tuple[Any, int, tuple[Any, ...], int]] = []
        nothing = GroupParts({})
        made = {key: (nothing, now) for key, now in found.made.items()}
        for key, (was, now) in {**found.parted, **made}.items():
            parts = now.parts if now.count * SHRUNK >= LARGE else {}
            changed = {p for p in was.parts.keys() | parts if was.parts.get(p) != parts.get(p)}
            for of, weight in ((was.parts, -1), (parts, 1)):
                rows += [(key, part, of[part], weight) for part in changed if part in of]
        if rows:
            self._put(flush, rows)

    def _put(self, flush: DirectFlush, rows: list[tuple[Any, int, tuple[Any, ...], int]]) -> None:
        """Add rows of `(group, part, results, weight)` to the table of the parts."""
        keys, parts, found, weights = zip(*rows, strict=True)
        names = ["count", *(asked.column for asked in self._of.asked)]
        columns = dict(zip(names, zip(*found, strict=True), strict=True))
        flush.put(
            self._spec,
            {
                "key": to_arrow(self._key, keys),
                "part": pa.array(parts, pa.int64()),
                **{n: to_arrow(self._of.part_types[n], columns[n]) for n in names},
                "weight": pa.array(weights, pa.int64()),
            },
        )

    def _results(self, values: Values) -> tuple[Any, ...]:
        """Return the number of values, and the result of each aggregate."""
        return (len(values), *(self._result(asked, values) for asked in self._of.asked))

    def part(self, value: Any) -> int:
        """Return the part of a value.

        Raises
        ------
        TooMany: a column of the type cannot store the value.
        """
        return self._of.part_of(value)

    def _flatten_keys(self, keys: Iterable[Any]) -> set[tuple[Any, ...]]:
        return {tuple(flattened_values(self._key, key)) for key in keys}


def _apply_weights(before: Values, change: Values) -> Values:
    """Return the values that exist after a change."""
    found = Counter(before)
    for value, weight in change.items():
        found[value] += weight
    return Counter({value: weight for value, weight in found.items() if weight > 0})

"""Where, select, unnest and select_many: what they make of the changes is how they change.

d f(R) = f(dR)
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame

from optimizer import plan
from reactive.engine.collections.zset import consolidate
from reactive.engine.reference.bags import Bag
from spark_backend.cluster.connect import worked_out
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.schema import Pickled, Record, Typed, Whole
from spark_backend.direct.flush import DirectFlush, through, together
from spark_backend.steps.step import Flush, NotColumns, Step, schema_of
from spark_backend.tables.chain import Chain, Weighted


class Linear:
    """A chain of nodes that look at one row after the other."""

    def __init__(
        self, chain: Chain, nodes: tuple[plan.Node, ...], source: Step, empty: DataFrame
    ) -> None:
        self._chain, self._nodes, self._source = chain, nodes, source
        found = chain.run(nodes, Weighted(empty, source.kept))
        if isinstance(found.kept, Pickled):
            raise NotColumns("; ".join(f"{s.node}: {s.reason}" for s in found.steps if s.reason))
        self.kept: Typed = found.kept
        self.steps = [str(step) for step in found.steps]

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        if given is None:
            return None
        return self._chain.run(self._nodes, Weighted(given, self._source.kept)).frame

    def direct(self, flush: DirectFlush) -> Bag:
        found = through(self._nodes, flush.delta(self._source))
        return as_read(found, self.kept) if has_sequences(self.kept) else found


def has_sequences(kept: Typed) -> bool:
    """Whether rows of a type have sequences inside."""
    if isinstance(kept, Record):
        return any(map(has_sequences, kept.fields))
    inside = kept.of if isinstance(kept, Whole) else None
    return inside is not None and (kept.kind is tuple or has_sequences(inside))


def as_read(rows: Bag, kept: Typed) -> Bag:
    """Rows as they are when they are read from files: a long sequence of a nest is a tuple there,
    which is equal and has another hash."""
    read = from_arrow(kept, to_arrow(kept, list(rows)))
    return Counter(dict(consolidate(list(zip(read, rows.values(), strict=True)))))


class WorkedOut:
    """The changes of an outer join that others read, worked out by a job of their own.

    A step reads several times what it is given: as one query, a nest would be some ten times as
    long with each level, and take Spark minutes to plan.
    """

    def __init__(self, source: Step) -> None:
        self._source, self.kept = source, source.kept

    def delta(self, flush: Flush) -> DataFrame | None:
        given = flush.delta(self._source)
        return None if given is None else worked_out(given)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.delta(self._source)


class Together:
    """Union of bags: the changes of both.  d(L + R) = dL + dR"""

    def __init__(self, left: Step, right: Step, kept: Typed) -> None:
        self._sides, self.kept = (left, right), kept

    def delta(self, flush: Flush) -> DataFrame | None:
        found = [frame for side in self._sides if (frame := flush.delta(side)) is not None]
        schema = schema_of(self.kept)
        typed = [
            frame.select(frame["row"].cast(schema["row"].dataType), "weight") for frame in found
        ]
        if len(typed) < 2:
            return typed[0] if typed else None
        return typed[0].unionByName(typed[1])

    def direct(self, flush: DirectFlush) -> Bag:
        return together([flush.delta(side) for side in self._sides])

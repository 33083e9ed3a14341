"""A recursion in one Python worker: brought to its end anew when what it reads changes.

    sides as they were, and their deltas -+-> one task: this engine, to the end --> after - before
    rows as they were                    -+

Whatever the rounds, a flush is one job, and nothing of it passes the driver. Rounds elsewhere would
be a job each, and most loops have no small changes: one edge moves the ranks of all pages.

Rounds of joins and sums of numbers are done over columns (`columnar`), which take a tenth of the
time that rows do. In a flush of few rows the process itself does them, without a job.

Sound:  the recursion is evaluated as in the process. With a tolerance, rounds are exact, and what
        is shown differs from that by less than the tolerance.
State:  the rows of each relation, and of each side.
Cost:   O(rows of the sides + rounds from scratch), in one worker, which has to hold them.
Source: [mrql] repeat.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.reference.bags import Bag
from spark_backend.codec.arrow import pairs_of
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import NOTHING, DirectFlush, together
from spark_backend.recursion.loop_worker import Task, brought_to_end, by_columns
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.sets import hashed
from spark_backend.steps.step import Flush, Step, schema_of
from spark_backend.tables.worker import shipped

MOST_COLUMNS = 2_000_000
"""Rows that a loop reads up to which it is done over columns in this process."""


class Relations(Step, Protocol):
    """All relations of a recursion; their delta is one frame."""

    relations: tuple[Typed, ...]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """How each of them changes, in a flush that this process does."""
        ...

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """How one of them changes."""
        ...


class Relation:
    """One of the relations of a recursion."""

    def __init__(self, of: Relations, place: int) -> None:
        self.of, self.kept, self._place = of, of.relations[place], place

    def beside(self, place: int) -> Relation:
        """Another relation of the same recursion."""
        return Relation(self.of, place)

    def delta(self, flush: Flush) -> DataFrame | None:
        found = flush.delta(self.of)
        return None if found is None else self.of.rows(found, self._place)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self.of, self.of.direct_changes)[self._place]


class InOneWorker:
    """All relations of a recursion.

    Parameters
    ----------
    relations: what their rows are.
    names: of the tables of their rows, and of those of the sides.
    node: the recursion over its sides, as bytes for workers.
    classes: those of the script that is run, for workers.
    """

    def __init__(
        self,
        relations: tuple[Typed, ...],
        sides: tuple[Step, ...],
        names: Sequence[str],
        node: bytes,
        classes: dict[str, bytes],
    ) -> None:
        self.relations, self._sides = relations, sides
        self.kept = relations[0]
        self._kinds = (*relations, *(side.kept for side in sides))
        self.specs = tuple(map(_spec, names, self._kinds))
        self._of = Task(node, self._kinds, len(relations))
        self._task, self._classes = pickle.dumps(self._of), classes

    def delta(self, flush: Flush) -> DataFrame | None:
        """How all relations change: of one its rows, of several the columns `kind`, `weight`, and
        one for each."""
        deltas = [flush.delta(side) for side in self._sides]
        if not flush.is_first and all(delta is None for delta in deltas):
            return None
        own = len(self.relations)
        found = self._brought_to_end(flush, [*[None] * own, *deltas])
        if own == 1:  # one frame for all who read it or write it
            found = found.select(F.col(_name(0)).alias("row"), "weight")
        for place, spec in enumerate(self.specs[:own]):
            flush.add(spec, self.rows(found, place))
        for spec, delta in zip(self.specs[own:], deltas, strict=True):
            if delta is not None:
                flush.add(spec, delta)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self, self.direct_changes)[0]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """How all relations change, in a flush that this process does."""
        own = len(self.relations)
        deltas = [*[NOTHING] * own, *map(flush.delta, self._sides)]
        if not any(deltas):
            return [NOTHING] * own
        given = list(zip(self.specs, self._kinds, deltas, strict=True))
        changed = self._by_columns(flush, deltas)
        if changed is not None:
            for spec, kept, delta in given[own:]:
                flush.add(spec, kept, delta)
            return changed
        flush.check_anew(self.specs)
        bags = [together([flush.all_rows(spec, kept), delta]) for spec, kept, delta in given]
        changes = brought_to_end(self._of, bags)
        found = [Counter(dict(pairs)) for pairs in changes]
        for (spec, kept, _), bag in zip(given, [*found, *deltas[own:]], strict=True):
            flush.add(spec, kept, bag)
        return found

    def _by_columns(self, flush: DirectFlush, deltas: Sequence[Bag]) -> list[Bag] | None:
        """The same over columns, if that can be done, and there are not too many rows."""
        if not self._of.is_loop or flush.rows_of(self.specs) > MOST_COLUMNS:
            return None
        tables = [
            flush.columns(spec, kept, delta)
            for spec, kept, delta in zip(self.specs, self._kinds, deltas, strict=True)
        ]
        found = by_columns(self._of, tables)
        if found is None:
            return None
        bags = []
        for spec, kept, table in zip(self.specs, self.relations, found, strict=False):
            if table.num_rows:
                flush.put(spec, {"row": table.column("row"), "weight": table.column("weight")})
            bags.append(Counter(dict(pairs_of(kept, table))))
        return bags

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """How one of the relations changes."""
        if len(self.relations) == 1:
            return found
        rows = found.filter(F.col("kind") == place)
        return rows.select(F.col(_name(place)).alias("row"), "weight")

    def _brought_to_end(self, flush: Flush, deltas: Sequence[DataFrame | None]) -> DataFrame:
        frames = [
            frame.select(*self._columns(kind, frame["row"]))
            for kind, (spec, delta) in enumerate(zip(self.specs, deltas, strict=True))
            for frame in (*flush.parts(spec), *([] if delta is None else [delta]))
        ]
        empty = flush.empty(self._kinds[0])
        given = united(frames or [empty.select(*self._columns(0, empty["row"]))])
        run = shipped(
            flush.paths, "spark_backend.recursion.loop_worker", "changes", self._task, self._classes
        )
        changes = given.repartition(1).mapInArrow(run, self._changed())
        # An exchange, so that tables that it is written to can share what the worker made: by all
        # columns, so that all of them are in it. Of relations that are defined together the worker
        # runs for each, as Spark looks at their kind before the exchange.
        return changes.repartition(flush.tables.tasks(), *changes.columns)

    def _columns(self, of: int, row: Column) -> list[Column]:
        """What the worker is given of a row of a kind."""
        columns = [
            (row if kind == of else F.lit(None)).cast(spark_type(kept)).alias(_name(kind))
            for kind, kept in enumerate(self._kinds)
        ]
        return [F.lit(of).alias("kind"), F.col("weight"), *columns]

    def _changed(self) -> T.StructType:
        fields = [T.StructField("kind", T.IntegerType()), T.StructField("weight", T.LongType())]
        for place, kept in enumerate(self.relations):
            fields.append(T.StructField(_name(place), spark_type(kept)))
        return T.StructType(fields)


def _spec(name: str, kept: Typed) -> TableSpec:
    return TableSpec(
        name, schema_of(kept), ("row",), ("weight",), lambda: hashed(Value(F.col("row"), kept))
    )


def _name(kind: int) -> str:
    return f"row{kind}"

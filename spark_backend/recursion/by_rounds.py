"""A linear recursion by rounds: what changes is followed, over all else as it was.

    few rows change    --this process: a look-up of their keys per round--> what changes
    many, or at first  --one job: one worker, which is given all rows-----> the same

Either way follows the change by what is known of rows (`counted.py`), which is kept beside them.

    counted   row, weight, derivations, founded, round     by the row
    by        row, weight                                  by each key of a join with a side
    by        row, weight                                  the side, by the same key

State:  these.
Cost:   of a flush of few rows O(derivations that rows that change are part of), and a look-up per
        round; else a job whose worker takes in all rows, and derives as many.
Source: as `counted.py`.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.reference.bags import Bag
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import DirectFlush
from spark_backend.recursion.direct_rounds import DirectRounds
from spark_backend.recursion.rounds_worker import KNOWN, NUMBERS, Task
from spark_backend.state.tables import TableSpec, united
from spark_backend.steps.join import Arranged
from spark_backend.steps.sets import hashed
from spark_backend.steps.step import Flush, Step, schema_of
from spark_backend.tables.worker import shipped

FLUSH = 1 << 32
"""Rounds of a flush are numbered from so many times its number on."""


@dataclass(frozen=True)
class Asked:
    """The recursive rows of a relation by a key, and the rows of a side by the same key."""

    relation: int
    side: int
    own: Arranged
    other: Arranged


@dataclass(frozen=True)
class Read:
    """What a recursion reads: sides, and what derives rows from inputs alone; `relations` says of
    which relation."""

    sides: tuple[Step, ...]
    seeds: tuple[Step, ...]
    relations: tuple[int, ...]
    asked: tuple[Asked, ...]


class ByRounds:
    """All relations of a linear recursion.

    Parameters
    ----------
    relations: what their rows are.
    names: of the tables of what is known of their rows.
    program: as bytes, for workers.
    classes: those of the script that is run, for workers.
    """

    def __init__(
        self,
        relations: tuple[Typed, ...],
        read: Read,
        names: Sequence[str],
        program: bytes,
        classes: dict[str, bytes],
    ) -> None:
        self.relations, self._read, self.kept = relations, read, relations[0]
        self.specs = tuple(map(_spec, names, relations))
        sides, seeds = ([step.kept for step in steps] for steps in (read.sides, read.seeds))
        task = Task(program, relations, tuple(sides), tuple(seeds), read.relations)
        self._kinds = task.kinds
        self._task, self._classes = pickle.dumps(task), classes
        self._direct = DirectRounds(task, self.specs, read)

    def delta(self, flush: Flush) -> DataFrame | None:
        """How all relations change: of one its rows, of several the columns of `_changed`."""
        sides = [flush.delta(side) for side in self._read.sides]
        seeds = [flush.delta(seed) for seed in self._read.seeds]
        if not flush.is_first and all(delta is None for delta in (*sides, *seeds)):
            return None
        found = self._followed(flush, sides, seeds)
        if len(self.relations) == 1:  # one frame for all who read it or write it
            found = found.select(F.col("row0").alias("row"), *NUMBERS)
        for place, spec in enumerate(self.specs):
            flush.add(spec, self._of(found, place))
        for asked in self._read.asked:
            flush.add(asked.own.spec, self.rows(found, asked.relation))
            change = sides[asked.side]
            if change is not None:
                flush.add(asked.other.spec, change)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self, self.direct_changes)[0]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """How all relations change, in a flush that this process does."""
        return self._direct.changes(flush, _first(flush.tables.number))

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """How the rows of a relation change."""
        return self._of(found, place).select("row", "weight")

    def _of(self, found: DataFrame, place: int) -> DataFrame:
        """How the rows of a relation change, and what is known of them."""
        if len(self.relations) == 1:
            return found
        rows = found.filter(F.col("kind") == place)
        return rows.select(F.col(f"row{place}").alias("row"), *NUMBERS)

    def _followed(
        self,
        flush: Flush,
        sides: Sequence[DataFrame | None],
        seeds: Sequence[DataFrame | None],
    ) -> DataFrame:
        frames = [
            part.select(*self._columns(kind, part["row"], known=True))
            for kind, spec in enumerate(self.specs)
            for part in flush.parts(spec)
        ]
        kind = len(self.specs)
        for place in range(len(sides)):
            frames += [self._given(part, kind + place) for part in self._side(flush, place)]
        for place, change in enumerate((*sides, *seeds), kind + len(sides)):
            if change is not None:
                frames.append(self._given(change, place))
        if not frames:
            frames = [self._given(flush.empty(self._kinds[kind]), kind)]
        run = shipped(
            flush.paths,
            "spark_backend.recursion.rounds_worker",
            "changes",
            self._task,
            self._classes,
            _first(flush.tables.number),
        )
        changes = united(frames).repartition(1).mapInArrow(run, self._changed())
        # An exchange, for the same reason as in `one_worker.py`.
        return changes.repartition(flush.tables.tasks(), *changes.columns)

    def _side(self, flush: Flush, place: int) -> list[DataFrame]:
        """The rows of a side, as of before."""
        asked = next(asked for asked in self._read.asked if asked.side == place)
        return flush.parts(asked.other.spec)

    def _given(self, frame: DataFrame, kind: int) -> DataFrame:
        return frame.select(*self._columns(kind, frame["row"], known=False))

    def _columns(self, of: int, row: Column, *, known: bool) -> list[Column]:
        """What the worker is given of a row of a kind."""
        columns = [F.lit(of).alias("kind"), F.col("weight")]
        columns += [F.col(n) if known else F.lit(None).cast("long").alias(n) for n in KNOWN]
        for kind, kept in enumerate(self._kinds):
            value = row if kind == of else F.lit(None)
            columns.append(value.cast(spark_type(kept)).alias(f"row{kind}"))
        return columns

    def _changed(self) -> T.StructType:
        fields = [T.StructField("kind", T.IntegerType())]
        fields += [T.StructField(name, T.LongType()) for name in NUMBERS]
        for place, kept in enumerate(self.relations):
            fields.append(T.StructField(f"row{place}", spark_type(kept)))
        return T.StructType(fields)


def _first(number: int | None) -> int:
    """The number of the first round of a flush after one with a number."""
    return 1 if number is None else FLUSH * (number + 1)


def _spec(name: str, kept: Typed) -> TableSpec:
    schema = T.StructType(schema_of(kept).fields)
    for column in KNOWN:
        schema = schema.add(column, T.LongType())
    return TableSpec(name, schema, ("row",), NUMBERS, lambda: hashed(Value(F.col("row"), kept)))

"""Linear recursions by rounds: only the changes are followed, on Spark or in the process.

`RoundsRecursion` stores the derivations of each row (`rounds_worker.py`), and follows a change with
them:

    few rows change    --this process: a look-up of their keys per round--> changed rows
    many, or at first  --one job: one worker, which reads all rows--------> changed rows

Tables:

    counted   row, weight, derivations, founded, round     by the row
    by        row, weight                                  by each key of a join with a side
    by        row, weight                                  the side, by the same key

State:  these tables.
Cost:   for a flush of few rows, O(derivations that involve changed rows), and a look-up per round;
        else a job whose worker reads all rows, and derives only from changed ones.
Source: as `rounds_worker.py`.

`DirectRounds` runs a flush in this process:

    rows of a round --keys--> rows of sides that have them --rules--> derived rows
                                                           --rows---> their known derivations

A table of few rows is read whole at first, so that a round reads no file. A change that reaches
many rows, or needs many rounds with look-ups in files, is left to a job.

State:  only the tables; during a flush, the rows that were looked up.
Cost:   O(derivations that involve changed rows), and some milliseconds for a look-up.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.collections.zset import Row
from reactive.engine.reference.bags import Bag
from spark_backend.codec.arrow import from_arrow, to_arrow
from spark_backend.codec.hashing import flattened_values, leaf_types
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import Value, spark_type
from spark_backend.direct.flush import (
    NOTHING,
    DirectFlush,
    Leaves,
    Lookup,
    TooMany,
    check_fetched,
    leaf_fields,
)
from spark_backend.recursion.rounds_worker import (
    KNOWN,
    NUMBERS,
    DerivationCounts,
    RoundsTask,
    add_derivations,
    change_numbers,
    existing_rows,
    follow_changes,
    load_program,
    positive_rows,
)
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import union_frames
from spark_backend.steps.join import ArrangedRows
from spark_backend.steps.step import Flush, Step, hash_column, schema_of
from spark_backend.tables.stateless import worker_function

MOST_TAKEN = 20_000
"""The most rows of a table that is read whole at the first look-up."""
MOST_LOOKED_UP = 300
"""The most look-ups in files of a flush."""


class DirectRounds:
    """The relations of a recursion.

    Parameters
    ----------
    specs: the tables of the derivations of their rows.
    """

    def __init__(self, task: RoundsTask, specs: Sequence[TableSpec], read: RecursionInputs) -> None:
        self._task, self._specs, self._read = task, specs, read

    def changes(self, flush: DirectFlush, first: int) -> list[Bag]:
        """Return how the rows of the relations change; their rounds are numbered from `first`
        on."""
        task, read = self._task, self._read
        sides = [flush.delta(side) for side in read.sides]
        seeds = task.of_seeds([flush.delta(seed) for seed in read.seeds])
        if not any(sides) and not any(seeds):
            return [NOTHING for _ in task.kept]
        program = load_program(task.program)
        met = _FlushDerivations(flush, task, self._specs, read, sides)
        found = follow_changes(met, seeds, first, program.limits)
        shown = []
        for spec, kept, some in zip(self._specs, task.kept, found, strict=True):
            of = change_numbers(some)
            if some:
                columns: dict[str, pa.Array] = {"row": to_arrow(kept, [row for row, *_ in some])}
                for name, values in zip(NUMBERS, of, strict=True):
                    columns[name] = pa.array(values, pa.int64())
                flush.put(spec, columns)
            rows = zip(some, of[0], strict=True)
            shown.append(Counter({row: weight for (row, *_), weight in rows if weight}))
        for asked in read.asked:
            flush.add(asked.own.spec, task.kept[asked.relation], shown[asked.relation])
            flush.add(asked.other.spec, asked.other.source.kept, sides[asked.side])
        return shown


class _FlushDerivations:
    """The rows that a flush looks up: `rounds_worker.Derivations`."""

    def __init__(
        self,
        flush: DirectFlush,
        task: RoundsTask,
        specs: Sequence[TableSpec],
        read: RecursionInputs,
        changes: Sequence[Bag],
    ) -> None:
        self._flush, self._asked, self._changes = flush, read.asked, changes
        self._ways = task.ways(load_program(task.program))
        self._looks = _LookupCount(flush)
        self._known = [
            _KnownRows(self._looks, *pair) for pair in zip(specs, task.kept, strict=True)
        ]
        self._others = [_SideByKey(self._looks, asked.other) for asked in read.asked]
        self._size = 0

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, DerivationCounts]:
        """Return the derivations of rows, and perhaps of others.

        Raises `TooMany` once the flush has looked up too many rows.
        """
        wanted = list(rows)
        self._size += len(wanted)
        check_fetched(self._size)
        return self._known[relation].of(wanted)

    def readers(self) -> Sequence[Iterable[Row]]:
        """Return, by relation, the rows from before the flush that have a key of a changed row of a
        side."""
        found: list[dict[Row, None]] = [{} for _ in self._known]
        for asked in self._asked:
            keys = asked.other.keys_of(self._changes[asked.side])
            if keys:
                self._looks.count()
                rows = positive_rows(asked.own.direct_having(self._flush, keys))
                key_of = asked.own.side.key_of
                found[asked.relation].update((row, None) for row in rows if key_of(row) in keys)
        return found

    def derive_rows(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        """Return, by relation, the rows that `rows` derive, counted, with the sides before or after
        the flush. Raises `TooMany` if there are too many rows."""
        sides: list[dict[Row, int]] = [{} for _ in self._changes]
        for asked, others in zip(self._asked, self._others, strict=True):
            keys = asked.own.keys_of(rows[asked.relation])
            sides[asked.side].update(others.having(keys))
        if not before:
            for side, change in zip(sides, self._changes, strict=True):
                for row, weight in change.items():
                    side[row] = side.get(row, 0) + weight
        check_fetched(sum(map(len, sides)))
        self._ways.over([positive_rows(Counter(side)) for side in sides])
        return self._ways.derive_rows(rows)


class _LookupCount:
    """A counter of look-ups in files."""

    def __init__(self, flush: DirectFlush) -> None:
        self.flush, self._count = flush, 0

    def count(self) -> None:
        """Count a look-up.

        Raises
        ------
        TooMany: there have been more than `MOST_LOOKED_UP`.
        """
        self._count += 1
        if self._count > MOST_LOOKED_UP:
            raise TooMany("a recursion of many rounds")

    def are_few(self, spec: TableSpec) -> bool:
        """Return True if the table has so few rows that it is read whole."""
        return self.flush.tables.rows_near(spec) <= MOST_TAKEN


class _KnownRows:
    """The known derivations of the rows of a relation."""

    def __init__(self, looks: _LookupCount, spec: TableSpec, kept: Typed) -> None:
        self._looks, self._spec, self._kept = looks, spec, kept
        self._lookup = Lookup(leaf_types(kept), leaf_fields(kept, "row"))
        self._all: Mapping[Row, DerivationCounts] | None = None

    def of(self, rows: Sequence[Row]) -> Mapping[Row, DerivationCounts]:
        """Return the derivations of some rows, and perhaps of others."""
        if self._all is not None:
            return self._all
        self._looks.count()
        tables = self._looks.flush.tables
        if self._looks.are_few(self._spec):
            self._all = self._parse(tables.all_rows(self._spec))
            return self._all
        keys = {tuple(flattened_values(self._kept, row)) for row in rows}
        return self._parse(self._looks.flush.found(self._spec, self._lookup, keys))

    def _parse(self, found: Any) -> Mapping[Row, DerivationCounts]:
        """Return the derivations of the rows of an Arrow table, without rows that do not exist."""
        known: dict[Row, list[int]] = {}
        if found.num_rows:
            add_derivations(
                known, from_arrow(self._kept, found.column("row").combine_chunks()), found
            )
        return existing_rows(known)


class _SideByKey:
    """The rows of a side, before the flush, by a key."""

    def __init__(self, looks: _LookupCount, of: ArrangedRows) -> None:
        self._looks, self._of = looks, of
        self._rows: dict[Leaves, dict[Row, int]] = {}
        self._has_all = False

    def having(self, keys: set[Leaves]) -> dict[Row, int]:
        """Return the rows that have keys, with their weights, and perhaps others."""
        missing = keys - self._rows.keys()
        if missing and not self._has_all:
            self._fetch(missing)
        found: dict[Row, int] = {}
        for key in keys:
            found.update(self._rows.get(key, {}))
        return found

    def _fetch(self, keys: set[Leaves]) -> None:
        """Look up the rows with some keys in files, and store them; a table of few rows is read
        whole."""
        self._looks.count()
        of, flush = self._of, self._looks.flush
        self._has_all = self._looks.are_few(of.spec)
        if self._has_all:
            rows = flush.all_rows(of.spec, of.source.kept)
        else:
            rows = of.direct_having(flush, keys)
            self._rows.update((key, {}) for key in keys)
        for key, some in of.by_key(rows.items()).items():
            if self._has_all or key in keys:
                self._rows[key] = dict(some)


FLUSH = 1 << 32
"""The rounds of a flush are numbered from this factor times the number of the flush."""


@dataclass(frozen=True)
class KeyedSides:
    """The recursive rows of a relation by a key, and the rows of a side by the same key."""

    relation: int
    side: int
    own: ArrangedRows
    other: ArrangedRows


@dataclass(frozen=True)
class RecursionInputs:
    """The inputs of a recursion: sides, and seeds, which derive rows from inputs alone; `relations`
    names the relation of each seed."""

    sides: tuple[Step, ...]
    seeds: tuple[Step, ...]
    relations: tuple[int, ...]
    asked: tuple[KeyedSides, ...]


class RoundsRecursion:
    """All relations of a linear recursion.

    Parameters
    ----------
    relations: the types of their rows.
    names: the names of the tables of the derivations of their rows.
    program: the program as bytes, for workers.
    classes: the classes of the script that is run, for workers.
    """

    def __init__(
        self,
        relations: tuple[Typed, ...],
        read: RecursionInputs,
        names: Sequence[str],
        program: bytes,
        classes: dict[str, bytes],
    ) -> None:
        self.relations, self._read, self.kept = relations, read, relations[0]
        self.specs = tuple(map(_counted_table, names, relations))
        sides, seeds = ([step.kept for step in steps] for steps in (read.sides, read.seeds))
        task = RoundsTask(program, relations, tuple(sides), tuple(seeds), read.relations)
        self._kinds = task.kinds
        self._task, self._classes = pickle.dumps(task), classes
        self._direct = DirectRounds(task, self.specs, read)

    def delta(self, flush: Flush) -> DataFrame | None:
        """Return how all relations change: for one, its rows; for several, the columns of
        `_change_schema`.

        Return None if no input changes, except in the first flush.
        """
        sides = [flush.delta(side) for side in self._read.sides]
        seeds = [flush.delta(seed) for seed in self._read.seeds]
        if not flush.is_first and all(delta is None for delta in (*sides, *seeds)):
            return None
        found = self._follow(flush, sides, seeds)
        if len(self.relations) == 1:  # one frame for all readers and writers
            found = found.select(F.col("row0").alias("row"), *NUMBERS)
        for place, spec in enumerate(self.specs):
            flush.add(spec, self._changes_of(found, place))
        for asked in self._read.asked:
            flush.add(asked.own.spec, self.rows(found, asked.relation))
            change = sides[asked.side]
            if change is not None:
                flush.add(asked.other.spec, change)
        return found

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.once(self, self.direct_changes)[0]

    def direct_changes(self, flush: DirectFlush) -> list[Bag]:
        """Return how all relations change, in a flush of this process."""
        return self._direct.changes(flush, _first_round(flush.tables.number))

    def rows(self, found: DataFrame, place: int) -> DataFrame:
        """Return how the rows of the relation at `place` change, from the result `found` of
        `delta`."""
        return self._changes_of(found, place).select("row", "weight")

    def _changes_of(self, found: DataFrame, place: int) -> DataFrame:
        """Return how the rows of the relation at `place` and their derivations change, from the
        result of `_follow`."""
        if len(self.relations) == 1:
            return found
        rows = found.filter(F.col("kind") == place)
        return rows.select(F.col(f"row{place}").alias("row"), *NUMBERS)

    def _follow(
        self,
        flush: Flush,
        sides: Sequence[DataFrame | None],
        seeds: Sequence[DataFrame | None],
    ) -> DataFrame:
        """Return how the rows and their derivations change, computed in one Python worker from all
        rows, sides and changes. `sides`, `seeds`: their changes, None for unchanged ones."""
        frames = [
            part.select(*self._columns(kind, part["row"], known=True))
            for kind, spec in enumerate(self.specs)
            for part in flush.parts(spec)
        ]
        kind = len(self.specs)
        for place in range(len(sides)):
            frames += [
                self._worker_rows(part, kind + place) for part in self._side_rows(flush, place)
            ]
        for place, change in enumerate((*sides, *seeds), kind + len(sides)):
            if change is not None:
                frames.append(self._worker_rows(change, place))
        if not frames:
            frames = [self._worker_rows(flush.empty(self._kinds[kind]), kind)]
        run = worker_function(
            flush.paths,
            "spark_backend.recursion.rounds_worker",
            "rounds_changes",
            self._task,
            self._classes,
            _first_round(flush.tables.number),
        )
        changes = union_frames(frames).repartition(1).mapInArrow(run, self._change_schema())
        # An exchange, for the same reason as in `partition_recursion.py`.
        return changes.repartition(flush.tables.tasks(), *changes.columns)

    def _side_rows(self, flush: Flush, place: int) -> list[DataFrame]:
        """Return the rows of a side, before the flush."""
        asked = next(asked for asked in self._read.asked if asked.side == place)
        return flush.parts(asked.other.spec)

    def _worker_rows(self, frame: DataFrame, kind: int) -> DataFrame:
        return frame.select(*self._columns(kind, frame["row"], known=False))

    def _columns(self, of: int, row: Column, *, known: bool) -> list[Column]:
        """Return the columns that the worker receives for a row of a kind."""
        columns = [F.lit(of).alias("kind"), F.col("weight")]
        columns += [F.col(n) if known else F.lit(None).cast("long").alias(n) for n in KNOWN]
        for kind, kept in enumerate(self._kinds):
            value = row if kind == of else F.lit(None)
            columns.append(value.cast(spark_type(kept)).alias(f"row{kind}"))
        return columns

    def _change_schema(self) -> T.StructType:
        """Return the schema of the changes that the worker outputs.

        `kind` is the number of the relation of a changed row, `NUMBERS` say how its weight and its
        derivations change, and each relation has a column for its rows.
        """
        fields = [T.StructField("kind", T.IntegerType())]
        fields += [T.StructField(name, T.LongType()) for name in NUMBERS]
        for place, kept in enumerate(self.relations):
            fields.append(T.StructField(f"row{place}", spark_type(kept)))
        return T.StructType(fields)


def _first_round(number: int | None) -> int:
    """Return the number of the first round of the flush after `number`."""
    return 1 if number is None else FLUSH * (number + 1)


def _counted_table(name: str, kept: Typed) -> TableSpec:
    """Return the table of the rows of a relation with their derivations, in buckets by the row."""
    schema = T.StructType(schema_of(kept).fields)
    for column in KNOWN:
        schema = schema.add(column, T.LongType())
    return TableSpec(
        name, schema, ("row",), NUMBERS, lambda: hash_column(Value(F.col("row"), kept))
    )

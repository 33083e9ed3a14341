"""What all steps of a fragment have in common: rows with weights in, rows with weights out.

A step makes the delta of its node of the deltas of its inputs and of what is kept of them. Nothing
runs before the flush writes: a delta is a DataFrame, that is a query.

    delta(flush)    how the rows change; None if they do not
    kept            what rows are, as columns
    tables          what the step keeps: it adds to them in a flush, and reads them as of before it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from reactive.engine.reference.bags import Bag
from spark_backend.codec.schema import Typed
from spark_backend.codec.values import spark_type
from spark_backend.direct.flush import NOTHING, DirectFlush
from spark_backend.state.tables import StateTables, TableSpec

ROW, WEIGHT = "row", "weight"
MOST_BROADCAST = 100_000
"""Changed rows up to which a delta is sent to all tasks."""

MOST_NARROW = 1_000
"""Changed rows up to which a flush is done in one task, as long as it reads few rows."""
MOST_READ = 250_000
"""Rows of a table that a task reads there at most."""
MOST_WHOLE = 20_000
"""Rows of a table up to which all are read, whatever the keys that changed."""
TOUCH_ALL = 4
"""Changed rows for each bucket from which on all buckets are read without a look at which."""
Hashes = Callable[[], set[int]] | None
"""Works out the hashes of the keys that changed, without a job; None where that takes one."""

ODD_VALUE = "a value that columns do not add up"
"""What a job fails with that is to be careful instead."""
TOO_FEW = "an order of which too few rows are at hand"
"""What a job fails with that is to look through all rows of an order instead."""


class NotColumns(Exception):
    """Why a fragment cannot be done in columns."""


class Step(Protocol):
    """A node of a fragment."""

    kept: Typed

    def delta(self, flush: Flush) -> DataFrame | None:
        """How the rows change, with the columns `row` and `weight`; not added up."""
        ...

    def direct(self, flush: DirectFlush) -> Bag:
        """The same of few rows, here."""
        ...


@dataclass
class Flush:
    """One flush of a fragment: what comes in, and what is to be added to tables.

    `counts` are how many rows change in each input at most, `rows` in all of them; those of the
    inputs `local` are in the query itself. The flush `is_narrow` as long as all of it is in one
    task.
    """

    spark: SparkSession
    tables: StateTables
    given: Mapping[int, DataFrame]
    counts: Mapping[int, int]
    rows: int
    careful: bool
    """Whether what columns cannot finish is finished by Python."""
    paths: list[str]
    """What workers are to add to where they import from."""
    looks_through: bool = False
    """Whether orders look through all their rows for the first ones."""
    local: frozenset[int] = frozenset()
    is_narrow: bool = False
    added: dict[str, DataFrame] = field(default_factory=dict)
    as_given: dict[str, int] = field(default_factory=dict)
    """The tables that are added rows of an input as they are, and which one that is."""
    _made: dict[int, DataFrame | None] = field(default_factory=dict)
    _depth: int = 0

    @property
    def is_first(self) -> bool:
        """Whether nothing has been flushed before."""
        return self.tables.number is None

    def empty(self, kept: Typed) -> DataFrame:
        """No rows."""
        return self.spark.createDataFrame([], schema_of(kept))

    def delta(self, step: Step) -> DataFrame | None:
        """The delta of a step; made once."""
        if id(step) not in self._made:
            self._depth += 1
            self._made[id(step)] = step.delta(self)
            self._depth -= 1
        return self._made[id(step)]

    def add(self, spec: TableSpec, rows: DataFrame) -> None:
        """Add rows to a table when the flush is written; those that several steps share, once."""
        if spec.name in self.added:
            return
        names = spec.schema.names
        self.added[spec.name] = rows if rows.columns == names else rows.select(*names)
        of = next((place for place, given in self.given.items() if given is rows), None)
        if of is not None:
            self.as_given[spec.name] = of

    def near(self, spec: TableSpec, hashes: Hashes) -> DataFrame | None:
        """The rows of a table, as of before, in all files where those with some keys can be; None
        if these are to be found while it runs, as there may be many others beside them."""
        rows = self.tables.rows_near(spec)
        if not self.is_narrow:
            is_all = rows <= MOST_WHOLE or self.rows >= TOUCH_ALL * self.tables.buckets(spec)
            return self.tables.near(spec) if is_all else None
        some = None if rows <= MOST_WHOLE or hashes is None else hashes()
        if self.tables.rows_near(spec, some) > MOST_READ:
            return None
        return self.tables.near(spec, some).coalesce(1)

    def parts(self, spec: TableSpec) -> list[DataFrame]:
        """The rows of a table, as of before."""
        self.spread()
        return self.tables.parts(spec)

    def is_local(self, step: Step) -> bool:
        """Whether the rows by which a step changes are in the query itself."""
        return isinstance(step, Given) and step.place in self.local

    def together(self, frame: DataFrame) -> DataFrame:
        """A frame in the task in which all is, if the flush is narrow."""
        return frame.coalesce(1) if self.is_narrow else frame

    def beside(self, frame: DataFrame) -> DataFrame:
        """A frame of about as many rows as change, to be joined with one that is near."""
        if not self.is_narrow:
            return self.small(frame)
        return frame.coalesce(1).hint("shuffle_hash")

    def handed_on(self, frame: DataFrame) -> DataFrame:
        """What a step that others read makes: worked out once, in a task of its own.

        A task has memory for some sixteen aggregates and joins, whatever their size.
        """
        return frame.repartition(1) if self.is_narrow and self._depth > 1 else frame

    def spread(self) -> None:
        """From here on many tasks have the rows."""
        self.is_narrow = False

    def small(self, frame: DataFrame) -> DataFrame:
        """A frame of about as many rows as change, to be joined with a large one."""
        if self.rows > MOST_BROADCAST:
            return frame
        return F.broadcast(frame)


class Given:
    """An input of the fragment."""

    def __init__(self, place: int, kept: Typed) -> None:
        self.place = place
        self.kept = kept

    def delta(self, flush: Flush) -> DataFrame | None:
        return flush.given.get(self.place)

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.given.get(self.place, NOTHING)


def schema_of(kept: Typed) -> T.StructType:
    """Rows with weights."""
    fields = [T.StructField(ROW, spark_type(kept)), T.StructField(WEIGHT, T.LongType())]
    return T.StructType(fields)

"""Run partitions of a recursion to their fixpoint in Python workers, with this engine.

    batches of a task      old rows of touched partitions, their seeds, all rows of each side
    after                  the fixpoint of the seeds, by a separate engine
    delta                  after - before

Partitions are independent; the engine receives some of them at a time, so that it holds few,
however many a task has.

State:  none between flushes.
Cost:   O(rows of the sides + derivations in the touched partitions).
"""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimizer import plan
from optimizer.traverse import substituted
from reactive import Database, OffloadError
from reactive.api.internal_interface import engine_of
from reactive.api.relation import Relation
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import arrow_type, from_arrow, to_arrow
from spark_backend.codec.schema import Typed
from spark_backend.tables.stateless import RAISED, adopt_classes

BEFORE, SEED, SIDE = 0, 1, 2
"""The kinds of rows of a task: an old row of the relation, a seed, or from `SIDE` on of a side."""
TOGETHER = 256
"""The number of partitions that the engine receives at a time."""
ROWS = 10_000
"""The number of rows of an output batch."""


@dataclass(frozen=True, slots=True)
class RecursionTask:
    """The recursion that a worker runs.

    `node` is the fixpoint with the column that identifies its partitions, as bytes; seeds and sides
    are `Recursive` of `LEVEL`, 0 and from 1 on.
    """

    node: bytes
    kept: Typed
    sides: tuple[Typed, ...]


@dataclass(slots=True)
class _BucketRows:
    """The rows of one bucket of partitions."""

    before: Counter[Row] = field(default_factory=Counter)
    seeds: Counter[Row] = field(default_factory=Counter)
    sides: defaultdict[int, Counter[Row]] = field(default_factory=partial(defaultdict, Counter))


def partition_changes(
    task: bytes, classes: dict[str, bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield how the rows of touched partitions change.

    Batches have the columns `p` (bucket of partitions), `kind`, `weight`, `row`, and `side0` and so
    on; the row is in the column of its `kind`.
    """
    adopt_classes(classes)
    of: RecursionTask = pickle.loads(task)
    for given in _read_partitions(of, batches).values():
        before, after = _existing_rows(given.before), _evaluate_partitions(of, given)
        gone, come = [row for row in before if row not in after], after.difference(before)
        yield from _row_batches(of.kept, gone, -1)
        yield from _row_batches(of.kept, list(come), 1)


def _read_partitions(
    of: RecursionTask, batches: Iterable[pa.RecordBatch]
) -> dict[int, _BucketRows]:
    """Return the rows of all batches, by bucket of partitions, and then by kind."""
    found: dict[int, _BucketRows] = defaultdict(_BucketRows)
    for batch in batches:
        for kind in batch.column("kind").unique().to_pylist():
            name, kept = ("row", of.kept)
            if kind >= SIDE:
                name, kept = f"side{kind - SIDE}", of.sides[kind - SIDE]
            rows = batch.filter(pc.equal(batch.column("kind"), kind))
            values = from_arrow(kept, rows.column(name))
            weights = rows.column("weight").to_pylist()
            for place, row, weight in zip(
                rows.column("p").to_pylist(), values, weights, strict=True
            ):
                _bag_of_kind(found[place], kind)[row] += weight
    return found


def _bag_of_kind(given: _BucketRows, kind: int) -> Counter[Row]:
    """Return the bag of a bucket that receives the rows of a kind."""
    if kind >= SIDE:
        return given.sides[kind - SIDE]
    return given.before if kind == BEFORE else given.seeds


def _existing_rows(bag: Counter[Row]) -> list[Row]:
    return [row for row, weight in bag.items() if weight > 0]


def run_partitions(
    of: RecursionTask, seeds: Counter[Row], sides: Sequence[Counter[Row]]
) -> set[Row]:
    """Return the rows of the relation in the partitions of some seeds."""
    return _evaluate_partitions(
        of, _BucketRows(seeds=seeds, sides=defaultdict(Counter, enumerate(sides)))
    )


def _evaluate_partitions(of: RecursionTask, given: _BucketRows) -> set[Row]:
    """Return the rows of the relation in the given partitions."""
    seeds = _existing_rows(given.seeds)
    if not seeds:
        return set()
    engine = _Engine(of, [_existing_rows(given.sides[place]) for place in range(len(of.sides))])
    partitions = defaultdict(list)
    for row in seeds:
        partitions[canonical(engine.column(row))].append(row)
    found, groups = set[Row](), list(partitions.values())
    for start in range(0, len(groups), TOGETHER):
        found.update(engine.rows([row for g in groups[start : start + TOGETHER] for row in g]))
    return found


class _Engine:
    """A database with the fixpoint as a view."""

    def __init__(self, of: RecursionTask, sides: Sequence[list[Row]]) -> None:
        node, column = _load_fixpoint(of.node)
        self.column = callable_of(column)
        database = Database()
        self._seeds = database.table(class_of(of.kept), name="seeds")
        tables: list[Any] = [self._seeds]
        for place, kept in enumerate(of.sides):
            tables.append(database.table(class_of(kept), name=f"side {place + 1}"))
            tables[-1].add_all(sides[place])
        run = substituted(node, LEVEL, lambda given: tables[given.index].plan)
        self._view: Any = Relation(engine_of(database), run).materialize()

    def rows(self, seeds: list[Row]) -> Iterable[Row]:
        """Return the fixpoint of some partitions.

        Raises `RuntimeError`, made by `worker_error`, if the rules raise.
        """
        try:
            self._seeds.replace_all(seeds)
            return list(self._view)
        except (Exception, SystemExit) as error:
            raise worker_error(error) from error


def worker_error(error: BaseException) -> RuntimeError:
    """Return an error that the driver recognizes in the message of Spark."""
    said = "; ".join(line.strip() for line in str(error).splitlines())
    return RuntimeError(f"{RAISED}{type(error).__name__}: {said}")


def class_of(kept: Typed) -> Any:
    """Return the class of rows, which gives the engine their fields."""
    return object if kept.optional else kept.kind


def _row_batches(kept: Typed, rows: list[Row], weight: int) -> Iterator[pa.RecordBatch]:
    """Yield rows, all of one weight, in batches of `ROWS`."""
    schema = pa.schema([("row", arrow_type(kept)), ("weight", pa.int64())])
    for start in range(0, len(rows), ROWS):
        some = rows[start : start + ROWS]
        weights = pa.array([weight] * len(some), pa.int64())
        yield pa.record_batch([arrow_rows(kept, some), weights], schema=schema)


def arrow_rows(kept: Typed, rows: list[Row]) -> pa.Array:
    """Convert rows that the engine has made to a column.

    Raises `RuntimeError`, made by `worker_error`, if a row is not of the type.
    """
    try:
        return to_arrow(kept, rows)
    except OffloadError as error:
        raise worker_error(error) from error


@lru_cache(maxsize=16)
def _load_fixpoint(data: bytes) -> tuple[plan.Node, Any]:
    """Return the fixpoint and its column, which is sent as a select."""
    select = pickle.loads(data)
    assert isinstance(select, plan.Select)
    return select.input, select.function

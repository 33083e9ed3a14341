"""Run a recursion to its end in one Python worker, with this engine.

    batches      rows of each relation before, all rows of each side
    after        the recursion over the sides, by this engine, or over columns if possible
    delta        after - before; with a tolerance, of the shown rows

State:  none between flushes.
Cost:   O(rows of the sides + rounds from scratch).
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from optimizer import plan
from optimizer.plans.strata import over_given
from optimizer.traverse import substituted
from reactive import Database
from reactive.api.internal_interface import engine_of
from reactive.api.relation import Relation
from reactive.engine.collections.zset import Row
from reactive.engine.compiler.hops import evaluate_iteration
from reactive.engine.operators.loop.loop_recomputation import RowTolerance
from reactive.engine.operators.loop.loop_recomputation import bag_changes as difference
from reactive.engine.operators.plain import spread_bindings
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import arrow_type, from_arrow
from spark_backend.codec.schema import Typed
from spark_backend.columnar.plans import loop_of, relation_changes, without_tolerance
from spark_backend.columnar.trees import NotColumnar
from spark_backend.recursion.worker import ROWS, arrow_rows, class_of, worker_error
from spark_backend.tables.stateless import adopt_classes


@dataclass(frozen=True, slots=True)
class LoopTask:
    """The recursion that a worker runs.

    `node` are its relations over sides, as bytes: sides are `Recursive` of `LEVEL`, and a relation
    is below `Tolerate` if some of its changes are hidden. `kinds` are the row types: of the
    relations, which are `own` in number, and of the sides.
    """

    node: bytes
    kinds: tuple[Typed, ...]
    own: int

    @property
    def is_loop(self) -> bool:
        """True for a loop with a number of rounds."""
        loop = loop_of(_load_relations(self.node)[0])
        return isinstance(loop, plan.Iterate) and loop.times is not None


def loop_changes(
    task: bytes, classes: dict[str, bytes], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield how the rows of all relations change.

    Raises `RuntimeError`, made by `worker_error`, if the loop raises.

    Batches have the columns `kind`, `weight`, `row0` and so on; the row is in the column of its
    kind.
    """
    adopt_classes(classes)
    of: LoopTask = pickle.loads(task)
    if of.is_loop:
        batches = list(batches)
        tables = run_by_columns(
            of, [_rows_of_kind(of, kind, batches) for kind in range(len(of.kinds))]
        )
        if tables is not None:
            for place, table in enumerate(tables):
                yield from _table_batches(of, place, table)
            return
    bags = [Counter[Row]() for _ in of.kinds]
    for batch in batches:
        _read_batch(of, batch, bags)
    try:
        found = run_loop(of, bags)
    except (Exception, SystemExit) as error:
        raise worker_error(error) from error
    for place, pairs in enumerate(found):
        yield from _pair_batches(of, place, pairs)


def run_by_columns(of: LoopTask, given: Sequence[pa.Table]) -> list[pa.Table] | None:
    """Return how the rows of each relation change, from the columns `row` and `weight` of relations
    and sides; None if columns cannot run the loop."""
    try:
        return relation_changes(_load_relations(of.node), of.kinds, given)
    except NotColumnar:
        return None


def _rows_of_kind(of: LoopTask, kind: int, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows of a kind in batches."""
    schema = pa.schema([("row", arrow_type(of.kinds[kind])), ("weight", pa.int64())])
    found = []
    for batch in batches:
        rows = batch.filter(pc.equal(batch.column("kind"), kind))
        columns = [rows.column(f"row{kind}"), rows.column("weight")]
        found.append(pa.record_batch(columns, ["row", "weight"]))
    return pa.Table.from_batches(found, schema)


def _table_batches(of: LoopTask, place: int, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the changes of the relation at `place`, given as an Arrow table, as batches."""
    for batch in table.to_batches(ROWS):
        yield _relation_batch(of, place, batch.column("row"), batch.column("weight"))


def run_loop(of: LoopTask, bags: Sequence[Counter[Row]]) -> list[list[tuple[Row, int]]]:
    """Return how the rows of each relation change, from its old rows and the sides."""
    before, sides = bags[: of.own], bags[of.own :]
    tops = _load_relations(of.node)
    return list(map(_shown_change, tops, before, _evaluate_relations(of, tops, sides)))


def _read_batch(of: LoopTask, batch: pa.RecordBatch, bags: Sequence[Counter[Row]]) -> None:
    """Add the rows of a batch to the bag of their kind in `bags`."""
    for kind in batch.column("kind").unique().to_pylist():
        rows = batch.filter(pc.equal(batch.column("kind"), kind))
        values = from_arrow(of.kinds[kind], rows.column(f"row{kind}"))
        bag, weights = bags[kind], rows.column("weight")
        if pc.all(pc.equal(weights, 1)).as_py():
            bag.update(values)
            continue
        for row, weight in zip(values, weights.to_pylist(), strict=True):
            bag[row] += weight


def _evaluate_relations(
    of: LoopTask, tops: Sequence[plan.Node], sides: Sequence[Counter[Row]]
) -> list[dict[Row, int]]:
    """Return the rows of all relations, before any tolerance."""
    loop = loop_of(tops[0])
    there = [{row: n for row, n in bag.items() if n > 0} for bag in sides]
    if isinstance(loop, plan.Iterate) and loop.times is not None:
        return [dict(Counter(rows)) for rows in _run_rounds(loop, there)]
    database = Database()
    tables: list[Any] = []
    for place, (kept, bag) in enumerate(zip(of.kinds[of.own :], there, strict=True)):
        tables.append(database.table(class_of(kept), name=f"side {place + 1}"))
        tables[-1].add_all(Counter(bag).elements())
    views: list[Any] = []
    for top in map(without_tolerance, tops):
        run = substituted(top, LEVEL, lambda given: tables[given.index].plan)
        views.append(Relation(engine_of(database), run).materialize())
    return [dict(Counter(view)) for view in views]


def _run_rounds(loop: plan.Iterate, sides: Sequence[dict[Row, int]]) -> list[list[Row]]:
    """Return the rows of all relations after all rounds, by passes over rows, without operators or
    state."""
    own = len(loop.names)
    over = substituted(loop, LEVEL, lambda g: replace(g, level=loop.level, index=own + g.index))
    assert isinstance(over, plan.Iterate)
    starts, given = over_given(over)
    begin = replace(given, bodies=starts, times=1)
    return evaluate_iteration(given, evaluate_iteration(begin, [[] for _ in starts], sides), sides)


def _shown_change(
    top: plan.Node, before: Counter[Row], after: dict[Row, int]
) -> list[tuple[Row, int]]:
    """Return how the rows of a relation change; with a tolerance, values that moved less than it
    stay as they were."""
    was = {row: weight for row, weight in before.items() if weight}
    if not isinstance(top, plan.Tolerate):
        return difference(after, was)
    tolerance = top.tolerance
    near = RowTolerance(
        spread_bindings(tolerance.by, 1), spread_bindings(tolerance.value, 1), tolerance.least
    )
    return difference(dict(Counter(near.keep_near_rows(was, list(Counter(after).elements())))), was)


def _pair_batches(
    of: LoopTask, place: int, pairs: list[tuple[Row, int]]
) -> Iterator[pa.RecordBatch]:
    """Yield the changes of the relation at `place`, given as pairs, as batches."""
    for start in range(0, len(pairs), ROWS):
        some = pairs[start : start + ROWS]
        rows = arrow_rows(of.kinds[place], [row for row, _ in some])
        yield _relation_batch(of, place, rows, pa.array([weight for _, weight in some], pa.int64()))


def _relation_batch(of: LoopTask, place: int, rows: pa.Array, weights: pa.Array) -> pa.RecordBatch:
    """Return rows of the relation at `place` as a batch; the columns of the other relations are
    null."""
    fields = [("kind", pa.int32()), ("weight", pa.int64())]
    fields += [(f"row{kind}", arrow_type(of.kinds[kind])) for kind in range(of.own)]
    schema = pa.schema(fields)
    columns = [pa.nulls(len(rows), field.type) for field in schema][2:]
    columns[place] = rows
    kinds = pa.array([place] * len(rows), pa.int32())
    return pa.record_batch([kinds, weights, *columns], schema=schema)


@lru_cache(maxsize=16)
def _load_relations(data: bytes) -> tuple[plan.Node, ...]:
    """Return the relations over their sides."""
    tops: tuple[plan.Node, ...] = pickle.loads(data)
    return tops

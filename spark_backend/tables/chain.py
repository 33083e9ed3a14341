"""Run a chain of where, select, extend, unnest and select_many over weighted rows on Spark.

    rows, weight  --filter, columns-->  rows, weight        lifted, if Spark computes the same
                  --mapInArrow------->                      the others, in Python workers

A `where` in Python leaves rows in columns. The results of other Python callables are pickled, and
the rest of the chain runs in Python too; with `is_typed`, results of a known type
(`codec/result_types.py`) become columns again.

Linear: the nodes process each row by itself, with any weight.

State:  none.
Source: [dbsp] linear operators; [i3ql] selection and projection.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from optimizer import plan
from optimizer.expr import Function, Lifted, conjunction, conjuncts
from optimizer.plans.explain import headline
from optimizer.plans.join_lists import callable_of_row
from optimizer.plans.properties import bindings, shapes
from reactive.engine.collections.zset import Pair
from reactive.engine.operators.plain import LINEAR
from reactive.engine.remote.fragments import LEVEL
from reactive.errors import OffloadError
from spark_backend.codec.codec import serialize_classes, serialize_plan
from spark_backend.codec.columns import inside_of, items_of, truth_of, value_of
from spark_backend.codec.result_types import infer_element_type, infer_result_type
from spark_backend.codec.schema import (
    Kept,
    Pickled,
    Record,
    Typed,
    Untyped,
    Whole,
    common_type,
    describe_encoding,
    tuple_of,
)
from spark_backend.codec.values import Inexact, Value, as_type, field_of, record_value, spark_type
from spark_backend.tables import stateless
from spark_backend.tables.stateless import worker_function

_PACKED, _ENTRIES = (
    "row binary, weight long",
    "bucket long, side byte, row binary, weight long",
)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Rows with weights on Spark: a DataFrame with the columns `row` and `weight` (long).

    A row of several bindings is a tuple of them. `steps` describe the place of each node.
    """

    frame: DataFrame
    kept: Kept
    steps: tuple[ChainStep, ...] = ()

    def explain(self) -> str:
        """Describe where each node runs and why, one per line, and how rows are encoded."""
        return "\n".join([*map(str, self.steps), f"rows: {describe_encoding(self.kept)}"])


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A node of a chain: where it runs, and the reason if not as columns."""

    node: str
    reason: str | None

    def __str__(self) -> str:
        if self.reason is None:
            return f"{self.node}: Spark columns"
        return f"{self.node}: Python workers ({self.reason})"


class Chain:
    """Run chains of nodes.

    Parameters
    ----------
    paths: the folders that workers add to their import path (`Session.paths`).
    is_typed: convert the results of callables to their known types; a result of another type is an
        error.
    """

    def __init__(self, paths: list[str], *, is_typed: bool = False) -> None:
        self._paths, self._is_typed = paths, is_typed

    def run(self, chain: Sequence[plan.Node], given: Weighted) -> Weighted:
        """Run a chain over rows.

        Parameters
        ----------
        chain: nodes of `plain.LINEAR`, from input to output; each reads the one before.
        given: the input rows of the first node.

        Raises
        ------
        OffloadError: a callable cannot be sent to Python workers.
        """
        done, waiting = self._run_in_columns(tuple(chain), given)
        return self._run_in_python(waiting, done) if waiting else done

    def entries(
        self,
        chain: Sequence[plan.Node],
        given: Weighted,
        onto: plan.Node,
        place: int,
        *,
        stable: bool,
    ) -> DataFrame:
        """Run a chain over rows, and return the result as entries of an input of a part.

        Parameters
        ----------
        onto: the node of the part (`parts.part_of`), which reads the chain as its input `place`.
        stable: use buckets that are equal in another process (`codec.Codec`).

        Returns
        -------
        A DataFrame with the columns bucket, side, row and weight. Rows that the part ignores are
        left out; copies of a row are not added up.
        """
        done, waiting = self._run_in_columns(tuple(chain), given)
        more = (_serialize_node(_with_placeholders(onto)), place, stable)
        source = waiting or (_placeholder(shapes(onto.inputs()[place])),)
        return self._map("chain_entries", source, done, _ENTRIES, *more)

    def _run_in_columns(
        self, chain: tuple[plan.Node, ...], given: Weighted
    ) -> tuple[Weighted, tuple[plan.Node, ...]]:
        """Run the nodes as far as columns can, and return the result and the remaining nodes, which
        need Python: the last ones of the chain, or none."""
        done = given
        waiting: tuple[plan.Node, ...] = ()
        nodes = list(chain)
        for place, node in enumerate(nodes):
            if not isinstance(node, LINEAR):
                raise TypeError(f"{type(node).__name__} is not done row by row")
            node, *later = _split_where(node, done)
            nodes[place + 1 : place + 1] = later
            reason = None
            try:
                found = _as_columns(
                    node, replace(done, frame=self._filter_in_python(waiting, done))
                )
                done, waiting = found, ()
            except Inexact as inexact:
                reason = str(inexact)
                waiting = (*waiting, node)
            of = None
            if reason is not None and self._is_typed and not isinstance(node, plan.Where):
                of, reason = _worker_type(node, done, reason)
            done = replace(done, steps=(*done.steps, ChainStep(headline(node), reason)))
            if of is not None:
                done, waiting = self._run_typed(waiting, done, of), ()
            elif reason is not None and not isinstance(node, plan.Where):
                rest = tuple(
                    ChainStep(headline(n), "after a step there") for n in nodes[place + 1 :]
                )
                return replace(done, steps=done.steps + rest), (*waiting, *nodes[place + 1 :])
        return done, waiting

    def _filter_in_python(self, waiting: tuple[plan.Node, ...], done: Weighted) -> DataFrame:
        """Filter rows by predicates in Python; rows stay as they are encoded."""
        if not waiting:
            return done.frame
        schema: Any = _PACKED if isinstance(done.kept, Pickled) else done.frame.schema
        return self._map("filter_rows", waiting, done, schema)

    def _run_in_python(self, waiting: tuple[plan.Node, ...], done: Weighted) -> Weighted:
        """Return the rows after the waiting nodes, run in Python workers; they stay columns if all
        nodes are filters, else they are pickled."""
        if all(isinstance(node, plan.Where) for node in waiting):
            return replace(done, frame=self._filter_in_python(waiting, done))
        frame = self._map("pack_rows", waiting, done, _PACKED)
        return Weighted(frame, Pickled("what a callable returns has no known type"), done.steps)

    def _run_typed(self, waiting: tuple[plan.Node, ...], done: Weighted, of: Typed) -> Weighted:
        """Run the waiting nodes in Python workers, and return their results as columns of the type
        `of`."""
        fields = [T.StructField("row", spark_type(of)), T.StructField("weight", T.LongType())]
        frame = self._map(
            "columnize_rows", waiting, done, T.StructType(fields), _pickle_encoding(of)
        )
        return replace(done, frame=frame, kept=of)

    def _map(
        self, name: str, nodes: tuple[plan.Node, ...], on: Weighted, schema: Any, *more: Any
    ) -> DataFrame:
        """Return the rows after a function of `stateless.py` has run the nodes over them, in Python
        workers; `schema` is that of its output."""
        given = (
            _serialize_node(_stack_nodes(nodes)),
            serialize_classes(),
            _pickle_encoding(on.kept),
            *more,
        )
        run = worker_function(self._paths, "spark_backend.tables.stateless", name, *given)
        return on.frame.select("row", "weight").mapInArrow(run, schema)


def collect_pairs(weighted: Weighted) -> list[Pair]:
    """Return the rows with their weights in the driver; copies of a row are not added up.

    Raises
    ------
    OffloadError: a callable raised in a worker.
    """
    try:
        table = weighted.frame.select("row", "weight").toArrow()
    except Exception as error:
        told = callable_error(error)
        if told is None:
            raise
        raise told from error
    rows = stateless.decode_batch(weighted.kept, table)
    return list(zip(rows, table.column("weight").to_pylist(), strict=True))


def callable_error(error: Exception) -> OffloadError | None:
    """Return the error of a callable in a worker.

    Return None if an exception of Spark has another cause.
    """
    _, found, after = str(error).partition(stateless.RAISED)
    return OffloadError(f"{found}{after.partition(chr(10))[0]}") if found else None


def _split_where(node: plan.Node, on: Weighted) -> list[plan.Node]:
    """Split a `where` in two if only its first tests can be columns."""
    if not isinstance(node, plan.Where) or not isinstance(node.predicate, Lifted):
        return [node]
    tests, predicate = conjuncts(node.predicate.body), node.predicate
    for count in range(len(tests), 0, -1):
        asked = predicate.with_body(conjunction(tests[:count]))
        with suppress(Inexact):
            first = replace(node, predicate=predicate if count == len(tests) else asked)
            _as_columns(first, on)
            rest = predicate.with_body(conjunction(tests[count:]))
            return [first] if count == len(tests) else [first, plan.Where(first, rest)]
    return [node]


def _as_columns(node: plan.Node, on: Weighted) -> Weighted:
    """Run a node over rows without leaving the JVM.

    Raises
    ------
    Inexact: the node has to run in Python.
    """
    if isinstance(on.kept, Pickled):
        raise Inexact("rows are pickled")
    source = node.inputs()[0]
    row = Value(F.col("row"), on.kept)
    values = _bindings(row, bindings(source))
    match node:
        case plan.Where(_, predicate):
            return replace(on, frame=on.frame.filter(truth_of(predicate, values)))
        case plan.Select(_, function):
            return _select_value(on, value_of(function, values))
        case plan.Extend():
            return _select_value(on, value_of(callable_of_row(node), values))
        case plan.SelectMany(_, function):
            return _explode_elements(on, function, values, [])
        case plan.Unnest(_, function):
            before = values if bindings(source) > 1 else [row]
            return _explode_elements(on, function, values, before)
        case _:
            raise TypeError(f"{type(node).__name__} is not done row by row")


def _worker_type(node: Any, on: Weighted, reason: str) -> tuple[Typed | None, str]:
    """Return the row type of a node that runs in Python, or None; and why it runs there, and why
    the type is not known."""
    if isinstance(on.kept, Pickled):
        return None, reason
    row = Value(F.col("row"), on.kept)
    values = _bindings(row, bindings(node.input))
    try:
        match node:
            case plan.Select(_, function):
                return infer_result_type(function, values), reason
            case plan.Extend():
                return infer_result_type(callable_of_row(node), values), reason
            case plan.SelectMany(_, function):
                return infer_element_type(function, values), reason
            case _:
                parts = [v.of for v in values] if len(values) > 1 else [on.kept]
                return tuple_of((*parts, infer_element_type(node.function, values))), reason
    except Inexact as unknown:
        why = str(unknown)
        return None, reason if why == reason else f"{reason}; {why}"


def _bindings(row: Value, count: int) -> list[Value]:
    """Return the `count` bindings of a row: the row itself, or its fields."""
    if count == 1:
        return [row]
    assert isinstance(row.of, Record)
    return [field_of(row, place) for place in range(count)]


def _select_value(on: Weighted, value: Value) -> Weighted:
    """Return the rows with `value` in place of each row."""
    frame = on.frame.select(as_type(value, value.of).alias("row"), "weight")
    return replace(on, frame=frame, kept=value.of)


def _explode_elements(
    on: Weighted, function: Function, values: list[Value], before: list[Value]
) -> Weighted:
    """Return a row for each element that a function returns, after the values of `before`."""

    def row(item: Value) -> Value:
        return record_value((*before, item)) if before else item

    whole = inside_of(function, values)
    if whole is None:
        return _explode_items(on, list(map(row, items_of(function, values))))
    assert isinstance(whole.of, Whole) and whole.of.of is not None
    counted = whole.of.is_counted
    one = F.col("one.value") if counted else F.col("one")
    weight = F.col("weight") * F.col("one.weight") if counted else F.col("weight")
    made = row(Value(one, whole.of.of))
    frame = on.frame.select("*", F.explode(whole.column).alias("one"))
    frame = frame.select(as_type(made, made.of).alias("row"), weight.alias("weight"))
    return replace(on, frame=frame, kept=made.of)


def _explode_items(on: Weighted, items: list[Value]) -> Weighted:
    """Return a row per item, in the common type of the items.

    Raises `Inexact` if they have none.
    """
    try:
        of: Typed = reduce(common_type, [item.of for item in items])
    except Untyped as untyped:
        raise Inexact(str(untyped)) from None
    exploded = F.explode(F.array(*(as_type(item, of) for item in items)))
    return replace(on, frame=on.frame.select(exploded.alias("row"), "weight"), kept=of)


def _placeholder(of: tuple[Any, ...]) -> plan.Recursive:
    return plan.Recursive(LEVEL, 0, "given", False, of)


def _stack_nodes(nodes: tuple[plan.Node, ...]) -> plan.Node:
    """Return the nodes over a placeholder of rows, the last one on top."""
    if isinstance(nodes[0], plan.Recursive):
        return nodes[0]
    below: plan.Node = _placeholder(shapes(nodes[0].inputs()[0]))
    for node in nodes:
        below = replace(node, input=below)  # type: ignore[call-arg]
    return below


def _with_placeholders(node: Any) -> plan.Node:
    """Return the node with placeholders as its inputs."""
    names = ("input",) if len(node.inputs()) == 1 else ("left", "right")
    made: plan.Node = replace(node, **{n: _placeholder(shapes(getattr(node, n))) for n in names})
    return made


def _pickle_encoding(kept: Kept) -> bytes:
    """Pickle how rows are stored: classes by name, as workers know the classes of the script.

    Raises `OffloadError` if a class cannot be pickled.
    """
    try:
        return pickle.dumps(kept)
    except Exception as error:
        raise OffloadError(
            f"rows cannot be sent to Spark: {error}\n  define their class at the top of a module"
        ) from error


def _serialize_node(node: plan.Node) -> bytes:
    """Return a node as bytes. Raises `OffloadError` if it cannot be pickled."""
    try:
        return serialize_plan(node)
    except Exception as error:
        raise OffloadError(f"{headline(node)} cannot be sent to Spark: {error}") from error

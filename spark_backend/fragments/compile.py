"""Compile a fragment to steps, from its inputs to its output.

    Recursive(LEVEL, place)      an input of the fragment
    where, select, ...           linear
    join, semi, anti, outer      by a key of columns
    distinct, union, ...         by weights
    aggregate                    sums
    top, order with a limit      the first rows

Rows of equal nodes, arranged by equal keys, are stored once, even for several fragments. The name
of a table is derived from its content, so that it does not depend on other tables.

Outer joins add rows without a partner to the pairs:

    left join, a row of the left alone      (row, None)
    full join, a row of the right alone     (None, row)

State:  none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import NoneType
from typing import Any, TypeVar, cast

from pyspark.sql import Column
from pyspark.sql import functions as F

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.text import written
from optimizer.plans.explain import headline
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.forms import unique_key
from optimizer.plans.properties import bindings
from optimizer.plans.side_conditions import AnyJoin, residual
from optimizer.traverse import substituted
from reactive.engine.operators.closing import closing_value
from reactive.engine.operators.frontiers import NO_RETENTION, Frontier, Retention, retentions_of
from reactive.engine.operators.plain import LINEAR, chain_over, spread_bindings
from reactive.engine.reference.bags import Bag, pair_maker
from reactive.engine.remote.fragments import LEVEL
from spark_backend.aggregates.totals import ReducedRows, Totals
from spark_backend.aggregates.value_tables import as_aggregate
from spark_backend.cluster.session import Session
from spark_backend.codec.columns import truth_of
from spark_backend.codec.schema import Plain, Typed, Untyped, common_type, tuple_of
from spark_backend.codec.values import Inexact, Value, as_type, record_value
from spark_backend.direct.flush import DirectFlush
from spark_backend.fragments.members import Input
from spark_backend.state.one_job import TableSpec
from spark_backend.steps.dropping import Closes
from spark_backend.steps.firsts import First, Firsts
from spark_backend.steps.join import ArrangedRows, Asked, Join, MatchedRows, Shown, pair_type
from spark_backend.steps.keys import (
    Side,
    make_sides,
    precompute_inputs,
    returned_parts,
    row_bindings,
    unique_key_of,
)
from spark_backend.steps.step import (
    BagUnion,
    ByWeight,
    InputRows,
    KeyCounts,
    Linear,
    MaterializedChanges,
    NotColumns,
    Step,
    schema_of,
)
from spark_backend.tables.chain import Chain

S = TypeVar("S")
N = TypeVar("N", bound=plan.Node)
Maker = Callable[["Compiler", plan.Node], Step | None]
"""A function that makes the step of a node, or returns None for a node of another kind."""
DIGITS = 10
"""The length of a fingerprint in the name of a table."""
_SETS = (plan.Distinct, plan.SetOperation)


class Compiler:
    """Compile fragments over some inputs to steps.

    Parameters
    ----------
    inputs: the inputs by position.
    makers: functions that make the steps of further nodes.
    names: the names of tables by content, as chosen before.
    """

    def __init__(
        self,
        session: Session,
        inputs: Mapping[int, Input],
        makers: tuple[Maker, ...] = (),
        names: dict[Any, str] | None = None,
    ) -> None:
        self._session = session
        self._inputs, self._makers = inputs, makers
        self._chain = Chain(session.paths, is_typed=True)
        self._made: dict[plan.Node, Step] = {}
        self._given: dict[plan.Node, Step] = {}
        self._at: dict[int, InputRows] = {}
        self._known: list[ArrangedRows] = []
        self._counts: dict[str, KeyCounts] = {}
        self._last: plan.Node | None = None
        self._names = {} if names is None else names
        self._known_of: dict[plan.Node, tuple[list[str], dict[str, TableSpec]]] = {}
        self.tables: dict[str, TableSpec] = {}
        """The state tables of the steps that were requested since `begin`."""
        self.steps: list[str] = []
        """The place of each of these steps, in words."""

    def begin(self) -> None:
        """Start collecting the tables and steps of another fragment."""
        self.tables, self.steps = {}, []

    def top(self, node: plan.Node) -> Step:
        """Return the step of the top node of a fragment.

        Raises
        ------
        NotColumns: columns cannot express it, or a node below.
        """
        self._last = _below_linear(node)
        if not isinstance(node, plan.OrderBy):
            return self.step(node)
        try:
            made = self._compile_first(node, is_last=True)
        except (Inexact, Untyped) as error:
            raise NotColumns(f"{headline(node)}: {error}") from error
        self.steps.append(f"{headline(node)}: {_describe_place(made)}")
        return made

    def step(self, node: plan.Node) -> Step:
        """Return the step of a node.

        Raises
        ------
        NotColumns: columns cannot express it, or a node below.
        """
        if node not in self._made:
            around, (self.steps, self.tables) = (self.steps, self.tables), ([], {})
            try:
                self._made[node] = self._compile(node)
            except (Inexact, Untyped) as error:
                raise NotColumns(f"{headline(node)}: {error}") from error
            finally:
                self._known_of[node] = self.steps, self.tables
                self.steps, self.tables = around
        lines, specs = self._known_of.get(node, ([], {}))
        self.steps += [line for line in lines if line not in self.steps]
        self.tables.update(specs)
        return self._made[node]

    def give(self, node: plan.Node, step: Step) -> Step:
        """Set the step of a node."""
        self._made[node] = self._given[node] = step
        return step

    def fork(self) -> Compiler:
        """Return another compiler for the same fragment, with the same given steps, whose steps are
        discarded."""
        other = Compiler(self._session, self._inputs, self._makers)
        for node, step in self._given.items():
            other.give(node, step)
        return other

    def given(self, place: int) -> InputRows:
        """Return the step of the input at a position."""
        if place not in self._at:
            self._at[place] = InputRows(place, self._inputs[place].kept)
        return self._at[place]

    def arrangements_of(self, step: Step) -> list[ArrangedRows]:
        """Return all arrangements of the rows of a step by keys of joins; an empty list if there is
        none."""
        return [known for known in self._known if known.source is step]

    def _compile(self, node: plan.Node) -> Step:
        """Return the step of a node, from the first of the makers that returns one, else by the
        kind of the node. Raises `NotColumns` if no step computes it in columns."""
        found: Step
        for maker in self._makers:
            made_there = maker(self, node)
            if made_there is not None:
                return made_there
        match node:
            case plan.Recursive(index=index):
                return self.given(index)
            case _ if isinstance(node, LINEAR):
                return self._compile_linear(node)
            case plan.UnionAll(left, right):
                one, other = self.step(left), self.step(right)
                return BagUnion(one, other, common_type(one.kept, other.kept))
            case plan.Join(left, right):
                found = self._compile_join(node, left, right)
            case plan.SemiJoin(left, right) | plan.AntiJoin(left, right):
                found = self._compile_semijoin(node, left, right)
            case plan.OuterJoin(left, right):
                found = self._compile_outer(node, left, right)
            case plan.Aggregate():
                found = self._compile_aggregate(node)
            case plan.Reduce():
                found = ReducedRows(self._compile_aggregate(as_aggregate(node)))
            case plan.OrderBy(limit=int(), shown=int(count)):
                whole = replace(node, shown=None)
                return self.step(plan.Extend(whole, tuple(range(count)), ()))
            case plan.Top() | plan.OrderBy(limit=int()):
                found = self._compile_first(node, is_last=False)
            case _ if isinstance(node, _SETS):
                found = self._compile_by_weight(node)
            case _:
                raise NotColumns(f"{headline(node)} is not done in columns yet")
        self.steps.append(f"{headline(node)}: {_describe_place(found)}{self._describe_drops(node)}")
        return found

    def _describe_drops(self, node: plan.Node) -> str:
        """Describe which rows of a node are dropped below a watermark; empty if none are."""
        found: list[tuple[Lifted, Frontier]] = []
        if isinstance(node, plan.Aggregate | plan.Distinct):
            closing = self._closing(node)
            found += [] if closing is None else [closing]
        elif isinstance(node, AnyJoin) and self._has_events:
            sides = retentions_of(self._over_tables(node))
            found += [(kept.value, kept.frontier) for kept in sides if kept is not None]
        each = (f"; dropped when {written(value)} is {frontier}" for value, frontier in found)
        return "".join(dict.fromkeys(each))

    def _compile_linear(self, node: plan.Node) -> Step:
        chain, source = chain_over(node)
        return self._compile_chain(self.step(source), chain)

    def _compile_chain(self, source: Step, chain: tuple[plan.Node, ...]) -> Step:
        """Return the step of a chain over the rows of a step."""
        empty = self._session.spark.createDataFrame([], schema_of(source.kept))
        made = Linear(self._chain, chain, source, empty)
        self.steps += made.steps
        return made

    def _compile_aggregate(self, node: plan.Aggregate) -> Totals:
        """Return the step of an aggregate.

        Values that Spark cannot compute from the columns are computed by a select below it.
        """
        source, name = node.input, self.free("sums", node)
        step, closing = self.step(source), self._closing(node)
        try:
            made = Totals(node, step, bindings(source), name, closing)
        except Inexact:
            computed = precompute_inputs(node, step.kept)
            if computed is node:
                raise
            made = Totals(computed, self.step(computed.input), 1, name, closing)
        return self._register(made, *made.specs)

    def _closing(self, node: plan.Aggregate | plan.Distinct) -> Closes | None:
        """Return how groups, or rows of `distinct`, close; None if they do not."""
        return closing_value(self._over_tables(node)) if self._has_events else None

    def _over_tables(self, node: N) -> N:
        """Return a node over the inputs themselves, in place of references to them."""
        found = substituted(node, LEVEL, lambda read: self._inputs[read.index].node)
        return cast(N, found)

    @cached_property
    def _has_events(self) -> bool:
        """True if an input reads a stream."""
        return any(given.has_events for given in self._inputs.values())

    def _compile_first(self, node: plan.Top | plan.OrderBy, *, is_last: bool) -> Step:
        """Return the step of the first rows: of each group (`Top`), or of all rows (`OrderBy`).

        `is_last`: no step reads the rows, so that ties are left to the process.
        """
        step, count = self.step(node.input), bindings(node.input)
        unique = unique_key_of(node.input, {n: unique_key(i.node) for n, i in self._inputs.items()})
        if isinstance(node, plan.Top):
            names = self.free("rows", node), self.free("held", node)
            top = Firsts(node, step, count, names, unique)
            return self._register(top, top.spec, top.held)
        names = self.free("rows", node, is_last), self.free("held", node, is_last)
        first = First(node, step, count, names, unique, is_last=is_last)
        return self._register(first, *first.specs)

    def _compile_by_weight(self, node: plan.Node) -> Step:
        """Return the step of a set operation, whose inputs are cast to their common type."""
        steps = tuple(map(self.step, node.inputs()))
        kept = steps[0].kept
        for step in steps[1:]:
            kept = common_type(kept, step.kept)
        names = tuple(self.free("rows", node, place) for place in range(len(steps)))
        closing = self._closing(node) if isinstance(node, plan.Distinct) else None
        made = ByWeight(node, steps, names, kept, closing)
        return self._register(made, *made.specs)

    def sides(
        self, node: Any, left: plan.Node, right: plan.Node, *, of_right: bool = True
    ) -> tuple[ArrangedRows, ArrangedRows]:
        """Return the rows of both sides of a join, arranged by its key; the rows of the right side
        are stored if `of_right`."""
        one, other = self.step(left), self.step(right)
        sides = make_sides(node, one.kept, other.kept, bindings(left))
        kept = NO_RETENTION
        if self._has_events:
            kept = retentions_of(self._over_tables(node))
        made = (
            self._arrange(left, one, sides[0], kept[0]),
            self._arrange(right, other, sides[1], kept[1]),
        )
        for arranged in made if of_right else made[:1]:
            self._store(arranged)
        return made

    def _arrange(
        self, node: plan.Node, step: Step, side: Side, retention: Retention | None
    ) -> ArrangedRows:
        """Arrange the rows of a step by a key; an equal key gives the same table, if equal rows are
        dropped."""
        what = side.keys, side.types, *(() if retention is None else (retention,))
        for known in self._known:
            of = known.side.keys, known.side.types, known.retention
            if known.source is step and of == (side.keys, side.types, retention):
                return ArrangedRows(step, side, known.spec.name, retention)
        return ArrangedRows(step, side, self.free("by", node, *what), retention)

    def _store(self, made: ArrangedRows) -> ArrangedRows:
        """Store the rows of a step by a key."""
        if all(known.spec.name != made.spec.name for known in self._known):
            self._known.append(made)
        return self._register(made, made.spec)

    def _register(self, made: S, *specs: TableSpec) -> S:
        """Record the tables of a step, and return the step."""
        self.tables.update((spec.name, spec) for spec in specs)
        return made

    def free(self, kind: str, *what: Any) -> str:
        """Return a name for a table, which is the same for the same content in any process."""
        if (kind, what) not in self._names:
            name = first = f"{kind}{fingerprint(*what)[:DIGITS]}"
            while name in self._names.values():
                name = f"{first}x{len(self._names)}"
            self._names[kind, what] = name
        return self._names[kind, what]

    def _compile_join(self, node: plan.Join, left: plan.Node, right: plan.Node) -> Step:
        """Return the step of an inner join.

        A residual predicate that Spark cannot evaluate is applied by a filter above it.
        """
        one, other = self.sides(node, left, right)
        asked = residual(node)
        try:
            return Join(node, one, other, asked, bindings(left))
        except Inexact:
            assert asked is not None
        made = self._made[node] = Join(node, one, other, None, bindings(left))
        return self._compile_chain(made, (plan.Where(node, asked),))

    def _compile_semijoin(self, node: Any, left: plan.Node, right: plan.Node) -> MatchedRows:
        """Return the step of a semi- or antijoin; only the rows of the left side are stored, and
        those that decide whether there is a partner."""
        one, other = self.sides(node, left, right, of_right=False)
        is_semi = isinstance(node, plan.SemiJoin)
        fits = residual_column(node, one.source.kept, other.source.kept, ("x", "y"))
        return MatchedRows(
            one,
            self._partners(right, other, fits),
            one.source.kept,
            _same_row,
            fits,
            shown_here=_same_row,
            asked=residual_test(node),
            present=is_semi,
        )

    def _partners(self, node: plan.Node, rows: ArrangedRows, fits: Column | None) -> ArrangedRows:
        """Return the rows that decide whether a row of the other side has a partner: the rows by
        key, or their number per key if a key may have many."""
        is_counted = rows.retention is None and not self._is_unique(node, rows.side)
        if fits is None and is_counted:
            counts = self._counts.get(rows.spec.name)
            if counts is None:
                counts = self._counts[rows.spec.name] = KeyCounts(rows.source, rows.side)
            side = rows.side
            made = ArrangedRows(
                counts, counts.side, self.free("counts", node, side.keys, side.types)
            )
            return self._register(made, made.spec)
        return self._store(rows)

    def _is_unique(self, node: plan.Node, side: Side) -> bool:
        """Return True if a key has at most one row."""
        unique = unique_key_of(node, {n: unique_key(i.node) for n, i in self._inputs.items()})
        return bool(unique) and unique <= {
            part for key in side.keys for part in returned_parts(key)
        }

    def _compile_outer(self, node: plan.OuterJoin, left: plan.Node, right: plan.Node) -> Step:
        """Return the step of an outer join: the pairs, and the padded rows without a partner.

        Unless it is the outermost node, its changes are computed once for all steps that read them.
        """
        one, other = self.sides(node, left, right)
        count = bindings(left)
        kept = padded_type(node.kind, one.source.kept, other.source.kept, count)
        found: Step = PaddedRows(Join(node, one, other, residual(node), count), kept)
        pair, asked = pair_maker(left), residual_test(node)
        if node.kind != "right":
            show = pad_left_row(one.source.kept, kept, count)
            fits = residual_column(node, one.source.kept, other.source.kept, ("x", "y"))
            alone = MatchedRows(
                one,
                self._partners(right, other, fits),
                kept,
                show,
                fits,
                shown_here=lambda row: pair(row, None),
                asked=asked,
                present=False,
            )
            found = BagUnion(found, alone, kept)
        if node.kind != "left":
            show = pad_right_row(other.source.kept, kept, count)
            fits = residual_column(node, one.source.kept, other.source.kept, ("y", "x"))
            alone = MatchedRows(
                other,
                self._partners(left, one, fits),
                kept,
                show,
                fits,
                shown_here=lambda row: (*[None] * count, row),
                asked=None if asked is None else lambda row, other: asked(other, row),
                present=False,
            )
            found = BagUnion(found, alone, kept)
        return found if node is self._last else MaterializedChanges(found)


def _below_linear(node: plan.Node) -> plan.Node:
    """Return the last node of a fragment that does not process row by row."""
    while isinstance(node, LINEAR):
        (node,) = node.inputs()
    return node


def _describe_place(step: Step) -> str:
    """Describe where a step runs."""
    if isinstance(step, MaterializedChanges):
        return "Spark columns, by a job of its own"
    own = step.own if isinstance(step, Totals | ReducedRows) else ()
    if not own:
        return "Spark columns"
    return f"Spark columns; {', '.join(own)}: Python workers, of the groups that changed"


def _same_row(row: Column) -> Column:
    return row


class PaddedRows:
    """The rows of a step as rows of a type with optional fields."""

    def __init__(self, source: Step, kept: Typed) -> None:
        self._source, self.kept = source, kept

    def delta(self, flush: Any) -> Any:
        """Return how the pairs change, cast to rows whose fields may be None.

        Return None if they do not.
        """
        found = flush.delta(self._source)
        if found is None:
            return None
        row = as_type(Value(F.col("row"), self._source.kept), self.kept)
        return found.select(row.alias("row"), "weight")

    def direct(self, flush: DirectFlush) -> Bag:
        return flush.delta(self._source)


def residual_column(node: Any, left: Typed, right: Typed, names: tuple[str, str]) -> Column | None:
    """Return the residual predicate of a join over the columns `{name}_row` of both sides, or
    None."""
    asked = residual(node)
    if asked is None:
        return None
    rows = row_bindings(Value(F.col(f"{names[0]}_row"), left), bindings(node.left))
    return truth_of(asked, [*rows, Value(F.col(f"{names[1]}_row"), right)])


def residual_test(node: Any) -> Asked | None:
    """Return the residual predicate of a join over two rows in this process, or None."""
    asked = residual(node)
    if asked is None:
        return None
    pair = pair_maker(node.left)
    call = spread_bindings(asked, bindings(node.left) + 1)
    return lambda row, other: call(pair(row, other))


def padded_type(kind: str, left: Typed, right: Typed, count: int) -> Typed:
    """Return the row type of an outer join, whose left rows have `count` bindings.

    Bindings of a side that may be missing are optional.
    """
    pair = pair_type(left, right, count)
    fields = list(pair.fields)  # type: ignore[union-attr]
    if kind != "left":
        fields[:-1] = [_make_optional(f) for f in fields[:-1]]
    if kind != "right":
        fields[-1] = _make_optional(fields[-1])
    return tuple_of(tuple(fields))


def pad_left_row(left: Typed, kept: Typed, count: int) -> Shown:
    """Return a function for the output row of a left row without a partner.

    A left row has `count` bindings.
    """
    nothing = Value(F.lit(None).cast("boolean"), Plain(NoneType, optional=True))

    def show(row: Column) -> Column:
        parts = row_bindings(Value(row, left), count)
        return as_type(record_value((*parts, nothing)), kept)

    return show


def pad_right_row(right: Typed, kept: Typed, count: int) -> Shown:
    """Return a function for the output row of a right row without a partner.

    A left row would have `count` bindings: they are null.
    """
    nothing = Value(F.lit(None).cast("boolean"), Plain(NoneType, optional=True))

    def show(row: Column) -> Column:
        return as_type(record_value((*[nothing] * count, Value(row, right))), kept)

    return show


def _make_optional(of: Typed) -> Typed:
    return common_type(of, Plain(NoneType, optional=True))

"""Queries as nodes of the graph: a physical plan is chosen, built and shared.

    as written   -->   segments, each optimized once   -->   nodes, found again by their segment

A way to run a query may fail for its rows (`BailOut`): then the segments that use it are run
without it, and all segments above are compiled again.

Cost: of a query over others, that of the new segments. If parts can be offloaded, a query is one
segment, since parts move as wholes.

`compile_plan` makes nodes of the graph from a plan:

    logical plan   --choose-->   physical plan   --build-->   nodes of the graph

A node with several readers is a node of the graph, and not part of a loop.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from optimizer import plan
from optimizer.plans import explain
from optimizer.plans.field_values import Between, Path
from optimizer.plans.properties import free, nodes, tables
from optimizer.record import record
from optimizer.rewriting import equality_checks
from optimizer.rewriting.optimize import OptimizedPlan, Segment, merge_segments, optimize, settle
from optimizer.rewriting.phases import PHASES, Phase
from optimizer.traverse import Rule, functions, without_iterations, without_views
from reactive.engine.compiler import hops, inner_graph, placement, row_trial
from reactive.engine.compiler.build import Builder
from reactive.engine.compiler.choices import CHOICES
from reactive.engine.compiler.chooser import CLOSURE, MULTIWAY, SUMS, Chooser, parameterize_query
from reactive.engine.compiler.leaves import early_leaves, in_place, reattach
from reactive.engine.compiler.physical import (
    FactorizedGroups,
    Multiway,
    Physical,
    PhysicalClosure,
    PhysicalCyclicCount,
    PhysicalCyclicJoin,
    PhysicalRangeIndex,
    PhysicalSumsBeyond,
    Scan,
)
from reactive.engine.compiler.templates import Planned, QueryTemplate, Templates
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.node import Node
from reactive.engine.dataflow.schedule import Fed
from reactive.engine.operators.operator import BailOut
from reactive.engine.runtime.interrupts import reraise_asynchronous

if TYPE_CHECKING:
    from optimizer.plans.multiway import Equation
    from reactive.engine.compiler.row_tests import Candidate, FieldIndex, ValuesWanted

log = logging.getLogger("reactive")
T = TypeVar("T")


class Queries:
    """Compiles and runs the queries of a database.

    Parameters
    ----------
    node_of: returns the node of the graph that a table feeds.
    rewrite: True to use the built-in rules of the optimizer; `rules` are added to them.
    """

    def __init__(
        self,
        graph: Graph,
        node_of: Callable[[plan.Table], Node],
        rules: Sequence[Rule],
        *,
        rewrite: bool,
    ) -> None:
        own: tuple[Phase, ...] = (tuple(rules),) if rules else ()
        self.phases: tuple[Phase, ...] = (*PHASES, *own) if rewrite else own
        self.generates = rewrite
        self.graph = graph
        self.placement: placement.Placement
        self._node_of = node_of
        self._templates: Templates | None = None
        if rewrite and not rules:
            self._templates = Templates(
                self.phases, self._plan_query, values_wanted(graph, self.source)
            )
        self.warned: dict[Any, Any] = {}
        """The places where a warning of a query has been shown, for the filters of warnings."""
        self.has_checks = False
        """True if a query under a policy is already planned with checks of equality."""
        self._crowded: list[tuple[Node, Path]] = []
        """New indexes, with their fields."""

    def optimize(self, written: plan.Node) -> OptimizedPlan:
        """Return the plan that is run for a plan as written."""
        return merge_segments(self._segment(written))[0]

    def running(self, written: plan.Node) -> Running:
        """Return how a query is run, or would be, without a view of it."""
        segment, placement = self._segment(written), self.placement
        offloaded = placement.offloaded_nodes(placement.moved)
        tops = {
            each: self._chosen(each.run, offloaded, each.without).chosen[id(each.run)]
            for each in segment.every()
        }
        return Running(tops[segment], tops)

    def analyze(self, written: plan.Node) -> tuple[Running, dict[int, Node]]:
        """Return how the query of a view runs; also its graph nodes, by `id` of physical nodes."""
        self.node(written)
        segment, made = self._segment(written), dict[int, Node]()
        tops: dict[Segment, Physical] = {}
        for each in segment.every():
            found = self.compiled_beside(each.run, self.placement.moved, each)
            tops[each], made = found.physical, made | found.made
        return Running(tops[segment], tops), made

    def node(self, written: plan.Node) -> Node:
        """Return the node of the graph that computes a plan as written."""
        return self.over(written, lambda node: node)

    def over(self, written: plan.Node, act: Callable[[Node], T]) -> T:
        """Return the result of `act` on the node that computes a plan as written.

        `act` is called again if a way to run the plan fails for its rows.
        """
        while True:
            try:
                return act(self._build_segment(self._segment(written)))
            except BailOut as bail_out:
                self.graph.sweep()
                self._deoptimize([written], bail_out)
            except BaseException:
                self.graph.sweep()
                raise

    def recompile_without(self, bail_out: BailOut, changes: Sequence[Fed]) -> Callable[[], None]:
        """Compile again all views that use the operator that failed, without the way that it ran.

        Raise instead what the commit raises without that way, if a part of the rows can tell.
        `bail_out` names the operator, `changes` are the deltas of the commit. Return the function
        that restores the plans, if the commit fails.
        """
        failed = bail_out.operator
        leaves = [
            leaf
            for leaf in self.graph.leaves()
            if any(node.operator is failed for node in leaf.upstream())
        ]
        self._try_rows(bail_out, leaves, changes)
        queries = [leaf.leaf.base for leaf in leaves]
        every = (each for query in queries for each in self._segment(query).every())
        before = row_trial.PlansBefore(self.graph, leaves, dict.fromkeys(every))
        try:
            with before:
                self._deoptimize(queries, bail_out)
                for leaf in leaves:
                    self.over(leaf.leaf.base, partial(reattach, self.graph, leaf))
        except Exception as error:
            reraise_asynchronous(error)
            before.restore()
            raise
        return before.restore

    def _try_rows(self, bail_out: BailOut, leaves: Sequence[Node], changes: Sequence[Fed]) -> None:
        """Raise what a commit raises by rows; nothing if it stands, or is not known to fail."""
        graph, owner = self.graph, bail_out.owner
        if self.placement.is_possible or graph.forgets:
            return
        every = (each for leaf in leaves for each in self._segment(leaf.leaf.base).every())
        segment = next((each for each in every if owner in set(nodes(each.run))), None)
        if segment is None:
            return
        over = (node.operator for leaf in leaves for node in leaf.upstream() if node.plan == owner)
        grouped = (operator for operator in over if hasattr(operator, "copy_groups"))
        deltas = {node.plan: delta for node, delta in changes if isinstance(node.plan, plan.Table)}
        graph.is_changing = True  # stays True after an interrupt: groups may be half changed
        try:
            row_trial.try_rows(
                segment,
                owner,
                next(grouped, bail_out.operator),
                leaves,
                deltas,
                lambda table: list(graph.contents(self.source(table))),
                self._build_by_rows,
            )
        except Exception as error:
            reraise_asynchronous(error)
            graph.is_changing = False
            raise
        graph.is_changing = False

    def _build_by_rows(self, part: plan.Node, graph: Graph, source: Callable[[Any], Node]) -> Node:
        """Build the nodes of a part of a query, without any way that may fail for its rows."""
        chooser = choose_plan(
            part,
            graph,
            source,
            generate=self.generates,
            offloaded=None,
            without=(CLOSURE, MULTIWAY, SUMS),
        )
        return compile_plan(chooser, part, graph, source).nodes[id(part)]

    def gather(self) -> None:
        """Compile queries again that can use a new index, by the values of its field.

        If that fails, the query continues without the index.
        """
        crowded, self._crowded = self._crowded, []
        if not crowded or self.placement.is_possible or self.graph.forgets:
            return
        for leaf in early_leaves(crowded):
            self._again(leaf)

    def _again(self, leaf: Node) -> None:
        """Compile the query of a leaf again."""
        for segment in self._segment(leaf.leaf.base).every():
            segment.top = segment.physical = None
        move = partial(reattach, self.graph, leaf)
        try:
            in_place(self.graph, leaf, lambda: self.over(leaf.leaf.base, move))
        except Exception:
            log.exception("%s goes on without an index", leaf.leaf)

    def source(self, read: Any) -> Node:
        """Return the node of a leaf of a plan: of a table, or of a part computed separately."""
        if isinstance(read, plan.Settled):
            top = self._top(read.segment)
            assert top is not None
            return top
        if isinstance(read, plan.Known):
            node: Node = read.part.node
            return node if self.graph.has(node) else self.node(read.part.plan)
        return self._node_of(read)

    def base(self, written: plan.Node) -> plan.Node:
        """Return the plan to compile for a plan as written.

        They differ for late views, and after values have clashed.
        """
        graph = self.graph
        if graph.forgets or self.has_checks:
            for leaf in graph.leaves():
                if leaf.leaf.plan is written:
                    base: plan.Node = leaf.leaf.base
                    return base
        return equality_checks.with_checks(written) if self.has_checks else written

    def watch(self, leaf: Node, written: plan.Node) -> None:
        """Watch the captured variables of a query, even in callables that a rule has dropped.

        A segment is watched once, by the first leaf over it; when that is dropped, by the next.
        """
        graph, read = self.graph, [self.source(table) for table in tables(written)]
        leaf.query = self._segment(written)
        for segment in leaf.query.every(until=lambda s: s.watcher is not None):
            called = [function for node in segment.own() for function in functions(node)]
            ends = {self._top(below) for below in segment.below}
            graph.watch.begin(leaf, segment, self._top(segment) or leaf, ends, read, called)

    def compiled_beside(
        self, run: plan.Node, moved: Mapping[plan.Node, placement.Begin], of: Segment | None = None
    ) -> CompiledPlan:
        """Compile a plan with parts elsewhere, which are not filled yet; `of` is its segment."""
        placement = self.placement
        offloaded = placement.offloaded_nodes(moved)
        if offloaded:
            placement.flush()
        if offloaded is not None:
            placement.read_here(run, offloaded)
        try:
            chooser = self._chosen(run, offloaded, set() if of is None else of.without)
            if of is not None:
                of.physical = chooser.chosen[id(run)]
            return compile_plan(chooser, run, self.graph, self.source)
        except BaseException:
            self.graph.sweep()
            raise

    def _chosen(
        self, run: plan.Node, offloaded: placement.OffloadedNodes | None, without: Collection[str]
    ) -> Chooser:
        """Return the chooser that has planned `run`, without the ways that `without` names."""
        return choose_plan(
            run,
            self.graph,
            self.source,
            generate=self.generates,
            offloaded=offloaded,
            without=without,
        )

    def _segment(self, written: plan.Node) -> Segment:
        """Return the segment of a query, found again or optimized; a template may provide it."""
        if self.has_checks:
            written = self.base(written)
        known: Segment | None = written.known.get("segment")
        if known is not None and known.owner is self.graph and not self.graph.forgets:
            return known
        if free(written):
            raise placement.outside(placement.open_names(written))
        written, graph = self.base(written), self.graph
        moves = self.placement.is_possible

        def run(node: plan.Node) -> OptimizedPlan:
            return optimize(without_views(node) if moves else node, self.phases)

        if self._templates is not None and not moves and not graph.forgets:
            given = parameterize_query(written)
            prepared = None if given is None else self._templates.prepare(written, given)
            if prepared is not None:
                made = Segment(graph, written, prepared.optimized, ())
                made.physical, made.prepared = prepared.physical, prepared
                written.known["segment"] = made
                return made
        return settle(written, graph, run, in_parts=not moves)

    def _plan_query(self, written: plan.Node) -> Planned:
        """Plan a query; return the plan and the chooser of its physical plan."""
        optimized = optimize(written, self.phases)
        return optimized, self._chosen(optimized.plan, None, ())

    def _built(self, prepared: QueryTemplate) -> Node:
        """Build the node of a plan that a template has made."""
        builder = Builder(self.graph, self.source, self.generates, build_inner_graph)
        found = builder.build(prepared.physical)
        self._crowded += _new_indexes(builder.made, prepared.looked_up)
        return found

    def _build_segment(self, segment: Segment) -> Node:
        """Return the node of the graph that computes a segment; build the missing nodes."""
        found = self._top(segment)
        for each in segment.every(until=lambda s: self._top(s) is not None):
            prepared, each.prepared = each.prepared, None
            if prepared is not None:
                found = self._built(prepared)
            else:
                here = self.compiled_beside(each.run, self.placement.moved, each)
                found = here.nodes[id(each.run)]
                self._crowded += _new_indexes(here.made, here.looked_up)
            each.top = weakref.ref(found)
        if self.placement.is_used:
            self.graph.fill()
        assert found is not None
        return found

    def _top(self, segment: Segment) -> Node | None:
        """Return the node that computes a segment, if it is in the graph.

        Return None if parts may be elsewhere, since another node may be the right one by now.
        """
        if self.placement.is_possible:
            return None
        if segment.is_optimized:  # otherwise a template makes it, and it is neither of these
            if isinstance(segment.run, plan.Settled):
                return self._top(segment.run.segment)
            if isinstance(segment.run, plan.Table):
                return self.source(segment.run)
        found = None if segment.top is None else segment.top()
        return found if found is not None and self.graph.has(found) else None

    def _deoptimize(self, queries: Iterable[plan.Node], bail_out: BailOut) -> None:
        """Run queries without a way that failed for their rows.

        If the segments that use it are unknown, run them without all ways that may fail.
        """
        tops = [self._segment(written) for written in queries]
        every = list(dict.fromkeys(segment for top in tops for segment in top.every()))
        way = _find_failing_way(bail_out.owner)
        used = {segment: ways_that_may_fail(segment.physical) for segment in every}
        meant = [s for s in every if way in used[s] and bail_out.owner in set(nodes(s.run))]
        meant = meant or [segment for segment in every if used[segment]]
        if not meant:
            raise AssertionError("what was given up is still computed") from bail_out
        for segment in meant:
            segment.without |= {way} if way in used[segment] else used[segment]
        gone = set(meant)
        for segment in every:  # inputs come first
            if segment in gone or not gone.isdisjoint(segment.below):
                gone.add(segment)
                segment.top = segment.physical = None
        log.info(
            "%s: as rows from now on, since %r",
            explain.headline(bail_out.owner),
            bail_out.__cause__,
        )


def _new_indexes(
    made: Mapping[int, Node], looked_up: Iterable[tuple[Physical, Path]]
) -> list[tuple[Node, Path]]:
    """Return the indexes that have their first reader."""
    found = [(made[id(index)], field) for index, field in looked_up]
    return [(node, field) for node, field in found if len(node.routes) == 1]


def _find_failing_way(owner: plan.Node) -> str:
    """Return the way to run a node that may fail."""
    match owner:
        case plan.Join():
            return MULTIWAY
        case plan.Fixpoint():
            return CLOSURE
        case _:
            return SUMS


Source = Callable[[Any], Node]
MANY_READERS = 16
"""Minimum number of readers with a value of a field for an index of a table; of multiway joins of
the same equations for further ones to run as joins of two."""
LARGE = 64
"""Minimum number of rows of a table for joins to look up their rows in an index by a field."""
MANY_RANGES = 16
"""Minimum number of ranges of a field for an ordered index; else readers test all rows."""


@record
class CompiledPlan:
    """A compiled plan.

    `nodes` are the graph nodes of plan nodes, by their `id`, except nodes inside another node's
    loop. `made` are the graph nodes of physical nodes.
    """

    physical: Physical
    nodes: dict[int, Node]
    made: dict[int, Node]
    looked_up: Sequence[FieldIndex]
    """The indexes that it looks up, with their fields."""


@record
class Running:
    """The physical plan of a query, and the physical plans of its segments below."""

    root: Physical
    tops: Mapping[Segment, Physical]

    def inputs(self, node: Physical) -> tuple[Physical, ...]:
        return tuple(map(self._meant, node.inputs()))

    def drawing(self, remark: Callable[[Physical], str] = lambda node: "") -> explain.Drawing:
        """Draw the plan as boxes; `remark` may add something to each."""
        return explain.draw_plan(
            self._meant(self.root), self.inputs, lambda node: node.headline(), remark
        )

    def _meant(self, node: Physical) -> Physical:
        """Return the physical node itself; of a scan of another segment, the top of that one."""
        while isinstance(node, Scan) and isinstance(node.source.node, plan.Settled):
            node = self.tops[node.source.node.segment]
        return node


def choose_plan(
    root: plan.Node,
    graph: Graph,
    source: Source,
    *,
    generate: bool,
    offloaded: placement.OffloadedNodes | None,
    without: Collection[str],
) -> Chooser:
    """Return the chooser that has chosen the physical plan of a logical one.

    Without `generate` every node of the plan has its own operator. `offloaded` knows the nodes that
    run elsewhere. Ways in `without` have failed for the rows.
    """

    def keeps(loop: plan.Iterate) -> bool:
        return offloaded.takes(loop) if offloaded else generate and hops.pays(loop)

    run = without_iterations(root, keeps)
    chooser = Chooser(
        run,
        CHOICES,
        values_wanted(graph, source),
        generate=generate,
        offloaded=offloaded or None,
        without=without,
    )
    chooser.chosen[id(root)] = chooser.choose(run)
    return chooser


def values_wanted(graph: Graph, source: Source) -> ValuesWanted:
    """Return the function that counts the values of a field that readers of a graph look for."""

    def count(candidate: Candidate) -> int:
        index, field = candidate.index, candidate.field
        table = source(index.chain.base)
        made = graph.find(index.does, (table,))
        if field is None:
            return 0 if made is None else _count_multiway_joins(made, candidate.equations)
        if candidate.of_join and (table.size is None or table.size() < LARGE):
            return 0
        if made is not None:
            return int(made.operator.index.keys) or 1
        found = [reader.constant_tests.wants for reader, _ in table.consumers]
        wanted = [wants[field] for wants in found if field in wants]
        if isinstance(index, PhysicalRangeIndex):
            ranges = len({values for values in wanted if isinstance(values, Between)})
            return ranges if ranges >= MANY_RANGES else 0
        values = [value for value in wanted if not isinstance(value, Between)]
        return (len(set(values)) or 1) if len(values) >= MANY_READERS else 0

    return count


def _count_multiway_joins(index: Node, equations: Sequence[Equation]) -> int:
    """Return the number of multiway joins of these equations that read an index; 0 if few."""
    ways = [reader.physical for reader, _ in index.consumers]
    alike = [w for w in ways if isinstance(w, Multiway) and w.multiway.equations == equations]
    return len(alike) if len(alike) >= MANY_READERS else 0


def compile_plan(chooser: Chooser, root: plan.Node, graph: Graph, source: Source) -> CompiledPlan:
    """Compile a plan; build its missing nodes of the graph."""
    builder = Builder(graph, source, chooser.generates, build_inner_graph)
    physical = chooser.chosen[id(root)]
    builder.build(physical)
    made = builder.made
    nodes = {key: made[id(p)] for key, p in chooser.chosen.items() if id(p) in made}
    return CompiledPlan(physical, nodes, made, chooser.looked_up)


def build_inner_graph(
    roots: Sequence[plan.Node], contents: Sequence[hops.Contents], *, generate: bool
) -> hops.InnerNodes:
    """Return a graph inside an operator."""
    return inner_graph.InnerGraph(roots, contents, generate=generate)


def ways_that_may_fail(physical: Physical | None) -> set[str]:
    """Return the ways of a plan that may fail for the rows."""
    found: set[str] = set()
    waiting = [] if physical is None else [physical]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.inputs())
        if isinstance(node, Multiway | PhysicalCyclicCount | PhysicalCyclicJoin):
            found.add(MULTIWAY)
        elif isinstance(node, FactorizedGroups | PhysicalSumsBeyond):
            found.add(SUMS)
        elif isinstance(node, PhysicalClosure):
            found.add(CLOSURE)
    return found

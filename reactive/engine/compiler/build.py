"""Build the nodes of the graph for a physical plan: a function per node, and no decisions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.plans import clauses
from optimizer.plans.field_values import NO_CONSTANT_TESTS, ConstantTests
from optimizer.plans.forms import key_parts, unique_key
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import (
    bindings,
    is_interned,
    may_be_negative,
    nodes,
    row_shape,
    shapes,
)
from optimizer.plans.side_conditions import AnyJoin, calls_may_raise, join_match, may_raise, strict
from optimizer.traverse import functions
from reactive.engine.codegen.functions import callable_of, recall_of
from reactive.engine.collections import range_index
from reactive.engine.collections.index import itself
from reactive.engine.compiler import hops as making_inner
from reactive.engine.compiler import lattices, physical, recursion
from reactive.engine.compiler.physical import Op, Physical
from reactive.engine.compiler.row_tests import constant_tests_of
from reactive.engine.dataflow.graph import Graph
from reactive.engine.dataflow.moment import check_prompt
from reactive.engine.dataflow.node import NOWHERE, Node
from reactive.engine.operators import closing, cycles, index_by, matching, sums_beyond
from reactive.engine.operators import join as at_operator
from reactive.engine.operators.fixpoint import closure as closures
from reactive.engine.operators.fixpoint import fixpoint, lattice_fixpoint
from reactive.engine.operators.fuse import (
    Make,
    chain_runner,
    make_event_lookup,
    make_factored_operator,
    make_join_operator,
    make_keyer,
    make_loop_operator,
    make_matching_join,
    make_multiway_operator,
    make_outer_join_operator,
    make_pair_sums,
    make_row_sums,
)
from reactive.engine.operators.loop import loop_recomputation
from reactive.engine.operators.plain import (
    INNER,
    PipelineSource,
    Side,
    all_callables,
    all_read,
    is_read,
    plain_join,
    plain_operator,
    side_functions,
    sides,
    spread_bindings,
)
from reactive.engine.remote import remote as window
from reactive.engine.remote import remote_operator as remotes

Inputs = tuple[Node, ...]
WIRED = (
    *(physical.Scan, physical.Multiway, physical.PhysicalCyclicCount, physical.PhysicalCyclicJoin),
    physical.PhysicalSumsBeyond,
    *(physical.PhysicalFixpoint, physical.PhysicalLoop, physical.PhysicalNest),
)
"""Physical nodes whose operation depends on their inputs."""
BOTH = (0, 1)
"""The ports of a join."""


@dataclass(slots=True)
class Builder:
    """Builds the missing nodes of the graph; `made` holds nodes by the `id` of physical nodes.

    `source` returns the node that a scan reads; `inner` makes a graph inside an operator.
    """

    graph: Graph
    source: Callable[[Any], Node]
    generates: bool
    inner: making_inner.MakeInner
    made: dict[int, Node] = field(default_factory=dict)

    def build(self, root: Physical) -> Node:
        """Return the node of the graph for a physical node."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            missing = [n for n in node.inputs() if id(n) not in self.made]
            waiting.extend(reversed(missing))
            if not missing:
                waiting.pop()
                if id(node) not in self.made:
                    inputs = tuple([self.made[id(source)] for source in node.inputs()])
                    self.made[id(node)] = self._there(node, inputs) or self._built(node, inputs)
        return self.made[id(root)]

    def _there(self, node: Physical, inputs: Inputs) -> Node | None:
        """Return the node of the graph that computes the same rows already; None if none does."""
        return None if isinstance(node, WIRED) else self.graph.find(node.does, inputs)

    def _built(self, node: Physical, inputs: Inputs) -> Node:
        return _BUILDS[type(node)](self, node, inputs)

    def node(
        self,
        of: Physical,
        inputs: Inputs,
        make: Callable[[], Any],
        functions: Iterable[Function | None] = (),
        *,
        blamed: Iterable[Function | None] = (),
        constant_tests: ConstantTests = NO_CONSTANT_TESTS,
        deferred: bool = False,
        at: Any = NOWHERE,
        wiring: tuple[Hashable, ...] = (),
        partnered: tuple[int, ...] = (),
    ) -> Node:
        """Return the node of the graph for a physical node over inputs.

        `wiring` tells the roles of the inputs, if the physical node does not; `partnered` are the
        ports whose rows change nothing without a partner at the other port.
        """
        made = self.graph.node(
            (of.does, *wiring) if wiring else of.does,
            inputs,
            make,
            plan=of.of,
            functions=functions,
            blamed=blamed,
            constant_tests=constant_tests,
            deferred=deferred,
            at=at,
        )
        made.physical, made.wiring, made.partnered = of, wiring, partnered
        return made


def _build_scan(builder: Builder, node: physical.Scan, inputs: Inputs) -> Node:
    return builder.source(node.source.node)


def _build_values(builder: Builder, node: physical.PhysicalValues, inputs: Inputs) -> Node:
    rows = node.of.rows if isinstance(node.of, plan.Values) else ()
    return builder.node(node, inputs, lambda: matching.LiteralRows(rows))


def _build_apply(builder: Builder, node: physical.Apply, inputs: Inputs) -> Node:
    """Build a node whose operator calls the callables one by one.

    A `previous()` is also registered with its moment; raises `OffloadError` if its node is
    deferred.
    """
    make, functions = plain_operator(node.op.node)
    made = builder.node(node, inputs, make, functions)
    if isinstance(node.op.node, plan.Previous):
        check_prompt(made)
        node.op.node.moment.add(made)
    return made


def _build_pipeline(builder: Builder, node: physical.Pipeline, inputs: Inputs) -> Node:
    """Build a node that runs a chain, and its sink, as one generated loop."""
    below = node.chain
    parts = [*below.chain, *_nodes(node.sink)]
    constant_tests = constant_tests_of(below) if inputs[0].at is NOWHERE else NO_CONSTANT_TESTS
    return builder.node(
        node,
        inputs,
        make_loop_operator(parts[-1], below, builder.graph.loops, recall_of(node.known)),
        all_callables(parts),
        constant_tests=constant_tests,
    )


def _build_index(builder: Builder, node: physical.PhysicalIndex, inputs: Inputs) -> Node:
    """Build an index of rows by key; it is filled later if the table can list its rows."""
    handle = id if is_interned(node.chain.top) and not node.deferred else itself
    make, all_rows = _make_row_keyer(builder, node, node.side, inputs[0], deferred=node.deferred)
    table = _table_of(builder, node, inputs[0])
    return builder.node(
        node,
        inputs,
        _index_maker(node, handle, all_rows, make, table=table, trie=node.trie),
        _callables_of_side(node.chain, node.side),
        constant_tests=constant_tests_of(node.chain, node.side),
        deferred=node.deferred,
    )


def _index_maker(
    node: physical.PhysicalIndex | physical.PhysicalRangeIndex,
    handle: Callable[[Any], Any],
    all_rows: Callable[[], Iterable[Any]] | None,
    keyer: Make,
    *,
    index: Callable[[], Any] = lambda: None,
    **options: Any,
) -> Make:
    """Return the maker of an index; its rows are dropped if the node says when."""
    retention = node.retention
    if retention is None:
        return lambda: index_by.IndexBy(None, handle, all_rows, keyer(), index(), **options)
    value = spread_bindings(retention.value, retention.value.parameters)
    options |= {"value": value, "frontier": retention.frontier}
    return lambda: closing.ExpiringIndexBy(None, handle, None, keyer(), index(), **options)


def _table_of(
    builder: Builder, node: physical.PhysicalIndex, base: Node
) -> Callable[[], Any] | None:
    """Return the function that lists the rows of a table, to index it at the first look-up.

    Return None, to build the index now, unless `base` is a stored table, every callable is lifted,
    `node` is not deferred, and code is generated.
    """
    is_table = not base.inputs and isinstance(base.plan, plan.Table) and base.plan.stored
    if not is_table and not (_is_restored(builder, base) and _cannot_raise(node)):
        return None
    is_read = all_read(_callables_of_side(node.chain, node.side))
    return None if not is_read or node.deferred or not builder.generates else base.contents


def _is_restored(builder: Builder, base: Node) -> bool:
    """Return True if a node holds rows of an earlier process, which computed their keys."""
    restoration = builder.graph.restoration
    return restoration is not None and restoration.holds(base)


def _cannot_raise(node: physical.PhysicalIndex) -> bool:
    """Return True if no row has an error in place of its key."""
    (key, terms), of = node.side, shapes(node.chain.top)
    if any(term.is_guard for term in terms) or may_raise(terms, of):
        return False
    if key is not None and strict(key, of):
        return False
    return not any(part.facts.raises or calls_may_raise(part) for part in node.chain.chain)


def _build_keys(builder: Builder, node: physical.PhysicalKeys, inputs: Inputs) -> Node:
    """Build a node that pairs each row with its key, and stores nothing."""
    below = node.chain
    recall = recall_of(node.known)
    make, _ = make_keyer(below, node.side, 1, generate=builder.generates, recall=recall)
    return builder.node(
        node,
        inputs,
        make,
        _callables_of_side(below, node.side),
        constant_tests=constant_tests_of(below, node.side),
    )


def _build_lookup(builder: Builder, node: physical.Lookup, inputs: Inputs) -> Node:
    """Build a look-up of the wanted values in an index, with the whole condition as a filter."""
    index, wanted = inputs[0].operator, node.wanted
    ask = chain_runner((node.of,))
    return builder.node(
        node,
        inputs,
        lambda: at_operator.IndexLookup(index, wanted, ask),
        all_callables([node.of]),
        at=wanted,
    )


def _build_event_probe(builder: Builder, node: physical.EventProbe, inputs: Inputs) -> Node:
    """Build a look-up of events in an index, with the chains below and above it."""
    lookup, chain = node.lookup.node, tuple(_nodes(*node.chain))
    assert isinstance(lookup, plan.Lookup)
    held, (key, _) = node.right.chain.top, node.right.side
    assert isinstance(key, Lifted)
    unique = unique_key(held)
    make = make_event_lookup(
        *(lookup, node.below, held, node.row, chain, inputs[1].operator),
        recall_of(node.known),
        generate=builder.generates and not may_be_negative(lookup.right),
        is_unique=bool(unique) and unique.issubset(key_parts(key.body)),
    )
    return builder.node(node, inputs, make, all_callables([*node.below.chain, *chain]))


def _build_range_index(builder: Builder, node: physical.PhysicalRangeIndex, inputs: Inputs) -> Node:
    """Build an index whose keys are in order, for look-ups of ranges."""
    handle = id if is_interned(node.chain.top) else itself
    make, all_rows = _make_row_keyer(builder, node, node.side, inputs[0])
    return builder.node(
        node,
        inputs,
        _index_maker(
            node, handle, all_rows, make, index=lambda: range_index.RangeIndex(node.range, handle)
        ),
        _callables_of_side(node.chain, node.side),
        constant_tests=constant_tests_of(node.chain, node.side),
    )


def _build_probe(
    builder: Builder, node: physical.PhysicalProbe | physical.Intervals, inputs: Inputs
) -> Node:
    """Build a join that probes two indexes, with the chain and sink above it.

    A semi- or anti-join has neither of the two.
    """
    if isinstance(node.join.node, plan.SemiJoin | plan.AntiJoin):
        return _build_match(builder, node, inputs)
    (left, right), join, chain = inputs, node.join.node, _nodes(*node.chain)
    parts = [join, *chain, *_nodes(node.sink)]
    _connect_indexes(join, left, right)
    operators = (left.operator, right.operator)
    if isinstance(join, INNER):
        table = None if left.deferred or left.inputs[0].inputs else left.inputs[0].contents
        recall, by_range = recall_of(node.known), isinstance(node, physical.Intervals)
        make = make_join_operator(
            join, parts[-1], tuple(chain), *operators, table, recall, by_range=by_range
        )
    else:
        assert isinstance(join, plan.OuterJoin)
        recall, by_range = recall_of(node.known), isinstance(node, physical.Intervals)
        make = make_outer_join_operator(
            join, parts[-1], tuple(chain), *operators, recall, by_range=by_range
        )
    made = builder.node(node, inputs, make, all_callables(parts), partnered=_partnered_ports(join))
    made.forgets |= builder.graph.forgets and node.sink is None and _is_expiring(left)
    return made


def _build_match(
    builder: Builder,
    node: physical.Match | physical.PhysicalProbe | physical.Intervals,
    inputs: Inputs,
) -> Node:
    """Build a join with a plain operator, which pairs rows without generated loops."""
    (left, right), join = inputs, node.join.node
    assert isinstance(join, AnyJoin)
    match = join_match(join)
    _connect_indexes(join, left, right)
    has_index = isinstance(right.operator, index_by.IndexBy)
    operators = (left.operator, right.operator)
    make: Make = lambda: plain_join(join, *operators)  # noqa: E731
    if builder.generates and is_read(join) and not isinstance(join, INNER):
        by_range = isinstance(node, physical.Intervals)
        make = make_matching_join(join, *operators, recall_of(node.known), by_range=by_range)
    made = builder.node(
        node,
        inputs,
        make,
        (match.on,),
        blamed=() if has_index else (match.right_key,),
    )
    made.partnered = _partnered_ports(join, made.operator)
    made.forgets |= builder.graph.forgets and _is_expiring(left)
    return made


def _is_expiring(node: Node) -> bool:
    """Return True for an index whose rows are dropped."""
    return getattr(node.operator, "forgets", False)


def _partnered_ports(join: AnyJoin, operator: Any = None) -> tuple[int, ...]:
    """Return the ports whose rows without a partner change neither the output nor the state."""
    if isinstance(join, plan.SemiJoin) and hasattr(operator, "held_keys"):
        return (0,)
    return BOTH if isinstance(join, INNER) else ()


def _build_multiway(builder: Builder, node: physical.Multiway, inputs: Inputs) -> Node:
    """Build a join of three or more inputs, whose changes probe indexes of the others."""
    indexes = {key: inputs[place].operator for key, place in node.keys}
    join, chain = node.joins[0].node, _nodes(*node.chain)
    assert isinstance(join, plan.Join)
    top = [join, *chain, *_nodes(node.sink)][-1]
    ports = tuple(dict.fromkeys(inputs))  # different indexes may be one node of the graph
    recall = recall_of(node.known)
    make = make_multiway_operator(join, node.multiway, top, tuple(chain), indexes, recall)
    functions = all_callables([*_nodes(*node.joins), *chain, *_nodes(node.sink)])
    return builder.node(node, ports, make, functions, wiring=tuple(map(ports.index, inputs)))


def _build_cyclic(
    builder: Builder,
    node: physical.PhysicalCyclicCount | physical.PhysicalCyclicJoin,
    inputs: Inputs,
) -> Node:
    """Build a join of inputs in a cycle, or an aggregate that only counts its rows."""
    join, above = node.joins[0].node, [*_nodes(*node.chain), *_nodes(node.sink)]
    assert isinstance(join, plan.Join)
    top, chain = [join, *above][-1], tuple(_nodes(*node.chain))
    if isinstance(node, physical.PhysicalCyclicCount):
        assert isinstance(top, plan.Aggregate)
        make = cycles.cyclic_count(join, node.multiway, top, chain, node.chains)
        assert make is not None
    else:
        make = cycles.cyclic_join(join, node.multiway, top, chain, node.chains)
    parts = [*_nodes(*node.joins), *above, *(n for c in node.chains for n in c.chain)]
    ports = tuple(dict.fromkeys(inputs))
    wiring = tuple(map(ports.index, inputs))
    is_one = len({(id(chain.base), chain) for chain in node.chains}) == 1
    tests = constant_tests_of(node.chains[0]) if is_one else NO_CONSTANT_TESTS
    return builder.node(
        node, ports, make, all_callables(parts), wiring=wiring, constant_tests=tests
    )


def _build_nest(builder: Builder, node: physical.PhysicalNest, inputs: Inputs) -> Node:
    """Build the tree of a nest over the indexes of its levels, which may be remote."""
    ports = tuple(dict.fromkeys(inputs))
    wiring = tuple(map(ports.index, inputs))
    operators, inside = [each.operator for each in inputs], builder.graph.trees.inside
    made = recursion.tree_elsewhere if inputs[0].is_remote else recursion.tree_of
    make = partial(made, node, operators, wiring, inside)
    return builder.node(node, ports, make, recursion.orders(node), wiring=wiring)


def _build_places(builder: Builder, node: physical.PhysicalPlaces, inputs: Inputs) -> Node:
    """Build a window whose rows are numbered when they are read, with the chain above it."""
    window, chain = node.window.node, tuple(_nodes(*node.chain))
    assert isinstance(window, plan.Reduce)
    show = make_loop_operator(
        chain[-1], PipelineSource(chain, window), builder.graph.loops, recall_of(node.known)
    )
    key, inside = spread_bindings(window.key, bindings(window.input)), builder.graph.trees.inside
    kept: Any = keeper(window.function)
    parts = [window, *chain]
    return builder.node(
        node, inputs, lambda: kept.placed(key, show(), inside), all_callables(parts)
    )


def _build_partial_sums(builder: Builder, node: physical.PartialSums, inputs: Inputs) -> Node:
    """Build the sums, by join key, of one side of a join; its rows are not stored."""
    below = node.chain
    recall = recall_of(node.known)
    make = make_row_sums(below, node.side, node.arguments, node.sums, node.owner, recall)
    return builder.node(
        node,
        inputs,
        make,
        _callables_of_side(below, node.side),
        constant_tests=constant_tests_of(below, node.side),
    )


def _build_pair_sums(builder: Builder, node: physical.PairSums, inputs: Inputs) -> Node:
    """Build the sums, by join key, of the pairs of an inner join."""
    join, chain = node.join.node, tuple(_nodes(*node.chain))
    assert isinstance(join, (*INNER, plan.OuterJoin))
    operators = (inputs[0].operator, inputs[1].operator)
    recall, of = recall_of(node.known), (node.side, node.arguments, node.sums)
    make = make_pair_sums(join, chain, *of, operators, node.owner, recall)
    functions = (*all_callables([join, *chain]), *side_functions(node.side))
    return builder.node(node, inputs, make, functions, partnered=BOTH)


def _build_factorized_groups(
    builder: Builder, node: physical.FactorizedGroups, inputs: Inputs
) -> Node:
    """Build an aggregate over a join from the sums of the sides of the join."""
    join, aggregate = node.join.node, node.sink.node
    assert isinstance(join, (*INNER, plan.OuterJoin)) and isinstance(aggregate, plan.Aggregate)
    operators = (inputs[0].operator, inputs[1].operator)
    make = make_factored_operator(aggregate, join, node.factors, operators, recall_of(node.known))
    functions = all_callables([aggregate, join, *_nodes(*node.between)])
    return builder.node(node, inputs, make, functions, partnered=_partnered_ports(join))


def _build_sums_beyond(builder: Builder, node: physical.PhysicalSumsBeyond, inputs: Inputs) -> Node:
    """Build the operator that keeps rows by a condition of the sum beyond them."""
    read = (node.left_key, node.right_key, node.condition, node.without_sum)
    ports = tuple(dict.fromkeys(inputs))
    wiring = tuple(map(ports.index, inputs))
    left_key = spread_bindings(node.left_key, node.left_key.parameters)
    right_key, condition = callable_of(node.right_key), callable_of(node.condition)
    without_sum = None if node.without_sum is None else callable_of(node.without_sum)

    def make() -> sums_beyond.SumsBeyond:
        keys = (left_key, right_key)
        return sums_beyond.SumsBeyond(keys, condition, without_sum, node.beyond, node.of, wiring)

    return builder.node(node, ports, make, read, wiring=wiring)


def _build_fixpoint(builder: Builder, node: physical.PhysicalFixpoint, inputs: Inputs) -> Node:
    """Build the operator that runs all clauses of a recursion."""
    circuit, ports, functions = recursion.circuit_of(
        node.program, node, inputs, generate=builder.generates, strict=builder.graph.strict
    )
    wiring = (*map(ports.index, inputs), circuit.wiring())
    is_over_lattice = lattices.has_lattice(lattices.with_lattices(node.program))
    kind = lattice_fixpoint.LatticeFixpoint if is_over_lattice else fixpoint.Fixpoint
    return builder.node(node, tuple(ports), lambda: kind(circuit), functions, wiring=wiring)


def _build_closure(builder: Builder, node: physical.PhysicalClosure, inputs: Inputs) -> Node:
    """Build the operator of a transitive closure, over the ends of the rows."""
    closure = node.closure
    ends, of = callable_of(closure.ends), closure.kind if closure.is_row else None
    return builder.node(
        node,
        inputs,
        lambda: closures.Closure(ends, closure.kind, of, node.of),
        [f for part in nodes(node.of, until=clauses.is_closed) for f in functions(part)],
    )


def _build_loop(builder: Builder, node: physical.PhysicalLoop, inputs: Inputs) -> Node:
    """Build the operator of an iteration, with the rounds of its bodies."""
    ports = tuple(dict.fromkeys(inputs))  # different inputs may be one node of the graph
    places = tuple(map(ports.index, inputs))
    make = making_inner.loop_of(node.node, places, builder.inner, generate=builder.generates)
    called = [f for body in node.node.bodies for part in nodes(body) for f in functions(part)]
    called += functions(node.node)
    return builder.node(node, ports, make, called, wiring=places)


def _build_relation(builder: Builder, node: physical.PhysicalRelation, inputs: Inputs) -> Node:
    """Build the node of one relation of a recursion or iteration, which one operator runs."""
    operator = inputs[0].operator
    kind = (
        loop_recomputation.LoopRelation
        if isinstance(node.fixpoint, physical.PhysicalLoop)
        else fixpoint.FixpointRelation
    )
    return builder.node(node, inputs, lambda: kind(operator, node.index))


def _build_remote(builder: Builder, node: physical.PhysicalRemote, inputs: Inputs) -> Node:
    """Build a node whose state and work are elsewhere; its remote is begun lazily."""

    def make() -> remotes.RemoteOperator:
        fragment = node.fragment
        remote = node.begin(fragment)
        kept = remote if fragment.window is None else window.RemoteWindow(fragment.window, remote)
        return remotes.RemoteOperator(fragment, kept, node.fed)

    parts = [*_nodes(*node.parts), *(n for _, chain in node.chains for n in _nodes(*chain))]
    return builder.node(node, inputs, make, [f for fragment in parts for f in functions(fragment)])


_BUILDS: dict[type[Physical], Callable[[Builder, Any, Inputs], Node]] = {
    physical.Scan: _build_scan,
    physical.PhysicalValues: _build_values,
    physical.Apply: _build_apply,
    physical.Pipeline: _build_pipeline,
    physical.PhysicalIndex: _build_index,
    physical.PhysicalKeys: _build_keys,
    physical.Lookup: _build_lookup,
    physical.EventProbe: _build_event_probe,
    physical.PhysicalProbe: _build_probe,
    physical.PhysicalRangeIndex: _build_range_index,
    physical.Intervals: _build_probe,
    physical.Match: _build_match,
    physical.Multiway: _build_multiway,
    physical.PhysicalCyclicCount: _build_cyclic,
    physical.PhysicalCyclicJoin: _build_cyclic,
    physical.PhysicalNest: _build_nest,
    physical.PhysicalPlaces: _build_places,
    physical.PartialSums: _build_partial_sums,
    physical.PairSums: _build_pair_sums,
    physical.FactorizedGroups: _build_factorized_groups,
    physical.PhysicalSumsBeyond: _build_sums_beyond,
    physical.PhysicalFixpoint: _build_fixpoint,
    physical.PhysicalClosure: _build_closure,
    physical.PhysicalLoop: _build_loop,
    physical.PhysicalRelation: _build_relation,
    physical.PhysicalRemote: _build_remote,
}


def _nodes(*given: Op | None) -> list[plan.Node]:
    return [op.node for op in given if op is not None]


def _make_row_keyer(
    builder: Builder,
    node: physical.PhysicalIndex | physical.PhysicalRangeIndex,
    side: Side,
    base: Node,
    *,
    deferred: bool = False,
) -> tuple[Make, Callable[[], Iterable[Any]] | None]:
    """Return the factory of the loop that keys rows for an index, and the function for all rows.

    The function is None if `base` does not keep its rows.
    """
    graph = builder.graph
    make, rows = make_keyer(
        node.chain,
        side,
        node.arguments,
        generate=builder.generates,
        deferred=deferred,
        recall=recall_of(node.known),
    )
    return make, None if base.forgets else lambda: rows(graph.contents(base))


def _callables_of_side(below: PipelineSource, side: Side) -> tuple[Function | None, ...]:
    """Return the callables of a chain, and of a side of a join over it."""
    return (*all_callables(below.chain), *side_functions(side))


def _connect_indexes(join: plan.Node, left: Node, right: Node) -> None:
    """Connect an index that leaves rows out to the index that must know of them.

    A side whose terms are all keys leaves no rows out, and stays as it is; so do both if the join
    reads only the keys of the right.
    """
    assert isinstance(join, AnyJoin)
    if not isinstance(right.operator, index_by.IndexBy):
        return  # only its keys are read
    (_, ours), (_, theirs) = sides(join)
    for index, steps, other, may in (
        (left, ours, right, may_raise(theirs, (row_shape(join.right),))),
        (right, theirs, left, may_raise(ours, shapes(join.left))),
    ):
        if not all(step.is_key for step in steps):
            index.operator.meets(other.operator)
            if may:  # a row that raises there is paired with rows that the tests here leave out
                index.constant_tests = constant_tests_of(index.physical.chain)

"""From a plan to nodes of the graph: the one module that knows plans, operators and the graph.

A chain of linear nodes becomes one loop together with what it feeds: the key of an index, the
groups of an aggregate, or a list. A join's loops take the chain above it. Joins read indexes, which
are nodes of their own, so that all joins of an input by the same key share one.

    aggregate              Grouped: one loop over both sides
      select
        join               IndexBy            IndexBy: loop of where and key
          where
            orders         orders             customers
          customers

A node that several others read is a node of the graph, and no part of a loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from optimizer import plan
from optimizer.clauses import Program, clauses
from optimizer.named import naming_by
from optimizer.pinned import NO_PINS
from optimizer.properties import bindings, is_interned, nodes
from optimizer.traverse import without_iterations
from reactive.collections.index import itself
from reactive.compiler.elsewhere import Elsewhere
from reactive.compiler.recursion import build, inputs_of
from reactive.compiler.routes import routed
from reactive.compiler.sums import bases, over_sides, split
from reactive.compiler.wide import bases_of_wide, is_wide, over_wide
from reactive.dataflow.graph import Graph
from reactive.dataflow.node import NOWHERE, Node
from reactive.operators.fixpoint.fixpoint import Output
from reactive.operators.fuse import joined, keyed, looped
from reactive.operators.generated.grouped import is_in_line
from reactive.operators.index_by import IndexBy
from reactive.operators.key_by import KeyBy
from reactive.operators.loops import (
    INNER,
    Below,
    all_read,
    called,
    can_nest,
    index_signature,
    is_read,
    loop_parts,
    nested,
    pins_of,
)
from reactive.operators.nothing import Nothing
from reactive.operators.plain import (
    LINEAR,
    Side,
    by_key_alone,
    plain_join,
    plain_operator,
    side_functions,
    side_key,
    sides,
    signature,
)

JOINS = (plan.Product, plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin)

Source = Callable[[plan.Table | plan.Settled], Node]
Linear = plan.Where | plan.Select | plan.SelectMany | plan.Unnest
AnyJoin = plan.Product | plan.Join | plan.OuterJoin | plan.SemiJoin | plan.AntiJoin


def compile_plan(
    root: plan.Node,
    graph: Graph,
    source: Source,
    *,
    generate: bool = True,
    elsewhere: Elsewhere | None = None,
) -> dict[int, Node]:
    """The nodes of the graph for the nodes of a plan, by the `id` of these, made where missing.

    Those that are part of another's loop have none. Without `generate` every node has its own.
    `elsewhere` knows what does not run in the process.
    """
    written, root = root, without_iterations(root)
    compiler = Compiler(root, graph, source, generate=generate, elsewhere=elsewhere or None)
    waiting = [root]
    while waiting:
        node = waiting[-1]
        missing = [n for n in compiler.reads(node) if id(n) not in compiler.made]
        waiting.extend(missing)
        if not missing:
            waiting.pop()
            if id(node) not in compiler.made:
                compiler.made[id(node)] = compiler.make(node)
    compiler.made[id(written)] = compiler.made[id(root)]
    return compiler.made


class Compiler:
    """Makes nodes of the graph; `made` are those of the plan's nodes, by their `id`."""

    def __init__(
        self,
        root: plan.Node,
        graph: Graph,
        source: Source,
        *,
        generate: bool,
        elsewhere: Elsewhere | None,
    ) -> None:
        self.graph = graph
        self._elsewhere = elsewhere
        self.source = source
        self.generates = generate
        self.readers = Counter(id(n) for node in nodes(root) for n in node.inputs())
        self._programs: dict[int, Program] = {}
        self.made: dict[int, Node] = {}

    def reads(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """The plan nodes whose nodes of the graph this one is made from."""
        away = self._elsewhere
        if away is not None and (away.holds(node) or away.includes(node)):
            return () if away.holds(node) else away.reads(node)
        node = self._with_row(node)
        if isinstance(node, plan.Fixpoint | plan.Component):
            return tuple(inputs_of(self._program(_defining(node)), self.below))
        found = split(self, node)
        if found is not None:
            return bases(self, *found)
        below = self._chain(node)
        if below is not None and self.takes_join(node, below):
            if is_wide(below.base, self):
                return bases_of_wide(self, node, below, below.base)
            return tuple(self.below(n).base for n in below.base.inputs())
        if is_wide(node, self):
            return bases_of_wide(self, node, Below((), node), node)
        if isinstance(node, JOINS):
            return tuple(self.below(n).base for n in node.inputs())
        return node.inputs() if below is None else (below.base,)

    def make(self, node: plan.Node) -> Node:
        """The node of the graph for a plan node, when what it reads is made."""
        away = self._elsewhere
        if away is not None and away.holds(node):
            return away.scan(self, node)
        match node:
            case plan.Table() | plan.Settled():
                return self.source(node)
            case plan.View(source):
                return self.made[id(source)]
            case plan.Empty():
                return self.graph.node(("empty",), (), Nothing, plan=node)
            case plan.Fixpoint() | plan.Component():
                return self._output(node)
        if away is not None and away.includes(node):
            return away.make(self, node)
        node = self._with_row(node)
        found = split(self, node)
        if found is not None:
            return over_sides(self, node, *found)
        below = self._chain(node)
        if below is not None and self.takes_join(node, below):
            return self._over_join(node, below)
        if isinstance(node, INNER) and self.generates and is_read(node):
            return self._over_join(node, Below((), node))
        if isinstance(node, JOINS):
            return self._join(node)
        if below is not None:
            return self._over_delta(node, below)
        make, functions = plain_operator(node)
        inputs = tuple(self.made[id(n)] for n in node.inputs())
        return self.graph.node(signature(node), inputs, make, plan=node, functions=functions)

    def _with_row(self, node: plan.Node) -> plan.Node:
        """An aggregate that makes named rows itself, for one and the select that names them."""
        below, how = (node.inputs() or (node,))[0], naming_by(node)
        if how is None or not how.generated or not isinstance(below, plan.Aggregate):
            return node
        is_alone = self.readers[id(below)] < 2 and not self._is_elsewhere(below)
        return replace(below, row=how.kind) if self.generates and is_alone else node

    def depends(self, node: plan.Node) -> bool:
        """Whether a node reads something that is elsewhere."""
        return self._elsewhere is not None and self._elsewhere.reaches(node)

    def _is_elsewhere(self, node: plan.Node) -> bool:
        away = self._elsewhere
        return away is not None and (away.holds(node) or away.includes(node))

    def _program(self, node: plan.Fixpoint) -> Program:
        if id(node) not in self._programs:
            self._programs[id(node)] = clauses(node)
        return self._programs[id(node)]

    def _output(self, node: plan.Fixpoint | plan.Component) -> Node:
        """The node of one of the relations of a fixpoint."""
        defining = _defining(node)
        fixpoint = build(defining, self._program(defining), self)
        index = node.index if isinstance(node, plan.Component) else 0
        operator = fixpoint.operator
        output = self.graph.node(
            ("output", index), (fixpoint,), lambda: Output(operator, index), plan=node
        )
        self.made.setdefault(id(defining), output)
        return output

    # What is part of whose loop.

    def _chain(self, node: plan.Node) -> Below | None:
        """What the loop of a node runs over; None for a node that has no loop."""
        if not self.generates or not is_read(node):
            return None
        if isinstance(node, LINEAR):
            below = self.below(node.input, above=nested((node,)))
            return Below((*below.chain, node), below.base)
        if isinstance(node, plan.Aggregate) and is_in_line(a.fold for a in node.aggregates):
            return self.below(node.input)
        if isinstance(node, plan.Distinct):
            below = self.below(node.input)
            return below if below.chain and not self.takes_join(node, below) else None
        return None

    def below(self, node: plan.Node, above: int = 0) -> Below:
        """A node as a chain over a base, as far down as nobody else reads it, and as it can be
        nested in so many loops."""
        chain: list[plan.Node] = []
        if self.generates:
            while self.is_link(node) and can_nest(above := above + nested((node,))):
                chain.append(node)
                node = node.input
        return Below(tuple(chain[::-1]), node)

    def is_link(self, node: plan.Node) -> TypeGuard[Linear]:
        is_alone = self.readers[id(node)] < 2 and not self._is_elsewhere(node)
        return isinstance(node, LINEAR) and is_alone and is_read(node)

    def takes_join(self, node: plan.Node, below: Below) -> bool:
        """Whether the base is a join that is part of the node's loop."""
        base = below.base
        if not isinstance(base, INNER) or self._is_elsewhere(base):
            return False
        if self.readers[id(base)] > 1 or not is_read(base):
            return False
        wide = base.wide if isinstance(base, plan.Join) else None
        inputs = 2 if wide is None else len(wide.tests)
        return can_nest(inputs + nested(below.chain))

    # Making nodes.

    def _over_delta(self, node: plan.Node, below: Below) -> Node:
        found = routed(self, below)
        if found is not None:
            below, source = found
            if node is below.base:
                return source
            return self._loop(node, below, source)
        return self._loop(node, below, self.made[id(below.base)])

    def _loop(self, node: plan.Node, below: Below, source: Node) -> Node:
        return self.graph.node(
            ("loop", *map(signature, loop_parts(node, below))),
            (source,),
            looped(node, below),
            plan=node,
            functions=called(loop_parts(node, below)),
            pins=pins_of(below) if source.at is NOWHERE else NO_PINS,
        )

    def _over_join(self, node: plan.Node, below: Below) -> Node:
        join = below.base
        assert isinstance(join, INNER)
        if is_wide(join, self):
            return over_wide(self, node, below, join)
        left, right = self._indexes(join)
        parts = loop_parts(node, below)
        return self.graph.node(
            ("loop", *map(signature, [join, *(p for p in parts if p is not join)])),
            (left, right),
            joined(join, node, below.chain, left.operator, right.operator),
            plan=node,
            functions=called([join, *parts]),
        )

    def _join(self, node: AnyJoin) -> Node:
        match = plan.Match() if isinstance(node, plan.Product) else node.match
        left, right = self._indexes(node)
        return self.graph.node(
            signature(node),
            (left, right),
            lambda: plain_join(node, match, left.operator, right.operator),
            plan=node,
            functions=(match.on,),
            blamed=() if isinstance(right.operator, IndexBy) else (match.right_key,),
        )

    def _indexes(self, node: AnyJoin) -> tuple[Node, Node]:
        """The indexes of both sides of a join."""
        match = plan.Match() if isinstance(node, plan.Product) else node.match
        left_side, right_side = sides(match)
        late = self.depends(node)
        below = self.below(node.left)
        left = self.index(node, below, left_side, bindings(node.left), late=late)
        if isinstance(node, plan.SemiJoin | plan.AntiJoin) and by_key_alone(node):
            return left, self._keyed(node, self.below(node.right), right_side)
        right = self.index(node, self.below(node.right), right_side, 1, late=late)
        _introduce(left, left_side, right, right_side)
        return left, right

    def index(
        self,
        owner: plan.Node,
        below: Below,
        side: Side,
        arguments: int,
        *,
        late: bool = False,
        trie: bool = False,
    ) -> Node:
        """The index of a chain by a key, for a join to look rows up in.

        One that is `late` follows at each flush, as the other side of its join does. A `trie` has
        a key of two parts.
        """
        make, rows = self.key_maker(below, side, arguments, late=late)
        handle = id if is_interned(below.top) and not late else itself
        base, graph = self.made[id(below.base)], self.graph
        all_rows = None if base.forgets else lambda: rows(graph.contents(base))
        return graph.node(
            index_signature(below, side, arguments, late=late, trie=trie),
            (base,),
            lambda: IndexBy(None, handle, all_rows, make(), trie=trie),
            plan=owner,
            functions=(*called(below.chain), *side_functions(side)),
            pins=pins_of(below),
            late=late,
        )

    def _keyed(self, owner: plan.Node, below: Below, side: Side) -> Node:
        make, _ = self.key_maker(below, side, 1)
        return self.graph.node(
            ("key", side, *map(signature, below.chain)),
            (self.made[id(below.base)],),
            make,
            plan=owner,
            functions=(*called(below.chain), *side_functions(side)),
            pins=pins_of(below),
        )

    def key_maker(
        self, below: Below, side: Side, arguments: int, *, late: bool = False
    ) -> tuple[Callable[[], Any], Callable[[Sequence[Any]], Sequence[Any]]]:
        """How to make what keys the rows of a chain, and these rows of those of the base.

        What is late gets the changes of several commits at once, in which a row may have gone and
        an equal one come: it goes by equality.
        """
        key = side_key(side, arguments)
        identity = is_interned(below.top) and not late
        if self.generates and all_read(side_functions(side)):
            return keyed(below, side, arguments, key, identity=identity)
        return (lambda: KeyBy(key, identity=identity)), (lambda rows: rows)


def _defining(node: plan.Fixpoint | plan.Component) -> plan.Fixpoint:
    return node.input if isinstance(node, plan.Component) else node


def _introduce(left: Node, left_side: Side, right: Node, right_side: Side) -> None:
    """Tell an index that leaves rows out whom it has to tell of them."""
    for index, (_, steps), other in (
        (left.operator, left_side, right.operator),
        (right.operator, right_side, left.operator),
    ):
        if not all(step.is_key for step in steps):
            index.meets(other)

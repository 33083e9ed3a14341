"""From the clauses of a fixpoint to its operator, and the nodes of the graph that feed it.

    reach <- edges                              port 0: the node of edges
    reach <- select(join(reach, edges))         port 1: the index of edges; premise 0: reach by key

What reads inputs alone is part of the graph like any other query, and shared with it. What reads a
recursive relation is inside the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.clauses import Clause, Program, is_closed
from optimizer.expr import Function
from optimizer.properties import bindings
from optimizer.traverse import functions
from reactive.fuse import Below, chained
from reactive.graph import Node
from reactive.index import itself
from reactive.operators.fixpoint import Circuit, Fixpoint, Side
from reactive.operators.index_by import IndexBy
from reactive.plain import Side as KeySide
from reactive.plain import fitting, plain_join, sides, signature, spread
from reactive.recursion.best import BestFacts
from reactive.recursion.facts import Facts
from reactive.recursion.premise import Premise
from reactive.recursion.ways import Copied, Given, Lone, Paired

if TYPE_CHECKING:
    from reactive.compile import Compiler

LINEAR = (plan.Where, plan.Select, plan.SelectMany, plan.Unnest)


def inputs_of(program: Program, below: Callable[[plan.Node], Below]) -> list[plan.Node]:
    """The plan nodes whose nodes of the graph a fixpoint is made from."""
    found = []
    for clause in program.clauses:
        if is_closed(clause.body):
            found.append(clause.body)
            continue
        _, base = _taken_apart(clause.body)
        found += [below(side).base for side in base.inputs() if is_closed(side)]
    return found


def build(node: plan.Fixpoint, program: Program, compiler: Compiler) -> Node:
    """The node of the graph that computes all relations of a fixpoint."""
    builder = _Builder(node, program, compiler)
    for clause in program.clauses:
        builder.add(clause)
    called = [f for clause in program.clauses for f in builder.called(clause.body)]
    called += [f for best in program.best if best is not None for f in (best.by, best.value)]
    circuit = builder.circuit
    ways = tuple(builder.signature(clause) for clause in program.clauses)
    return compiler.graph.node(
        ("fixpoint", node.names, node.max_rounds, program.best, ways, circuit.wiring()),
        tuple(builder.ports),
        lambda: Fixpoint(circuit),
        plan=node,
        functions=called,
    )


class _Builder:
    def __init__(self, node: plan.Fixpoint, program: Program, compiler: Compiler) -> None:
        self._compiler = compiler
        self._premises: dict[Any, int] = {}
        self.ports: list[Node] = []
        self.circuit = Circuit(list(map(_facts, program.best)), node.names, node.max_rounds)

    def add(self, clause: Clause) -> None:
        """The operator of a clause."""
        if is_closed(clause.body):
            port = self._port(self._compiler.made[id(clause.body)])
            self.circuit.given.append((Given(clause.head), port))
            return
        chain, base = _taken_apart(clause.body)
        run = chained(chain)
        if isinstance(base, plan.Recursive):
            self.circuit.copied.append(Copied(clause.head, base.index, run))
        else:
            assert isinstance(base, plan.Join | plan.Product | plan.AntiJoin)
            self._add_join(clause.head, base, run)

    def called(self, body: plan.Node) -> list[Function]:
        """The callables that the operator of a clause calls."""
        if is_closed(body):
            return []
        chain, base = _taken_apart(body)
        parts = [*chain, base]
        for source in base.inputs():
            if not is_closed(source):
                parts += _taken_apart(source)[0]
        return [function for part in parts for function in functions(part)]

    def signature(self, clause: Clause) -> Any:
        """What a clause does, apart from what it reads of inputs."""
        if is_closed(clause.body):
            return ()
        chain, base = _taken_apart(clause.body)
        read = [part for source in base.inputs() for part in _open_parts(source)]
        return tuple(map(signature, [*chain, base, *read]))

    def _add_join(
        self, head: int, join: plan.Join | plan.Product | plan.AntiJoin, run: Any
    ) -> None:
        match = plan.Match() if isinstance(join, plan.Product) else join.match
        left_key, right_key = sides(match)
        left = self._side(join, join.left, left_key, bindings(join.left))
        right = self._side(join, join.right, right_key, 1)
        left_index, right_index = self._index(left), self._index(right)
        for index, (_, steps), other in (
            (left_index, left_key, right_index),
            (right_index, right_key, left_index),
        ):
            if not all(step.is_key for step in steps):
                index.meets(other)
        way: Paired | Lone
        if isinstance(join, plan.AntiJoin):
            assert left.premise is not None
            fits, whole = fitting(join)
            premise = self.circuit.premises[left.premise]
            since = self._since(left)
            assert since is not None
            way = Lone(head, premise, right_index, fits, whole, run, since)
        else:
            pairs = plain_join(join, match, left_index, right_index)
            since_left, since_right = self._since(left), self._since(right)
            way = Paired(head, pairs, run, since_left, since_right, bindings(join.left))
        self.circuit.paired.append((way, left, right))

    def _side(self, join: plan.Node, source: plan.Node, key: KeySide, arguments: int) -> Side:
        if is_closed(source):
            compiler = self._compiler
            node = compiler.index(join, compiler.below(source), key, arguments)
            return Side(None, self._port(node))
        return Side(self._premise(source, key, arguments), None)

    def _premise(self, source: plan.Node, key: KeySide, arguments: int) -> int:
        chain, base = _taken_apart(source)
        assert isinstance(base, plan.Recursive)
        told = (base.index, key, arguments, *map(signature, chain))
        if told not in self._premises:
            make, rows = self._compiler.key_maker(Below(chain, base), key, arguments)
            facts = self.circuit.facts[base.index]
            every = lambda: rows([(row, 1) for row in facts.rounds])  # noqa: E731
            index_by = IndexBy(None, itself, every, make())
            self._premises[told] = len(self.circuit.premises)
            self.circuit.premises.append(Premise(base.index, index_by))
        return self._premises[told]

    def _port(self, node: Node) -> int:
        if node not in self.ports:
            self.ports.append(node)
        return self.ports.index(node)

    def _index(self, side: Side) -> IndexBy:
        if side.premise is not None:
            return self.circuit.premises[side.premise].index_by
        assert side.port is not None
        index: IndexBy = self.ports[side.port].operator
        return index

    def _since(self, side: Side) -> Callable[[Any], int] | None:
        if side.premise is None:
            return None
        return self.circuit.facts[self.circuit.premises[side.premise].relation].since


def _facts(best: plan.Best | None) -> Facts:
    if best is None:
        return Facts()
    return BestFacts(by=spread(best.by, 1), value=spread(best.value, 1), largest=best.largest)


def _taken_apart(node: plan.Node) -> tuple[tuple[plan.Node, ...], plan.Node]:
    """A chain of linear nodes, the first to see a row first, and what it is over."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR):
        chain.append(node)
        node = node.input
    return tuple(chain[::-1]), node


def _open_parts(source: plan.Node) -> Sequence[plan.Node]:
    if is_closed(source):
        return ()
    chain, base = _taken_apart(source)
    return (*chain, base)

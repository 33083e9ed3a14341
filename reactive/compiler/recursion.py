"""From the clauses of a fixpoint to its operator, and the nodes of the graph that feed it.

    reach <- edges                              port 0: the node of edges
    reach <- select(join(reach, edges))         port 1: the index of edges; premise 0: reach by key

What reads inputs alone is part of the graph like any other query, and shared with it. What reads a
recursive relation is inside the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.plans.clauses import Clause, Program, is_closed
from optimizer.plans.early import residual
from optimizer.plans.properties import bindings, is_set, row_shape, shapes, tables
from optimizer.traverse import functions
from reactive.collections.index import itself
from reactive.collections.row_index import RowIndex
from reactive.compiler import physical
from reactive.dataflow.node import Node
from reactive.operators.fixpoint.best import BestFacts
from reactive.operators.fixpoint.facts import Facts
from reactive.operators.fixpoint.fixpoint import Circuit
from reactive.operators.fixpoint.loops import CopyLoops, PairLoops
from reactive.operators.fixpoint.premise import FilteredKeys, Premise
from reactive.operators.fixpoint.ways import Copied, Given, Lone, Paired
from reactive.operators.fuse import chained, keys_of
from reactive.operators.generated.derived import Way
from reactive.operators.index_by import IndexBy
from reactive.operators.key_by import KeyBy
from reactive.operators.loops import Below
from reactive.operators.plain import Side as KeySide
from reactive.operators.plain import (
    chain_over,
    fitting,
    plain_join,
    side_key,
    sides,
    signature,
    spread,
)


def circuit_of(
    program: Program, of: physical.Fixpoint, inputs: Sequence[Node], *, generate: bool
) -> tuple[Circuit, list[Node], list[Function]]:
    """The circuit of a recursion, the nodes of the graph that feed it, each once, and the callables
    in it. `inputs` are what its clauses read, in their order."""
    builder = _Builder(program, of, inputs, generate=generate)
    for clause in program.clauses:
        builder.add(clause)
    called = [f for rule in of.rules for op in rule for f in functions(op.node)]
    called += [f for best in program.best if best is not None for f in (best.by, best.value)]
    return builder.circuit, builder.ports, called


class _Builder:
    def __init__(
        self, program: Program, of: physical.Fixpoint, inputs: Sequence[Node], *, generate: bool
    ) -> None:
        self._generates = generate
        self._inputs = iter(inputs)
        self._premises: dict[Any, Premise] = {}
        self._ports_of: dict[int, int] = {}
        self.ports: list[Node] = []
        self.circuit = Circuit(list(map(_facts, program.best)), of.names, of.max_rounds)

    def add(self, clause: Clause) -> None:
        """The operator of a clause."""
        circuit = self.circuit
        if is_closed(clause.body):
            port = self._port(next(self._inputs))
            circuit.facts[clause.head].owes |= not all(t.stored for t in tables(clause.body))
            circuit.fed.append((Given(clause.head), port))
            return
        chain, base = chain_over(clause.body)
        if isinstance(base, plan.Recursive):
            loops = CopyLoops(Below(chain, base)) if self._reads([*chain]) else None
            circuit.left.append((Copied(clause.head, chained(chain), loops), base.index))
        elif isinstance(base, plan.AntiJoin):
            self._add_lone(clause.head, base, chained(chain))
        else:
            assert isinstance(base, plan.Join | plan.Product)
            self._add_pairs(clause.head, base, chain)

    def _add_lone(self, head: int, join: plan.AntiJoin, run: Any) -> None:
        left, right = self._sides(join)
        assert isinstance(left, Premise) and isinstance(right, IndexBy)
        way = Lone(head, run, (left, right), *fitting(join))
        self._connect(way, left, right)

    def _add_pairs(
        self, head: int, join: plan.Join | plan.Product, chain: tuple[plan.Node, ...]
    ) -> None:
        left, right = self._sides(join)
        indexes = [s.index_by if isinstance(s, Premise) else s for s in (left, right)]
        loops = (
            self._loops(join, chain, left, right, is_left=True),
            self._loops(join, chain, right, left, is_left=False),
        )
        way = Paired(
            head,
            plain_join(join, *indexes),
            chained(chain),
            (left, right),
            loops,
            bindings(join.left),
            is_set=all(is_set(side) for side in join.inputs() if is_closed(side)),
        )
        self._connect(way, left, right)

    def _connect(
        self, way: Paired | Lone, left: Premise | IndexBy, right: Premise | IndexBy
    ) -> None:
        """Lead relations and inputs into a way."""
        circuit = self.circuit
        if isinstance(left, Premise):
            circuit.left.append((way, circuit.facts.index(left.facts)))
        else:
            circuit.fed.append((way, self._ports_of[id(left)]))
        if isinstance(right, IndexBy):
            circuit.fed.append((way, self._ports_of[id(right)]))
        elif isinstance(way, Paired):
            circuit.right.append((way, circuit.facts.index(right.facts)))

    def _sides(
        self, join: plan.Join | plan.Product | plan.AntiJoin
    ) -> tuple[Premise | IndexBy, Premise | IndexBy]:
        """The sides of a join, which know of each other."""
        keys = sides(join)
        follows = not (is_closed(join.left) or is_closed(join.right))
        left = self._side(join.left, keys[0], bindings(join.left), follows=follows)
        right = self._side(join.right, keys[1], 1, follows=follows)
        first, second = (s.index_by if isinstance(s, Premise) else s for s in (left, right))
        if not all(step.is_key for step in keys[0][1]):
            first.meets(second)
        if not all(step.is_key for step in keys[1][1]):
            second.meets(first)
        return left, right

    def _side(
        self, source: plan.Node, key: KeySide, arguments: int, *, follows: bool
    ) -> Premise | IndexBy:
        if not is_closed(source):
            return self._premise(source, key, arguments, follows=follows)
        node = next(self._inputs)
        index: IndexBy = node.operator
        port = self._ports_of[id(index)] = self._port(node)
        self.circuit.indexes[port] = index
        return index

    def _premise(
        self, source: plan.Node, key: KeySide, arguments: int, *, follows: bool
    ) -> Premise:
        chain, base = chain_over(source)
        assert isinstance(base, plan.Recursive)
        told = (base.index, key, arguments, follows, *map(signature, chain))
        if told not in self._premises:
            make, rows = self._key_maker(Below(chain, base), key, arguments)
            facts = self.circuit.facts[base.index]
            every = lambda: rows([(row, 1) for row in facts.rounds])  # noqa: E731
            index_by = IndexBy(
                None, itself, None if follows else every, make(), RowIndex(), keeps_rejected=follows
            )
            premise = self._premises[told] = Premise(facts, index_by, follows=follows)
            self.circuit.premises.append(premise)
        return self._premises[told]

    def _key_maker(self, below: Below, key: KeySide, arguments: int) -> tuple[Any, Any]:
        """How to make what keys the rows of a relation below wheres, and how to filter them."""
        if self._reads(below.chain):
            return keys_of(below, key, arguments, generate=self._generates)
        run = chained(below.chain)
        return lambda: FilteredKeys(run, KeyBy(side_key(key, arguments))), run

    def _loops(
        self,
        join: plan.Join | plan.Product,
        chain: tuple[plan.Node, ...],
        mine: Premise | IndexBy,
        other: Premise | IndexBy,
        *,
        is_left: bool,
    ) -> PairLoops | None:
        """The generated loops of a side, if it is recursive and all that they call was read."""
        source = join.left if is_left else join.right
        below, base = chain_over(source)
        key, steps = sides(join)[not is_left]
        rest = residual(join)
        called = [f for part in (*below, *chain) for f in functions(part)]
        called += [f for f in (key, rest, *(s.function for s in steps)) if f is not None]
        if not isinstance(mine, Premise) or not self._all_read(called):
            return None
        assert key is None or isinstance(key, Lifted)
        assert rest is None or isinstance(rest, Lifted)
        of = (*shapes(join.left), row_shape(join.right))
        way = Way(below, (key, steps), is_left, len(of), bindings(base), of, rest, chain)
        return PairLoops(way, mine, other)

    def _all_read(self, called: Sequence[Function]) -> bool:
        return self._generates and all(isinstance(f, Lifted) for f in called)

    def _reads(self, parts: Sequence[plan.Node]) -> bool:
        return self._all_read([f for part in parts for f in functions(part)])

    def _port(self, node: Node) -> int:
        if node not in self.ports:
            self.ports.append(node)
        return self.ports.index(node)


def _facts(best: plan.Best | None) -> Facts:
    if best is None:
        return Facts()
    return BestFacts(by=spread(best.by, 1), value=spread(best.value, 1), largest=best.largest)

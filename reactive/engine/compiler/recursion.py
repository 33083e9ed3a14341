"""Operators of recursions and of nests, built from clauses and from flat relations.

`circuit_of` builds the operator of a fixpoint from its clauses.

    reach <- edges                              port 0: the node of edges
    reach <- select(join(reach, edges))         port 1: the index of edges; recursive index 0: reach
                                                by key

Nodes that read only inputs are part of the graph like any other query, and shared with it. Nodes
that read a recursive relation are inside the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from optimizer import plan
from optimizer.expr import Function, Lifted
from optimizer.plans.clauses import Clause, Program, is_closed, partners_of
from optimizer.plans.properties import bindings, is_set, row_shape, shapes, tables
from optimizer.plans.shredding import ShreddedLevel, levels
from optimizer.plans.side_conditions import residual
from optimizer.traverse import functions
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.collections.index import itself, match_key
from reactive.engine.collections.row_index import RowIndex
from reactive.engine.collections.zset import Row
from reactive.engine.compiler import lattices, physical
from reactive.engine.compiler.physical import PhysicalNest
from reactive.engine.dataflow.node import Node, is_deferred
from reactive.engine.operators.fixpoint.delta_rules import (
    BaseRule,
    BinaryRule,
    Circuit,
    CountingRule,
    GroupedRule,
    NegatedRule,
    Negating,
    UnaryRule,
)
from reactive.engine.operators.fixpoint.group_relation import GroupRelation
from reactive.engine.operators.fixpoint.loops import (
    BinaryLoops,
    FilteredKeys,
    Partners,
    RecursiveIndex,
    UnaryLoops,
)
from reactive.engine.operators.fixpoint.recursive_relation import (
    RecursiveRelation,
    SubsumingRelation,
)
from reactive.engine.operators.fuse import chain_runner, make_keyer
from reactive.engine.operators.index_by import IndexBy, KeyedStream
from reactive.engine.operators.loops.join_loops import KeyLoop
from reactive.engine.operators.loops.nests import DeltaRule
from reactive.engine.operators.plain import (
    PipelineSource,
    can_nest,
    chain_over,
    count_nested,
    group_of_row,
    match_predicates,
    plain_join,
    side_key,
    sides,
    signature,
    spread_bindings,
)
from reactive.engine.operators.plain import Side as KeySide
from reactive.engine.operators.tree import tree as trees
from reactive.engine.operators.tree.levels import Level, RowOrder
from reactive.engine.remote import remote_tree
from reactive.engine.remote.remote_operator import RemoteOperator


def circuit_of(
    program: Program,
    of: physical.PhysicalFixpoint,
    inputs: Sequence[Node],
    *,
    generate: bool,
    strict: bool = False,
) -> tuple[Circuit, list[Node], list[Function]]:
    """Return the circuit of a recursion, its input nodes, each once, and its callables.

    `inputs` are the nodes that its clauses read, in their order. `strict` checks what the callables
    of lattices return.
    """
    program = lattices.with_lattices(program)
    relations = _relations_of(program, of.names if strict else None)
    builder = _Builder(relations, of, inputs, generate=generate)
    builder.circuit.clauses = program.clauses
    builder.circuit.strict = strict
    reading = lattices.reading_clauses(program)
    for clause, reads_values in zip(program.clauses, reading, strict=True):
        builder.add(clause)
        if reads_values:
            builder.circuit.value_rules.add(id(builder.circuit.rules[-1]))
    at_hand = [not (node.forgets or is_deferred(node)) for node in builder.ports]
    builder.circuit.begins_anew = all(at_hand)
    called = [f for rule in of.rules for op in rule for f in functions(op.node)]
    for best in program.best:
        if isinstance(best, plan.GroupOf):
            called += [f for part in (best.aggregate, *best.shown) for f in functions(part)]
        elif best is not None:
            called += [best.by, best.value]
        if isinstance(best, plan.JoinedValue):
            called += best.functions
    return builder.circuit, builder.ports, called


class _Builder:
    """Builds the circuit of a recursion: a rule per clause, and the indexes that rules share."""

    def __init__(
        self,
        relations: list[RecursiveRelation],
        of: physical.PhysicalFixpoint,
        inputs: Sequence[Node],
        *,
        generate: bool,
    ) -> None:
        self._generates = generate
        self._inputs = iter(inputs)
        self._premises: dict[Any, RecursiveIndex] = {}
        self._ports_of: dict[int, int] = {}
        self.ports: list[Node] = []
        self.circuit = Circuit(relations, of.names, of.max_rounds)

    def add(self, clause: Clause) -> None:
        """Add the operator of a clause."""
        circuit = self.circuit
        if is_closed(clause.body):
            node = next(self._inputs)
            port = self._port(node)
            circuit.all_rows[port] = lambda: node.graph.contents(node, shown=False)
            circuit.relations[clause.head].may_be_negative |= not all(
                t.stored for t in tables(clause.body)
            )
            circuit.rules.append(BaseRule(clause.head))
            circuit.fed.append((circuit.rules[-1], port))
            return
        chain, base = chain_over(clause.body)
        if isinstance(base, plan.Recursive):
            circuit.rules.append(
                UnaryRule(clause.head, chain_runner(chain), self._unary(chain, base))
            )
            circuit.left.append((circuit.rules[-1], base.index))
        elif isinstance(base, plan.AntiJoin):
            self._add_negated(clause.head, base, chain)
        elif isinstance(base, plan.Aggregate):
            self._add_grouped(clause.head, base, chain_runner(chain))
        else:
            assert isinstance(base, plan.Join | plan.Product)
            self._add_binary(clause.head, base, chain)

    def _unary(self, chain: tuple[plan.Node, ...], base: plan.Node) -> UnaryLoops | None:
        """Return the generated loops of a chain; None if they cannot be generated."""
        if self._reads([*chain]) and can_nest(count_nested(chain)):
            return UnaryLoops(PipelineSource(chain, base))
        return None

    def _add_negated(self, head: int, join: plan.AntiJoin, chain: tuple[plan.Node, ...]) -> None:
        partners = self._partners(join)
        loops = self._unary(chain, join) if chain else None
        rule = NegatedRule(head, chain_runner(chain), partners, loops)
        self._connect(rule, partners.left, partners.right)

    def _add_grouped(self, head: int, node: plan.Aggregate, run: Any) -> None:
        partners = self._partners(partners_of(node))
        rule = GroupedRule(head, run, partners, group_of_row(node))
        self._connect(rule, partners.left, partners.right)

    def _partners(self, join: plan.AntiJoin) -> Partners:
        """Return the two sides of an anti-join: the recursive rows, and the index they look up."""
        left, right = self._sides(join)
        assert isinstance(left, RecursiveIndex) and isinstance(right, IndexBy)
        by_keys = residual(join) is None
        return Partners((left, right), *match_predicates(join), keys_decide=by_keys)

    def _add_binary(
        self, head: int, join: plan.Join | plan.Product, chain: tuple[plan.Node, ...]
    ) -> None:
        """Add a rule that joins two sides, of which at least one is recursive, to the circuit."""
        left, right = self._sides(join)
        indexes = [s.index_by if isinstance(s, RecursiveIndex) else s for s in (left, right)]
        counts = isinstance(self.circuit.relations[head], GroupRelation)
        loops = (
            None if counts else self._loops(join, chain, left, right, is_left=True),
            None if counts else self._loops(join, chain, right, left, is_left=False),
        )
        rule = (CountingRule if counts else BinaryRule)(
            head,
            plain_join(join, indexes[0], indexes[1]),
            chain_runner(chain),
            (left, right),
            loops,
            bindings(join.left),
            is_set=all(is_set(side) for side in join.inputs() if is_closed(side)),
        )
        self._connect(rule, left, right)

    def _connect(
        self,
        rule: BinaryRule | Negating,
        left: RecursiveIndex | IndexBy,
        right: RecursiveIndex | IndexBy,
    ) -> None:
        """Connect a delta rule to the relations and inputs that it reads."""
        circuit = self.circuit
        circuit.rules.append(rule)
        if isinstance(left, RecursiveIndex):
            circuit.left.append((rule, circuit.relations.index(left.relation)))
        else:
            circuit.fed.append((rule, self._ports_of[id(left)]))
        if isinstance(right, IndexBy):
            circuit.fed.append((rule, self._ports_of[id(right)]))
        elif isinstance(rule, BinaryRule):
            circuit.right.append((rule, circuit.relations.index(right.relation)))

    def _sides(
        self, join: plan.Join | plan.Product | plan.AntiJoin
    ) -> tuple[RecursiveIndex | IndexBy, RecursiveIndex | IndexBy]:
        """Return the sides of a join, connected to each other."""
        keys = sides(join)
        follows = not (is_closed(join.left) or is_closed(join.right))
        left = self._side(join.left, keys[0], bindings(join.left), follows=follows)
        right = self._side(join.right, keys[1], 1, follows=follows)
        first, second = (s.index_by if isinstance(s, RecursiveIndex) else s for s in (left, right))
        if not all(step.is_key for step in keys[0][1]):
            first.meets(second)
        if not all(step.is_key for step in keys[1][1]):
            second.meets(first)
        return left, right

    def _side(
        self, source: plan.Node, key: KeySide, arguments: int, *, follows: bool
    ) -> RecursiveIndex | IndexBy:
        """Return the index of one side of a join: the next input's, or a recursive one."""
        if not is_closed(source):
            return self._recursive_index(source, key, arguments, follows=follows)
        node = next(self._inputs)
        index: IndexBy = node.operator
        port = self._ports_of[id(index)] = self._port(node)
        self.circuit.indexes[port] = index
        return index

    def _recursive_index(
        self, source: plan.Node, key: KeySide, arguments: int, *, follows: bool
    ) -> RecursiveIndex:
        """Return the index of a recursive relation by a key; rules with equal keys share it."""
        chain, base = chain_over(source)
        assert isinstance(base, plan.Recursive)
        told = (base.index, key, arguments, follows, *map(signature, chain))
        if told not in self._premises:
            make, rows = self._key_maker(PipelineSource(chain, base), key, arguments)
            relations = self.circuit.relations[base.index]
            every = lambda: rows([(row, 1) for row in relations.rounds])  # noqa: E731
            keyed = make()
            if isinstance(keyed, KeyLoop):
                keyed.make_batch()  # the rows of a round are a batch
            index_by = IndexBy(
                None, itself, None if follows else every, keyed, RowIndex(), keeps_filtered=follows
            )
            recursive_index = self._premises[told] = RecursiveIndex(
                relations, index_by, follows=follows
            )
            self.circuit.recursive_indexes.append(recursive_index)
        return self._premises[told]

    def _key_maker(self, below: PipelineSource, key: KeySide, arguments: int) -> tuple[Any, Any]:
        """Return the factory of the loop that keys the rows of a relation, and its filter."""
        if self._reads(below.chain):
            return make_keyer(below, key, arguments, generate=self._generates)
        run = chain_runner(below.chain)
        return lambda: FilteredKeys(run, KeyedStream(side_key(key, arguments))), run

    def _loops(
        self,
        join: plan.Join | plan.Product,
        chain: tuple[plan.Node, ...],
        mine: RecursiveIndex | IndexBy,
        other: RecursiveIndex | IndexBy,
        *,
        is_left: bool,
    ) -> BinaryLoops | None:
        """Return the generated loops of a side.

        Return None if the side is not recursive, a callable is opaque, or loops nest too
        deeply.
        """
        source = join.left if is_left else join.right
        below, base = chain_over(source)
        key, steps = sides(join)[not is_left]
        rest = residual(join)
        called = [f for part in (*below, *chain) for f in functions(part)]
        called += [f for f in (key, rest, *(s.function for s in steps)) if f is not None]
        if not isinstance(mine, RecursiveIndex) or not self._all_read(called):
            return None
        if not can_nest(2 + count_nested(chain)):
            return None
        assert key is None or isinstance(key, Lifted)
        assert rest is None or isinstance(rest, Lifted)
        of = (*shapes(join.left), row_shape(join.right))
        rule = DeltaRule(below, (key, steps), is_left, len(of), bindings(base), of, rest, chain)
        return BinaryLoops(rule, mine, other)

    def _all_read(self, called: Sequence[Function]) -> bool:
        return self._generates and all(isinstance(f, Lifted) for f in called)

    def _reads(self, parts: Sequence[plan.Node]) -> bool:
        return self._all_read([f for part in parts for f in functions(part)])

    def _port(self, node: Node) -> int:
        """Return the number of the port of an input node, which is added if it is new."""
        if node not in self.ports:
            self.ports.append(node)
        return self.ports.index(node)


def _relations_of(program: Program, checked: Sequence[str] | None) -> list[RecursiveRelation]:
    """Return the empty relations of a recursion.

    `checked` are their names if the laws of lattices are checked.
    """
    if lattices.has_lattice(program):
        return [*lattices.rising_relations(program, checked)]
    return list(map(_relation_of, program.best))


def _relation_of(best: Any) -> RecursiveRelation:
    """Return an empty relation, which keeps only the best rows per key if `best` is given."""
    if best is None:
        return RecursiveRelation()
    return SubsumingRelation(
        by=spread_bindings(best.by, 1), value=spread_bindings(best.value, 1), largest=best.largest
    )


# From a shredded nest to the tree that stores it.


def tree_of(
    node: PhysicalNest,
    indexes: Sequence[IndexBy],
    wiring: Sequence[int],
    inside: Callable[[], AbstractContextManager[None]],
) -> trees.Tree:
    """Return the tree over the indexes of a nest; `wiring` has the port of each index.

    Ordered rows of a level are read by their label, and stored by the tree, not by the index.
    """
    top_places = node.places[0]
    places = ((top_places[0], *top_places), *node.places[1:])
    rows = [(each.index, each.index, each.handle) for each in indexes]
    return trees.Tree(_make_tree_levels(node, places, rows, wiring), inside, node.large)


def tree_elsewhere(
    node: PhysicalNest,
    operators: Sequence[RemoteOperator],
    wiring: Sequence[int],
    inside: Callable[[], AbstractContextManager[None]],
) -> remote_tree.RemoteTree:
    """Return the tree over parts that store the levels elsewhere."""
    key, parts = _make_view_key(node), [remote_tree.LevelRows(operator) for operator in operators]
    by_key = remote_tree.LevelRows(operators[node.places[0][0]], key)
    rows = [(part, part, itself) for part in parts]
    rows[node.places[0][0]] = by_key, parts[node.places[0][0]], itself
    by_port = dict(zip(wiring, parts, strict=True))
    made = _make_tree_levels(node, node.places, rows, wiring)
    ports = [by_port[port] for port in range(len(by_port))]
    every = partial(_find_rows_reader, node, operators)
    return remote_tree.RemoteTree(made, ports, inside, every, node.large)


def _find_rows_reader(
    node: PhysicalNest, operators: Sequence[RemoteOperator]
) -> remote_tree.AllRows | None:
    """Return the function that reads all rows of a remote nest in one call; None if it cannot."""
    found: remote_tree.AllRows | None = None
    if node.elsewhere is not None:
        found = node.elsewhere.every(operators)
    return found


def _make_tree_levels(
    node: PhysicalNest,
    places: Sequence[Sequence[int]],
    indexes: Sequence[tuple[Any, Any, Callable[[Row], Any]]],
    wiring: Sequence[int],
) -> list[Level]:
    """Return the levels: each has its rows at its first place, and its inner levels at the others.

    An index is given as three items: the rows of a level, the look-up of outer rows, and the
    function that identifies rows.
    """
    every = levels(node.top)
    namings: list[Any] = [node.nesting]
    made: list[Level] = []
    for number, level in enumerate(every):
        first = places[number][0]
        roots = 0 if level.kind is None else level.kind.roots  # type: ignore[attr-defined]
        rows, others, handle = indexes[first]
        made.append(
            Level(
                number,
                namings[number],
                level.kind,
                is_made=level.is_made,
                width=_width(level),
                rows=None if level.order is not None else rows if number == 0 else others,
                handle=handle,
                port=wiring[first],
                label=None if level.label is None else _label(level.label, level),
                order=_order(level),
            )
        )
        namings += [namings[number].levels[each.place - roots] for each in level.inside]
    below: Iterator[Level] = iter(made[1:])
    for level, own, found in zip(every, made, places, strict=True):
        for each, place in zip(level.inside, found[1:], strict=True):
            under = _label(level.key(each.key), level)
            own.put(next(below), each.place, indexes[place][1], under)
    return made


def _make_view_key(node: PhysicalNest) -> Callable[[Row], Any]:
    """Return the function from a row of the top level to the key of the view."""
    top, key = node.top, node.nesting.key
    if not top.is_made and bindings(top.rows) == 1:
        return lambda row: key((row,))
    width = _width(top)
    return lambda row: key(row[:width])


def _width(level: ShreddedLevel) -> int:
    """Return the number of parts of a row."""
    if not level.is_made:
        return bindings(level.rows)
    if level.kind is None:
        return 1
    return len(level.kind._fields) - len(level.inside)  # type: ignore[attr-defined]


def orders(node: PhysicalNest) -> list[Function]:
    """Return the callables of the sort keys."""
    return [level.order for level in levels(node.top) if level.order is not None]


def _label(function: Lifted, level: ShreddedLevel) -> Callable[[Row], Any]:
    """Return the function from a row to its label."""
    call = _make_row_callable(function, level)
    return lambda row: match_key(call(row))


def _order(level: ShreddedLevel) -> RowOrder | None:
    """Return the order of the rows of a label; None if the level has no order."""
    if level.order is None:
        return None
    keys, sequence = _make_row_callable(level.order, level), level.sequence
    assert sequence is not None
    standing, is_held_whole = sequence.standing(), bool(level.inside) and not level.is_made
    tie = None if is_held_whole else sequence.tie
    return RowOrder(lambda row: standing(keys(row)), tie, descending=sequence.descending)


def _make_row_callable(function: Lifted, level: ShreddedLevel) -> Callable[[Row], Any]:
    """Return a callable of the bindings of a row as a callable of the row."""
    call = compiled_of(function)
    return call if level.is_made or bindings(level.rows) == 1 else lambda row: call(*row)

"""Queries that are made late over tables that are not stored: what they can begin with.

    where f              held by a view        late query, as it is compiled
      table t       -->                  -->     select g
    (rows have flowed)                             rows of view 'v'

The rows of such a table are gone. But operators with state hold what became of them, and so do
views of those without. The largest parts of a query of which all rows are held stand in it as
`pipeline.Known`, whose node of the graph is that of the part, which is there already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from optimizer import plan
from optimizer.plans import explain
from optimizer.plans.properties import free, is_set, nodes, shapes
from optimizer.record import record
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import Interned, rebuilt, with_inputs
from reactive.engine.compiler import equality_checks
from reactive.engine.dataflow.held import knows
from reactive.engine.operators.plain import LINEAR
from reactive.errors import TableError

if TYPE_CHECKING:
    from reactive.engine.compiler.queries import Queries
    from reactive.engine.dataflow.channel import Channel
    from reactive.engine.dataflow.node import Node


T = TypeVar("T")


class Lost(TableError):
    """The rows of a table that is not stored have flowed already."""


@record
class Part:
    """A part of a query, and the node of the graph that computes it."""

    plan: plan.Node
    node: Node


def over(
    queries: Queries,
    written: plan.Node,
    channel: Channel,
    act: Callable[[Node], T],
    *,
    complete: bool,
) -> T:
    """What is done with the node that computes a query, and whose rows are known if `complete`.

    `channel` is told of the plan that it is compiled from.

    Raises
    ------
    TableError: it reads rows that nobody holds.
    """

    def if_known(source: Node) -> T:
        if complete and queries.graph.forgets and not knows(source):
            raise Lost
        return act(source)

    while True:
        channel.base = queries.base(written)
        try:
            return queries.over(channel.base, if_known)
        except Lost:
            channel.base = _Late(queries).over(written)
            return queries.over(channel.base, act)
        except Exception as error:
            if not equality_checks.check_again(queries, written, error):
                raise


class _Late:
    """Looks for the parts of a plan that are held."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._interned = Interned()
        self._shown: dict[int, Node] = {}  # leaves by the `id` of their plan, read and unread
        for leaf in queries.graph.leaves():
            if not leaf.deferred and knows(leaf.inputs[0]):
                written = leaf.leaf.plan
                for found in (written, rebuilt(written, read_callables)):
                    self._shown.setdefault(id(self._interned.all(found)), leaf)

    def over(self, written: plan.Node) -> plan.Node:
        """The plan over its parts that are held."""
        root = self._interned.all(written)
        lost = self._lost(root)
        made: dict[int, plan.Node] = {}
        read: dict[int, plan.Node] = {}
        try:
            for node in nodes(root):
                inputs = [read[id(source)] for source in node.inputs()]
                read[id(node)] = self._interned.all(read_callables(with_inputs(node, inputs)))
                known = self._known(node, read[id(node)]) if id(node) in lost else None
                made[id(node)] = known or with_inputs(node, [made[id(s)] for s in node.inputs()])
        finally:
            self._queries.graph.sweep()
        self._check(made[id(root)])
        return made[id(root)]

    def _lost(self, root: plan.Node) -> set[int]:
        """The nodes, by their `id`, that read a table whose rows are gone."""
        found: set[int] = set()
        for node in nodes(root):
            is_gone = isinstance(node, plan.Table) and self._is_gone(node)
            if is_gone or any(id(source) in found for source in node.inputs()):
                found.add(id(node))
        return found

    def _is_gone(self, table: plan.Table) -> bool:
        return not table.stored and not knows(self._queries.source(table))

    def _known(self, node: plan.Node, read: plan.Node) -> plan.Known | None:
        """What stands for a part; None if its rows are not held."""
        leaf = self._shown.get(id(node)) or self._shown.get(id(read))
        if leaf is not None:
            return _standing(Part(leaf.leaf.base, leaf.inputs[0]), str(leaf.leaf))
        if isinstance(node, (*LINEAR, plan.Table)) or free(node):
            return None  # which hold nothing, or mean nothing alone
        try:
            source = self._queries.node(node)
        except Lost:
            return None
        is_held = knows(source)
        return _standing(Part(node, source), explain.headline(node)) if is_held else None

    def _check(self, made: plan.Node) -> None:
        """Refuse a plan that still reads a table whose rows are gone."""
        lost = self._lost(made)
        for node in nodes(made):
            read = [s for s in node.inputs() if isinstance(s, plan.Table) and id(s) in lost]
            if read:
                raise TableError(_refusal(read[0].name, explain.headline(node)))
        if isinstance(made, plan.Table) and id(made) in lost:
            raise TableError(_refusal(made.name, explain.headline(made)))


def lost_of(table: str) -> Lost:
    """The error for a table whose rows are gone."""
    return Lost(_refusal(table, f"table {table}"))


def _refusal(table: str, part: str) -> str:
    return (
        f"table {table!r} is not stored, and rows have flowed already\n"
        f"  nobody holds what became of them in: {part}\n"
        "  query a view that was there before (view.relation), or make the table with stored=True"
    )


def _standing(part: Part, name: str) -> plan.Known:
    return plan.Known(
        number=-part.node.rank,
        name=name,
        key=None,
        stored=False,
        of=shapes(part.plan),
        is_set=is_set(part.plan),
        part=part,
    )

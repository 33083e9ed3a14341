"""From a plan to the nodes of the graph whose work is elsewhere.

moved         part over nodes of the graph     a part that has grown too large
on tables     part over tables, fed there      its rows do not come by
scan          rows of such tables              wanted in the process, by what cannot move
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.properties import nodes
from optimizer.traverse import functions
from reactive.dataflow.node import Node
from reactive.operators.plain import LINEAR, plain_operator, signature
from reactive.remote.fed import Source
from reactive.remote.parts import Part, Unmovable, part_of, scan_of
from reactive.remote.remote import Remote, RemoteOperator, Sources
from reactive.remote.window import Window

if TYPE_CHECKING:
    from reactive.compiler.compile import Compiler

Begin = Callable[[Part], Remote]


class Elsewhere:
    """What of a database's plans is elsewhere.

    Parameters
    ----------
    moved: nodes that are to run there, with how to begin that.
    distant: the tables whose rows are there, by their number.
    begin, scan: how to begin a part that reads such tables, and what fetches rows of them.
    """

    def __init__(
        self,
        moved: Mapping[plan.Node, Begin],
        distant: Mapping[int, Source],
        begin: Begin,
        scan: Begin,
    ) -> None:
        self.moved = moved
        self._distant = distant
        self._begin = begin
        self._scan = scan
        self._parts: dict[int, Part | None] = {}

    def __bool__(self) -> bool:
        return bool(self.moved or self._distant)

    def includes(self, node: plan.Node) -> bool:
        """Whether a node runs there."""
        if node in self.moved:
            return True
        return bool(self._distant) and self._is_fed(node)

    def holds(self, node: plan.Node) -> bool:
        """Whether the rows of a node are there, and it looks at one after the other."""
        while isinstance(node, LINEAR):
            node = node.input
        return isinstance(node, plan.Table) and node.number in self._distant

    def reaches(self, node: plan.Node) -> bool:
        """Whether a node reads something that is there."""
        return bool(self) and any(self.includes(n) or self.holds(n) for n in nodes(node))

    def inputs(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """What a node that runs there reads."""
        part = self._part(node)
        assert part is not None
        return part.inputs

    def reads(self, node: plan.Node) -> tuple[plan.Node, ...]:
        """What it reads that comes from the process."""
        return tuple(source for source in self.inputs(node) if not self.holds(source))

    def make(self, compiler: Compiler, node: plan.Node) -> Node:
        """The node of the graph for one that runs there."""
        part = self._part(node)
        assert part is not None
        made = self._made(compiler, node, part, self.moved.get(node, self._begin))
        if not isinstance(node, plan.OrderBy):
            return made
        make, called = plain_operator(node)
        return compiler.graph.node(signature(node), (made,), make, plan=node, functions=called)

    def scan(self, compiler: Compiler, node: plan.Node) -> Node:
        """The node of the graph for rows that are there, and are wanted here."""
        return self._made(compiler, node, scan_of(node), self._scan)

    def _made(self, compiler: Compiler, node: plan.Node, part: Part, begin: Begin) -> Node:
        inputs, sources = [], {}
        chains: list[plan.Node] = []
        for place, source in enumerate(part.inputs):
            if self.holds(source):
                chain, table = _taken_apart(source)
                inputs.append(compiler.source(table))
                sources[place] = (self._distant[table.number], chain)
                chains += chain
            else:
                inputs.append(compiler.made[id(source)])
        return compiler.graph.node(
            ("remote", *map(signature, part.of), *map(signature, chains), len(sources)),
            tuple(inputs),
            lambda: _operator(part, begin, sources),
            plan=node,
            functions=[f for n in (*part.of, *chains) for f in functions(n)],
        )

    def _is_fed(self, node: plan.Node) -> bool:
        part = None if isinstance(node, LINEAR) else self._part(node)
        return part is not None and any(map(self.holds, part.inputs))

    def _part(self, node: plan.Node) -> Part | None:
        """The part of a node of the plan that is compiled, if it can be one; made once."""
        if id(node) not in self._parts:
            try:
                self._parts[id(node)] = part_of(node)
            except Unmovable:
                self._parts[id(node)] = None
        return self._parts[id(node)]


def _operator(part: Part, begin: Begin, sources: Sources) -> RemoteOperator:
    remote = begin(part)
    kept = remote if part.window is None else Window(part.window, remote)
    return RemoteOperator(part, kept, sources)


def _taken_apart(node: plan.Node) -> tuple[tuple[plan.Node, ...], plan.Table]:
    """The table below a chain, and the chain, from the one that reads it on."""
    chain: list[plan.Node] = []
    while isinstance(node, LINEAR):
        chain.append(node)
        node = node.input
    assert isinstance(node, plan.Table)
    return tuple(reversed(chain)), node

"""Which nodes a commit steps, in their order; as generated code once it has proved to be in use.

    out_4 = step_4(delta_1)
    if out_4:
        out_5 = step_5(out_4)

The code does what `Schedule.walk` does, without asking each node for what it knows of itself.

State:  the inboxes of the nodes while a walk is under way.
Cost:   O(nodes that the changes may reach), a fraction of a microsecond each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from reactive.codegen import Values, build

if TYPE_CHECKING:
    from reactive.node import Node

OFTEN = 64
FEW = 24

Check = Callable[["Node"], None]


class Schedule:
    """The nodes that some sources reach, in topological order."""

    __slots__ = ("_runs", "nodes", "run", "sources")

    def __init__(self, sources: tuple[Node, ...], nodes: tuple[Node, ...]) -> None:
        self.sources = sources
        self.nodes = nodes
        self.run: Callable[..., None] | None = None
        """The generated code, once there is some: of the delta, where to note a step, the check."""
        self._runs = 0 if len(sources) == 1 else OFTEN + 1

    def step(
        self, changes: Sequence[tuple[Node, Sequence[Any]]], stepped: list[Node], check: Check
    ) -> None:
        """Step what the changes reach; `stepped` is told of each stateful node beforehand."""
        self.walk(changes, stepped, check)
        if self._runs <= OFTEN:
            self._runs += 1
            if self._runs == OFTEN:
                self.run = _generated(self.sources[0], self.nodes)

    def walk(
        self, changes: Sequence[tuple[Node, Sequence[Any]]], stepped: list[Node], check: Check
    ) -> None:
        """The same, one node after the other."""
        for source, delta in changes:
            source.send(delta)
        for node in self.nodes:
            if node.dirty:
                if node.guards:
                    check(node)
                if node.stateful:
                    stepped.append(node)
                out = node.step(*node.inbox)
                node.clear()
                if out:
                    node.send(out)

    def clear(self) -> None:
        """Empty the inboxes of a walk that was broken off."""
        for node in self.nodes:
            node.clear()


def _generated(source: Node, nodes: tuple[Node, ...]) -> Callable[..., None]:
    """The function for one source."""
    values = Values()
    reached = {source, *nodes}
    lines = ["def commit(out_0, append, check):"]
    names = {source: "out_0"}
    for number, node in enumerate(nodes, 1):
        given = [names[i] if i in reached else "()" for i in node.inputs]
        some = list(dict.fromkeys(name for name in given if name != "()"))
        names[node] = f"out_{number}"
        values.by_name |= {f"node_{number}": node, f"step_{number}": node.step}
        is_read = any(consumer in reached for consumer, _ in node.consumers)
        lines.append(f"    if {' or '.join(some)}:")
        lines.append(f"        node = node_{number}")
        lines += ["        if node.guards: check(node)"] * bool(node.guards)
        lines += ["        append(node)"] * node.stateful
        result = f"out_{number} = " if is_read else ""
        lines.append(f"        {result}step_{number}({', '.join(given)})")
        lines += ["    else:", f"        out_{number} = ()"] * is_read
    return build("commit", "\n".join([*lines, "    return None", ""]), values)

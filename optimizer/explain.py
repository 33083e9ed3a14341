"""Print a plan as a tree, one node a line, inputs indented below it.

>>> from optimizer.plan import Distinct, Table
>>> print(explain(Distinct(Table(1, "orders", None, True))))
distinct
  table orders
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from optimizer import plan

INDENTED = 40
"""Levels that are shown by indenting lines."""


class Explanation(str):
    """A plan in words: a text that shows itself as it is, at a prompt too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(node: plan.Node, remark: Callable[[plan.Node], str] = lambda node: "") -> Explanation:
    """The plan as text; `remark` may add something at the end of a node's line."""
    return Explanation("\n".join(_lines(node, remark)))


def headline(node: plan.Node) -> str:
    """One node in words, without its inputs."""
    return node.facts.headline(node)


def _indent(depth: int) -> str:
    """Two spaces a level; from `INDENTED` levels on their number, or a text would grow with the
    square of its depth."""
    return "  " * depth if depth <= INDENTED else f"{'  ' * INDENTED}({depth}) "


def _lines(root: plan.Node, remark: Callable[[plan.Node], str]) -> Iterator[str]:
    """The lines of a plan; a part that several nodes read is shown in full once."""
    shown: set[int] = set()
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        line = _indent(depth) + headline(node)
        if id(node) in shown and node.inputs():
            yield line + "  (as above)"
            continue
        shown.add(id(node))
        yield line + remark(node)
        waiting.extend((source, depth + 1) for source in reversed(node.inputs()))

"""What views and operators hold, and how much they had to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.explain import Explanation, explain, headline
from optimizer.properties import free
from reactive.node import Node

if TYPE_CHECKING:
    from reactive.database import Database


INDEXES = ("index", "key")


@dataclass(frozen=True, slots=True)
class Stats:
    """State and work of a view together with all operators below it, shared ones included.

    `rows` are rows and groups held, `bytes` the size of the containers that hold them, without
    the rows themselves; `touched` counts the rows that operators have looked at since they were
    made, and is the measure of work.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> view = words.distinct().materialize()
    >>> words.add_all(["be", "be"])
    >>> view.stats().rows, view.stats().commits
    (2, 1)
    """

    rows: int
    bytes: int
    commits: int
    touched: int


def stats_of(node: Node, commits: int) -> Stats:
    """Of a leaf of the graph."""
    return _sum(node.upstream(), commits)


def analyzed(root: plan.Node, db: Database) -> Explanation:
    """The plan as a tree, each line with the state and work of its operator."""

    optimized = db._optimized(root).plan
    made = db._compiled(optimized)

    def remark(node: plan.Node) -> str:
        if isinstance(node, plan.Table):
            return f"  [{db._tables[node.number]._held()} rows]"
        compiled = made.get(id(node))
        if compiled is None:
            return "  [in the recursion above]" if free(node) else "  [in the loop above]"
        if isinstance(node, plan.Component):
            return ""
        if compiled.is_remote:
            rows, size = compiled.operator.remote.footprint()
            return f"  [{compiled.operator.describe()}; {rows} rows, {size} bytes there]"
        total = _sum(_own(compiled), 0)
        return f"  [{total.rows} rows, {total.bytes} bytes, {total.touched} touched]"

    return explain(optimized, remark)


def generated(leaf: Node) -> Explanation:
    """The source of the generated functions that a view depends on."""
    parts = []
    for node in sorted(leaf.upstream(), key=lambda node: node.rank):
        source = getattr(node.operator, "source", None)
        if source is not None and node.plan is not None:
            below = node.inputs[0].plan
            is_index = _kind(node) in INDEXES and below is not None
            of = f"the keys of {headline(below)}, for " if is_index and below else ""
            parts.append(f"# {of}{headline(node.plan)}\n{source}")
    return Explanation("\n".join(parts).rstrip() or "# no generated code: plain operators run")


def _own(node: Node) -> list[Node]:
    """A node, and those that serve it alone or as an index."""
    parts = [part for part in node.inputs if _is_part(part)]
    return list(dict.fromkeys([node, *(n for part in parts for n in _own(part))]))


def _is_part(node: Node) -> bool:
    """Whether a node serves the operator above it, having no plan node of its own."""
    return _kind(node) in (*INDEXES, "fixpoint")


def _kind(node: Node) -> object:
    signature = node.signature
    return signature[0][0] if isinstance(signature, tuple) else None


def _sum(nodes: list[Node], commits: int) -> Stats:
    operators = [node.operator for node in nodes if node.operator is not None]
    sizes = [op.footprint() for op in operators if hasattr(op, "footprint")]
    rows, size = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
    return Stats(rows, size, commits, sum(op.touched for op in operators))

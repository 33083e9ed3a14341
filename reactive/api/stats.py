"""What views and operators hold, and how much they had to look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.plans.explain import Explanation, headline
from reactive.engine.compiler.physical import Physical
from reactive.engine.dataflow.node import Node

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """What one operator holds, and how much it has looked at.

    `name` is its line in the plan, after "keys for" of an index that serves it, or "rows of" of
    what a view keeps beside it.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> view = words.distinct().materialize()
    >>> words.add("be")
    >>> [(operator.name, operator.rows) for operator in view.stats().operators]
    [('distinct', 1)]
    """

    name: str
    rows: int
    bytes: int
    touched: int

    @property
    def bytes_per_row(self) -> float:
        """0 of none."""
        return self.bytes / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """State and work of a view together with all operators below it, shared ones included.

    `rows` are rows and groups held, `bytes` the size of the containers that hold them, without
    the rows themselves; `touched` counts the rows that operators have looked at since they were
    made, and is the measure of work. `operators` has the same of each that holds anything, the
    first to step first.

    >>> from reactive import Database
    >>> words = Database().table(str)
    >>> view = words.distinct().materialize()
    >>> words.add_all(["be", "be"])
    >>> view.stats().rows, view.stats().commits
    (1, 1)
    """

    rows: int
    bytes: int
    commits: int
    touched: int
    operators: tuple[OperatorStats, ...] = field(default=(), repr=False)


def stats_of(node: Node, commits: int) -> Stats:
    """Of a leaf of the graph."""
    nodes = [each for each in node.upstream() if each.operator is not None]
    held = [_held(each) for each in sorted(nodes, key=lambda each: each.order)]
    return Stats(
        sum(each.rows for each in held),
        sum(each.bytes for each in held),
        commits,
        sum(each.touched for each in held),
        tuple(each for each in held if each.rows or each.bytes),
    )


def _held(node: Node) -> OperatorStats:
    rows, size = node.operator.footprint() if hasattr(node.operator, "footprint") else (0, 0)
    name = "a relation" if node.plan is None else headline(node.plan)
    if node.leaf is not None:
        name = f"rows of {name}"
    elif node.gives_keys:
        name = f"keys for {name}"
    return OperatorStats(name, rows, size, node.operator.touched)


def analyzed(root: plan.Node, engine: Engine) -> Explanation:
    """The plan as it is run, each line with the state and work of its operator."""
    running, made = engine.queries.analyzed(root)
    kept = getattr(engine.journal, "kept_views", None)
    read = frozenset() if kept is None else kept.read_nodes()

    def remark(physical: Physical) -> str:
        node = made[id(physical)]
        if isinstance(node.plan, plan.Table) and not node.inputs:
            return f"  [{engine.table_of(node.plan)._held()} rows]"
        if node.is_remote:
            rows, size = node.operator.remote.footprint()
            return f"  [{node.operator.describe()}; {rows} rows, {size} bytes there]"
        held = _held(node)
        anew = getattr(node.operator, "evaluated", 0)
        often = f", {anew} times evaluated anew" if anew else ""
        often += ", state read from the store" if node.rank in read else ""
        return f"  [{held.rows} rows, {held.bytes} bytes, {held.touched} touched{often}]"

    drawing = running.drawing(remark)
    return Explanation(drawing.text(), drawing)


def generated(leaf: Node) -> Explanation:
    """The source of the generated functions that a view depends on."""
    parts = []
    for node in sorted(leaf.upstream(), key=lambda node: node.rank):
        source = getattr(node.operator, "source", None)
        if source is not None and node.plan is not None:
            below = node.inputs[0].plan
            is_index = node.gives_keys and below is not None
            of = f"the keys of {headline(below)}, for " if is_index and below else ""
            parts.append(f"# {of}{headline(node.plan)}\n{source}")
    return Explanation("\n".join(parts).rstrip() or "# no generated code: plain operators run")

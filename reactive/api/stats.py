"""Statistics of views and databases: rows held, bytes, touched rows, commits and queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.explain import Explanation, headline
from reactive.engine.compiler.physical import Physical
from reactive.engine.dataflow.node import Node
from reactive.engine.dataflow.routing import describe_route

if TYPE_CHECKING:
    from reactive.api.subscriptions.observe import Subscription
    from reactive.engine.transactions.engine import Engine


# What views and operators hold, and how much they had to look at.


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """The rows that one operator holds, and the number of rows that it has touched.

    `name` is its line in the plan. It begins with "keys for" for an index that serves that
    operator, and with "rows of" for the rows of the view itself.

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
        """The bytes divided by the rows, 0 without rows."""
        return self.bytes / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class Stats:
    """State and work of a view and all operators below it, including shared ones.

    `rows` counts the rows and groups held, `bytes` is the size of their containers without the
    rows, and `touched` counts the rows that operators have looked at since they were made, which
    measures the work. `operators` lists these figures for each operator that holds anything, in the
    order in which they run.

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
    """Return the statistics of a leaf of the graph."""
    nodes = [each for each in node.upstream() if each.operator is not None]
    held = [_operator_stats(each) for each in sorted(nodes, key=lambda each: each.order)]
    return Stats(
        sum(each.rows for each in held),
        sum(each.bytes for each in held),
        commits,
        sum(each.touched for each in held),
        tuple(each for each in held if each.rows or each.bytes),
    )


def _operator_stats(node: Node) -> OperatorStats:
    """Return what the operator of a node holds, with a name for it, and its touched rows."""
    rows, size = node.operator.footprint() if hasattr(node.operator, "footprint") else (0, 0)
    name = "a relation" if node.plan is None else headline(node.plan)
    if node.leaf is not None:
        name = f"rows of {name}"
    elif node.gives_keys:
        name = f"keys for {name}"
    return OperatorStats(name, rows, size, node.operator.touched)


def explain_analyzed(root: plan.Node, engine: Engine) -> Explanation:
    """Return the plan as run, each line with the state and work of its operator."""
    running, made = engine.queries.analyze(root)
    kept = getattr(engine.journal, "kept_views", None)
    read = frozenset() if kept is None else kept.read_nodes()

    def remark(physical: Physical) -> str:
        node = made[id(physical)]
        if isinstance(node.plan, plan.Table) and not node.inputs:
            return f"  [{engine.table_of(node.plan)._held()} rows]"
        if node.is_remote:
            rows, size = node.operator.remote.footprint()
            return f"  [{node.operator.describe()}; {rows} rows, {size} bytes there]"
        held = _operator_stats(node)
        anew = getattr(node.operator, "evaluated", 0) + node.recomputed
        often = f", {anew} times evaluated anew" if anew else ""
        often += ", state read from the store" if node.rank in read else ""
        route = describe_route(node)
        often += "" if route is None else f"; {route}"
        return f"  [{held.rows} rows, {held.bytes} bytes, {held.touched} touched{often}]"

    drawing = running.drawing(remark)
    rules = _rules(made.values())
    return Explanation("\n\n".join([drawing.text(), *rules]), drawing)


def _rules(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield what the rules of each recursion have touched."""
    from reactive.api.rule_profile import circuits_of, describe_rules  # loads recursions

    yield from map(describe_rules, circuits_of(nodes))


def explain_code(leaf: Node) -> Explanation:
    """Return the source of the generated functions that a view depends on."""
    parts = []
    for node in sorted(leaf.upstream(), key=lambda node: node.rank):
        source = getattr(node.operator, "source", None)
        if source is not None and node.plan is not None:
            below = node.inputs[0].plan
            is_index = node.gives_keys and below is not None
            of = f"the keys of {headline(below)}, for " if is_index and below else ""
            parts.append(f"# {of}{headline(node.plan)}\n{source}")
    return Explanation("\n".join(parts).rstrip() or "# no generated code: plain operators run")


# Metrics of a database for monitoring: sizes, time of commits, and queues.


@dataclass(frozen=True, slots=True)
class Queue:
    """Deltas that wait for one subscriber, or for one reader of `changes()`.

    >>> import asyncio
    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> changes = words.materialize("all").changes()
    >>> words.add("be")
    >>> db.metrics().queues
    (Queue(of="view 'all'", waiting=1),)
    """

    of: str
    """The view or relation that is subscribed to."""
    waiting: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of a database; made by `Database.metrics`. Prints as text.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> watching = words.subscribe(lambda delta: None)
    >>> words.add("be")
    >>> print(db.metrics())
    1 commit in ... ms
    1 table, 0 views, 1 subscriber
    0 deltas wait to be delivered
    """

    commits: int
    """The number of commits, as `Database.version`."""
    seconds: float
    """The seconds that all commits took to bring views up to date, without their statements on
    tables and without subscribers. Commits of one row are sampled from one call of `metrics` to the
    next, and the total is extrapolated.
    """
    tables: int
    views: int
    subscribers: int
    """Live subscriptions, including readers of `changes()`."""
    undelivered: int
    """Deltas of commits that the threads of writers have still to deliver."""
    queues: tuple[Queue, ...]
    """Waiting deltas of each subscriber that has a queue (`changes()`, `on=` and `every=`), the
    longest queue first.
    """
    late: int = 0
    """Writers that returned before subscribers were notified of their commit, because
    `deliver_timeout` was over or a callback did not return.
    """
    blocked: int = 0
    """Writers that waited because a queue was full (`max_waiting`)."""
    merged: int = 0
    """Deltas that were merged into others because a queue was full."""

    @property
    def waiting(self) -> int:
        """All deltas that wait in queues or are undelivered."""
        return self.undelivered + sum(queue.waiting for queue in self.queues)

    def __str__(self) -> str:
        lines = [
            f"{_count_text(self.commits, 'commit')} in {1000 * self.seconds:,.1f} ms",
            f"{_count_text(self.tables, 'table')}, {_count_text(self.views, 'view')}, "
            f"{_count_text(self.subscribers, 'subscriber')}",
            f"{_count_text(self.waiting, 'delta')} wait{'s' * (self.waiting == 1)} to be delivered",
        ]
        lines += [f"  {queue.waiting:,} for {queue.of}" for queue in self.queues if queue.waiting]
        return "\n".join(lines)


def metrics(engine: Engine) -> Metrics:
    """Return the current metrics of a database."""
    with engine.db_lock.inside():
        live = [each for channel in list(engine.feeds) for each in _subscriptions(channel)]
        found = Metrics(
            commits=engine.version,
            seconds=engine.times.total(engine.version),
            tables=len(engine.tables),
            views=len(engine.live_views()),
            subscribers=sum(subscription._listeners() for subscription in live),
            undelivered=len(engine.delivery_queue),
            queues=(),
            late=engine.delivery_queue.counts.late,
            blocked=engine.delivery_queue.counts.blocked,
            merged=engine.delivery_queue.counts.merged,
        )
    # outside the lock: a deliverer holds the lock of a reader, and may need that of the database
    queues = [Queue(str(each._channel), waiting) for each in live for waiting in each._waits()]
    longest_first = sorted(queues, key=lambda queue: (-queue.waiting, queue.of))
    return replace(found, queues=tuple(longest_first))


def _subscriptions(channel: Any) -> list[Subscription[Any]]:
    """Return the open subscriptions of a channel that still exist."""
    found = [reference() for reference in channel.subscribers]
    return [each for each in found if each is not None and not each.closed]


def _count_text(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"

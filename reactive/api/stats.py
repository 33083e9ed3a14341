"""Statistics: what a view holds and looks at, and what a service watches of a database."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.explain import Explanation, headline
from reactive.engine.compiler.physical import Physical
from reactive.engine.dataflow.node import Node

if TYPE_CHECKING:
    from reactive.api.subscriptions.observe import Subscription
    from reactive.engine.transactions.engine import Engine


# What views and operators hold, and how much they had to look at.


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


# What a service watches of a database: how much there is, what commits take, and what waits.


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
    """What it is subscribed to."""
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
    """As `Database.version`."""
    seconds: float
    """What it took to bring views up to date, in all commits; without their statements on tables
    and without subscribers. Of commits of one row only some are timed, from one call of `metrics`
    on, and the others are taken as alike."""
    tables: int
    views: int
    subscribers: int
    """Live subscriptions, those of `changes()` included."""
    undelivered: int
    """Deltas of commits that subscribers are still to be told of, in the threads of writers."""
    queues: tuple[Queue, ...]
    """What waits, of each subscriber that has a queue: of `changes()`, `on=` and `every=`. The
    longest first."""
    late: int = 0
    """Writers that went on before subscribers were told of their commit: `deliver_timeout` was
    over, or a callback did not come back."""
    blocked: int = 0
    """Writers that waited since more deltas did than may (`max_waiting`)."""
    merged: int = 0
    """Deltas that were merged into others since more waited than may."""

    @property
    def waiting(self) -> int:
        """All deltas that wait in queues, or are undelivered."""
        return self.undelivered + sum(queue.waiting for queue in self.queues)

    def __str__(self) -> str:
        lines = [
            f"{_counted(self.commits, 'commit')} in {1000 * self.seconds:,.1f} ms",
            f"{_counted(self.tables, 'table')}, {_counted(self.views, 'view')}, "
            f"{_counted(self.subscribers, 'subscriber')}",
            f"{_counted(self.waiting, 'delta')} wait{'s' * (self.waiting == 1)} to be delivered",
        ]
        lines += [f"  {queue.waiting:,} for {queue.of}" for queue in self.queues if queue.waiting]
        return "\n".join(lines)


def metrics(engine: Engine) -> Metrics:
    """Return the figures of now."""
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
    # Readers are asked outside: who tells them holds their lock, and may need that of the database.
    queues = [Queue(str(each._channel), waiting) for each in live for waiting in each._waits()]
    longest_first = sorted(queues, key=lambda queue: (-queue.waiting, queue.of))
    return replace(found, queues=tuple(longest_first))


def _subscriptions(channel: Any) -> list[Subscription[Any]]:
    found = [reference() for reference in channel.subscribers]
    return [each for each in found if each is not None and not each.closed]


def _counted(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"

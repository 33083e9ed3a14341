"""What a service watches of a database: how much there is, what commits take, and what waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reactive.api.subscriptions.observe import Subscription
    from reactive.engine.transactions.engine import Engine


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

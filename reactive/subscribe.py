"""Attach subscriptions to the graph: whoever hears of changes without keeping rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.source import Place, caller, result_is_discarded
from reactive.delta import Delta
from reactive.feed import Feed
from reactive.observe import Changes, Leaf, Subscription, notify
from reactive.shown import Tap
from reactive.zset import Pair, Row, consolidate

if TYPE_CHECKING:
    from reactive.database import Database
    from reactive.relation import AnyRelation

Callback = Callable[[Delta[Any]], object]
Snapshot = Callable[[], tuple[Sequence[Pair], Iterable[Row] | None]]
"""All rows of now, consolidated; and in their order, if they have one."""


def subscribe(
    relation: AnyRelation, callback: Callback, place: Place, *, snapshot: bool
) -> Subscription[Any]:
    """Subscribe to a relation that nobody needs to read: only its changes pass, nothing is kept."""
    db = relation._db
    db._enter()
    try:
        source = db._compile(relation.plan)
        feed = Feed(relation.plan, None, place)
        order = source.operator if isinstance(relation.plan, plan.OrderBy) else None
        node = db._graph.attach(Tap(order), source, feed, fill=False)
        db._watch(node, relation.plan)

        def rows() -> tuple[Sequence[Pair], Iterable[Row] | None]:
            sequence = None if order is None else order.sequence()
            return consolidate(db._graph.contents(source)), sequence

        return join(db, feed, callback, Leaf(db, node), rows if snapshot else None)
    finally:
        db._leave()


def join(
    db: Database, feed: Feed, callback: Callback, held: object, snapshot: Snapshot | None
) -> Subscription[Any]:
    """Add a subscription to a feed; it holds `held`, and begins with the snapshot if there is one.

    The snapshot takes its place among the deltas that wait to be delivered: after those of the
    commits that it contains, which go to the subscribers of then, and before all later ones.
    """
    db._enter()
    try:
        subscription = Subscription(feed, callback, held)
        reference = feed.add(subscription)
        db._feeds.add(feed)
        if snapshot is not None:
            rows, order = snapshot()
            db._outbox.append(((reference,), feed.snapshot(db.version, rows, order)))
        if result_is_discarded():
            place = caller()
            warnings.warn_explicit(_UNHELD, RuntimeWarning, place.file, place.line)
        return subscription
    finally:
        db._leave()


_UNHELD = (
    "this subscription ends at once, since nobody holds it\n"
    "  keep the Subscription that subscribe() and observe() return, or use it in a `with`"
)


def observe(relation: AnyRelation, observer: object, place: Place) -> Subscription[Any]:
    """Subscribe an object with methods."""
    return subscribe(relation, notify(observer), place, snapshot=False)


def changes(relation: AnyRelation, place: Place, *, snapshot: bool) -> Changes[Any]:
    """Subscribe an asynchronous iterator."""
    return Changes(lambda callback: subscribe(relation, callback, place, snapshot=snapshot))

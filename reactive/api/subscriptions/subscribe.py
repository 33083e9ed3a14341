"""Attach subscriptions to the graph: whoever hears of changes without keeping rows."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.callables.source import Place, caller, result_is_discarded
from reactive.api.subscriptions.observe import Leaf, Subscription
from reactive.api.subscriptions.relay import Relay
from reactive.api.subscriptions.rerun import note
from reactive.engine.collections.zset import Pair, Row, consolidate
from reactive.engine.compiler.late import over
from reactive.engine.compiler.lineage import Lineage
from reactive.engine.dataflow.borrowed import ChangesOnly
from reactive.engine.dataflow.channel import Channel
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.node import Node
from reactive.engine.operators import order_by

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

Callback = Callable[[Delta[Any]], object]
Rows = tuple[Sequence[Pair], Iterable[Row] | None]
"""All rows of now, consolidated; and in their order, if they have one."""
Snapshot = Callable[[], Rows]


def subscribe(
    engine: Engine,
    query: plan.Node,
    callback: Callback,
    place: Place,
    *,
    snapshot: bool,
    way: Relay | None,
) -> Subscription[Any]:
    """Subscribe to a relation that nobody needs to read: only its changes pass, nothing is kept."""
    with engine.shaping():
        channel = Channel(query, None, place)

        def attached(source: Node) -> tuple[Node, Rows | None]:
            order = source.operator if isinstance(query, plan.OrderBy) else None
            rows = _rows(engine, source, order) if snapshot else None
            return engine.graph.attach(ChangesOnly(order), source, channel, fill=False), rows

        node, rows = over(engine.queries, query, channel, attached, complete=snapshot)
        engine.queries.watch(node, query)
        begin = None if rows is None else lambda: rows
        return join(engine, node, callback, Leaf(engine, node), begin, way)


def _rows(engine: Engine, source: Node, order: order_by.OrderBy | None) -> Rows:
    sequence = None if order is None else order.sequence()
    return consolidate(engine.graph.contents(source)), sequence


def join(
    engine: Engine,
    leaf: Node,
    callback: Callback,
    held: object,
    snapshot: Snapshot | None,
    way: Relay | None,
) -> Subscription[Any]:
    """Add a subscription to a leaf; it holds `held`, and begins with the snapshot if there is one.

    The snapshot takes its place among the deltas that wait to be delivered: after those of the
    commits that it contains, which go to the subscribers of then, and before all later ones.
    """
    channel = leaf.leaf
    with engine.shaping():
        subscription, reference = listen(engine, leaf, callback, held, way)
        if snapshot is not None:
            rows, order = snapshot()
            engine.graph.send((reference,), channel.snapshot(engine.version, rows, order))
        if result_is_discarded():
            place = caller()
            warnings.warn_explicit(_UNHELD, RuntimeWarning, place.file, place.line)
        note(subscription)
        return subscription


def listen(
    engine: Engine, leaf: Node, callback: Callback, held: object, way: Relay | None = None
) -> tuple[Subscription[Any], weakref.ref[Subscription[Any]]]:
    """A subscription to all deltas of a leaf from now on, and how the leaf knows it. Inside."""
    channel = leaf.leaf
    subscription = Subscription(channel, callback, held, way)
    reference = channel.add(subscription)
    engine.feeds.add(channel)
    if channel.lineage is None:
        channel.lineage = Lineage(leaf)
    return subscription, reference


_UNHELD = (
    "this subscription ends at once, since nobody holds it\n"
    "  keep the Subscription that subscribe() and observe() return, or use it in a `with`"
)

"""Make a view of a relation: its operators, the leaf that holds its rows, and the view object."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.callables.source import Place
from optimizer.plans.properties import is_nested
from reactive.api import literal, nested, ordered_view
from reactive.api.framed import made_or_read
from reactive.api.grouped_view import GroupedView
from reactive.api.subscriptions.subscribe import note
from reactive.api.view import AnyView, View
from reactive.engine.compiler.leaves import KEEPS_ROWS, contents, is_grouped
from reactive.engine.compiler.lineage import over
from reactive.engine.dataflow.delta import Channel
from reactive.engine.dataflow.node import Node
from reactive.engine.runtime.collector import make_old, pause_collector
from reactive.engine.storage.rows import check_name

if TYPE_CHECKING:
    from reactive.api.literal import OnError
    from reactive.api.relation import AnyRelation


def materialize(
    relation: AnyRelation,
    name: str | None,
    place: Place,
    on_error: OnError = "raise",
    *,
    kept: bool = False,
) -> AnyView:
    """Make a view of a relation, with the `on_error` policy, and with stored state if `kept`."""
    check_name("a view", name)
    engine = relation._engine
    found = None
    if on_error != "raise":
        found = literal.by_policy(relation.plan, on_error, read=engine.queries.generates)
        relation = type(relation)(engine, found.first.query, relation._views)
    with engine.shaping():
        channel = engine.graph.making = Channel(relation.plan, name, place)
        try:
            with pause_collector():
                view = _make_view(relation, channel, kept=kept)
                make_old()
            view._policy = found
            note(view)
            return view
        finally:
            engine.graph.making = None


def _make_view(relation: AnyRelation, channel: Channel, *, kept: bool) -> AnyView:
    """Make a view of a relation, with its nodes; a `kept` one may be read from the file."""
    engine = relation._engine
    if kept:
        make = partial(_make_view, relation, channel, kept=False)
        return made_or_read(engine, channel.name, relation.plan, make)

    def attach_leaf(source: Node) -> Node:
        held = contents(relation.plan, source)
        return engine.graph.attach(held, source, channel, fill=isinstance(held, KEEPS_ROWS))

    try:
        node = over(engine.queries, relation.plan, channel, attach_leaf, complete=True)
    except BaseException:
        engine.graph.sweep()
        raise
    engine.queries.watch(node, relation.plan)
    engine.queries.gather()
    return _view_class(relation.plan)(engine, relation, node, channel)


def _view_class(node: plan.Node) -> type[AnyView]:
    """Return the class of the views of a plan."""
    if isinstance(node, plan.OrderBy):
        is_plain = not is_nested(node.input)
        return ordered_view.OrderedView if is_plain else nested.OrderedNestedView
    if is_nested(node):
        return nested.NestedView
    return GroupedView if is_grouped(node) else View

"""Make a view of a relation: its operators, the leaf that holds its rows, and its face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.properties import groups
from optimizer.source import Place
from reactive.collector import paused
from reactive.contents import Bag, Groups, Members, Sequence
from reactive.feed import Feed
from reactive.graph import Node
from reactive.operators.fixpoint import Output
from reactive.view import AnyView, GroupedView, OrderedView, View

if TYPE_CHECKING:
    from reactive.relation import AnyRelation


def materialize(relation: AnyRelation, name: str | None, place: Place) -> AnyView:
    """Make a view of a relation."""
    db = relation._db
    db._enter()
    try:
        feed = db._graph.making = Feed(relation.plan, name, place)
        with paused():
            return _made(relation, feed)
    finally:
        db._graph.making = None
        db._leave()


def _made(relation: AnyRelation, feed: Feed) -> AnyView:
    db = relation._db
    source = db._compile(relation.plan)
    kind, contents = _contents(relation.plan, source)
    try:
        is_filled = isinstance(contents, Members)
        node = db._graph.attach(contents, source, feed, fill=not is_filled)
    except BaseException:
        db._graph.sweep()
        raise
    db._watch(node, relation.plan)
    return kind(db, relation, node, feed)


def _contents(node: plan.Node, source: Node) -> tuple[type[AnyView], Any]:
    """What kind of view a plan has, and the leaf that holds its rows."""
    if isinstance(node, plan.OrderBy):
        return OrderedView, Sequence(source.operator)
    aggregate = groups(node)
    if aggregate is not None and aggregate.key is not None:
        return GroupedView, Groups()
    if isinstance(source.operator, Output):
        return View, Members(source.operator.shown)
    return View, Bag()

"""Make a view of a relation: its operators, the leaf that holds its rows, and its face."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.properties import groups, key_of_group, may_be_negative, naming
from optimizer.source import Place
from reactive.away import Away
from reactive.collector import paused
from reactive.contents import Bag, Groups, Only, OwingBag, Records
from reactive.errors import TableError
from reactive.feed import Feed
from reactive.grouped_view import GroupedView
from reactive.late import over
from reactive.node import Node
from reactive.ordered_view import OrderedView
from reactive.rerun import note
from reactive.rows import check_name
from reactive.shown import ByGroup, Members, Sequence, Tap
from reactive.view import AnyView, View
from reactive.zset import Pair, Pairs, consolidate, negate

if TYPE_CHECKING:
    from reactive.database import Database
    from reactive.relation import AnyRelation


def materialize(relation: AnyRelation, name: str | None, place: Place) -> AnyView:
    """Make a view of a relation."""
    check_name("a view", name)
    db = relation._db
    with db._shaping():
        feed = db._graph.making = Feed(relation.plan, name, place)
        try:
            with paused():
                view = _made(relation, feed)
            note(view)
            return view
        finally:
            db._graph.making = None


def _made(relation: AnyRelation, feed: Feed) -> AnyView:
    db = relation._db

    def attached(source: Node) -> tuple[type[AnyView], Node]:
        kind, contents = _contents(relation.plan, source)
        fill = isinstance(contents, KEEPS_ROWS)
        return kind, db._graph.attach(contents, source, feed, fill=fill)

    try:
        kind, node = over(db, relation.plan, feed, attached, complete=True)
    except BaseException:
        db._graph.sweep()
        raise
    db._watch(node, relation.plan)
    return kind(db, relation, node, feed)


def _contents(node: plan.Node, source: Node) -> tuple[type[AnyView], Any]:
    """What kind of view a plan has, and the leaf that holds its rows, or reads them below."""
    if isinstance(node, plan.OrderBy):
        return OrderedView, Sequence(source.operator)
    aggregate = groups(node)
    is_grouped = aggregate is not None and aggregate.key is not None
    kind = GroupedView if is_grouped else View
    if source.is_remote:
        return kind, Away(source.operator, key=key_of_group(node))
    if not source.late:  # what is late changes before the leaves do, which change together
        rows = getattr(source.operator, "shown", None)
        if rows is not None and not is_grouped:
            return kind, Members(rows)
        by_group = getattr(source.operator, "groups", None)
        if by_group is not None and is_grouped and not may_be_negative(node):
            return kind, ByGroup(by_group)
    if is_grouped:
        how = naming(node)
        is_tuple = how is None or how.generated
        return kind, Groups() if is_tuple else Records(key_of_group(node))
    if aggregate is not None:
        return kind, Only()
    return kind, OwingBag() if may_be_negative(node) else Bag()


KEEPS_ROWS = (Bag, Groups, Only)
"""Leaves that are given what there is when they begin; the others read it elsewhere."""
LOCAL = (*KEEPS_ROWS, Members, ByGroup)
"""Leaves whose rows are in the process."""


def reattach(db: Database, leaf: Node, source: Node) -> None:
    """Have a leaf read another node that gives out the same rows; it keeps those that it holds."""
    if source is leaf.inputs[0]:
        return
    old = leaf.operator
    if isinstance(leaf.leaf.plan, plan.OrderBy):
        source.operator.follow(leaf.inputs[0].operator)
    if isinstance(old, Tap):
        order = source.operator if isinstance(leaf.leaf.plan, plan.OrderBy) else None
        operator: Any = Tap(order)
    else:
        operator = _contents(leaf.leaf.plan, source)[1]
        if isinstance(operator, KEEPS_ROWS) and type(operator) is type(old):
            operator = old
        elif isinstance(operator, KEEPS_ROWS):
            operator.step(db._graph.contents(source))
            operator.commit()
        elif isinstance(operator, Away):
            operator = Away(source.operator, len(old), key_of_group(leaf.leaf.plan))
    db._graph.reattach(leaf, source, operator)


def rebuild(db: Database, leaf: Node, source: Node) -> None:
    """Have a leaf that nobody believes any more read a node; subscribers are told all rows.

    Raises `TableError` if there are none to begin with. Who keeps no rows goes on without.
    """
    feed, is_tap = leaf.leaf, isinstance(leaf.operator, Tap)
    order = source.operator if isinstance(feed.plan, plan.OrderBy) else None
    operator: Any = Tap(order) if is_tap else _contents(feed.plan, source)[1]
    pairs: Pairs | None = None
    if isinstance(operator, KEEPS_ROWS) or feed.subscribers:
        with nullcontext() if not is_tap else suppress(TableError):
            pairs = consolidate(db._graph.contents(source))
    if isinstance(operator, KEEPS_ROWS):
        operator.step(pairs or ())
        operator.commit()
    db._graph.reattach(leaf, source, operator)
    if feed.subscribers and pairs is not None:
        rows = None if order is None else order.sequence()
        db._outbox.append((feed.subscribers, feed.snapshot(db.version, pairs, rows)))


def refill(db: Database, leaf: Node, source: Node) -> tuple[Node, list[Pair]]:
    """Have a leaf read a node that is ahead of it; the leaf, and what it did not know yet."""
    old, rows = leaf.operator, db._graph.contents(source)
    held = old.items() if isinstance(old, LOCAL) else ()
    operator = Tap() if isinstance(old, Tap) else _contents(leaf.leaf.plan, source)[1]
    if isinstance(operator, KEEPS_ROWS):
        operator.step(rows)
        operator.commit()
    changes = consolidate([*negate(held), *rows])
    db._graph.reattach(leaf, source, operator)
    return leaf, changes

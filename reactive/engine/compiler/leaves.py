"""Leaves of views: they hold the rows of a query, or read them below; reconnection of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.field_values import Path
from optimizer.plans.properties import find_groups, is_nested, key_of_group, may_be_negative, naming
from reactive.engine.collections.zset import Pair, Pairs, consolidate, negate
from reactive.engine.compiler.physical import Pipeline
from reactive.engine.dataflow import restoration
from reactive.engine.dataflow.leaves import (
    BorrowedGroups,
    BorrowedOrder,
    BorrowedRows,
    ChangesOnly,
    GroupRows,
    Records,
    SignedBag,
    SignedRecords,
    SingleRow,
    ViewRows,
)
from reactive.engine.dataflow.node import Node
from reactive.engine.remote import remote_tree
from reactive.errors import OffloadError, TableError

if TYPE_CHECKING:
    from reactive.engine.dataflow.graph import Graph


def is_grouped(node: plan.Node) -> bool:
    """Return True if the rows of a query are found by the keys of their groups."""
    aggregate = find_groups(node)
    return aggregate is not None and aggregate.key is not None


def contents(node: plan.Node, source: Node) -> Any:
    """Return the leaf operator for a query whose node is `source`."""
    if isinstance(node, plan.OrderBy):
        return BorrowedOrder(source.operator)
    if source.is_remote:
        return remote_tree.RemoteLeaf(source.operator, key=key_of_group(node))
    if getattr(source.operator, "is_tree", False):
        return restoration.TreeRows(source.operator)
    if not source.deferred:  # deferred nodes change before the leaves, which change together
        rows = None if source.forgets else getattr(source.operator, "shown", None)
        if rows is not None and not is_grouped(node):
            return BorrowedRows(rows)
        by_group = getattr(source.operator, "groups", None)
        stays = by_group is not None and not source.forgets
        if stays and is_grouped(node) and not may_be_negative(node):
            return BorrowedGroups(by_group)  # type: ignore[arg-type]
    if is_nested(node):
        records = SignedRecords if may_be_negative(node) else Records
        return records(key_of_group(node))
    if is_grouped(node):
        how = naming(node)
        is_tuple = how is None or how.generated
        return GroupRows() if is_tuple else Records(key_of_group(node))
    if find_groups(node) is not None:
        return SingleRow()
    return SignedBag() if may_be_negative(node) else ViewRows()


KEEPS_ROWS = (ViewRows, GroupRows, SingleRow)
"""Leaves that are filled at the start; others read the rows elsewhere."""
LOCAL = (*KEEPS_ROWS, BorrowedRows, BorrowedGroups)
"""Leaves whose rows are in the process."""


def reattach(graph: Graph, leaf: Node, source: Node) -> None:
    """Connect a leaf to another node that emits the same rows; the leaf keeps its stored rows.

    A leaf of this node already is unchanged.
    """
    if source is leaf.inputs[0]:
        return
    old = leaf.operator
    if isinstance(leaf.leaf.plan, plan.OrderBy):
        source.operator.follow(leaf.inputs[0].operator)
    if isinstance(old, ChangesOnly):
        order = source.operator if isinstance(leaf.leaf.plan, plan.OrderBy) else None
        operator: Any = ChangesOnly(order)
    else:
        operator = contents(leaf.leaf.plan, source)
        if isinstance(operator, KEEPS_ROWS) and type(operator) is type(old):
            operator = old
        elif isinstance(operator, KEEPS_ROWS):
            operator.step(graph.contents(source))
            operator.commit()
        elif isinstance(operator, remote_tree.RemoteLeaf):
            operator = remote_tree.RemoteLeaf(
                source.operator, len(old), key_of_group(leaf.leaf.plan)
            )
    graph.reattach(leaf, source, operator)


def replan(graph: Graph, leaf: Node, source: Node) -> None:
    """Connect a leaf to a node of another plan; subscribers are notified if the rows differ."""
    (below,) = leaf.inputs
    if source is below:
        return
    changes = consolidate([*negate(graph.contents(below)), *graph.contents(source)])
    if not changes:
        reattach(graph, leaf, source)
    elif isinstance(leaf.leaf.plan, plan.OrderBy):
        rebuild(graph, leaf, source)
    else:
        graph.announce(refill(graph, leaf, source), graph.version)


def rebuild(graph: Graph, leaf: Node, source: Node) -> None:
    """Connect a leaf with invalid rows to a node; subscribers get all rows as a snapshot.

    Raise `TableError` if there are no rows to start with; a leaf without rows continues.
    """
    channel, is_tap = leaf.leaf, isinstance(leaf.operator, ChangesOnly)
    order = source.operator if isinstance(channel.plan, plan.OrderBy) else None
    operator: Any = ChangesOnly(order) if is_tap else contents(channel.plan, source)
    pairs: Pairs | None = None
    if isinstance(operator, KEEPS_ROWS) or channel.subscribers:
        with nullcontext() if not is_tap else suppress(TableError):
            pairs = consolidate(graph.contents(source))
    if isinstance(operator, KEEPS_ROWS):
        operator.step(pairs or ())
        operator.commit()
    graph.reattach(leaf, source, operator)
    if channel.subscribers and pairs is not None:
        rows = None if order is None else order.sequence()
        graph.send(channel.subscribers, channel.snapshot(graph.version, pairs, rows))


def refill(graph: Graph, leaf: Node, source: Node) -> list[tuple[Node, list[Pair]]]:
    """Connect a leaf to a node that is ahead of it; return the leaf with the missing changes.

    If the rows that subscribers know are lost, they get all rows as a snapshot, and nothing is
    returned.
    """
    known = _find_known_rows(leaf)
    if known is None:
        rebuild(graph, leaf, source)
        return []
    rows, old = graph.contents(source), leaf.operator
    operator = ChangesOnly() if isinstance(old, ChangesOnly) else contents(leaf.leaf.plan, source)
    if isinstance(operator, KEEPS_ROWS):
        operator.step(rows)
        operator.commit()
    changes = consolidate([*negate(known), *rows])
    graph.reattach(leaf, source, operator)
    return [(leaf, changes)]


def _find_known_rows(leaf: Node) -> Pairs | None:
    """Return the rows that subscribers of a leaf know; None if they are lost, or in an order."""
    (below,) = leaf.inputs
    is_tree = hasattr(leaf.operator, "tree")
    if isinstance(leaf.operator, LOCAL) or (is_tree and not below.deferred):
        return list(leaf.operator.items())
    if not (is_tree or below.is_remote) or not leaf.leaf.subscribers:
        return None
    try:
        return list(below.operator.contents())
    except OffloadError:
        return None


def early_leaves(indexes: Iterable[tuple[Node, Path]]) -> list[Node]:
    """Return the leaves of queries that filter a table by a field with a new index.

        where o.customer == 1     tested on every row          look up 1 --+
        ...                                               ->   ...         +-- index by customer
        where o.customer == 17    the first with an index      look up 17 -+

    The first queries that filter by a field are tested on each row; once there is an index of the
    field, they are compiled again. Their new nodes step in place of the old ones (`in_place`), so
    that views are notified, and raise, in the order of their creation. The indexes step before all
    other nodes.

    Cost: once per index, that of compiling the few queries again.
    """
    found: dict[Node, None] = {}
    for index, field in indexes:
        (table,) = index.inputs
        index.order = table.order + 1 - 1 / index.rank
        for reader, _ in table.consumers:
            is_filter = isinstance(reader.physical, Pipeline)  # indexes of joins stay as they are
            if is_filter and field in reader.constant_tests.wants:
                found.update(dict.fromkeys(reader.downstream()))
    return sorted((node for node in found if node.leaf is not None), key=lambda node: node.order)


def in_place(graph: Graph, leaf: Node, act: Callable[[], object]) -> None:
    """Call `act`, which connects a leaf to new nodes, and step these in place of the old nodes.

    The nodes keep their own order if one of their inputs would step later than that.
    """
    order, since = leaf.order, graph.made
    act()
    new = sorted((n for n in leaf.upstream() if n.rank > since), key=lambda node: node.rank)
    read = [source for node in (leaf, *new) for source in node.inputs if source.rank <= since]
    if all(source.order <= order - 1 for source in read):
        for place, node in enumerate(new, 1):
            node.order = order - 1 + place / (len(new) + 1)
        leaf.order = order

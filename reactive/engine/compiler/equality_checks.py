"""Plan views under a policy again with checks of equality, after their values have clashed.

    a `==` raises in an operator    the commit is undone
    the views of the operator       planned with checks, and recomputed from their tables
    the commit                      repeated: rows that clash are errors of the views

As with `Queries.without`, a plan is used until rows prove it wrong. A view keeps its checks from
then on; its subscribers, and views over it, continue.

Cost: nothing until values clash; then that of building those views anew, once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from optimizer import plan
from optimizer.errors import ReactiveError
from optimizer.plans.properties import tables
from optimizer.rewriting.equality_checks import PolicyQuery, policies_in, policy_of, with_checks
from reactive.engine.compiler.leaves import replan
from reactive.engine.dataflow.error_notes import stepped_in
from reactive.engine.runtime.interrupts import is_asynchronous

if TYPE_CHECKING:
    from reactive.engine.compiler.queries import Queries
    from reactive.engine.dataflow.node import Node

log = logging.getLogger("reactive")


def unchecked_after(queries: Queries, error: BaseException) -> Sequence[PolicyQuery]:
    """Return the policies without checks whose queries contain the step that raised.

    Return none if the step also belongs to a view without a policy: its commit is refused.
    """
    node = stepped_in(error) if _may_be_clash(error) else None
    if node is None:
        return ()
    written = [each.leaf.plan for each in node.downstream() if each.leaf is not None]
    found = dict.fromkeys(
        policy for each in written for policy in _find_own_policies(queries, each)
    )
    if any(found.keys().isdisjoint(policies_in(each)) for each in written):
        return ()
    return _may_be_checked(queries, found)


def check_again(queries: Queries, written: plan.Node, error: BaseException) -> bool:
    """Add checks to a query whose evaluation raised; return True if that may help."""
    if not _may_be_clash(error):
        return False
    found = _may_be_checked(queries, _find_own_policies(queries, written))
    if found:
        add_checks(queries, found, error)
    return bool(found)


def add_checks(queries: Queries, found: Sequence[PolicyQuery], why: BaseException) -> None:
    """Plan the queries in `found` with checks, and recompute the views over them by these plans.

    Raise `why` if a query gets no checks.
    """
    for policy in found:
        policy.add_checks()
        if not policy.has_checks:
            raise why
    queries.has_checks = True
    for leaf in _find_leaves_over(queries, found):
        log.info("%s is planned again, with checks of equality, since %r", leaf.leaf, why)
        _plan_again(queries, leaf)


def _plan_again(queries: Queries, leaf: Node) -> None:
    """Replace the plan of a leaf by one with checks of equality."""
    graph, written = queries.graph, leaf.leaf.plan
    base = with_checks(written)
    queries.over(base, partial(replan, graph, leaf))
    leaf.leaf.base = base
    read = [queries.source(table) for table in tables(written)]
    graph.watch.end(leaf, graph.leaves(), read)
    queries.watch(leaf, written)


def _may_be_clash(error: BaseException) -> bool:
    """Return True if an error may be due to a `==` of rows.

    Errors of this library, and interrupts, are not.
    """
    return (
        isinstance(error, Exception)
        and not isinstance(error, ReactiveError)
        and not is_asynchronous(error)
    )


def _find_own_policies(queries: Queries, written: plan.Node) -> list[PolicyQuery]:
    """Return the policy of a query, or else the policies of queries that it computes itself.

    Queries of views that other nodes compute are not included.
    """
    own = policy_of(written)
    if own is not None:
        return [own]
    if queries.placement.is_possible:  # a query is computed as a whole
        return policies_in(written)
    shown = {policy_of(leaf.leaf.plan) for leaf in queries.graph.leaves()}
    return [policy for policy in policies_in(written) if policy not in shown]


def _may_be_checked(queries: Queries, found: Iterable[PolicyQuery]) -> Sequence[PolicyQuery]:
    """Return the policies in `found` without checks.

    Return () if a view over them cannot be recomputed: a deferred one, or one of a table whose
    rows are not stored.
    """
    unchecked = [policy for policy in found if not policy.has_checks]
    leaves = _find_leaves_over(queries, unchecked) if unchecked else []
    is_lost = any(
        leaf.deferred or not all(table.stored for table in tables(leaf.leaf.plan))
        for leaf in leaves
    )
    return () if is_lost else unchecked


def _find_leaves_over(queries: Queries, found: Sequence[PolicyQuery]) -> list[Node]:
    """Return the leaves whose queries contain one of the policies in `found`."""
    leaves = queries.graph.leaves()
    return [leaf for leaf in leaves if not set(found).isdisjoint(policies_in(leaf.leaf.plan))]

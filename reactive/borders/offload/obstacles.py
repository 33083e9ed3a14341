"""Why parts of a query have to stay in the process, in words."""

from __future__ import annotations

from collections.abc import Iterable

from optimizer import plan
from optimizer.plans.properties import nodes, tables
from reactive.errors import OffloadError


def check_stored(node: plan.Node, why: str) -> None:
    """Raise for a node over a table that keeps no rows."""
    for table in tables(node):
        if not table.stored:
            raise OffloadError(f"table {table.name!r} {why}")


def check_rows(node: plan.Node, roots: Iterable[plan.Node]) -> None:
    """Raise for a node over rows that were not kept, that have a negative weight, or that are as
    they were; or of which one of the queries wants these."""
    check_stored(node, "has given out rows that it did not keep")
    if any(isinstance(each, plan.Negate) for each in nodes(node)):
        raise OffloadError(
            "it reads rows of negate(), whose weights are negative, which are kept in the process; "
            "difference_all() takes rows away without them"
        )
    _check_present(node, roots)


def refusal(name: str, reasons: list[str]) -> str:
    """The error of a view of which nothing can be moved."""
    lines = reasons or ["it keeps nothing but its rows"]
    count = f"{len(lines)} obstacle" + "s" * (len(lines) != 1)
    return "\n".join([f"{name} cannot be moved: {count}", *(f"  {line}" for line in lines)])


def _check_present(node: plan.Node, roots: Iterable[plan.Node]) -> None:
    """Raise for a node that reads rows as they were, or of which one of the queries wants these."""
    past = [
        each for root in (node, *roots) for each in nodes(root) if isinstance(each, plan.Previous)
    ]
    if any(each in nodes(node) or node in nodes(each) for each in past):
        raise OffloadError(
            "previous() has rows of each commit, which are only known in the process; "
            "subscribe() tells what a commit changed of a view that is elsewhere"
        )

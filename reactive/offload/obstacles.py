"""Why parts of a query have to stay in the process, in words."""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.properties import tables
from reactive.errors import OffloadError


def check_stored(node: plan.Node, why: str) -> None:
    """Raise for a node over a table that keeps no rows."""
    for table in tables(node):
        if not table.stored:
            raise OffloadError(f"table {table.name!r} {why}")


def refusal(name: str, reasons: list[str]) -> str:
    """The error of a view of which nothing can be moved."""
    lines = reasons or ["it keeps nothing but its rows"]
    count = f"{len(lines)} obstacle" + "s" * (len(lines) != 1)
    return "\n".join([f"{name} cannot be moved: {count}", *(f"  {line}" for line in lines)])

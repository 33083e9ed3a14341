"""Relations whose rows are written in the query: `db.values(rows)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.nodes import values as literals
from optimizer.plans.properties import shapes
from reactive.engine.collections.zset import canonical
from reactive.engine.storage.rows import class_and_width, class_name, fits


def literal(rows: Iterable[Any], row_type: Any) -> plan.Values:
    """The node of some rows.

    Raises
    ------
    PlanError: one has no hash, or is not of the type.
    """
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise PlanError(
            f"values takes rows, not {rows!r:.60}\n  values([...]) takes a list of them"
        )
    kept = [_checked(row, row_type) for row in rows]
    if kept or row_type is None:
        return literals.values(kept)
    return literals.values((), shapes(plan.Table(0, "values", None, True, row_type)))


def _checked(row: Any, row_type: Any) -> Any:
    try:
        hash(row)
    except TypeError:
        raise PlanError(
            f"values cannot have the {type(row).__name__} {row!r:.60} as a row: it has no hash\n"
            "  rows are tuples, frozen dataclasses and plain values"
        ) from None
    if not fits(row, *class_and_width(row_type)):
        raise PlanError(f"values of {class_name(row_type)} cannot have the row {row!r:.60}")
    return canonical(row)

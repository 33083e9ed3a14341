"""The rows of a view as a `pyarrow.Table`, and those of a table from one.

    rows of one class               a column for each field
    rows with others inside         beside these a list column for each name: list<struct<...>>
    pairs of a join, groups         a column for each binding, by its name or its place
    plain tuples                    a column for each place
    others                          the column "value"

Needs:  pyarrow, which nothing imports but `arrow_columns` and `arrow_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.naming import RowsOf
from optimizer.plans.binding_names import binding_names
from optimizer.plans.binding_types import binding_types

ONE = "value"
"""The column of rows that are neither records nor tuples."""


def of_view(view: Any) -> Any:
    """What `View.to_arrow` gives.

    Raises
    ------
    PlanError: pyarrow is not installed; or a value is nothing that Arrow has.
    """
    _check_pyarrow(f"{view._channel}: to_arrow")
    from reactive.collections import arrow_columns

    rows = view.snapshot()
    try:
        return arrow_columns.table(_columns(arrow_columns, rows, view))
    except arrow_columns.Misfit as misfit:
        column = ".".join(misfit.path) or ONE
        raise PlanError(
            f"{view._channel} is no Arrow table: column {column!r}, row {misfit.place}: "
            f"{misfit.reason}\n"
            f"  the row is {rows[misfit.place]!r:.200}\n"
            "  select what Arrow has, as str(value) or float(value), or declare the field as what "
            "it holds"
        ) from None


def rows_of(data: Any, row_type: Any) -> list[Any]:
    """What `Table.add_arrow` adds.

    Raises
    ------
    PlanError: pyarrow is not installed; or a field has no column.
    """
    _check_pyarrow("add_arrow")
    from reactive.collections import arrow_rows

    return arrow_rows.rows_of(data, row_type)


def _check_pyarrow(what: str) -> None:
    if find_spec("pyarrow") is None:
        raise PlanError(
            f"{what} needs pyarrow, which is not installed\n"
            "  pip install 'reactive-collections[arrow]'"
        )


def _columns(arrow: Any, rows: Sequence[Any], view: Any) -> Any:
    node, nesting = view.relation.plan, getattr(view, "nesting", None)
    types: tuple[Any, ...] = binding_types(node)
    if nesting is not None:
        types = (RowsOf(nesting.types, nesting.columns, nesting.levels),)
    if isinstance(types[0], RowsOf):
        return arrow.columns(rows, types[0])
    names = view.columns or binding_names(node)
    if len(types) == 1:
        found = arrow.of_tuples(rows, types[0])
        return found or arrow.of_binding(rows, types[0], names[0] or ONE)
    called = tuple(name or str(place) for place, name in enumerate(names))
    return arrow.columns(rows, RowsOf(types, called))

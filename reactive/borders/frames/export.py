"""Tables and views as frames: a `pyarrow.Table` of named columns, and what others make of one.

    rows of one class               a column for each field
    rows with others inside         beside these a list column for each name: list<struct<...>>
    pairs of a join, groups         a column for each binding, by its name or its place
    plain tuples                    a column for each place
    others                          the column "value"

Needs:  pyarrow, which nothing imports but this room, `arrow_columns` and `arrow_rows`.
Cost:   O(values), some 0.1 to 1 us for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass, make_dataclass
from functools import lru_cache
from typing import Any

from optimizer.errors import PlanError
from optimizer.expressions.naming import RowsOf
from optimizer.kinds.fields import is_record
from optimizer.plans.binding_names import binding_names
from optimizer.plans.binding_types import binding_types
from reactive.engine.collections.nested_rows import is_nested_class
from reactive.engine.runtime import needs

ONE = "value"
"""The column of rows that are neither records nor tuples."""


def arrow_of(shown: Any) -> Any:
    """What `to_arrow` gives of a table or view.

    Raises
    ------
    PlanError: pyarrow is not installed; or a value is nothing that Arrow has.
    """
    needs.check(f"{shown._called()}: to_arrow")
    return columns_of(shown, shown.snapshot() if hasattr(shown, "snapshot") else list(shown))


def columns_of(shown: Any, rows: Sequence[Any]) -> Any:
    """Rows that a table or view has, or had, as a `pyarrow.Table`."""
    from reactive.borders.frames import arrow_columns

    try:
        made = _columns(arrow_columns, rows, shown)
        of_sql = getattr(shown, "schema", None)
        return arrow_columns.table(
            made if of_sql is None else arrow_columns.typed(made, of_sql.hints)
        )
    except arrow_columns.Misfit as misfit:
        column = ".".join(misfit.path) or ONE
        raise PlanError(
            f"{shown._called()} is no Arrow table: column {column!r}, row {misfit.place}: "
            f"{misfit.reason}\n"
            f"  the row is {rows[misfit.place]!r:.200}\n"
            "  select what Arrow has, as str(value) or float(value), or declare the field as what "
            "it holds"
        ) from None


def weighted(shown: Any, pairs: Sequence[tuple[Any, int]]) -> Any:
    """Changes of a table or view as a `pyarrow.Table`, with the weights as its last column."""
    from reactive.borders.frames import arrow_delta

    return arrow_delta.with_weights(columns_of(shown, [row for row, _ in pairs]), pairs)


def stream(shown: Any, schema: Any = None) -> Any:
    """The capsule of `__arrow_c_stream__`."""
    return arrow_of(shown).__arrow_c_stream__(schema)


def pandas_of(shown: Any) -> Any:
    """What `to_pandas` gives."""
    needs.check(f"{shown._called()}: to_pandas", "pandas")
    return arrow_of(shown).to_pandas()


def polars_of(shown: Any) -> Any:
    """What `to_polars` gives."""
    needs.check(f"{shown._called()}: to_polars", "polars")
    import polars as pl

    return pl.DataFrame(arrow_of(shown))


def narwhals_frame(shown: Any) -> Any:
    """What narwhals asks an object for that it does not know; marimo and altair ask by it."""
    import narwhals as nw

    return nw.from_native(arrow_of(shown), eager_only=True)._compliant_frame


def interchange(shown: Any, *, nan_as_null: bool, allow_copy: bool) -> Any:
    """What the dataframe interchange protocol asks for."""
    return arrow_of(shown).__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


def numpy_rows(shown: Any) -> Any:
    """The `__array__` of a table or view whose rows do not say by themselves how their columns are
    called: an array of records that do. `pandas.DataFrame` asks for it.

    Raises
    ------
    AttributeError: they do, or are plain values: libraries iterate over them.
    """
    if _says_names(shown):
        raise AttributeError("__array__")
    return lambda *_, **__: _records(shown)


def _records(shown: Any) -> Any:
    needs.check(f"{shown._called()}: an array", "numpy")
    import numpy as np

    table = arrow_of(shown)
    kind = _record(tuple(table.column_names))
    array = np.empty(table.num_rows, object)
    parts = zip(*(column.to_pylist() for column in table.columns), strict=True)
    array[:] = [kind(*part) for part in parts]
    return array


def _says_names(shown: Any) -> bool:
    """Whether the class of the rows tells pandas how columns are called, or there is one value."""
    if getattr(shown, "nesting", None) is not None:
        return False
    types = binding_types(getattr(shown, "relation", shown).plan)
    if len(types) == 1 and is_record(types[0]):
        return is_dataclass(types[0]) or hasattr(types[0], "_fields")
    row = next(iter(shown), None)
    return not isinstance(row, tuple) or (
        hasattr(row, "_fields") and not is_nested_class(type(row))
    )


@lru_cache(maxsize=64)
def _record(names: tuple[str, ...]) -> Any:
    """A dataclass with fields of any names, which `dataclasses.asdict` knows by them."""
    places = [f"field_{place}" for place in range(len(names))]
    made: Any = make_dataclass("Record", places, frozen=True)
    return made if not names else _renamed(made, dict(zip(places, names, strict=True)))


def _renamed(made: Any, names: dict[str, str]) -> Any:
    fields = {}
    for field in made.__dataclass_fields__.values():
        field.name = names[field.name]
        fields[field.name] = field

    def __init__(self: Any, *values: Any) -> None:
        vars(self).update(zip(names.values(), values, strict=True))

    def __repr__(self: Any) -> str:
        return f"Record({', '.join(f'{n}={v!r}' for n, v in vars(self).items())})"

    made.__dataclass_fields__, made.__init__, made.__repr__ = fields, __init__, __repr__
    return made


def _columns(arrow: Any, rows: Sequence[Any], shown: Any) -> Any:
    node, nesting = getattr(shown, "relation", shown).plan, getattr(shown, "nesting", None)
    types: tuple[Any, ...] = binding_types(node)
    if nesting is not None:
        types = (RowsOf(nesting.types, nesting.columns, nesting.levels),)
    if isinstance(types[0], RowsOf):
        return arrow.columns(rows, types[0])
    names = getattr(shown, "columns", None) or binding_names(node)
    if len(types) == 1:
        found = arrow.of_tuples(rows, types[0])
        return found or arrow.of_binding(rows, types[0], names[0] or ONE)
    called = tuple(name or str(place) for place, name in enumerate(names))
    return arrow.columns(rows, RowsOf(types, called))

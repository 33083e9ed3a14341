"""Rows of a class from Arrow: structs become records, lists bags or tuples, as annotations say.

    order: int64, lines: list<struct<what: string>>     Order(7, Bag([Line("tea")]))

Without an annotation, a list becomes a tuple, and a struct the tuple of its fields.

Cost:   O(values), 1 to 2 us for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import pyarrow as pa

from optimizer.errors import PlanError
from optimizer.kinds.kind import (
    Items,
    Members,
    Places,
    Scalar,
    Struct,
    kind_of,
    name_of,
    without_none,
)
from optimizer.kinds.texts import columns_of, member_of
from reactive.engine.collections.bag import Bag

Made = Callable[[Any], Any]
"""Make the value of a row from a value of `to_pylist`."""


def convert_rows(data: Any, row_type: Any) -> list[Any]:
    """Return the rows of a table, a record batch, or another object with `__arrow_c_stream__`.

    Raises
    ------
    PlanError: a field without a default has no column.

    >>> convert_rows(pa.table({"0": [1, 2], "1": [["a"], []]}), tuple[int, Bag[str]])
    [(1, Bag({'a': 1})), (2, Bag({}))]
    """
    table = data if isinstance(data, pa.Table | pa.RecordBatch) else pa.table(data)
    of = without_none(kind_of(row_type))
    is_struct = isinstance(of, Struct | Places) or (isinstance(of, Items) and of.python is tuple)
    if not is_struct and table.num_columns != 1:
        raise PlanError(
            f"rows of {name_of(of)} are made of one column, not of {table.num_columns}: "
            f"{', '.join(table.column_names)}\n"
            "  give a class with these fields as the rows' of the table"
        )
    make = value_maker(of)
    if is_struct:
        return [make(row) for row in table.to_pylist()]
    return [make(value) for value in table.column(0).to_pylist()]


def value_maker(annotation: Any) -> Made:
    """Return the function that makes a value of an annotation from a value of `to_pylist`."""
    match without_none(kind_of(annotation)):
        case Members(python):
            return partial(_enum_member, python)
        case Struct() as struct:
            return _Record(struct)
        case Items(python, item):
            return _collection_maker(
                python if python in (Bag, frozenset) else tuple, value_maker(item)
            )
        case Places(items):
            return _tuple_maker([value_maker(each) for each in items])
        case Scalar(python) if python is UUID:
            return _uuid
        case _:
            return _plain_value


def is_as_it_is(annotation: Any) -> bool:
    """Return True if a value that is neither list nor struct needs no conversion."""
    return value_maker(annotation) is _plain_value


def _uuid(value: Any) -> Any:
    """Return a UUID, also from its 16 bytes or its text; None for None."""
    if value is None or isinstance(value, UUID):
        return value
    return UUID(bytes=value) if isinstance(value, bytes) else UUID(value)


def _enum_member(kind: Any, value: Any) -> Any:
    """Return a member of an enumeration, by its name or, for numbers and texts, its value."""
    return None if value is None else member_of(kind, value, by_name=True)


class _Record:
    """Make records of a class. Fields are inspected at the first record: they may be recursive."""

    def __init__(self, of: Struct) -> None:
        self._of, self._kind = of, of.python
        self._makers: dict[str, Made] | None = None

    def __call__(self, value: Any) -> Any:
        if value is None:
            return None
        if self._makers is None:
            self._makers = {name: value_maker(kind) for name, kind in self._of.fields.items()}
        try:
            fields = {name: make(value[name]) for name, make in self._makers.items()}
        except KeyError:
            fields = self._of_others(value)
        try:
            return self._kind(**fields)
        except TypeError as error:
            missing = [name for name in self._makers if name not in fields]
            if not missing:
                raise
            raise PlanError(
                f"{self._kind.__name__} has no column for {', '.join(missing)}: {error}\n"
                f"  there are {', '.join(value)}; give the field a default, or rename a column"
            ) from None

    def _of_others(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a struct that lacks some, or has other spellings of their names."""
        assert self._makers is not None
        names = list(value)
        places = columns_of(self._makers, names)
        return {name: self._makers[name](value[names[at]]) for name, at in places.items()}


def _collection_maker(kind: Any, make: Made) -> Made:
    """Return the function that makes a `kind` of a list, and None of None."""

    def make_value(values: Any) -> Any:
        if values is None:
            return None
        every = values.values() if isinstance(values, dict) else values
        return kind([make(value) for value in every])

    return make_value


def _tuple_maker(makers: Sequence[Made]) -> Made:
    """Return the function that makes a tuple of a list or struct, and None of None."""

    def make_value(value: Any) -> Any:
        if value is None:
            return None
        every = value.values() if isinstance(value, dict) else value
        return tuple(make(part) for make, part in zip(makers, every, strict=True))

    return make_value


def _plain_value(value: Any) -> Any:
    """Return a value without a declared type: lists and structs as tuples."""
    if isinstance(value, list):
        return tuple(map(_plain_value, value))
    return tuple(map(_plain_value, value.values())) if isinstance(value, dict) else value

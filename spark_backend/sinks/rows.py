"""Convert rows of a view to columns of files, and back.

    Order(1, "ann", 2.5)  with weight 1      number: 1, customer: "ann", price: 2.5, weight: 1
    "ann"                                    value: "ann"
    Basket(1, Bag(["b", "a", "b"]))          number: 1, lines: ["a", "b", "b"]

The types come from a row type, or are inferred from the rows; later rows have to fit the written
columns.

State:  the types.
Cost:   about a microsecond per value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any

import pyarrow as pa

from reactive.engine.collections.bag import Bag
from reactive.engine.collections.zset import Pair, consolidate
from reactive.errors import OffloadError
from spark_backend.codec.arrow import arrow_type, from_arrow, to_arrow
from spark_backend.codec.schema import (
    LARGEST,
    LEAST,
    WIDEST,
    Plain,
    Record,
    Typed,
    Untyped,
    Whole,
    common_type,
    expected_type,
    fill_unknown,
    infer_type,
    tuple_of,
    type_name,
)

VALUE, WEIGHT = "value", "weight"
ROW_TYPE = "  say of what type rows are: row_type=RowType"


class RowColumns:
    """The columns of rows in files.

    Parameters
    ----------
    row_type: the declared type of the rows, if any.
    reserved: names that no field may have.
    """

    def __init__(self, row_type: Any = None, reserved: Sequence[str] = ()) -> None:
        self.is_declared = row_type is not None
        """True if the type of rows is declared."""
        self._kept = None if row_type is None else _type_in_files(infer_type((), row_type))
        self._expected: Typed | None = None
        self._reserved = frozenset(reserved)
        self.schema: pa.Schema | None = None
        """The columns of the written files."""

    def expect(self, annotation: Any) -> None:
        """Record the row type of the query, for columns whose type the rows do not show."""
        self._expected = expected_type(annotation)

    @property
    def is_known(self) -> bool:
        """True if the classes of rows are known."""
        return self._kept is not None

    def wrote(self, schema: pa.Schema) -> None:
        """Adopt the columns of written files, perhaps with a weight."""
        names = [name for name in schema.names if name != WEIGHT or WEIGHT not in self._reserved]
        self.schema = _arrow_columns(
            _type_of_schema(pa.schema([schema.field(name) for name in names]))
        )

    def table(self, rows: Sequence[Any]) -> pa.Table:
        """Return rows as columns.

        Raises
        ------
        OffloadError: no columns store the rows, or other columns than the written ones.
        """
        if not rows and self.schema is not None:
            return self.schema.empty_table()
        kept, array = self._array(rows)
        names = kept.names if isinstance(kept, Record) else (VALUE,)
        arrays = array.flatten() if isinstance(kept, Record) else [array]
        self._check_names(names)
        table = pa.Table.from_arrays(list(arrays), names=list(names))
        if self.schema is None:
            _check_known(kept)
        self._check(table.schema)
        return table

    def typed(self, kept: Typed) -> Typed:
        """Return the type in files of rows that have a type on Spark.

        Raises
        ------
        OffloadError: no columns store the rows, or other columns than the written ones.
        """
        found = _narrow_integers(_type_in_files(self._as_expected(kept)))
        try:
            if self.is_declared and self._kept is not None:
                found = common_type(found, self._kept)
            elif self.schema is not None:
                found = fill_unknown(found, _type_of_schema(self.schema))
        except Untyped as untyped:
            raise OffloadError(f"the rows are not what was declared: {untyped}") from None
        if isinstance(found, Record):
            self._check_names(found.names)
        if self.schema is None:
            _check_known(found)
        self._check(_arrow_columns(found))
        return found

    def weighted_columns(self, pairs: Sequence[Pair]) -> pa.Table:
        """Return rows as columns, with their weights."""
        table = self.table([row for row, _ in pairs])
        return table.append_column(WEIGHT, pa.array([n for _, n in pairs], pa.int64()))

    def as_written(self, table: pa.Table) -> pa.Table:
        """Return a table with the columns that all files have, whether Spark or this process wrote
        it."""
        assert self.schema is not None
        found = table.select(self.schema.names).cast(self.schema)
        if WEIGHT not in self._reserved:
            return found
        return found.append_column(WEIGHT, table.column(WEIGHT).cast(pa.int64()))

    def learn(self, rows: Sequence[Any]) -> None:
        """Infer the type of rows, if there are any and none is declared."""
        if rows and not self.is_declared:
            self._widen(rows)

    def rows(self, table: pa.Table) -> list[Any]:
        """Return the rows of columns: of the known class, else as tuples.

        Raises
        ------
        OffloadError: the columns do not fit the rows.
        """
        self.wrote(table.schema)
        assert self.schema is not None
        kept = self._kept or _type_of_schema(self.schema)
        columns = [table.column(name).combine_chunks() for name in self.schema.names]
        self._check(_arrow_columns(kept))
        if not isinstance(kept, Record):
            return from_arrow(kept, columns[0])
        return from_arrow(kept, pa.StructArray.from_arrays(columns, fields=list(arrow_type(kept))))

    def pairs(self, table: pa.Table) -> list[Pair]:
        """Return the rows of a table with their weights; copies of a row are added up."""
        rows = self.rows(table)
        return consolidate(list(zip(rows, table.column(WEIGHT).to_pylist(), strict=True)))

    @property
    def has_classes(self) -> bool:
        """True if rows are not only plain values and tuples."""
        return self._kept is not None and _has_classes(self._kept)

    def _array(self, rows: Sequence[Any]) -> tuple[Typed, Any]:
        """Return rows as an array with their type: known, or of the written files, or inferred."""
        known = self._kept or (None if self.schema is None else _type_of_schema(self.schema))
        if known is not None:
            try:
                return known, to_arrow(known, rows)
            except OffloadError:
                if self.is_declared:
                    raise
        self._widen(rows)
        assert self._kept is not None
        return self._kept, to_arrow(self._kept, rows)

    def _widen(self, rows: Sequence[Any]) -> None:
        """Widen the types to include the types of the given rows.

        Raises `OffloadError` if rows have no common type, or a row is None.
        """
        looks = infer_type(((row, 1) for row in rows), None, sample=None)
        found = _type_in_files(self._as_expected(looks))
        try:
            if self._kept is not None:
                found = common_type(self._kept, found)
            if self.schema is not None:
                found = fill_unknown(found, _type_of_schema(self.schema))
        except Untyped as untyped:
            raise OffloadError(f"rows of one view fit no columns: {untyped}\n{ROW_TYPE}") from None
        if isinstance(found, Record) and found.optional:
            raise OffloadError("a row that is None has no columns\n  leave it out of the view")
        self._kept = found

    def _as_expected(self, found: Typed) -> Typed:
        return found if self._expected is None else fill_unknown(found, self._expected)

    def _check_names(self, names: Sequence[str]) -> None:
        """Refuse rows with a field whose name the files use otherwise."""
        taken = sorted(self._reserved.intersection(names))
        if taken:
            raise OffloadError(
                f"the rows have a field {taken[0]!r}, a name that the files have another use for\n"
                "  select the rows with another name for it"
            )

    def _check(self, schema: pa.Schema) -> None:
        """Raise unless these are the columns of the written files."""
        if self.schema is None:
            self.schema = schema
        elif not self.schema.equals(schema):
            was, now = (_describe_schema(each) for each in (self.schema, schema))
            raise OffloadError(
                f"the target has the columns {was}, and the rows are {now}\n"
                "  write them to a new target"
            )


def has_columns(kept: Typed) -> bool:
    """Return True if files store rows of a type as columns: they contain no decimals stored as
    text."""
    if isinstance(kept, Record):
        return all(map(_is_plain, kept.fields)) and not kept.optional
    return _is_plain(kept)


def _type_in_files(kept: Typed) -> Typed:
    """Return the type in files, where bags are lists.

    Raises
    ------
    OffloadError: it has decimals of any length, which files of a view cannot store.
    """
    if not has_columns(replace(kept, optional=False)):
        raise OffloadError(
            "the rows fit no columns of files: there are decimals of any number of digits in "
            f"{type_name(kept)}\n  select them as something else, such as a text or a float"
        )
    return _with_listed_bags(kept)


def _with_listed_bags(kept: Typed) -> Typed:
    """Return the type with all multisets in it stored as lists; others unchanged."""
    if isinstance(kept, Record):
        return replace(kept, fields=tuple(map(_with_listed_bags, kept.fields)))
    if isinstance(kept, Whole) and kept.of is not None:
        return replace(kept, of=_with_listed_bags(kept.of), is_listed=kept.kind is Bag)
    return kept


def _is_plain(kept: Typed) -> bool:
    if isinstance(kept, Record):
        return all(map(_is_plain, kept.fields))
    return isinstance(kept, Plain) or (kept.of is not None and _is_plain(kept.of))


def _check_known(kept: Typed) -> None:
    """Refuse a type with a column that has had only None or empty lists."""
    unknown = _find_none_field(kept, "")
    if unknown is not None:
        raise OffloadError(
            f"column {unknown!r} has had nothing but None, or empty lists\n{ROW_TYPE}"
        )


def _describe_schema(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _arrow_columns(kept: Typed) -> pa.Schema:
    """Return the columns of rows of a type."""
    return pa.schema(
        list(arrow_type(kept)) if isinstance(kept, Record) else [(VALUE, arrow_type(kept))]
    )


def _narrow_integers(kept: Typed) -> Typed:
    """Return the type with wide integers as of 64 bits, as in files; other types unchanged."""
    if isinstance(kept, Record):
        return replace(kept, fields=tuple(map(_narrow_integers, kept.fields)))
    if isinstance(kept, Whole) and kept.of is not None:
        return replace(kept, of=_narrow_integers(kept.of))
    if isinstance(kept, Plain) and kept.is_wide:
        return replace(kept, low=LEAST, high=LARGEST)
    return kept


def _type_of_schema(schema: pa.Schema) -> Typed:
    """Return the type of columns, as tuples and plain values."""
    fields = tuple(_type_of_arrow(field.type) for field in schema)
    if schema.names == [VALUE]:
        return fields[0]
    return replace(tuple_of(fields), names=tuple(schema.names))


def _type_of_arrow(of: pa.DataType) -> Typed:
    """Return the type of a column of a written file; structs are tuples.

    Raises `OffloadError` for others.
    """
    if pa.types.is_struct(of):
        fields = tuple(_type_of_arrow(field.type) for field in of)
        return Record(tuple, tuple(field.name for field in of), fields, optional=True)
    if pa.types.is_list(of):
        return Whole(tuple, _type_of_arrow(of.value_type), optional=True)
    if pa.types.is_decimal(of) and not of.scale:
        return Plain(int, optional=True, low=-WIDEST, high=WIDEST)
    for kind in (bool, int, float, str, bytes, datetime, date, Decimal):
        if arrow_type(Plain(kind)) == of:
            return Plain(kind, optional=True)
    raise OffloadError(f"a column of {of} is none that rows have\n  write to a new target")


def _find_none_field(kept: Typed, name: str) -> str | None:
    """Return the name of a field that is always None, if any."""
    if kept.kind is NoneType:
        return name or VALUE
    if isinstance(kept, Record):
        for inner, of in zip(kept.names, kept.fields, strict=True):
            found = _find_none_field(of, f"{name}.{inner}" if name else inner)
            if found is not None:
                return found
    if isinstance(kept, Whole) and kept.of is not None:
        return _find_none_field(kept.of, name)
    return None


def _has_classes(kept: Typed | None) -> bool:
    """Return True if values of a type are not only plain values and tuples."""
    if kept is None or isinstance(kept, Plain):
        return False
    inside = kept.fields if isinstance(kept, Record) else (kept.of,)
    return kept.kind is not tuple or any(map(_has_classes, inside))

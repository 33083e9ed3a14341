"""What a state table holds, and how its columns are called and typed in files.

    left: row, weight       t=left/part-...parquet: left_row, left_weight

A job writes the rows of several tables as one frame, so columns say of which table they are. Spark
and this process write them, and each says something else of what may be null; so whoever reads
files says what is in them.

State:  none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

TABLE, BUCKET = "t", "b"
"""Columns that name folders: of which table, and in a base of which bucket."""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """What a state table holds.

    `by` are the columns that tell rows apart, `added` those that are added up. `bucket` makes the
    hash of a row's key, from which its bucket is taken; None if it is never looked up by one.
    """

    name: str
    schema: T.StructType
    by: tuple[str, ...]
    added: tuple[str, ...]
    bucket: Callable[[], Any] | None = None
    hashed: str | None = None
    """The column that holds this hash, of a table whose rows are also fetched by it."""
    of_groups: bool = False
    """Whether it has a row for a group, of which there are fewer than of rows that come."""
    is_here: bool = False
    """Whether only flushes of this process keep it: a job gives it up."""

    def column(self, name: str) -> str:
        """The name of a column in files, which have those of all tables of a flush."""
        return f"{self.name}_{name}"


def arrow_schema(spec: TableSpec) -> pa.Schema:
    """The columns of a table, as Arrow has them; all may be null, whatever they are part of."""
    return pa.schema([pa.field(f.name, _open(f.type)) for f in to_arrow_schema(spec.schema)])


def file_schema(spec: TableSpec) -> pa.Schema:
    """The same, as they are called in files."""
    return pa.schema([field.with_name(spec.column(field.name)) for field in arrow_schema(spec)])


def _open(of: pa.DataType) -> pa.DataType:
    """A type whose parts may be null."""
    if pa.types.is_struct(of):
        return pa.struct([pa.field(part.name, _open(part.type)) for part in of])
    if pa.types.is_list(of):
        return pa.list_(pa.field("element", _open(of.value_type)))
    return of

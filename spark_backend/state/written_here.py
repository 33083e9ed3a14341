"""Small files of state tables that this process writes, as it has their rows: no job, no Spark.

    rows --> bytes --> end of the file        what the manifest says of it
               `-----> flush/000000000012-5f/t=left/part-00000.parquet

A file is written in one go and not read back, and no folder is made where a store has none: stores
of objects take requests for each of these.

State:  on disk.
Cost:   O(rows); one write for each table with rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_backend.state.ends import end_in
from spark_backend.state.leftovers import discard
from spark_backend.state.manifest import Segment
from spark_backend.state.spec import TABLE, TableSpec, arrow_schema

PART = "part-00000.parquet"


def write_here(
    files: Any, root: str, folder: str, added: Mapping[str, tuple[TableSpec, pa.Table]]
) -> dict[str, Segment]:
    """Write the rows of tables to a folder that is new; of those that have any. On an error nothing
    stays.

    Parameters
    ----------
    files, root: a file system of pyarrow, and a folder in it.
    added: by name, of each table its rows, with the columns of its schema.

    Raises
    ------
    OSError: it cannot be written.
    """
    given = {name: one for name, one in added.items() if one[1].num_rows}
    try:
        return {name: _segment(files, root, folder, *one) for name, one in given.items()}
    except BaseException:
        discard(files, f"{root}/{folder}")
        raise


def _segment(files: Any, root: str, folder: str, spec: TableSpec, rows: pa.Table) -> Segment:
    data = _encoded(spec, rows)
    inside = f"{folder}/{TABLE}={spec.name}"
    end = end_in(data, spec.column("weight"))
    _write(files, f"{root}/{inside}", data)
    return Segment(inside, (PART,), (end.mark,), (end.rows,), weights=end.bounds)


def _encoded(spec: TableSpec, rows: pa.Table) -> memoryview:
    """The bytes of a file."""
    typed = rows.select(spec.schema.names).cast(arrow_schema(spec))
    sink = pa.BufferOutputStream()
    named = typed.rename_columns([spec.column(name) for name in spec.schema.names])
    pq.write_table(named, sink, write_page_checksum=True, store_schema=False)
    return memoryview(sink.getvalue())


def _write(files: Any, folder: str, data: memoryview) -> None:
    """Put a file in a folder, which is made if that has to be."""
    path = f"{folder}/{PART}"
    try:
        stream = files.open_output_stream(path)
    except FileNotFoundError:
        files.create_dir(folder, recursive=True)
        stream = files.open_output_stream(path)
    with stream:
        stream.write(data)

"""The rows in files of state tables: as a DataFrame, or in the driver.

Files of one table were written by Spark and by this process; the schema of the table says what is
in them, and each page is checked against its checksum.

State:  none.
Cost:   that of reading the files; a listing of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_backend.cluster.files import by_name
from spark_backend.cluster.refusals import reading
from spark_backend.state.ends import VERIFIED, VERIFY
from spark_backend.state.manifest import Segment
from spark_backend.state.spec import BUCKET, TableSpec, arrow_schema, file_schema


def frame_of(
    spark: Any, uri: str, spec: TableSpec, segments: Sequence[Segment], *, with_bucket: bool
) -> DataFrame:
    """The rows of segments in a folder; of a base, with the bucket where that is asked for."""
    fields = [T.StructField(spec.column(f.name), f.dataType) for f in spec.schema.fields]
    if with_bucket:
        fields.append(T.StructField(BUCKET, T.IntegerType()))
    reader = by_name(spark.read).schema(T.StructType(fields)).option(VERIFY, "true")
    if with_bucket:
        reader = reader.option("basePath", f"{uri}/{segments[0].folder}")
    names = [F.col(spec.column(name)).alias(name) for name in spec.schema.names]
    found: DataFrame = reader.parquet(*_paths(uri, segments)).select(
        *names, *([BUCKET] * with_bucket)
    )
    return found


def table_of(
    files: Any, root: str, spec: TableSpec, segments: Sequence[Segment], where: Any = None
) -> pa.Table:
    """The rows of segments in a folder, in the driver.

    Parameters
    ----------
    where: a condition on columns as they are called in files.

    Raises
    ------
    OffloadError: they cannot be read.
    """
    paths = _paths(root, segments)
    if not paths:
        return arrow_schema(spec).empty_table()
    with reading(root):
        found = ds.dataset(paths, file_schema(spec), filesystem=files, format=VERIFIED)
        return found.to_table(filter=where).rename_columns(spec.schema.names)


def _paths(start: str, segments: Sequence[Segment]) -> list[str]:
    return [f"{start}/{s.folder}/{name}" for s in segments for name in s.files]

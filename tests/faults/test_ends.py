"""Statistics of a weight column in the footer of a Parquet file. No Spark here."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from spark_backend.cluster.files import local_place
from spark_backend.state.ends import merge_bounds, read_end


@pytest.mark.parametrize(
    ("weights", "statistics", "bounds"),
    [
        ([1, 1, 1, 1], True, (1, 1)),
        ([3, 1, 7, 2], True, (1, 7)),
        ([1, 1, 1, -2], True, (-2, 1)),
        ([1, 1, 1, 1], False, None),
        ([], True, None),
    ],
)
def test_the_bounds_of_weights_are_those_of_all_groups_of_rows_or_not_known(
    weights: list[int], statistics: bool, bounds: tuple[int, int] | None, tmp_path: Path
) -> None:
    table = pa.table({"of_weight": pa.array(weights, pa.int64()), "of_row": weights})
    path = tmp_path / "some.parquet"
    pq.write_table(table, path, row_group_size=2, write_statistics=statistics)
    found = local_place(str(path))
    end = read_end(found.files, found.root, "of_weight")
    assert (end.rows, end.bounds) == (len(weights), bounds)
    assert read_end(found.files, found.root, "other").bounds is None


def test_bounds_of_several_files_are_known_if_each_is() -> None:
    assert merge_bounds([(1, 1), (-2, 1), (1, 5)]) == (-2, 5)
    assert merge_bounds([(1, 1), None]) is None
    assert merge_bounds([]) is None

"""A checkpoint that was written before modules moved can be continued."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Bag
from spark_backend import SparkOffload
from tests.old_files import written


def test_state_of_columns_and_of_pickled_rows_goes_on(spark: Any, tmp_path: Path) -> None:
    with tarfile.open(written.CHECKPOINT) as archive:
        archive.extractall(tmp_path, filter="data")
    offload = SparkOffload(session=spark, checkpoint=tmp_path, threshold_rows=None, trust=True)
    with written.on_spark(offload, again=True) as (db, sales, pairs, most, bags):
        assert [line.note for line in db.offload_status()] == ["", ""]
        assert sorted(most) == [("a", 9.0), ("b", 3.0)]
        pairs.remove(written.Pair(7, Bag([0, "x"])))
        sales.remove(written.MORE)
        assert sorted(most) == [("a", 2.0), ("b", 3.0)]
        assert sorted(bags, key=repr) == sorted({*written.PAIRS}, key=repr)
        for view in (most, bags):
            view.verify()

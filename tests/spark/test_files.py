"""Files below a checkpoint: put whole or not at all, on any file system that Spark knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("pyspark")
from pyarrow import fs

from reactive import Count, Database, OffloadError, Sum
from spark_backend import SparkOffload
from spark_backend.cluster import files
from spark_backend.cluster.session import Session
from spark_backend.state.manifest import Manifest, Manifests

MOUNT = "fs.viewfs.mounttable.reactive.link./data"
"""A file system of Hadoop's that is not this machine's own by its name, and needs no server."""


@pytest.fixture
def store(spark: Any, tmp_path: Path) -> str:
    """The URI of a folder that only Spark's file systems know."""
    (tmp_path / "store").mkdir()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(MOUNT, f"file://{tmp_path}/store")
    settings.set("fs.viewfs.impl.disable.cache", "true")
    return "viewfs://reactive/data/a folder"


def test_a_file_is_put_whole_or_not_at_all(tmp_path: Path) -> None:
    here, path = fs.LocalFileSystem(), f"{tmp_path}/one"
    files.create_file(here, path, b"1")
    with pytest.raises(FileExistsError):
        files.create_file(here, path, b"2")
    assert Path(path).read_bytes() == b"1"
    files.replace_file(here, path, b"3")
    assert Path(path).read_bytes() == b"3"
    assert [p.name for p in tmp_path.iterdir()] == ["one"]


@pytest.mark.quick
def test_a_file_is_replaced_where_a_store_renames_nothing_over_it(
    session: Session, store: str, tmp_path: Path
) -> None:
    place = files.locate(store, session)
    place.files.create_dir(place.root, recursive=True)
    files.replace_file(place.files, f"{place.root}/one", b"1")
    files.replace_file(place.files, f"{place.root}/one", b"2")
    with pytest.raises(FileExistsError):
        files.create_file(place.files, f"{place.root}/one", b"3")
    with pytest.raises(FileExistsError), patch.object(files, "create_file"):
        aside = files._write_aside(place.files, f"{place.root}/two", b"4")
        place.files.move(aside, f"{place.root}/one")
    (found,) = (tmp_path / "store").rglob("one")
    assert found.read_bytes() == b"2"


def manifest(number: int) -> Manifest:
    return Manifest("plan", number)


def test_of_two_that_go_on_with_one_state_the_later_is_told(tmp_path: Path) -> None:
    first = Manifests(fs.LocalFileSystem(), str(tmp_path), "plan")
    first.put(manifest(0))
    second = Manifests(fs.LocalFileSystem(), str(tmp_path), "plan")
    assert second.last().number == 0
    second.put(manifest(1))
    for told in (lambda: first.put(manifest(1)), first.last):
        with pytest.raises(OffloadError, match="another process has gone on"):
            told()
    second.put(manifest(2))
    assert Manifests(fs.LocalFileSystem(), str(tmp_path), "plan").last().number == 2


def test_both_find_that_there_is_no_manifest_and_one_puts_it(tmp_path: Path) -> None:
    first, second = (Manifests(fs.LocalFileSystem(), str(tmp_path), "plan") for _ in range(2))
    assert first.last() == second.last()
    first.put(manifest(0))
    with (
        patch.object(second, "_numbers", return_value=[]),  # as it was when the other put it
        pytest.raises(OffloadError, match="another process has gone on"),
    ):
        second.put(manifest(0))


def test_what_was_put_before_it_broke_off_counts(tmp_path: Path) -> None:
    one = Manifests(fs.LocalFileSystem(), str(tmp_path), "plan")
    one.put(manifest(0))

    def put_and_break_off(*given: Any) -> None:
        files.create_file(*given)
        raise KeyboardInterrupt

    broken = patch("spark_backend.state.manifest.create_file", put_and_break_off)
    with broken, pytest.raises(KeyboardInterrupt):
        one.put(manifest(1))
    assert one.last().number == 1
    one.put(manifest(2))
    assert [p.name for p in tmp_path.rglob("*.json")] == ["000000000002.json"]


def test_a_checkpoint_is_on_any_file_system_that_spark_knows(
    session: Session, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State tables, rows that are staged, changes of a table on Spark; then another process."""
    monkeypatch.chdir(tmp_path)
    rows, resumed = [(n % 5, n) for n in range(40)], []
    for more in ((1, 100), (2, 200)):
        offload = SparkOffload(session=session.spark, checkpoint=store, threshold_rows=None)
        with Database(offload=offload) as db:
            left, right = (db.table(tuple[int, int], name=name) for name in ("left", "right"))
            joined = left.join(right, left_key=lambda r: r[0], right_key=lambda r: r[0])
            sums = joined.group_by(lambda a, b: b[1]).aggregate(Count(), Sum(lambda a, b: a[1]))
            view = sums.materialize("sums")
            left.add_all(rows)
            right.add_all((n, n % 2) for n in range(5))
            view.offload()
            remotes = [node.operator.remote for node in db._engine.graph.remotes]
            resumed += [remote.resumed is not None for remote in remotes]
            left.add(more)
            rows.append(more)
            table = db.spark_table(session.spark.range(3), int, name="numbers")
            table.add_frame(session.spark.range(10), once=("query", len(resumed)))
            assert sorted(table) == sorted([*range(3), *[*range(10)] * len(resumed)])
            groups = {odd: [n for key, n in rows if key % 2 == odd] for odd in (0, 1)}
            assert dict(view) == {odd: (len(of), sum(of)) for odd, of in groups.items()}
    assert resumed == [False, True]
    assert {path.name for path in tmp_path.iterdir()} == {"store"}
    assert (tmp_path / "store" / "a folder" / "views.json").exists()

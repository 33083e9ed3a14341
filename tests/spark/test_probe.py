"""The check of the machines of a cluster at the start, with simulated reports."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa

from reactive import OffloadError
from spark_backend.cluster import probe
from spark_backend.cluster.files import with_literal_paths
from spark_backend.cluster.probe import Report, check_reports, make_reporter
from spark_backend.cluster.session import PARTITIONS, Session

HERE = probe.python(), probe.library()
NAMES = ["seen", "host", "python", "library"]


def report(seen: int = 1, host: str = "one", **other: Any) -> Report:
    return Report(seen, host, *{"python": HERE[0], "library": HERE[1], **other}.values())


def refused(found: Sequence[Report], count: int, everywhere: Sequence[str] = ()) -> str:
    with pytest.raises(OffloadError) as told:
        check_reports(found, count, "/state", lambda: everywhere)
    what, advice = str(told.value).split("\n")
    assert advice.startswith("  ")
    return what


def test_machines_that_see_and_run_the_same_are_taken() -> None:
    check_reports([report(), report(host="two")], 2, "/state")
    check_reports([report(2)], 2, "/state")  # one task has read both files


def test_a_machine_that_does_not_see_what_the_driver_writes_is_named() -> None:
    what = refused([report(), report(0, "two"), report(0, "three")], 3)
    assert what == (
        "/state is not one folder for all machines: three, two cannot see what this process "
        "writes there"
    )


def test_a_machine_whose_writing_the_driver_does_not_see_is_named() -> None:
    machines = ["one", "two", "two", *(f"m{n}" for n in range(9))]
    assert "this process cannot see what m0, m1, m2 and 7 more writes there" in refused(
        [report()], 12, machines
    )
    assert "what one writes there" in refused([], 1, ["one"])
    assert "what a machine of the cluster writes there" in refused([report()], 2, ["one"])


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ({"python": "3.9"}, f"two has Python 3.9 and {HERE[1]}"),
        ({"library": None}, f"two has Python {HERE[0]} and no reactive-collections"),
        ({"library": "reactive-collections 0.0.1 (1)"}, "and reactive-collections 0.0.1 (1);"),
    ],
)
def test_a_machine_that_runs_something_else_is_named(other: Any, shown: str) -> None:
    what = refused([report(), report(1, "two", **other)], 2)
    assert shown in what and f"here are Python {HERE[0]} and {HERE[1]}" in what


def test_a_worker_reports_what_it_sees_and_runs(tmp_path: Path) -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["a", "b"]})
    run = make_reporter([str(tmp_path)], probe.__name__)
    before = list(sys.path)
    try:
        (found,) = run(iter([rows, rows]))
        (none,) = run(iter([]))
        assert sys.path.count(str(tmp_path)) == 1
    finally:
        sys.path[:] = before
    assert found.schema.names == NAMES
    (row,) = found.to_pylist()
    assert (row["seen"], row["python"], row["library"]) == (4, *HERE)
    assert none.to_pylist() == [{**row, "seen": 0}]
    (row,) = next(make_reporter([], "spark_backend.cluster.not_there")(iter([]))).to_pylist()
    assert row["library"] is None


def test_the_same_code_is_the_same_in_a_zip_file_and_other_code_is_not(tmp_path: Path) -> None:
    root = Path(probe.__file__).parents[2]
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for package in probe.PACKAGES:
            for path in sorted((root / package).rglob("*.py")):
                archive.write(path, path.relative_to(root))
    assert digest(zipfile.Path(packed)) == digest(root)
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("reactive/new.py", "")
    assert digest(zipfile.Path(packed)) != digest(root)


def digest(root: Any) -> str:
    made = hashlib.sha256()
    for package in probe.PACKAGES:
        probe._digest_sources(made, root / package, package)
    return str(made.hexdigest())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("[PYTHON_VERSION_MISMATCH] Python in worker has", "the cluster runs no tasks of this"),
        ("ModuleNotFoundError: No module named 'pyarrow'", "No module named 'pyarrow'\n  each"),
        ("java.io.IOException: Mkdirs failed to create file:/state/x", "/state is not one folder"),
        ("out of luck", "no tasks of this process: out of luck\n  each machine needs Python"),
    ],
)
def test_a_job_that_fails_says_what_to_install_or_to_give(said: str, told: str) -> None:
    assert told in str(probe._job_error(f"{said}\n  at line 1", said, "/state"))


def test_the_machines_are_asked_once_per_start_and_not_where_there_is_one_process(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(probe, "check_machines", lambda session, folder: asked.append(folder))
    one = Session(session=session.spark, folder=str(tmp_path))
    assert one.spark is one.spark and asked == []
    monkeypatch.setattr(Session, "_is_one_process", False)
    other = Session(session=session.spark, folder=str(tmp_path))
    assert other.spark is other.spark and asked == [str(tmp_path)]


@pytest.mark.quick
def test_a_cluster_that_is_none_is_given_up_and_asked_again(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "_is_one_process", False)
    monkeypatch.setattr(probe, "_read_reports", lambda place, folder: [])
    one = Session(session=session.spark, folder=str(tmp_path))
    for _ in range(2):
        with pytest.raises(OffloadError, match=r"is not one folder .*\n  give one that all"):
            _ = one.spark
    monkeypatch.undo()
    assert one.spark.range(3).count() == 3


def test_what_is_asked_goes_the_way_of_all_files_whatever_the_folder_is_called(
    session: Session, tmp_path: Path
) -> None:
    folder = tmp_path / "a [b] {c,d}* ?"
    probe.check_machines(session, str(folder))
    assert list(folder.iterdir()) == []
    (folder / "x").write_text("one\ntwo\n")
    uri = f"file://{folder}/x"
    assert with_literal_paths(session.spark.read).text(uri).count() == 2
    assert session.spark.conf.get(probe.FEWEST, None) is None


def test_shuffles_follow_the_tasks_that_run_at_a_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Session(session=session.spark)
    told = Session(session=session.spark, config={PARTITIONS: "3"})
    assert [s.spark.conf.get(PARTITIONS) for s in (one, told)] == ["2", "3"]
    monkeypatch.setattr(Session, "_tasks_of", lambda self, session: 6)
    for each in (one, told):
        each.follow()
    assert [s.spark.conf.get(PARTITIONS) for s in (one, told)] == ["6", "3"]

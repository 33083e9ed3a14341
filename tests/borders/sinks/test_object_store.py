"""An object store, served on this machine: sinks continue there, and no file is moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("moto.server", reason="pip install 'moto[server,s3]'")
import pyarrow.parquet as pq
from pyarrow import fs

from reactive import Database, OffloadError
from spark_backend import ChangesFolder, RowsFolder
from spark_backend.cluster import files
from spark_backend.state.manifest import Manifest, Manifests


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The URI of a folder, as Spark writes it; its name is one that a URI has to escape."""
    server = import_module("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "none")
        there = f"{host}:{port}"
        store = fs.S3FileSystem(endpoint_override=there, scheme="http", allow_bucket_creation=True)
        store.create_dir("bucket")
        yield "s3a://bucket/a [folder] 100%"
    server.stop()


def written(target: Any, words: list[str]) -> None:
    """A process that has a view of words, and writes it twice."""
    with Database() as db:
        table = db.table(str, name="words")
        with table.materialize("words").write_to(target) as sink:
            table.add_all(words[:2])
            sink.flush()
            table.add_all(words[2:])


@pytest.mark.long
def test_rows_are_those_of_the_last_process(bucket: str) -> None:
    for words in (["a", "b", "b"], ["b", "c", "d"], []):
        written(RowsFolder(f"{bucket}/rows", row_type=str), words)
        assert Counter(RowsFolder(f"{bucket}/rows").read()["value"].to_pylist()) == Counter(words)


@pytest.mark.long
def test_changes_come_to_what_the_last_process_had(bucket: str) -> None:
    for words in (["a", "b", "b"], ["b", "c", "d"], []):
        written(ChangesFolder(f"{bucket}/changes", row_type=str), words)
        place = files.locate(f"{bucket}/changes")
        found: Counter[str] = Counter()
        for path in files.list_parquet(place.files, place.root):
            for row in pq.ParquetFile(place.files.open_input_file(path)).read().to_pylist():
                found[row["value"]] += row["weight"]
        assert +found == Counter(words) and min(found.values()) >= 0
    names = [info.base_name for info in place.files.get_file_info(fs.FileSelector(place.root))]
    assert sorted(names) == [f"batch={number:012}" for number in range(len(names))]


@pytest.mark.long
def test_of_two_that_go_on_with_one_state_the_later_is_told(bucket: str) -> None:
    place = files.locate(f"{bucket}/state")
    first, second = (Manifests(place.files, place.root, "plan") for _ in range(2))
    first.put(Manifest("plan", 0))
    assert second.last().number == 0
    second.put(Manifest("plan", 1))
    with pytest.raises(OffloadError, match="another process has gone on"):
        first.put(Manifest("plan", 1))
    files.replace_file(place.files, f"{place.root}/one", b"1")
    files.replace_file(place.files, f"{place.root}/one", b"2")
    with pytest.raises(FileExistsError):
        files.create_file(place.files, f"{place.root}/one", b"3")
    with place.files.open_input_stream(f"{place.root}/one") as stream:
        assert stream.read() == b"2"

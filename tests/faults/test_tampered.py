"""Changed, truncated or lost state is reported, and never gives a wrong result. No Spark here."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import OffloadError
from spark_backend.cluster.files import local_place
from spark_backend.state import manifest
from spark_backend.state.ends import read_end
from tests.budget import TIMES, drawing
from tests.faults.in_process import Offload, in_process
from tests.faults.test_every_moment import FLUSHES, Play, parts

FLIPS = 400 if TIMES else 40


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with in_process():
        yield


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """A history that has been played to its end."""
    made = Play(parts()["rows"], tmp_path / "state")
    remote = made.begin()
    for number in range(FLUSHES):
        made.apply(remote, number)
    return made


def files(play: Play) -> list[Path]:
    """The files that its state is in."""
    return sorted(p for p in Path(play.folder).rglob("*") if p.suffix in (".parquet", ".json"))


def test_one_changed_bit_anywhere_is_told_or_changes_nothing(play: Play) -> None:
    """A process that runs has looked at the ends of files at its beginning."""
    draw, told = drawing(), 0
    running = play.begin()
    for _ in range(FLIPS):
        path = draw.choice(files(play))
        data = path.read_bytes()
        place, changed = draw.randrange(len(data)), bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        path.write_bytes(changed)
        end = int.from_bytes(data[-8:-4], "little") + 8
        is_read = path.suffix == ".json" or place < len(data) - end
        for begin in (play.begin, lambda: running) if is_read else (play.begin,):
            try:
                play.check(begin(), FLUSHES - 1)
            except OffloadError as error:
                assert "\n  " in str(error), "it says what to do"
                told += 1
        path.write_bytes(data)
    assert told > FLIPS // 2
    play.check(play.begin(), FLUSHES - 1)


@pytest.mark.long
def test_any_changed_byte_of_an_end_is_told_whatever_arrow_makes_of_it(play: Play) -> None:
    """The footer may look like a file of another kind, of unknown types, or of no columns."""
    path = next(path for path in files(play) if path.suffix == ".parquet")
    found = local_place(str(path))
    here, name = found.files, found.root
    data, before = path.read_bytes(), read_end(here, name)
    end = int.from_bytes(data[-8:-4], "little") + 8
    for place in range(len(data) - end, len(data)):
        for bit in range(8):
            path.write_bytes(data[:place] + bytes((data[place] ^ 1 << bit,)) + data[place + 1 :])
            with contextlib.suppress(OSError, ValueError):
                assert read_end(here, name) != before


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_was_cut_off_is_told(share: float, play: Play) -> None:
    for path in files(play):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(OffloadError, match="give an empty folder as the checkpoint"):
            play.begin()
        path.write_bytes(data)


def test_a_file_that_is_missing_is_told(play: Play) -> None:
    for path in (path for path in files(play) if path.suffix == ".parquet"):
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(OffloadError, match=r"is missing; .*\n  restore it"):
            play.begin()
        path.write_bytes(data)


def test_a_file_in_the_place_of_another_is_told(play: Play) -> None:
    found = [path for path in files(play) if path.suffix == ".parquet"]
    first = found[0].read_bytes()
    other = next(path for path in found if path.read_bytes() != first)
    other.write_bytes(first)
    with pytest.raises(OffloadError, match="has been changed"):
        play.begin()


def test_files_that_nobody_named_do_not_count(play: Play) -> None:
    """Files are ignored beside named ones, in a flush, and while a flush is reported."""
    remote = play.begin()
    for path in (path for path in files(play) if path.suffix == ".parquet"):
        shutil.copy(path, path.with_name("another.parquet"))
    folder = Path(remote._tables._root) / "flush" / f"{FLUSHES:012}-0/t=rows"
    folder.mkdir(parents=True)
    shutil.copy(files(play)[0], folder / "part.parquet")
    before = dict(remote._change_of(FLUSHES - 1))
    play.check(remote, FLUSHES - 1)
    later = play.begin()
    play.check(later, FLUSHES - 1)
    assert dict(later._change_of(FLUSHES - 1)) == before
    assert not folder.exists()


def rechecked(found: dict[str, Any]) -> str:
    """Change the manifest with a matching checksum."""
    found["checksum"] = manifest._checksum(found)
    return "with a checksum of its own"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda m: m.update(format=1), "its format is 1"),
        (lambda m: m["tables"]["rows"][0].update(rows=7), "its checksum is another"),
        (lambda m: m.update(tokens={"source": 9}), "its checksum is another"),
        (lambda m: m.pop("checksum"), "checksum"),
        (lambda m: (m["tables"]["rows"][0].update(folder="../x"), rechecked(m)), "not below"),
        (lambda m: (m["tables"]["rows"][0].update(files=["/x"]), rechecked(m)), "not below"),
        (lambda m: (m["tables"]["rows"][0].update(ends=[]), rechecked(m)), "not say of each"),
        (lambda m: (m.pop("tables"), rechecked(m)), "tables"),
        (lambda m: (m.update(number="x"), rechecked(m)), "invalid literal"),
        (lambda m: (m.update(plan="another"), rechecked(m)), "it is of another query"),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(change: Any, why: str, play: Play) -> None:
    (path,) = Path(play.folder).rglob("manifest/*.json")
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(OffloadError, match=f"is no manifest of these state tables: .*{why}"):
        play.begin()


def test_pickled_rows_are_read_only_where_they_are_trusted(play: Play) -> None:
    with pytest.raises(OffloadError, match="trust=True"):
        Offload(play.folder, trust=False).begin(play.part, "part")
    assert play.begin().resumed == FLUSHES - 1

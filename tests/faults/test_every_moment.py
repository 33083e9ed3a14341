"""A process stops or a disk is full at any moment: nothing is lost, and nothing doubled.

Each change of a file is a moment. No Spark here (`in_process.py`): the protocol is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Collect, Database, Max, OffloadError, Sum
from reactive.engine.collections.zset import Pair
from reactive.engine.remote.fragments import Fragment, offloaded_fragment
from reactive.engine.remote.remote import Remote
from tests.budget import TIMES, drawing
from tests.engine.remote.in_memory import InMemory
from tests.faults.files import Fault, Stopped, failing
from tests.faults.in_process import Offload, Operator, in_process
from tests.spark.histories import Change, History
from tests.spark.ways import way

FLUSHES = 10
FIRST = 12
"""Rows of the first flush, which are staged."""
MOMENTS = 2
"""Number of moments of a history that a sample tries, other ones in each run."""
COUNTS: dict[str, int] = {}
"""The moments of the history of each part, once they have been counted."""


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with in_process():
        yield


def parts() -> dict[str, Fragment]:
    db = Database()
    one, two = db.table(tuple, name="one"), db.table(tuple, name="two")
    groups = one.group_by(lambda r: r[0])
    return {
        "rows": offloaded_fragment(
            groups.aggregate(Max(lambda r: str(r[1])), Collect(lambda r: r[1])).plan
        ),
        "sums": offloaded_fragment(groups.aggregate(Sum(lambda r: r[1])).plan),
        "pairs": offloaded_fragment(
            one.join(two, left_key=lambda r: r[0], right_key=lambda r: r[0]).plan
        ),
    }


class Play:
    """A history, its state after each flush, and an operator that plays it."""

    def __init__(self, part: Fragment, folder: Path) -> None:
        self.part, self.folder = part, str(folder)
        history = History(1, len(part.prepare))
        changes = [history.changes(FIRST), *(history.changes(3) for _ in range(FLUSHES - 1))]
        self.changes: list[list[Change]] = changes
        reference = InMemory(part)
        self.wanted: list[dict[Any, int]] = []
        for number, some in enumerate(changes):
            reference.apply(number, self.entries(reference, some))
            self.wanted.append(dict(reference.contents()))

    def entries(self, remote: Remote, changes: list[Change]) -> list[Any]:
        found = [(place, self.part.prepare[place](row), weight) for place, row, weight in changes]
        return [(place, *remote.pack(place, *of), n) for place, of, n in found if of is not None]

    def begin(self) -> Operator:
        remote = Offload(self.folder).begin(self.part, "part")
        assert isinstance(remote, Operator)
        return remote

    def apply(self, remote: Operator, number: int) -> list[Pair]:
        """Play one flush, and repeat it if the disk is full.

        Every other flush is a job, the others run in the process. The rows of the first flush are
        staged in pieces, each until it is written.
        """
        entries = self.entries(remote, self.changes[number])
        if number == 0:
            for place in (0, 1):
                of = [entry for entry in entries if entry[0] == place]
                for piece in (of[:4], of[4:]):
                    until_it_works(remote.stage, 0, piece)
            entries = []
        with way(is_job=number % 2 == 0):
            return list(until_it_works(remote.apply, number, entries))

    def check(self, remote: Operator, number: int | None) -> None:
        """Check that the operator holds the state of a flush, and that its output equals it."""
        assert remote.resumed == number or remote.applied == number
        held = list(remote.contents())
        assert len(dict(held)) == len(held)
        assert dict(held) == ({} if number is None else self.wanted[number])


def moments(of: str, folder: Path) -> list[int]:
    """The changes of files that a history makes, or some of them."""
    if of not in COUNTS:
        COUNTS[of] = counted(parts()[of], folder / "counted")
    every = range(1, COUNTS[of] + 1)
    return list(every) if TIMES else sorted(drawing().sample(every, MOMENTS))


def counted(part: Fragment, folder: Path) -> int:
    play = Play(part, folder)
    with failing(Fault()) as fault:
        remote = play.begin()
        for number in range(FLUSHES):
            play.apply(remote, number)
            play.check(remote, number)
    return fault.count


@pytest.mark.long
@pytest.mark.parametrize("of", ["rows", "sums", "pairs"])
def test_a_process_that_stops_at_any_moment_is_gone_on_with(of: str, tmp_path: Path) -> None:
    part = parts()[of]
    for moment in moments(of, tmp_path):
        play = Play(part, tmp_path / str(moment))
        number = -1
        with failing(Fault(moment, stops=True)), pytest.raises(Stopped):
            first = play.begin()
            for number in range(FLUSHES):
                play.apply(first, number)
        later = play.begin()
        done = -1 if later.resumed is None else later.resumed
        assert done in (number - 1, number), moment
        play.check(later, later.resumed)
        for number in range(done + 1, FLUSHES):
            play.apply(later, number)
            play.check(later, number)
        assert leftovers(later) == []


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 40])
@pytest.mark.parametrize("of", ["rows", "sums", "pairs"])
def test_a_disk_that_is_full_at_any_moment_stops_flushes_and_loses_nothing(
    of: str, times: int, tmp_path: Path
) -> None:
    """The disk is full for one moment, or for as long as several attempts take."""
    part = parts()[of]
    for moment in moments(of, tmp_path):
        play = Play(part, tmp_path / str(moment))
        with failing(Fault(moment, times)) as fault:
            remote = until_it_works(play.begin)
            for number in range(FLUSHES):
                play.apply(remote, number)
                play.check(remote, number)
            assert fault.happened
        later = play.begin()
        play.check(later, FLUSHES - 1)
        assert leftovers(later) == []


def until_it_works(act: Any, *given: Any) -> Any:
    """Do it again as long as it says that there is no room."""
    while True:
        try:
            return act(*given)
        except OffloadError as error:
            assert "No space left on device" in str(error)


def leftovers(remote: Operator) -> list[str]:
    """Files of jobs that do not count."""
    segments = [s for found in remote._tables.manifest.tables.values() for s in found]
    counts = {f"{s.folder}/{name}" for s in segments for name in s.files}
    root = Path(remote._tables._root)
    found = (str(path.relative_to(root)) for path in root.rglob("*.parquet"))
    return [path for path in found if path not in counts]

"""Two measurements of Spark at their smallest: they run, and all sides agree."""

from __future__ import annotations

import pytest

from asv_benchmarks.offload.measure import in_process
from reactive import OffloadError
from spark_backend.cluster.session import check
from tests.budget import cases

try:
    check()
except OffloadError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.mark.parametrize("measure", cases("flush", "handover"))
def test_what_is_measured_is_right(measure: str) -> None:
    {"flush": flushes_are_timed, "handover": a_move_leaves_no_rows}[measure]()


def flushes_are_timed() -> None:
    """Beside commits in the process."""
    found = in_process("flush", "group", 300, 2, 1, 100)
    assert [*found] == ["1", "100"]
    assert all(len(seconds) == 2 for times in found.values() for seconds in times.values())
    assert all(times["flush"][0] > times["process"][0] > 0 for times in found.values())


def a_move_leaves_no_rows() -> None:
    """None of them is in the process."""
    found = in_process("handover", "max", 10_000)
    assert found["state"] > found["kept"] == 0
    rows = found["objects full"] - found["objects empty"]
    left = found["objects moved"] - found["objects empty"]
    assert left < 0.35 * rows  # the orders themselves stay, in their table
    assert found["seconds"] > 0 < found["recall"]

"""Two measurements of Spark at their smallest: they run, and all sides agree."""

from __future__ import annotations

import pytest

from asv_benchmarks.offload.measure import in_process, offload_figures
from spark_backend.cluster.session import Session
from tests.budget import TIMES


def test_flushes_are_timed_beside_commits_in_the_process(session: Session) -> None:
    found = offload_figures("flush", "group", "300", "2", "1", "100")
    assert [*found] == ["1", "100"]
    assert all(len(seconds) == 2 for times in found.values() for seconds in times.values())
    assert all(times["flush"][0] > times["process"][0] > 0 for times in found.values())
    assert session.is_alive()


@pytest.mark.skipif(not TIMES, reason="it needs a JVM of its own; what moves is in test_hand_over")
def test_a_move_leaves_no_rows() -> None:
    """None of them is in the process."""
    found = in_process("handover", "max", 10_000)
    assert found["state"] > found["kept"] == 0
    rows = found["objects full"] - found["objects empty"]
    left = found["objects moved"] - found["objects empty"]
    assert left < 0.35 * rows  # the orders themselves stay, in their table
    assert found["seconds"] > 0 < found["recall"]

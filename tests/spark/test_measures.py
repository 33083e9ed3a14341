"""Measurements of Spark at their smallest: they run, and all sides agree."""

from __future__ import annotations

import pytest

from asv_benchmarks.offload import room
from asv_benchmarks.offload.measure import in_process, offload_figures
from spark_backend.cluster.session import Session
from tests.budget import TIMES


@pytest.mark.quick
def test_flushes_are_timed_beside_commits_in_the_process(session: Session) -> None:
    found = offload_figures("flush", "group", "300", "2", "1", "100")
    assert [*found] == ["1", "100"]
    assert all(len(seconds) == 2 for times in found.values() for seconds in times.values())
    assert all(times["flush"][0] > times["process"][0] > 0 for times in found.values())
    assert session.is_alive()


@pytest.mark.parametrize("source", room.SOURCES)
def test_rows_load_from_all_sides_and_are_counted(source: str, session: Session) -> None:
    found = room.load(source, 400)
    assert found["peak"] >= found["before"] > 0 and found["jvm"] > 0
    assert session.is_alive()


@pytest.mark.parametrize("query", ["rows", "join"])
def test_views_move_and_are_what_they_were(query: str, session: Session) -> None:
    found = room.move(query, 400)
    assert found["full"] > 0 and found["where"] and session.is_alive()


@pytest.mark.skipif(not TIMES, reason="it takes a minute, and a JVM of its own for each")
@pytest.mark.parametrize("query", ["group", "join"])
def test_a_process_two_thirds_full_can_move(query: str) -> None:
    found = room.apart("move", query, 300_000)
    assert found["peak"] < 0.1 * found["state"] + room.SLACK


@pytest.mark.skipif(not TIMES, reason="it needs a JVM of its own; what moves is in test_hand_over")
def test_a_move_leaves_no_rows() -> None:
    """None of them is in the process."""
    found = in_process("handover", "max", 10_000)
    assert found["state"] > found["kept"] == 0
    rows = found["objects full"] - found["objects empty"]
    left = found["objects moved"] - found["objects empty"]
    assert left < 0.35 * rows  # the orders themselves stay, in their table
    assert found["seconds"] > 0 < found["recall"]

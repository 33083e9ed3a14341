"""The file of notices has each batch once, whatever a kill has left of it."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from examples.monitor.outbox import Outbox, read_notices
from examples.monitor.rows import Notice

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def notice(incident: int, what: str = "raised") -> Notice:
    return Notice(NOON, incident, what, "a", "high", None)


def numbers(path: Path) -> list[int]:
    return [each["incident"] for each in read_notices(path)]


def test_a_batch_that_comes_again_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    told: list[dict[str, Any]] = []
    for _ in range(2):
        with closing(Outbox(path, told.append)) as outbox:
            outbox.write(0, [(notice(1), 1)])
            outbox.write(1, [(notice(3), 1), (notice(2), 1), (notice(1), -1)])
            outbox.write(1, [(notice(3), 1), (notice(2), 1)])
            assert outbox.number == 1
    assert numbers(path) == [1, 2, 3]
    assert [each["incident"] for each in told] == [1, 2, 3]


def test_each_part_of_a_line_that_a_kill_leaves_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    with closing(Outbox(path)) as outbox:
        outbox.write(0, [(notice(1), 1)])
        first = path.read_bytes()
        outbox.write(1, [(notice(2), 1)])
    both = path.read_bytes()
    for end in range(len(first), len(both)):
        path.write_bytes(both[:end])
        assert numbers(path) == [1]
        with closing(Outbox(path)) as outbox:
            assert outbox.number == 0
            outbox.write(1, [(notice(2), 1)])
        assert path.read_bytes() == both


def test_a_batch_that_the_disk_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "told.jsonl"
    with closing(Outbox(path)) as outbox:
        outbox.write(0, [(notice(1), 1)])
        with monkeypatch.context() as patched:
            patched.setattr("os.fsync", _refuse)
            with pytest.raises(OSError, match="full"):
                outbox.write(1, [(notice(2), 1)])
        assert numbers(path) == [1]
        outbox.write(1, [(notice(2), 1)])
    assert [json.loads(line)["batch"] for line in path.read_text().splitlines()] == [0, 1]
    assert numbers(path) == [1, 2]


def _refuse(_: int) -> None:
    raise OSError("the disk is full")

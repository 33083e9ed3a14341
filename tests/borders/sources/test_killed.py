"""Exactly-once batches, when a process is killed while a source runs in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.borders.sources.killed import killed


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.parametrize("seed", [1, 2])
def test_each_batch_is_there_once_after_kills(tmp_path: Path, seed: int) -> None:
    assert killed(tmp_path / "a.db", seed, kills=6) > 0

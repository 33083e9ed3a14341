"""A process without room for a second copy of its state can move it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit data")
def test_a_process_that_is_two_thirds_full_can_move() -> None:
    command = [sys.executable, "-m", "tests.faults.two_thirds_full", "80000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

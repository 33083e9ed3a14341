"""A cluster with executors of its own, on this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent


def test_an_executor_that_is_killed_loses_nothing(offload: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert "right after one of 2 executors was killed" in done.stdout, done.stderr[-2000:]

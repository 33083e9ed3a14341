"""CPU seconds of a workload include all processes that it starts, even unawaited ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

from asv_benchmarks.offload.cpu import PROC, took

WORKS = """
import time
while time.process_time() < 0.5:
    pass
time.sleep(0.3)
"""
LEAVES = """
import signal, subprocess, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", sys.argv[1]]).wait()
"""
"""Program that starts workers, and does not learn their CPU time."""


@pytest.mark.skipif(not PROC.exists(), reason="what processes take is not known here")
def test_what_processes_took_that_nobody_waited_for_counts() -> None:
    command = [sys.executable, "-c", LEAVES, WORKS]
    assert took(lambda: subprocess.run(command, check=True)).cpu >= 0.4
    assert took(lambda: None).cpu < 0.4

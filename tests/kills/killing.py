"""Find processes below one, by their kind, and kill one of them by a signal without handler."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

KINDS: dict[str, Callable[[str], bool]] = {
    "worker": lambda command: "pyspark.daemon" in command or "pyspark.worker" in command,
    "executor": lambda command: "CoarseGrainedExecutorBackend" in command,
    "JVM": lambda command: "org.apache.spark.deploy.SparkSubmit" in command,
}
"""Recognize the command line of each kind of process."""
DRIVER = "driver"
"""The process itself."""


def kill(kind: str, pid: int, draw: Random) -> bool:
    """Kill a process of a kind, below one or that one; whether there was any."""
    found = [pid] if kind == DRIVER else _below(pid, KINDS[kind])
    if not found:
        return False
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(draw.choice(found), signal.SIGKILL)
        return True
    return False


def _below(pid: int, is_one: Callable[[str], bool]) -> list[int]:
    """The processes below one whose command lines are such."""
    parents, commands = dict[int, int](), dict[int, str]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                stat = (folder / "stat").read_text()
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().decode(errors="replace")
                )
    return [one for one, command in commands.items() if is_one(command) and _is(one, pid, parents)]


def _is(one: int, below: int, parents: dict[int, int]) -> bool:
    while one in parents and one != below:
        one = parents[one]
    return one == below

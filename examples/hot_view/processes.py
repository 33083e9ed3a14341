"""This process and the JVM that it has started, as the operating system sees them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PS = ("ps", "-A", "-o", "pid=,ppid=,rss=,comm=")
FIELDS = ("Pid", "PPid", "VmRSS", "Name")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that runs; `memory` is how many bytes of it are in main memory."""

    number: int
    parent: int
    memory: int
    name: str


def this_one() -> Process:
    """Return this process."""
    own = os.getpid()
    return next(process for process in _all([str(own)]) if process.number == own)


def jvm() -> Process | None:
    """Return the Java process that this one has started, if it has."""
    own = os.getpid()
    return next((p for p in _all() if p.parent == own and p.name == "java"), None)


def kill(process: Process) -> None:
    """Kill a process immediately, by SIGKILL."""
    os.kill(process.number, signal.SIGKILL)


def _all(numbers: list[str] | None = None) -> Iterator[Process]:
    """Yield the processes of these numbers, or all; by `ps` where there is no `/proc`."""
    if not (PROC / "self" / "status").exists():
        shown = subprocess.run(PS, capture_output=True, text=True, check=True).stdout
        yield from (_process(*line.split(maxsplit=3)) for line in shown.splitlines())
        return
    for number in numbers or (p.name for p in PROC.iterdir() if p.name.isdecimal()):
        with suppress(OSError, KeyError):  # it has ended, or has no memory of its own
            status = (PROC / number / "status").read_text()
            found = dict(line.split(":", 1) for line in status.splitlines())
            yield _process(*(found[field] for field in FIELDS))


def _process(number: str, parent: str, kilobytes: str, name: str) -> Process:
    return Process(
        int(number), int(parent), int(kilobytes.split()[0]) * 1024, Path(name.strip()).name
    )

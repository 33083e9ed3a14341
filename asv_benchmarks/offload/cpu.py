"""CPU seconds of this process and of all that it has started: the JVM, and Python workers.

On a machine that does other things as well, these tell more than the seconds on the clock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock, and of CPU; the latter are 0 where there is no `/proc`."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s, {self.cpu:6.2f} s of CPU"


def took(work: Callable[[], object]) -> Took:
    """What some work takes."""
    cpu, began = spent(), perf_counter()
    work()
    return Took(perf_counter() - began, spent() - cpu)


def spent() -> float:
    """CPU seconds so far, also of processes that have ended."""
    parents, times = _processes()
    own, tick = os.getpid(), os.sysconf("SC_CLK_TCK")
    return sum(of for number, of in times.items() if _is_below(number, own, parents)) / tick


def _is_below(number: int, own: int, parents: dict[int, int]) -> bool:
    while number in parents and number != own:
        number = parents[number]
    return number == own


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """The parents of all processes, and their ticks with those of children that they waited for."""
    parents, times = dict[int, int](), dict[int, int]()
    for folder in PROC.iterdir() if PROC.exists() else ():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
                times[int(folder.name)] = sum(map(int, fields[11:15]))
    return parents, times

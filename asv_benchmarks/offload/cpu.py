"""CPU seconds of this process and of all that it has started: the JVM, and Python workers.

On a machine that does other things as well, these tell more than the seconds on the clock.

No process waits for Python workers that end, so no process gets their times. Therefore they are
sampled now and then while work is measured, and the last sample counts. The time of the sampling
does not count.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time
from typing import Self

PROC = Path("/proc")
EVERY = 0.2
"""Seconds between looks."""
Began = tuple[int, int]
"""A process by its number and its start, because numbers are reused."""


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock, and of CPU; the latter are 0 where there is no `/proc`."""

    seconds: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.seconds:7.2f} s, {self.cpu:6.2f} s of CPU"


def took(work: Callable[[], object]) -> Took:
    """Return the seconds and CPU seconds of some work."""
    with Watch() as watch:
        began = perf_counter()
        work()
        seconds = perf_counter() - began
    return Took(seconds, watch.spent)


class Watch:
    """Measure the CPU seconds that this process and its children spend inside the block."""

    def __init__(self) -> None:
        self._before: dict[Began, int] = {}
        self._seen: dict[Began, int] = {}
        self._looking = 0.0
        self._is_over = threading.Event()
        self._looks = threading.Thread(target=self._look, name="reactive-watch", daemon=True)

    def __enter__(self) -> Self:
        self._before = _taken()
        self._seen = dict(self._before)
        self._looks.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._looks.join()
        self._seen.update(_taken())

    @property
    def spent(self) -> float:
        """CPU seconds, also of processes that have ended."""
        ticks = sum(of - self._before.get(began, 0) for began, of in self._seen.items())
        return max(0.0, ticks / os.sysconf("SC_CLK_TCK") - self._looking)

    def _look(self) -> None:
        while not self._is_over.wait(EVERY):
            self._seen.update(_taken())
            self._looking = thread_time()


def _taken() -> dict[Began, int]:
    """Return the ticks of this process and of each below it."""
    parents, times = dict[int, int](), dict[int, Began]()
    ticks = dict[int, int]()
    for folder in PROC.iterdir() if PROC.exists() else ():
        if folder.name.isdecimal():
            with suppress(OSError):  # it has ended
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                number = int(folder.name)
                parents[number], times[number] = int(fields[1]), (number, int(fields[19]))
                ticks[number] = int(fields[11]) + int(fields[12])
    own = os.getpid()
    return {times[n]: of for n, of in ticks.items() if _is_below(n, own, parents)}


def _is_below(number: int, own: int, parents: dict[int, int]) -> bool:
    while number in parents and number != own:
        number = parents[number]
    return number == own

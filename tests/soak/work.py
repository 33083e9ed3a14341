"""Worker process: play histories, and report differences."""

from __future__ import annotations

import gc
import logging
import signal
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.soak.cases import case_of
from tests.soak.play import play

SECONDS = 120
"""Seconds after which a history counts as endless."""


class Played(NamedTuple):
    """The results of some histories."""

    seeds: range
    commits: int
    differences: Sequence[tuple[int, str]]


class EndlessError(BaseException):
    """An error that is no `Exception`, so that no handler continues after it."""


def quiet() -> None:
    """Silence the warnings of the library about repairs."""
    logging.getLogger("reactive").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")


def serve(pipe: Any) -> None:
    """Play the seeds that arrive through a pipe, until None arrives."""
    quiet()
    while (seeds := pipe.recv()) is not None:
        pipe.send(played(seeds))


def played(seeds: range) -> Played:
    gc.collect()
    gc.freeze()  # collections then scan only the objects of these histories
    commits, differences = 0, []
    for seed in seeds:
        made, told = played_one(seed)
        commits += made
        if told is not None:
            differences.append((seed, told))
    return Played(seeds, commits, differences)


def played_one(seed: int) -> tuple[int, str | None]:
    """Return the commits of a history, and its difference, if any."""

    def stop(number: int, frame: object) -> None:
        raise EndlessError(f"not at an end after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return play(case_of(seed)), None
    except (Exception, EndlessError):
        return 0, f"seed {seed}\n{traceback.format_exc()[-2_000:]}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

"""How long commits take; and a line of the log for each, at level DEBUG of the logger "reactive".

Most commits change a row and take a microsecond or two, of which nobody is to spend a tenth on
looking at a clock. So commits of few rows are timed only while they are logged, and some after
somebody has asked for times, of which the others are taken as alike.

State:  a few numbers.
Cost:   0.03 us to look whether they are logged; half a microsecond for a commit that is timed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from logging import DEBUG
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactive.engine.dataflow.schedule import Fed

log = logging.getLogger("reactive")
is_logged = log.isEnabledFor
"""Whether commits are logged, asked with the level `DEBUG`."""
may_be_logged: Callable[[int, bool], bool] = vars(log)["_cache"].get
"""As that, without a call of Python code: what the logger remembers of its answers, by level. It
forgets them when a level changes, so whoever finds none there asks."""
SAMPLES = 64
"""Commits of few rows that are timed after somebody has asked, thrice as many at first: of these
some prove that a table is in use, and the last run as all others will."""
LAST = 8
"""Commits of few rows that the mean is of, roughly: the first ones generate code."""


class CommitTimes:
    """The seconds that the commits of a database have taken; those not timed are taken as alike."""

    __slots__ = ("_estimated", "_mean", "_seconds", "_timed", "_untimed", "_window", "wanted")

    def __init__(self) -> None:
        self._timed = 0
        self._seconds = 0.0
        self._untimed = 0  # the commits that have been estimated
        self._estimated = 0.0
        self._mean = 0.0  # of a commit of few rows
        self._window = 0  # how many that is the mean of
        self.wanted = 3 * SAMPLES
        """Commits of few rows that are still to be timed."""

    def note(self, seconds: float, version: int, deltas: Sequence[Fed], *, few: bool) -> None:
        """A commit, of few rows or of many, has been made, and took so long."""
        self._timed += 1
        self._seconds += seconds
        if few:
            self._window += self._window < LAST
            self._mean += (seconds - self._mean) / self._window
            self.wanted -= self.wanted > 0
        if is_logged(DEBUG):
            changed = ", ".join(f"{node.plan.name}: {_rows(len(delta))}" for node, delta in deltas)  # type: ignore[union-attr]
            log.debug("commit %d (%s) in %.3f ms", version, changed, 1000 * seconds)

    def pass_over(self, commits: int) -> None:
        """These were made in another process."""
        self._untimed += commits

    def total(self, version: int) -> float:
        """The seconds up to a version, and from now on some commits of few rows are timed."""
        untimed = version - self._timed - self._untimed
        mean = self._mean or self._seconds / max(self._timed, 1)
        self._untimed += untimed
        self._estimated += untimed * mean
        self._window, self.wanted = 0, SAMPLES
        return self._seconds + self._estimated


def _rows(count: int) -> str:
    return f"{count} row" + "s" * (count != 1)

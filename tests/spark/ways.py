"""Choose how flushes run: by jobs of Spark, or in this process for few rows.

Both read and write the same tables, so that a history may have both.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from spark_backend.bucketed import remote as bucketed
from spark_backend.direct import flush
from spark_backend.fragments import shared
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import PLANS
from spark_backend.state.tables import StateTables

NEVER = -1
"""No flush is of so few rows."""


@contextmanager
def way(*, is_job: bool) -> Iterator[None]:
    """Make all flushes jobs; or only flushes of many rows, and steps that only jobs run."""
    with patch.object(flush, "MOST_DIRECT", NEVER if is_job else flush.MOST_DIRECT):
        yield


@contextmanager
def jobs() -> Iterator[list[int]]:
    """The numbers of the flushes that are done by jobs meanwhile; why they are is logged."""
    numbers: list[int] = []
    real = StateTables.flush
    log = logging.getLogger("reactive")
    level = log.level

    def noted(self: StateTables, number: int, *given: Any, **named: Any) -> None:
        numbers.append(number)
        real(self, number, *given, **named)

    log.setLevel(logging.DEBUG)
    try:
        with patch.object(StateTables, "flush", noted):
            yield numbers
    finally:
        log.setLevel(level)


class Ways:
    """Choose the way of each flush of a history by a seed: one in three is a job."""

    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed)

    @contextmanager
    def next(self) -> Iterator[None]:
        """For the next flush."""
        with way(is_job=not self._random.randrange(3)):
            yield

    @contextmanager
    def each(self) -> Iterator[None]:
        """Choose a way for each flush in this context."""

        def check(tables: StateTables, changed: int) -> None:
            if not self._random.randrange(3):
                raise flush.TooMany("a flush that is to be a job")
            flush.check_few(tables, changed)

        with patch.object(shared, "check_few", check), patch.object(bucketed, "check_few", check):
            yield


def begun(remote: StateRemote) -> StateRemote:
    """Return a remote as if its first flush, number 0, had no rows, without a job."""
    member = remote._member
    remote.shared.tables.put(0, {}, tokens={PLANS: [member.name]})
    member.is_loaded, member.applied, member.told = True, 0, 0
    return remote

"""A flush is tried again where it fails, as one that failed has changed nothing.

Where a callable of the query raised, it is done again together with what comes next: that may take
the row away that made it raise.

State:  what flushes were of that have failed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from reactive.engine.collections.zset import Row
from reactive.engine.remote.external import ExternalInput
from reactive.engine.remote.remote import Batch, Entry
from reactive.errors import OffloadError, TakenIn
from spark_backend.cluster.refusals import said
from spark_backend.cluster.session import Session
from spark_backend.state.tables import StateTables

T = TypeVar("T")
log = logging.getLogger("reactive")
TRIES = 3
"""How often a flush is tried again."""


def tried(
    attempt: Callable[[], None],
    session: Session,
    goes_on: Callable[[Exception], bool],
    tables: StateTables,
) -> None:
    """Run an attempt, until it succeeds.

    Parameters
    ----------
    goes_on: what to do about an error; whether it is worth another try.
    tables: what it writes to.

    Raises
    ------
    TakenIn: a callable of the query raised.
    OffloadError: it failed each time, or in the same way in a session that is there; or state has
        been removed.
    """
    try:
        _tried(attempt, session, goes_on)
    except TakenIn:
        raise
    except OffloadError:
        tables.check()  # it says more
        raise


def if_spark_can(session: Session, read: Callable[[], T]) -> T | None:
    """What is read with Spark; None if it is gone, or cannot do it now."""
    try:
        session.restart()
        return read()
    except Exception as error:
        log.warning("offloading: read without Spark: %s", said(error))
        return None


def _tried(
    attempt: Callable[[], None], session: Session, goes_on: Callable[[Exception], bool]
) -> None:
    for number in range(TRIES + 1):
        try:
            return attempt()
        except OffloadError:
            raise
        except Exception as error:
            failed = error
            if not goes_on(error) and number and session.is_alive():
                break
    raise OffloadError(
        f"Spark failed at a flush: {said(failed)}\n"
        "  the changes are kept and will be tried again at the next flush"
    ) from failed


class Owed:
    """What is to be taken in: by numbers that failed, and by the next one."""

    def __init__(self) -> None:
        self._by_number: dict[int, Batch] = {}

    @property
    def is_late(self) -> bool:
        """Whether some of it is of numbers that failed."""
        return len(self._by_number) > 1

    def added(self, number: int, entries: Sequence[Entry], fed: Sequence[ExternalInput]) -> Batch:
        """All of it, with what comes with a number; that may come again. What has gone since is
        not there any more."""
        self._by_number[number] = (entries, fed)
        if not self.is_late:
            return entries, fed
        weights: Counter[tuple[int, int, Row]] = Counter()
        places: dict[int, ExternalInput] = {}
        for given, sources in self._by_number.values():
            for *entry, weight in given:
                weights[tuple(entry)] += weight
            for source in sources:
                first = places.get(source.place, source)
                places[source.place] = replace(first, upto=source.upto)
        return [(*entry, n) for entry, n in weights.items() if n], list(places.values())

    def clear(self) -> None:
        """It has been taken in."""
        self._by_number = {}

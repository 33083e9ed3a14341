"""The batches of what is followed: of a query of Spark, of a DataFrame, of one snapshot after the
other.

    Spark's thread    batch n --hand over--> waits until it is done --> notes in its checkpoint
    ours                        `--> take --> commit --> done

So Spark notes a batch after the table has it: killed in between, it gives the same batch again,
with the same number, and the table knows that it has it.

State:  Spark's own checkpoint.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame

from reactive.engine.remote.streams import FrameBatch, StreamOptions
from reactive.engine.runtime import intervals
from reactive.errors import SourceError
from spark_backend.cluster.session import Session

LOOK = 0.1
"""Seconds after which it is looked whether a query still runs, or is to stop."""
ONCE, SNAPSHOT = "rows", "snapshot"
"""Stand for the query of what is none."""
AT_ONCE = "available now"


class Batches:
    """The batches of a stream, each with its number.

    Parameters
    ----------
    frame: makes the DataFrame in the session of now.
    checkpoint: the folder of the query.
    """

    def __init__(
        self,
        session: Session,
        frame: Callable[[], DataFrame],
        checkpoint: str,
        options: StreamOptions,
    ) -> None:
        self._session, self._frame = session, frame
        self._checkpoint, self._options = checkpoint, options
        self._every = seconds(options.trigger)
        self._query: Any = None

    def since(self, last: int | None, stop: threading.Event) -> Iterator[FrameBatch]:
        """The batches after a number; a query may give the last one again."""
        self._session.restart()
        if self._options.changes == "snapshot":
            yield from self._snapshots(-1 if last is None else last, stop)
            return
        frame = self._frame()
        if frame.isStreaming:
            yield from self._of_query(frame, stop)
        elif last is None:
            yield FrameBatch(frame, ONCE, 0, time.time())

    def waiting(self) -> int | None:
        """How many rows the source of a query has beyond its last batch, if it tells."""
        query = self._query
        progress = None
        if query is not None:
            with suppress(Exception):  # of a JVM that is gone
                progress = query.lastProgress
        return None if progress is None else behind(progress)

    def _snapshots(self, last: int, stop: threading.Event) -> Iterator[FrameBatch]:
        while not stop.is_set():
            last += 1
            yield FrameBatch(self._frame(), SNAPSHOT, last, time.time())
            if self._every is None:
                return
            stop.wait(self._every)

    def _of_query(self, frame: DataFrame, stop: threading.Event) -> Iterator[FrameBatch]:
        exchange = _Exchange()
        writer = frame.writeStream.foreachBatch(exchange.hand_over)
        writer = writer.option("checkpointLocation", self._checkpoint)
        if self._every is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(self._every * 1000)} milliseconds")
        query = self._query = writer.start()
        try:
            while not stop.is_set():
                found = exchange.take()
                if found is not None:
                    rows, number, made = found
                    yield FrameBatch(rows, str(query.id), number, made)
                    exchange.done()
                elif not query.isActive:
                    self._raise_of(query)
                    return
        finally:
            self._query = None
            exchange.close()
            with suppress(Exception):  # of a JVM that is gone
                query.stop()

    def _raise_of(self, query: Any) -> None:
        error = query.exception()
        if error is not None:
            told = str(error).strip().partition("\n")[0]
            raise SourceError(
                f"the query of the stream has failed: {told:.500}\n"
                "  start the source again when the cause is mended; it goes on at the same batch"
            ) from error


class _Exchange:
    """Hands batches of Spark's thread to ours, one at a time."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._batch: tuple[DataFrame, int, float] | None = None
        self._is_over = False

    def hand_over(self, rows: DataFrame, number: int) -> None:
        """What Spark calls with a batch: comes back when it is committed."""
        with self._news:
            self._batch = (rows, number, time.time())
            self._news.notify_all()
            while self._batch is not None:
                if self._is_over:
                    raise RuntimeError("the source was stopped before the batch was committed")
                self._news.wait()

    def take(self) -> tuple[DataFrame, int, float] | None:
        """The batch that waits, if there is one soon."""
        with self._news:
            if self._batch is None:
                self._news.wait(LOOK)
            return self._batch

    def done(self) -> None:
        """The batch is committed."""
        with self._news:
            self._batch = None
            self._news.notify_all()

    def close(self) -> None:
        """Nobody takes batches any more."""
        with self._news:
            self._is_over = True
            self._news.notify_all()


def seconds(trigger: str | float) -> float | None:
    """The seconds between batches; None for what is there now.

    Raises
    ------
    PlanError: it says no time.

    >>> seconds("10s"), seconds(0), seconds("available now")
    (10.0, 0.0, None)
    """
    if trigger == AT_ONCE:
        return None
    otherwise = '0 for as soon as rows come, or "available now" for those that are there'
    return intervals.seconds(trigger, otherwise=otherwise, may_be_zero=True)


def behind(progress: Mapping[str, Any]) -> int | None:
    """How far the ends of a batch are before the latest offsets, where both are numbers by
    partition, as those of Kafka are.

    >>> behind({"sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 7}}}]})
    2
    >>> behind({"sources": [{"endOffset": None, "latestOffset": None}]})
    """
    found = [
        _difference(source.get("endOffset"), source.get("latestOffset"))
        for source in progress.get("sources", ())
    ]
    known = [number for number in found if number is not None]
    return sum(known) if found and len(known) == len(found) else None


def _difference(end: Any, latest: Any) -> int | None:
    if isinstance(end, int) and isinstance(latest, int):
        return max(0, latest - end)
    if isinstance(latest, Mapping) and isinstance(end, Mapping):
        parts = [_difference(end.get(key, 0), value) for key, value in latest.items()]
        return None if None in parts else sum(part for part in parts if part is not None)
    return None

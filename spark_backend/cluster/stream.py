"""A streaming query over a mailbox: what is put into the mailbox comes out as a change, once.

    put file N  ->  Spark reads it as batch N - base, in update mode
                ->  the groups that it touched  --output-->  rows to the driver

One file is one number is one batch. A file that is in the mailbox has been taken in, whatever
happens next: a query that fails goes on from its checkpoint, with the batch that it was at, and a
batch that is run again changes nothing twice. Without a checkpoint that can be read, or where much
more was given than is left, a new generation of the mailbox begins.

State:  Spark's state store, and the mailbox.
Cost:   per flush some 0.3 s, and what its groups take; O(state) for a new generation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from reactive.errors import OffloadError
from spark_backend.cluster.mailbox import Fold, Mailbox
from spark_backend.cluster.session import Session

TRIES = 3
"""How often a query is started for a number: the first time, and after it failed."""
GROWN = 100_000
"""Entries since the last generation began, from which on it is asked whether there are too many."""
LOOK = 0.25
"""Seconds after which it is looked whether the query that is waited for still runs."""
Frame = Any
"""A Spark DataFrame."""
_TYPES = {
    "int64": "long",
    "int8": "byte",
    "int32": "int",
    "binary": "binary",
    "double": "double",
    "string": "string",
    "bool": "boolean",
}


class Stream:
    """The query of a part.

    Parameters
    ----------
    aggregate: from the entries, as columns of the mailbox's schema, to groups; for update mode.
    output: what a batch gives, of the groups that it touched and its number.
    fold: the entries of some buckets to fewer ones that mean the same.
    """

    def __init__(
        self,
        session: Session,
        mailbox: Mailbox,
        *,
        aggregate: Callable[[Frame], Frame],
        output: Callable[[Frame, int], Frame],
        fold: Fold,
    ) -> None:
        self.mailbox = mailbox
        self._session = session
        self._aggregate = aggregate
        self._output = output
        self._fold = fold
        self._run: _Run | None = None
        self._last: tuple[int, pa.Table | None] = (-1, None)
        numbers = mailbox.numbers()
        self.resumed: int | None = numbers[-1] if numbers else None
        self.applied = -1 if self.resumed is None else self.resumed

    def apply(
        self, number: int, table: pa.Table | Frame, *, quiet: bool = False
    ) -> pa.Table | None:
        """Take in what came with a number, and give what `output` made of it, unless `quiet`.

        It comes as an Arrow table, or as a Spark DataFrame.

        Raises
        ------
        OffloadError: Spark is gone, or the query cannot be brought to go on.
        """
        if number == self._last[0]:
            return self._last[1]
        self._put(number, table)
        out = self._driven(number, quiet=quiet)
        self._last, self.applied = (number, out), number
        first, later = self.mailbox.rows()
        if later > max(GROWN, 2 * first):
            self.renew(number)
        return out

    def _put(self, number: int, table: pa.Table | Frame) -> None:
        if isinstance(table, pa.Table):
            self.mailbox.put(number, table)
        else:
            self.mailbox.put_frame(number, table)

    def renew(self, upto: int) -> None:
        """Begin a new generation of the mailbox, which is what was given up to a number."""
        self.stop()
        self.mailbox.renew(self._fold, upto)

    def stop(self) -> None:
        """Stop the query; the next `apply` starts it again."""
        run, self._run = self._run, None
        if run is not None:
            run.let_go()
            with suppress(Exception):  # of a JVM that is gone
                run.query.stop()

    def _driven(self, number: int, *, quiet: bool) -> pa.Table | None:
        for attempt in range(TRIES + 1):
            try:
                return self._attempt(number, quiet=quiet)
            except OffloadError:
                raise
            except Exception as error:
                failed = error
                self.stop()
                if attempt == TRIES - 1:  # its checkpoint may be what is wrong
                    self.mailbox.renew(self._fold, number - 1)
        raise OffloadError(
            f"Spark failed {TRIES + 1} times at the same changes: {_short(failed)}\n"
            "  they are kept and will be tried again at the next flush"
        ) from failed

    def _attempt(self, number: int, *, quiet: bool) -> pa.Table | None:
        if not self._session.is_alive():
            self.stop()
            self._session.restart()
        wanted = None if quiet else number
        run = self._run = self._run or self._started(number, wanted)
        for earlier in self.mailbox.numbers():
            if run.asked < earlier < number:
                run.ask(self.mailbox, earlier, wanted)
        return run.ask(self.mailbox, number, wanted)

    def _started(self, number: int, wanted: int | None) -> _Run:
        """The query, going on from where its checkpoint says."""
        mailbox = self.mailbox
        if mailbox.batches("commits") >= number - mailbox.base:
            mailbox.renew(self._fold, number - 1)  # it was done, and what came of it is lost
        begun = max(mailbox.batches("offsets"), mailbox.batches("commits"))
        run = _Run(self._output, mailbox.base, mailbox.base + begun, wanted)
        source = self._session.spark.readStream.schema(_ddl(mailbox.schema))
        entries = source.option("maxFilesPerTrigger", 1).parquet(mailbox.inbox)
        run.query = (
            self._aggregate(entries)
            .writeStream.outputMode("update")
            .foreachBatch(run.take)
            .option("checkpointLocation", mailbox.checkpoint)
            .start()
        )
        return run


@dataclass
class _Run:
    """A query from its start to its end.

    `asked` is the last number that the query was given, `wanted` the one whose output is. What a
    query before it had begun with and not done comes again by itself.
    """

    output: Callable[[Frame, int], Frame]
    base: int
    asked: int
    wanted: int | None
    query: Any = None
    _is_over: bool = False
    _done: dict[int, pa.Table | None] = field(default_factory=dict)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def ask(self, mailbox: Mailbox, number: int, wanted: int | None) -> pa.Table | None:
        """Have the query take a number in, and wait for that."""
        mailbox.take_out(number - 1)
        if number > self.asked:
            mailbox.post(number)
        with self._news:
            self.wanted, self.asked = wanted, max(number, self.asked)
            self._news.notify_all()
            while number not in self._done:
                if not self._news.wait(LOOK) and not self.query.isActive:
                    raise self.query.exception() or RuntimeError("the query has been stopped")
            return self._done[number]

    def take(self, groups: Frame, batch: int) -> None:
        """What Spark calls with the groups that a batch touched; every batch has to be computed.

        A query without work would look for files all the time, at a fifth of a core. So it is kept
        here until there is another one; its batch is not over before.
        """
        number, out = self.base + batch, None
        if number == self.wanted:
            out = self.output(groups, number).toArrow()
        else:
            groups.write.format("noop").mode("overwrite").save()
        with self._news:
            self._done = {number: out}
            self._news.notify_all()
            while self.asked <= number and not self._is_over:
                self._news.wait()

    def let_go(self) -> None:
        """Keep the query no longer."""
        with self._news:
            self._is_over = True
            self._news.notify_all()


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"`{f.name}` {_TYPES[str(f.type)]}" for f in schema)


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]:.300}"

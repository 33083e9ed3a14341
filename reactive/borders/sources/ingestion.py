"""An ingestion: a thread that takes the batches of a source, and commits each.

                     waiting             the source waits for its server, and says so
                       ^ v
    new --start--> running --+--> ended      the source is finished
                     ^       +--> stopped    `stop()`, or the database was closed
                     |       +--> failed     the source, or a commit, raised: `error`
                     +-start--------+

However it ends, the tables are as of the last committed batch, and the token is that of this batch:
`start` continues from there, so that every batch is committed exactly once.

State:  the ledger of the source (`ledger.py`), and the last tokens, for `wait`.
Cost:   of a batch that of its commit.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

from optimizer.errors import PlanError
from reactive.api.literal import RowError
from reactive.api.view import View
from reactive.borders.sources.batch import Batch, OnRefusal, Source, Token, check_policy
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Closeable, Uncopyable
from reactive.engine.runtime.lag import Lag, LagClock
from reactive.errors import ClosedError, SourceError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")
State: TypeAlias = Literal["new", "running", "waiting", "stopped", "failed", "ended"]

log = logging.getLogger("reactive")
REMEMBERED = 1024
"""The number of last tokens that `wait` recognizes as committed."""
PATIENCE = 10.0
"""The seconds that `stop` waits for a source."""


class Notes(Protocol):
    """The facts recorded about a source beside its rows. `Ledger` implements it."""

    @property
    def name(self) -> str:
        """The name under which the token is stored."""
        ...

    @property
    def targets(self) -> object:
        """The tables that the source feeds; `str()` names them."""
        ...

    @property
    def view(self) -> View[Any] | None:
        """The view of rows that are left out; None if none may be."""
        ...

    @property
    def token(self) -> Token:
        """The token of the last committed batch."""
        ...

    @property
    def origins(self) -> Mapping[Hashable, tuple[Any, ...]]:
        """The rows of each origin in the tables."""
        ...

    def has_come_to(self, token: Token) -> bool:
        """Return True if the batch of `token` is known to be committed."""
        ...

    def keep_errors(self) -> None:
        """Allow rows to be left out from now on."""
        ...


@boundary
class Ingestion(Uncopyable, Closeable, Generic[T]):
    """A source that feeds tables. Created by `Database.ingest`; it runs on if nothing refers to it.

    As a context manager it is stopped at the end.

    >>> from reactive import Batch, Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> lines = ["to", "be", "or"]
    >>> def read(since, stop):
    ...     for number in range(since or 0, len(lines)):
    ...         yield Batch([lines[number]], token=number + 1)
    >>> reading = db.ingest(read, words, name="lines")
    >>> reading.wait()
    >>> list(words), reading.token, reading.state, reading.error
    (['to', 'be', 'or'], 3, 'ended', None)
    >>> lines.append("not")
    >>> reading.start()
    >>> reading.wait(token=4)
    >>> list(words)
    ['to', 'be', 'or', 'not']
    """

    def __init__(
        self,
        engine: Engine,
        source: Source[T] | None,
        notes: Notes,
        since: Token,
        commit: Callable[[Any, bool], int],
        *,
        drops: bool,
        on_stop: Callable[[Ingestion[T]], object] | None = None,
    ) -> None:
        self._engine = engine
        self._source = source
        self._notes = notes
        self._since = since
        self._commit = commit
        self._drops = drops
        self.on_stop = on_stop
        """Called with the ingestion once it has stopped, failed or ended, in its thread.

        Exceptions are logged. The callable may `start` the ingestion again. `None`: not called.
        """
        self._changed = threading.Condition()
        self._state: State = "new"
        self._error: BaseException | None = None
        self._tokens: deque[Token] = deque(maxlen=REMEMBERED)
        self._clock = LagClock()
        self._batches = self._rows = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._on_gone: weakref.finalize[..., Self] | None = None
        self._process = os.getpid()

    _copy_instead = "each call of db.ingest(...) makes another one"
    _pickle_instead = "keep its token; db.ingest(..., since=token) goes on from there"

    # Its state.

    @property
    def name(self) -> str:
        """The name of the source, under which its token is stored."""
        return self._notes.name

    @property
    def state(self) -> State:
        """The state: `new`, `running`, `waiting`, `stopped`, `failed` or `ended`.

        `waiting` for a server that does not answer; `failed` with an `error`; `ended` when the
        source has no more batches.
        """
        is_waiting = self._state == "running" and self._trouble() is not None
        return "waiting" if is_waiting else self._state

    @property
    def error(self) -> BaseException | None:
        """The exception that stopped it, that keeps it `waiting`, or that `take` raised last."""
        return self._error if self._state != "running" else self._trouble()

    @property
    def token(self) -> Token:
        """The token of the last committed batch. Tables and views read later include that batch."""
        token = self._notes.token
        return self._since if token is None else token

    @property
    def lag(self) -> Lag:
        """The lag of the tables behind the source."""
        waiting = getattr(self._source, "waiting", None)
        behind = getattr(self._source, "behind", None)
        return Lag(
            self._clock.seconds(),
            None if waiting is None else waiting(),
            None if behind is None else behind(),
        )

    @property
    def batches(self) -> int:
        """The number of batches committed."""
        return self._batches

    @property
    def rows(self) -> int:
        """The number of rows that its commits inserted or deleted."""
        return self._rows

    @property
    def origins(self) -> Mapping[Hashable, tuple[T, ...]]:
        """The rows of each origin in the tables."""
        return self._notes.origins

    @property
    def errors(self) -> View[RowError]:
        """The rows that were left out, with the reason.

        Each until the source replaces or removes it.

        A live view: read it, subscribe to it, or query it. A row without a hash is listed as its
        text.

        Raises
        ------
        PlanError: a refused row stops the source, the default of `ingest`.
        """
        if self._notes.view is None or not self._drops:
            raise PlanError(
                f"{self._called()} leaves no rows out: one that is refused stops it\n"
                '  ingest(..., on_error="drop") leaves such rows out, and tells them'
            )
        return self._notes.view

    # Running.

    def start(self, *, on_error: OnRefusal | None = None, anew: bool = False) -> None:
        """Run the source in a thread of its own; after a stop or an error, from the last token on.

        Parameters
        ----------
        on_error: the policy for refused rows from now on, as in `ingest`: `"drop"` skips a row that
            stopped it. `None` keeps the policy.
        anew: True if the source must reread all of its rows, ignoring the token; the differences
            are one commit. For a source that cannot continue from its token, such as one of
            Postgres whose slot is dropped.

        Raises
        ------
        PlanError: the policy is unknown; or the source cannot reread its rows.
        SourceError: it runs already, or another one of its name does.
        """
        self._repair(on_error, anew)
        source = self._begin("start")
        try:
            self._thread = threading.Thread(
                target=_drive,
                args=(weakref.ref(self), source, self.token, self._stop),
                name=f"reactive source {self.name}",
                daemon=True,
            )
            self._thread.start()
        except BaseException:
            self._finish(None, was_stopped=True)
            raise

    def run(self) -> None:
        """Run the source in this thread, from the last token on, until it ends or `stop` is called.

        Raises
        ------
        Exception: the source or a commit raised it.
        SourceError: it runs already, or another one of its name does.
        """
        source = self._begin("run")
        self._thread = threading.current_thread()
        try:
            _drive(weakref.ref(self), source, self.token, self._stop, inside=True)
        finally:
            if self._state == "running":
                self._finish(None, was_stopped=True)

    def take(self, batch: Batch[T]) -> None:
        """Commit a batch in this thread, for sources that push changes instead of being read.

        Raises
        ------
        Exception: the batch is refused; nothing has changed.
        SourceError: the ingestion runs, and takes the batches of its source.
        """
        self._check("take")
        running = self._engine.ingestions.get(self.name)
        if running is not None:
            raise SourceError(
                f"{self._called()} cannot take a batch: its source is running\n"
                "  ingest(None, table, name=...) leaves it to you to give batches"
            )
        try:
            self._receive(batch)
        except BaseException as error:
            self._error = error
            raise
        self._error = None

    def stop(self, timeout: float | None = PATIENCE) -> None:
        """Ask the source to stop, and wait until it has. Stopping twice is no error.

        Parameters
        ----------
        timeout: the most seconds to wait; `None` for no limit.

        Raises
        ------
        SourceError: it has not stopped in time. It will before its next batch.
        """
        self._check("stop")
        self._stop.set()
        if not self._is_stopped(timeout):
            raise SourceError(
                f"{self._called()} has not stopped within {timeout:g} s\n"
                "  where its `batches` waits for something, it has to wait for `stop` too, or look "
                "at it now and then; no other batch of it is committed"
            )

    def close(self) -> None:
        """Stop the source, as `stop` does."""
        self.stop()

    def wait(self, token: Token = None, timeout: float | None = None) -> None:
        """Wait until a batch is committed, and so in all views; or until the source ends.

        Parameters
        ----------
        token: the token of the batch. Without it, wait until the source has ended or was stopped.
        timeout: the most seconds to wait.

        Raises
        ------
        Exception: it stopped the source earlier.
        SourceError: the source was stopped, or has ended, earlier; or it was never started.
        TimeoutError: `timeout` has passed.
        """
        self._check("wait")
        if self._thread is threading.current_thread():
            raise SourceError(f"{self._called()} cannot wait for itself")
        if token is None and self._state == "new":
            raise SourceError(f"{self._called()} has not been started\n  start() it, or run() it")
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_over(token), timeout):
                what = "its end" if token is None else f"token {token!r:.100}"
                raise TimeoutError(f"{self._called()} has not come to {what} in {timeout:g} s")
            if token is not None and self._is_reached(token):
                return
            if self._error is not None:
                raise self._error
            if token is not None:
                raise SourceError(
                    f"{self._called()} has {self._state} before token {token!r:.100}\n"
                    f"  it came to {self.token!r:.100}; start() goes on from there"
                )

    # Implementation.

    def _begin(self, verb: str) -> Source[T]:
        """Register the ingestion as running, and return its source.

        Raises if it has no source, or one of its name is running.
        """
        self._check(verb)
        self._engine.check_open()
        if self._source is None:
            raise SourceError(f"{self._called()} has no batches of its own\n  give them by take()")
        with self._changed:
            running = self._engine.ingestions.setdefault(self.name, self)
            if running is not self or self._state == "running":
                raise SourceError(
                    f"{self._called()} is running already\n"
                    "  stop() that one first, or give this one another name"
                )
            self._state, self._error = "running", None
            self._stop = threading.Event()
            if self._on_gone is not None:
                self._on_gone.detach()
            self._on_gone = weakref.finalize(self, self._stop.set)
        return self._source

    def _repair(self, on_error: OnRefusal | None, anew: bool) -> None:
        """Change the policy of a stopped ingestion, or make its source reread all rows.

        Raises `SourceError` if it runs, `PlanError` if the source cannot reread its rows.
        """
        if on_error is None and not anew:
            return
        self._check("start")
        if self._state == "running":
            raise SourceError(f"{self._called()} is running already\n  stop() it first")
        begin_anew = getattr(self._source, "begin_anew", None)
        if anew and begin_anew is None:
            raise PlanError(
                f"{self._called()} cannot be read anew: it has no begin_anew()\n"
                "  start() goes on from its token; under another name a source begins anew"
            )
        if on_error is not None:
            check_policy(on_error)
            if on_error == "drop":
                self._notes.keep_errors()
            self._drops = on_error == "drop"
        if begin_anew is not None and anew:
            begin_anew()

    def _trouble(self) -> BaseException | None:
        """Return the reason why the source waits for a server; None if it does not."""
        ask = getattr(self._source, "trouble", None)
        return None if ask is None else ask()

    def _check(self, verb: str) -> None:
        """Raise if the ingestion cannot be used in this process or inside this transaction."""
        if os.getpid() != self._process:
            raise SourceError(
                f"{self._called()} runs in the process that this one was forked from\n"
                "  ingest in this process, with another source"
            )
        if self._engine.mine is not None:
            raise TransactionError(
                f"{self._called()}: {verb}() inside a transaction, which its commits wait for\n"
                "  do it after the `with` block"
            )

    def _receive(self, batch: Batch[T]) -> None:
        """Commit a batch, and wake waiting threads."""
        self._clock.arrives(getattr(batch, "made", None))
        rows = self._commit(batch, self._drops)
        self._clock.is_committed()
        with self._changed:
            self._batches += 1
            self._rows += rows
            if batch.token is not None:
                self._tokens.append(batch.token)
            self._changed.notify_all()

    def _finish(self, error: BaseException | None, *, was_stopped: bool) -> None:
        """Record that the ingestion no longer runs.

        error: the exception that has ended it. was_stopped: True for `stop`, False if its
        source ended.
        """
        tell = getattr(self._source, "stopped_by", None)
        if tell is not None:
            tell(error)
        with self._changed:
            self._free_name()
            self._error, self._thread = error, None
            self._state = "failed" if error else "stopped" if was_stopped else "ended"
            self._changed.notify_all()

    def _tell(self) -> None:
        """Call `on_stop`, after the ingestion has ended."""
        if self.on_stop is None:
            return
        try:
            self.on_stop(self)
        except Exception:
            log.exception("on_stop of source %r has raised", self.name)

    def _leave(self) -> None:
        """Ask the source to stop, without waiting, and free its name. The caller holds the lock."""
        self._stop.set()
        self._free_name()

    def _free_name(self) -> None:
        """Let another ingestion run under this name."""
        if self._engine.ingestions.get(self.name) is self:
            del self._engine.ingestions[self.name]

    def _is_stopped(self, patience: float | None) -> bool:
        """Wait until it does not run, at most `patience` seconds; True if so.

        Also True, without waiting, in the thread that runs it, and in a fork of its
        process.
        """
        if self._thread is threading.current_thread() or os.getpid() != self._process:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: self._state != "running", patience)

    def _is_over(self, token: Token) -> bool:
        """Return True if there is nothing to wait for: it has ended, or the batch is committed."""
        if self._state in ("stopped", "failed", "ended"):
            return True
        return token is not None and self._is_reached(token)

    def _is_reached(self, token: Token) -> bool:
        return token in self._tokens or bool(self._notes.has_come_to(token))

    def _called(self) -> str:
        return f"source {self.name!r}"

    def __repr__(self) -> str:
        error = self.error
        parts = [
            self.state if error is None else f"{self.state}: {error!r}",
            _number_of(self._batches, "batch", "batches"),
            _number_of(self._rows, "row", "rows"),
            f"token {self.token!r:.60}",
            f"behind {self.lag}",
        ]
        return f"Ingestion({self.name!r} into {self._notes.targets}, {', '.join(parts)})"


def _number_of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _drive(
    reference: weakref.ref[Ingestion[Any]],
    source: Source[Any],
    since: Token,
    stop: threading.Event,
    *,
    inside: bool = False,
) -> None:
    """Take the batches of a source until it ends, must stop, or its ingestion is freed.

    An exception that stops it is raised if this is `inside` a call of the user.
    """
    error: BaseException | None = None
    try:
        _take_all(reference, source, since, stop)
    except Exception as raised:
        if not (stop.is_set() and isinstance(raised, ClosedError)):
            error = raised
    except BaseException as raised:
        if inside:
            raise
        error = raised
    ingestion = reference()
    if ingestion is not None:
        ingestion._finish(error, was_stopped=stop.is_set())
        if error is not None and not inside:
            told = (ingestion.name, ingestion.token)
            log.error("source %r stopped, at token %r", *told, exc_info=error)
        ingestion._tell()
    if error is not None and inside:
        raise error


def _take_all(
    reference: weakref.ref[Ingestion[Any]],
    source: Source[Any],
    since: Token,
    stop: threading.Event,
) -> None:
    """Take the batches of a source until it ends, is to stop, or the ingestion is garbage."""
    batches = iter(source.batches(since, stop))
    try:
        for batch in batches:
            ingestion = reference()
            if ingestion is None or stop.is_set():
                return
            ingestion._receive(batch)
            del ingestion, batch
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()

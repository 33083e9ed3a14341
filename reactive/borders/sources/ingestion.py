"""A source at work: a thread takes its batches, and each becomes a commit.

                     waiting             the source waits for its server, and says so
                       ^ v
    new --start--> running --+--> ended      the source has no more
                     ^       +--> stopped    `stop()`, or the database was closed
                     |       +--> failed     it, or a commit of its batch, has raised: `error`
                     +-start--------+

Whatever ends it, the tables are as after the last batch that was committed, and its token says
which that is: `start` goes on from there, so every batch is in them once.

State:  what is noted of the source (`ledger.py`), and the last tokens, for those who wait.
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
from reactive.engine.runtime.closeable import Closeable, NotCopied
from reactive.engine.runtime.lag import Clock, Lag
from reactive.errors import ClosedError, SourceError, TransactionError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine

T = TypeVar("T")
State: TypeAlias = Literal["new", "running", "waiting", "stopped", "failed", "ended"]

log = logging.getLogger("reactive")
REMEMBERED = 1024
"""Tokens that `wait` knows to have been committed."""
PATIENCE = 10.0
"""Seconds that `stop` waits for a source."""


class Notes(Protocol):
    """What is noted of a source beside its rows. `Ledger` is one."""

    @property
    def name(self) -> str:
        """By which its token is kept."""
        ...

    @property
    def targets(self) -> object:
        """The tables that it feeds, as text."""
        ...

    @property
    def view(self) -> View[Any] | None:
        """The rows that are left out, if any may be."""
        ...

    @property
    def token(self) -> Token:
        """That of the last batch that was committed."""
        ...

    @property
    def origins(self) -> Mapping[Hashable, tuple[Any, ...]]:
        """The rows of each origin that are in tables."""
        ...

    def has_come_to(self, token: Token) -> bool:
        """Whether the batch of a token is committed, as far as what is noted tells."""
        ...

    def keep_errors(self) -> None:
        """From now on rows may be left out."""
        ...


@boundary
class Ingestion(NotCopied, Closeable, Generic[T]):
    """A source that feeds tables. Made by `Database.ingest`; it goes on if nobody holds it.

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
        """Called with this when it has stopped, failed or ended, in the thread that ran it; what
        it raises is logged. It may `start` it again. `None`: nobody is told."""
        self._changed = threading.Condition()
        self._state: State = "new"
        self._error: BaseException | None = None
        self._tokens: deque[Token] = deque(maxlen=REMEMBERED)
        self._clock = Clock()
        self._batches = self._rows = 0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._on_gone: weakref.finalize[..., Self] | None = None
        self._process = os.getpid()

    _copy_instead = "each call of db.ingest(...) makes another one"
    _pickle_instead = "keep its token; db.ingest(..., since=token) goes on from there"

    # What it says of itself.

    @property
    def name(self) -> str:
        """What the source is called; its token is kept by this name."""
        return self._notes.name

    @property
    def state(self) -> State:
        """`new` before it is started, `running`, `waiting` for a server that does not answer,
        `stopped`, `failed` with an `error`, or `ended` when the source had no more."""
        is_waiting = self._state == "running" and self._trouble() is not None
        return "waiting" if is_waiting else self._state

    @property
    def error(self) -> BaseException | None:
        """The exception that stopped it, that keeps it `waiting`, or that `take` raised last."""
        return self._error if self._state != "running" else self._trouble()

    @property
    def token(self) -> Token:
        """Where it is: the token of the last batch that was committed. Tables and views that are
        read afterwards have that batch."""
        token = self._notes.token
        return self._since if token is None else token

    @property
    def lag(self) -> Lag:
        """How far the tables are behind the source."""
        waiting = getattr(self._source, "waiting", None)
        behind = getattr(self._source, "behind", None)
        return Lag(
            self._clock.seconds(),
            None if waiting is None else waiting(),
            None if behind is None else behind(),
        )

    @property
    def batches(self) -> int:
        """How many batches it has committed."""
        return self._batches

    @property
    def rows(self) -> int:
        """How many rows have gone or come in its commits."""
        return self._rows

    @property
    def origins(self) -> Mapping[Hashable, tuple[T, ...]]:
        """The rows of each origin that are in tables."""
        return self._notes.origins

    @property
    def errors(self) -> View[RowError]:
        """The rows that were left out, and why; each until the source replaces or removes it.

        A live view: read it, subscribe to it, or make queries of it. A row that has no hash stands
        there as its text.

        Raises
        ------
        PlanError: a row that is refused stops the source, as `ingest` was not told otherwise.
        """
        if self._notes.view is None or not self._drops:
            raise PlanError(
                f"{self._called()} leaves no rows out: one that is refused stops it\n"
                '  ingest(..., on_error="drop") leaves such rows out, and tells them'
            )
        return self._notes.view

    # What it does.

    def start(self, *, on_error: OnRefusal | None = None, anew: bool = False) -> None:
        """Run it in a thread of its own; after a stop or an error, from the last token on.

        Parameters
        ----------
        on_error: the policy for rows that are refused from now on, as of `ingest`: with `"drop"` it
            goes on past a row that has stopped it. `None`: the one it has.
        anew: whether the source reads all of its rows again, in spite of the token; what differs is
            one commit. For a source that cannot go on from its token, such as one of Postgres whose
            slot is gone.

        Raises
        ------
        PlanError: the policy is none; or the source cannot read its rows anew.
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
        """Run it in this thread, until the source ends or `stop` is called; from the last token on.

        Raises
        ------
        Exception: what stops it.
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
        """Commit a batch in this thread: for what is told of changes rather than asked for them.

        Raises
        ------
        Exception: why the batch is refused; nothing has changed.
        SourceError: it runs: its source gives the batches.
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
        timeout: seconds that it may take; `None` for as long as it takes.

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
        """`stop`."""
        self.stop()

    def wait(self, token: Token = None, timeout: float | None = None) -> None:
        """Wait until a batch is committed, and so in all views; or all are.

        Parameters
        ----------
        token: that of the batch. Without it, wait until the source has ended or was stopped.
        timeout: seconds to wait at most.

        Raises
        ------
        Exception: what stopped the source before.
        SourceError: the source was stopped, or has ended, before; or nobody has started it.
        TimeoutError: `timeout` is over.
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

    # How.

    def _begin(self, verb: str) -> Source[T]:
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
        """Change the policy of what does not run, or have its source begin anew."""
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
        """Why its source waits for a server, if it does."""
        ask = getattr(self._source, "trouble", None)
        return None if ask is None else ask()

    def _check(self, verb: str) -> None:
        """Raise why nothing can be asked of it here."""
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
        """Commit a batch, and say so."""
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
        """It runs no more."""
        tell = getattr(self._source, "stopped_by", None)
        if tell is not None:
            tell(error)
        with self._changed:
            self._free_name()
            self._error, self._thread = error, None
            self._state = "failed" if error else "stopped" if was_stopped else "ended"
            self._changed.notify_all()

    def _tell(self) -> None:
        """Call `on_stop`, as it runs no more."""
        if self.on_stop is None:
            return
        try:
            self.on_stop(self)
        except Exception:
            log.exception("on_stop of source %r has raised", self.name)

    def _leave(self) -> None:
        """Be asked to stop by who holds the lock, and so cannot wait; its name is free."""
        self._stop.set()
        self._free_name()

    def _free_name(self) -> None:
        if self._engine.ingestions.get(self.name) is self:
            del self._engine.ingestions[self.name]

    def _is_stopped(self, patience: float | None) -> bool:
        """Wait until it does not run; whether that is so, or it is this thread that runs it."""
        if self._thread is threading.current_thread() or os.getpid() != self._process:
            return True
        with self._changed:
            return self._changed.wait_for(lambda: self._state != "running", patience)

    def _is_over(self, token: Token) -> bool:
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
            f"{_counted(self._batches, 'batch', 'batches')}, {_counted(self._rows, 'row', 'rows')}",
            f"token {self.token!r:.60}",
            f"behind {self.lag}",
        ]
        return f"Ingestion({self.name!r} into {self._notes.targets}, {', '.join(parts)})"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _drive(
    reference: weakref.ref[Ingestion[Any]],
    source: Source[Any],
    since: Token,
    stop: threading.Event,
    *,
    inside: bool = False,
) -> None:
    """Take batches of a source until it ends, is to stop, or nobody holds what they are for.

    What stops it is raised too if this is `inside` a call.
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

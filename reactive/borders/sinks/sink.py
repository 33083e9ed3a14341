"""A sink: the changes of a view, in numbered batches, each of which is in the target once.

    batch n + 1  =  rows of the view - what batches 0 .. n come to

The first batch of a process is found that way, by comparing. From then on it is what the view has
told since, which comes to the same. So nothing is lost or doubled by whatever happens between two
batches: a view that begins anew, moves, or comes back after a restart is compared once more.

Of a view that is elsewhere, a target that can do so reads the rows there, those of the first batch
too, and the process sees none of them. How a view is read is chosen whenever it is compared.

State:  what has changed since the last batch.
Cost:   a batch O(changes) and the target's own; the first of a process O(rows of the view).
Source: change data capture with an idempotent receiver; effectively once by batch numbers, as of
        Spark's `foreachBatch`.

The changes of a view that is elsewhere, for a target that reads them there.

    rows of when it began, then what flushes come to  -->  take: no row of it comes by here

What is taken stays where it is until it is written: who cannot write it takes it again.

State:  none of the rows.
Cost:   O(1) here.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from optimizer.errors import PlanError
from reactive.borders.sinks.durable_outbox import (
    CalledTarget,
    ChangeBatch,
    FrameTarget,
    Position,
    SinkTarget,
)
from reactive.borders.sinks.gathered import GatheredChanges
from reactive.engine.remote.remote_operator import Following, RemoteOperator
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Closeable, NotCopied
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.runtime.lag import Lag
from reactive.errors import ClosedError, OffloadError, TransactionError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from reactive.engine.transactions.engine import Engine


State: TypeAlias = Literal["running", "failed", "stopped"]
PATIENCE = 10.0
"""Seconds that `stop` waits for a batch that is being written."""
log = logging.getLogger("reactive")


@boundary
class Sink(NotCopied, Closeable):
    """What writes the changes of a view. Made by `View.write_to` and `View.changes_to`.

    It goes on if nobody holds it, until it is stopped or its database is closed. As a context
    manager it writes what there is at the end, and stops.

    >>> from reactive import Database
    >>> db = Database()
    >>> words = db.table(str, name="words")
    >>> sink = words.materialize("all").changes_to(lambda number, changes: print(number, changes))
    >>> words.add_all(["to", "be"])
    >>> print(sink.flush())
    0 [('to', 1), ('be', 1)]
    batch 0, through commit 1
    >>> words.remove("to")
    >>> sink.run()
    1 [('to', -1)]
    >>> sink.position.batch, sink.state, sink.error
    (1, 'running', None)
    >>> sink.stop()
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        gathering: Callable[[ChangeFeed | None], ChangeFeed],
        target: SinkTarget,
        plan: str,
        trigger: float | None,
    ) -> None:
        self._engine = engine
        self.name = name
        """What it writes, and where to."""
        self._gathering = gathering
        self._gathered = gathering(None)
        self._target = target
        self._plan = plan
        self.is_timed = trigger is not None
        """Whether it writes by itself, at intervals."""
        self._writing, self._is_writing = threading.RLock(), False
        self._is_each = False
        self._on: Executor | None = None
        self._is_due = False
        """True from a commit on that has changed the view, until somebody begins to write it."""
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._position = target.open(plan)
        engine.sinks.append(self)
        if trigger is not None:
            self._start(trigger)

    _copy_instead = "each call of view.write_to(...) makes another one"
    _pickle_instead = "make it again: it goes on after the last batch that its target has"

    # What it says of itself.

    @property
    def state(self) -> State:
        """`running`; `failed` if the last batch could not be written, with an `error`: it is tried
        again with the next; or `stopped`."""
        if self._ended.is_set():
            return "stopped"
        return "running" if self._error is None else "failed"

    @property
    def error(self) -> BaseException | None:
        """What kept the last batch from being written."""
        return self._error

    @property
    def position(self) -> Position | None:
        """Up to where the view is written, or on its way; None before the first batch."""
        return self._position

    @property
    def lag(self) -> Lag:
        """For how long changes have waited, and how many do. Nothing is known of either before the
        first batch of a process, which is found by comparing."""
        return Lag(*self._gathered.waiting())

    # What it does.

    def flush(self) -> Position | None:
        """Write what has changed, as one batch; nothing if nothing has. Gives the position.

        All that subscribers have been told is in it.

        Raises
        ------
        Exception: what the target raises. The changes are kept, and are written with those that
            come until the next try.
        ClosedError: it was stopped.
        TransactionError: inside a transaction.
        """
        self._check()
        with self._writing:
            if self._is_writing:  # a function that the target calls has asked for it
                return self._position
            self._write_once()
        if self._is_due:
            self._catch_up()
        return self._position

    def run(self) -> None:
        """`flush`, for who asks for no position."""
        self.flush()

    def stop(self, timeout: float | None = PATIENCE) -> None:
        """Write no more. Stopping twice is no error.

        What has changed since the last batch is not written: `flush` before, if it is to be. A
        sink that is made again writes it.

        Parameters
        ----------
        timeout: seconds to wait for a batch that is being written.

        Raises
        ------
        TimeoutError: it is still being written.
        """
        self._ended.set()
        if not self._writing.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError(f"{self._called()} is still writing after {timeout:g} s")
        try:
            self._gathered.end()
            self._end(None)
        finally:
            self._writing.release()

    def forget(self) -> None:
        """Stop, and remove from the durable database what was told: a sink that is made again under
        the name begins with batch 0, and tells all rows.

        Raises
        ------
        PlanError: nothing is kept of it there.
        """
        if not callable(forget := getattr(self._target, "forget", None)):
            raise PlanError(
                f"cannot forget what {self._called()} has written: its target has the position\n"
                "  stop() it, and write to another target"
            )
        self.stop()
        with self._writing:
            forget()

    def close(self) -> None:
        """`stop`."""
        self.stop()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None and not self._ended.is_set():
                self.flush()
        finally:
            self.stop()

    # After each commit.

    def _follow_commits(self, on: Executor | None = None) -> None:
        """Write what there is, and from now on what each commit changes, when it is told of.

        A thread that commits while another one writes does not wait: that one goes on with it.

        Parameters
        ----------
        on: what runs it; by default who tells subscribers of the commit.
        """
        self._is_each, self._on = True, on
        self._begin()

    def _begin(self) -> None:
        """Write what there is; what cannot be written now is tried again.

        An exception that is raised here stops the sink.
        """
        try:
            self._check()
            self._is_due = True
            self._catch_up()
        except BaseException:
            self.stop()
            raise

    def _note_commit(self) -> None:
        """Write what a commit has changed, here or on the executor."""
        if self._on is None:
            self._is_due = True
            self._catch_up()
        elif not self._is_due:
            self._is_due = True
            try:
                self._on.submit(self._catch_up).add_done_callback(self._look_at)
            except RuntimeError as error:
                log.error("%s ends, since its executor does not run any more", self._called())
                self._end(error)

    def _look_at(self, future: Future[None]) -> None:
        if future.cancelled():
            self._is_due = False

    def _catch_up(self) -> None:
        """Write what is due, unless another thread is writing, which then goes on with it."""
        while self._is_due and self._writing.acquire(blocking=False):
            try:
                if self._is_writing or self._ended.is_set():
                    return
                self._is_due = False
                self._write_once()
            except Exception as error:
                if is_asynchronous(error):
                    raise
                text = "%s could not write a batch; it tries again with the next commit"
                log.error(text, self._called(), exc_info=error)
            finally:
                self._writing.release()

    def _end(self, error: BaseException | None) -> None:
        """Write no more, without waiting."""
        self._error = error or self._error
        self._ended.set()
        if self in self._engine.sinks:
            self._engine.sinks.remove(self)

    # How.

    def _write_once(self) -> None:
        """Write what has changed; by who has `_writing`."""
        self._is_writing = True
        try:
            self._write()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                self._gathered.doubt()
            raise
        finally:
            self._is_writing = False
        self._error = None

    def _write(self) -> None:
        version = self._engine.version
        self._engine.offloading.flush()
        while not self._has_written(version):
            pass

    def _has_written(self, version: int) -> bool:
        """Write what has changed; false if the view has moved meanwhile, so that it was not all."""
        self._choose()
        if not self._gathered.is_sure:
            self._compare()
        self._target.deliver()
        changes = self._gathered.take()
        if changes or getattr(self._target, "is_owed", False):
            reached = self._gathered.reached(version)
            number = 0 if self._position is None else self._position.batch + 1
            return self._is_there(ChangeBatch(number, changes or (), self._plan, reached))
        return not self._gathered.has_moved

    def _choose(self) -> None:
        """Have the changes from where the view is now."""
        now = self._gathering(self._gathered)
        if now is not self._gathered:
            self._gathered.end()
            self._gathered = now

    def _compare(self) -> None:
        """Have what leads from the target to the view wait, and what changes from now on."""
        self._position = self._target.open(self._plan)
        if self._is_each and isinstance(self._gathered, GatheredChanges):
            self._gathered.then, self._gathered.lost = self._note_commit, self._end
        try:
            rows, target = self._gathered.begin(), self._target
            if isinstance(self._gathered, FollowedChanges):
                assert isinstance(target, FrameTarget)
                self._gathered.first(target.difference_frame(rows))
            else:
                self._gathered.first(target.difference(rows))
        except BaseException:
            self._gathered.doubt()
            raise

    def _is_there(self, batch: ChangeBatch) -> bool:
        """Write a batch, or nothing where it comes to nothing; false if the view has moved."""
        try:
            is_staged = self._stage(batch)
        except OffloadError:  # what the target does not take is perhaps not there any more
            is_over = self._gathered.has_moved
            self._gathered.doubt()
            if is_over:
                return False
            raise
        except Exception:
            if self._gathered.has_moved:
                return False
            self._gathered.put_back(batch.changes)
            raise
        if self._gathered.has_moved:  # what was read may have gone meanwhile
            return False
        self._gathered.written()
        if is_staged:
            self._position = batch.position
            self._target.deliver()
        return True

    def _stage(self, batch: ChangeBatch) -> bool:
        if not isinstance(self._target, CalledTarget):  # which settles by itself what it keeps
            self._settle()
        if isinstance(self._gathered, FollowedChanges):
            assert isinstance(self._target, FrameTarget)
            return self._target.stage_frame(batch)
        self._target.stage(batch)
        return True

    def _settle(self) -> None:
        """Write to the file of a durable database all commits that the target is to have.

        The target would else be ahead of the file after a restart.
        """
        journal = self._engine.journal
        if journal is not None and journal.writes:
            with self._engine.inside():
                journal.write_beside((), is_safe=True)

    def _check(self) -> None:
        if self._ended.is_set():
            raise ClosedError(f"{self._called()} was stopped\n  make it again: it goes on")
        if self._engine.mine is not None:
            raise TransactionError(
                f"{self._called()} cannot write inside a transaction\n"
                "  what is not committed may be rolled back: flush after the `with` block"
            )

    def _start(self, interval: float) -> None:
        self._thread = threading.Thread(
            target=_tick,
            args=(weakref.ref(self), self._ended, interval),
            name=f"reactive {self._called()}",
            daemon=True,
        )
        self._thread.start()

    def _called(self) -> str:
        return f"the sink {self.name}"

    def __repr__(self) -> str:
        position: Any = self._position
        return f"Sink({self.name}, {self.state}, {position or 'nothing written'})"


def _tick(reference: weakref.ref[Sink], ended: threading.Event, interval: float) -> None:
    """Write at intervals, until the sink is stopped or what it writes is closed."""
    while not ended.wait(interval):
        sink = reference()
        if sink is None:
            return
        try:
            sink.flush()
        except ClosedError:
            return
        except Exception as error:
            log.error("%s could not write a batch; it tries again", sink._called(), exc_info=error)
        del sink


class ChangeFeed(Protocol):
    """Gives a sink the changes of a view: `GatheredChanges` here, or `FollowedChanges`."""

    @property
    def is_sure(self) -> bool:
        """Whether all that has changed since it began is there."""
        ...

    @property
    def has_moved(self) -> bool:
        """Whether it cannot go on, as the view is somewhere else now."""
        ...

    def begin(self) -> Any:
        """The rows of now, from which on changes count."""
        ...

    def first(self, changes: Any) -> None:
        """What is to be taken before what changes from now on."""
        ...

    def take(self) -> Any:
        """What has changed; empty or None if nothing has."""
        ...

    def reached(self, version: int) -> int:
        """The commit that it is up to date through, if a flush has been done of `version`."""
        ...

    def put_back(self, changes: Any) -> None:
        """What was taken is not written."""
        ...

    def written(self) -> None:
        """What was taken is written."""
        ...

    def doubt(self) -> None:
        """Some of it may be missing."""
        ...

    def waiting(self) -> tuple[float | None, int | None]:
        """For how many seconds something has waited, and how many changes do."""
        ...

    def end(self) -> None:
        """There is nobody to write it any more."""
        ...


class FollowedChanges:
    """The changes of a view, where its rows are.

    Parameters
    ----------
    operator: whose output is the view; it `is_followable`.
    """

    def __init__(self, operator: RemoteOperator) -> None:
        self.operator = operator
        self._following: Following | None = None
        self._is_sure = False
        self._first: Any = None
        self._since: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether all that has changed is there."""
        return self._is_sure and self._following is not None and not self._following.is_over

    @property
    def has_moved(self) -> bool:
        """Whether what it reads is not there any more."""
        return self._following is not None and self._following.is_over

    def begin(self) -> Any:
        """The rows of now, where they are."""
        self.end()
        self._following = self.operator.follow()
        self._is_sure, self._since = True, time.time()
        return self._following.rows()

    def first(self, changes: Any) -> None:
        """What is to be taken before what changes from now on."""
        self._first = changes

    def take(self) -> Any:
        """What has changed, which waits until it is written; None if nothing has."""
        assert self._following is not None
        later = self._following.changes()
        if self._first is None or later is None:
            return later if self._first is None else self._first
        return self._first.with_rows(later)

    def reached(self, version: int) -> int:
        """That of the flush."""
        return version

    def put_back(self, changes: Any) -> None:
        """It has not gone."""

    def written(self) -> None:
        """What was taken is written."""
        assert self._following is not None
        self._following.forget()
        self._first, self._since = None, time.time()

    def doubt(self) -> None:
        """It has to begin again."""
        self._is_sure = False

    def waiting(self) -> tuple[float | None, int | None]:
        """For how many seconds something may have waited at most, and how many changes do."""
        following = self._following
        if not self.is_sure or following is None:
            return None, None
        waits = following.waiting + (0 if self._first is None else self._first.rows)
        since = self._since if waits and self._since else None
        return None if since is None else max(0.0, time.time() - since), waits

    def end(self) -> None:
        """Read no more."""
        self._is_sure, self._first = False, None
        if self._following is not None:
            self._following.close()

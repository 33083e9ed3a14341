"""A sink: writes the changes of a view in numbered batches, each exactly once.

    batch n + 1  =  rows of the view - sum of batches 0 .. n

The first batch of a process is computed from this formula, by comparing. Later batches are the
deltas of the view, which give the same result. So nothing is lost or doubled between two batches: a
view that is recomputed, moves, or is reopened after a restart is compared again.

If the view is on Spark and the target can read its rows there, this process sees none of them, not
even rows of the first batch (`FollowedChanges`). The way to read a view is chosen at each
comparison. Changes that are read there are kept until they are written: after a failure they are
read again.

State:  the changes since the last batch; `FollowedChanges` holds no rows.
Cost:   a batch O(changes) and the target's own; the first of a process O(rows of the view).
Source: change data capture with an idempotent receiver; effectively once by batch numbers, as of
        Spark's `foreachBatch`.
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
from reactive.borders.sinks.gathered_changes import GatheredChanges
from reactive.engine.remote.remote_operator import Following, RemoteOperator
from reactive.engine.runtime.boundary import boundary
from reactive.engine.runtime.closeable import Closeable, Uncopyable
from reactive.engine.runtime.interrupts import is_asynchronous
from reactive.engine.runtime.lag import Lag
from reactive.errors import ClosedError, OffloadError, TransactionError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from reactive.engine.transactions.engine import Engine


State: TypeAlias = Literal["running", "failed", "stopped"]
PATIENCE = 10.0
"""The seconds that `stop` waits for a batch that is being written."""
log = logging.getLogger("reactive")


@boundary
class Sink(Uncopyable, Closeable):
    """A writer of the changes of a view. Created by `View.write_to` and `View.changes_to`.

    It runs on without references, until it is stopped or its database is closed. As a context
    manager it flushes at the end, and stops.

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
        """The name: the view and its target."""
        self._gathering = gathering
        self._gathered = gathering(None)
        self._target = target
        self._plan = plan
        self.is_timed = trigger is not None
        """True if the sink writes at intervals."""
        self._writing, self._is_writing = threading.RLock(), False
        self._is_each = False
        self._on: Executor | None = None
        self._is_due = False
        """True from a commit that changed the view until a write begins."""
        self._error: BaseException | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._position = target.open(plan)
        engine.sinks.append(self)
        if trigger is not None:
            self._start(trigger)

    _copy_instead = "each call of view.write_to(...) makes another one"
    _pickle_instead = "make it again: it goes on after the last batch that its target has"

    # Its state.

    @property
    def state(self) -> State:
        """The state: `running`, `failed` or `stopped`.

        `failed` if the last batch could not be written, with an `error`; the next batch retries.
        """
        if self._ended.is_set():
            return "stopped"
        return "running" if self._error is None else "failed"

    @property
    def error(self) -> BaseException | None:
        """The error of the last batch; None if it was written."""
        return self._error

    @property
    def position(self) -> Position | None:
        """The position of the last batch, written or on its way; None before the first."""
        return self._position

    @property
    def lag(self) -> Lag:
        """The age and number of waiting changes.

        Both are unknown before the first batch of a process, which is computed by comparing.
        """
        return Lag(*self._gathered.waiting())

    # Writing.

    def flush(self) -> Position | None:
        """Write the waiting changes as one batch, if there are any. Return the position.

        The batch includes all deltas that subscribers have received.

        Raises
        ------
        Exception: the target raised it. The changes are kept, and written with later ones at the
            next try.
        ClosedError: the sink was stopped.
        TransactionError: called inside a transaction.
        """
        self._check()
        with self._writing:
            if self._is_writing:  # called by a function that the target calls
                return self._position
            self._write_once()
        if self._is_due:
            self._catch_up()
        return self._position

    def run(self) -> None:
        """Write the waiting changes, as `flush` does, without returning the position."""
        self.flush()

    def stop(self, timeout: float | None = PATIENCE) -> None:
        """Stop writing. Stopping twice is no error.

        Waiting changes are not written: call `flush` before, if they should be. A sink that is
        created again writes them.

        Parameters
        ----------
        timeout: the seconds to wait for a batch that is being written.

        Raises
        ------
        TimeoutError: the batch is still being written.
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
        """Stop, and delete the record of delivered rows from the durable database.

        A sink created again under the name begins with batch 0, and delivers all rows.

        Raises
        ------
        PlanError: the database keeps no such record.
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
        """Stop the sink, as `stop` does."""
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

    # Writing after each commit.

    def _follow_commits(self, on: Executor | None = None) -> None:
        """Write the waiting changes now, and later ones after each commit.

        A commit does not wait while another thread writes: that thread writes its changes too.

        Parameters
        ----------
        on: the executor of the writes; by default the thread that notifies subscribers.
        """
        self._is_each, self._on = True, on
        self._begin()

    def _begin(self) -> None:
        """Write the waiting changes; what cannot be written now is retried.

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
        """Write the changes of a commit, here or on the executor."""
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
        """Forget a scheduled write that the executor has cancelled."""
        if future.cancelled():
            self._is_due = False

    def _catch_up(self) -> None:
        """Write due changes, unless another thread is writing, which then writes them."""
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
        """Stop without waiting; `error` is the reason, None to keep the last one."""
        self._error = error or self._error
        self._ended.set()
        if self in self._engine.sinks:
            self._engine.sinks.remove(self)

    # Implementation.

    def _write_once(self) -> None:
        """Write the waiting changes. The caller holds `_writing`."""
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
        """Write batches until the target has all changes up to the current version."""
        version = self._engine.version
        self._engine.offloading.flush()
        while not self._has_written(version):
            pass

    def _has_written(self, version: int) -> bool:
        """Write the waiting changes.

        False if the view has moved meanwhile, so that some are missing.
        """
        self._choose()
        if not self._gathered.is_sure:
            self._compare()
        self._target.deliver()
        changes = self._gathered.take()
        if changes or getattr(self._target, "is_owed", False):
            reached = self._gathered.reached_version(version)
            number = 0 if self._position is None else self._position.batch + 1
            return self._is_there(ChangeBatch(number, changes or (), self._plan, reached))
        return not self._gathered.has_moved

    def _choose(self) -> None:
        """Choose the feed for the current place of the view."""
        now = self._gathering(self._gathered)
        if now is not self._gathered:
            self._gathered.end()
            self._gathered = now

    def _compare(self) -> None:
        """Compare the target with the view, and queue the difference; later changes follow."""
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
        """Write a batch, or nothing for an empty one; False if the view has moved meanwhile."""
        try:
            is_staged = self._stage(batch)
        except OffloadError:  # the rejected rows may have gone
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
        if self._gathered.has_moved:  # the rows read may have gone meanwhile
            return False
        self._gathered.written()
        if is_staged:
            self._position = batch.position
            self._target.deliver()
        return True

    def _stage(self, batch: ChangeBatch) -> bool:
        """Stage a batch at the target; False if its changes cancel out, and nothing is staged."""
        if not isinstance(self._target, CalledTarget):  # which settles its own commits
            self._settle()
        if isinstance(self._gathered, FollowedChanges):
            assert isinstance(self._target, FrameTarget)
            return self._target.stage_frame(batch)
        self._target.stage(batch)
        return True

    def _settle(self) -> None:
        """Write all commits that the target is about to receive to the file of a durable database.

        Otherwise the target would be ahead of the file after a restart.
        """
        journal = self._engine.journal
        if journal is not None and journal.writes:
            with self._engine.inside():
                journal.write_beside((), is_safe=True)

    def _check(self) -> None:
        """Raise if the sink was stopped, or a transaction of this thread is open."""
        if self._ended.is_set():
            raise ClosedError(f"{self._called()} was stopped\n  make it again: it goes on")
        if self._engine.mine is not None:
            raise TransactionError(
                f"{self._called()} cannot write inside a transaction\n"
                "  what is not committed may be rolled back: flush after the `with` block"
            )

    def _start(self, interval: float) -> None:
        """Start the thread that writes every `interval` seconds."""
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
    """Write at intervals, until the sink is stopped or its view is closed."""
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
    """The changes of a view for a sink: `GatheredChanges` here, or `FollowedChanges`."""

    @property
    def is_sure(self) -> bool:
        """True if the feed has all changes since it began."""
        ...

    @property
    def has_moved(self) -> bool:
        """True if the feed cannot continue, because the view has moved."""
        ...

    def begin(self) -> Any:
        """Return the current rows; changes count from here on."""
        ...

    def first(self, changes: Any) -> None:
        """Put changes before those that follow."""
        ...

    def take(self) -> Any:
        """Return the waiting changes; empty or None if there are none."""
        ...

    def reached_version(self, version: int) -> int:
        """Return the commit that it includes, after a flush of commit `version`."""
        ...

    def put_back(self, changes: Any) -> None:
        """Restore changes that were taken and not written."""
        ...

    def written(self) -> None:
        """Forget changes that were taken and written."""
        ...

    def doubt(self) -> None:
        """Mark the feed as incomplete."""
        ...

    def waiting(self) -> tuple[float | None, int | None]:
        """Return the age in seconds and the number of the waiting changes."""
        ...

    def end(self) -> None:
        """Stop: the changes are no longer needed."""
        ...


class FollowedChanges:
    """The changes of a view whose rows are elsewhere, read there.

    Parameters
    ----------
    operator: the operator whose output is the view; it `is_followable`.
    """

    def __init__(self, operator: RemoteOperator) -> None:
        self.operator = operator
        self._following: Following | None = None
        self._is_sure = False
        self._first: Any = None
        self._since: float | None = None

    @property
    def is_sure(self) -> bool:
        """True if the feed has all changes."""
        return self._is_sure and self._following is not None and not self._following.is_over

    @property
    def has_moved(self) -> bool:
        """True if the rows that it reads no longer exist."""
        return self._following is not None and self._following.is_over

    def begin(self) -> Any:
        """Follow the view from now on, and return its current rows, which stay where they are."""
        self.end()
        self._following = self.operator.follow()
        self._is_sure, self._since = True, time.time()
        return self._following.rows()

    def first(self, changes: Any) -> None:
        """Put changes before those that follow."""
        self._first = changes

    def take(self) -> Any:
        """Return the waiting changes, which are kept until they are written.

        None if there are none.
        """
        assert self._following is not None
        later = self._following.changes()
        if self._first is None or later is None:
            return later if self._first is None else self._first
        return self._first.with_rows(later)

    def reached_version(self, version: int) -> int:
        """Return the version of the flush."""
        return version

    def put_back(self, changes: Any) -> None:
        """Do nothing: the changes are still there."""

    def written(self) -> None:
        """Forget changes that were taken and written."""
        assert self._following is not None
        self._following.forget()
        self._first, self._since = None, time.time()

    def doubt(self) -> None:
        """Mark the feed as incomplete, so that it must begin again."""
        self._is_sure = False

    def waiting(self) -> tuple[float | None, int | None]:
        """Return the greatest possible age and the number of the waiting changes."""
        following = self._following
        if not self.is_sure or following is None:
            return None, None
        waits = following.waiting + (0 if self._first is None else self._first.rows)
        since = self._since if waits and self._since else None
        return None if since is None else max(0.0, time.time() - since), waits

    def end(self) -> None:
        """Stop reading."""
        self._is_sure, self._first = False, None
        if self._following is not None:
            self._following.close()

"""Defer Ctrl-C while data is half changed, and recognize other asynchronous exceptions.

CPython runs signal handlers at the start of a function, after calls, and at loop ends, so no order
of statements is safe from an exception raised by a handler.

    SIGINT      one handler for the process, in front of the previous one. While the main thread
                runs a critical section, the first Ctrl-C is recorded, and raised at its end; a
                second one is raised immediately. Another critical section is between the start
                of a transaction and its block, and the reverse at the end: nothing else would
                end the transaction.
    others      An exception that a handler raises, or that is thrown into a thread, may leave
                anything half done: the database repairs itself at the next access (`commit.py`).

State:  the previous handler, and weak references to the locks of all databases; process-wide, as
        signals are.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Protocol

from optimizer.errors import ReactiveError

if TYPE_CHECKING:
    from reactive.engine.runtime.lock import DatabaseLock

DEEPEST = 10
"""Number of calls that are searched for a finalizer, or the begin or end of a transaction."""
LATER = 0.001
"""Seconds after which a Ctrl-C that would be lost in a finalizer is raised again."""
TRANSACTIONS = frozenset(
    {"reactive.engine.transactions.transaction", "reactive.borders.two_commits.joint"}
)
ENDS = ("__enter__", "__exit__", "__aenter__", "__aexit__")
FINALIZERS: frozenset[Any] = frozenset(
    {getattr(getattr(weakref.finalize, "__call__"), "__code__", None)}  # noqa: B004, B009
)
COMMON = frozenset(
    {TypeError, AttributeError, KeyError, IndexError, ValueError, LookupError, NameError}
    | {ZeroDivisionError, OverflowError, ArithmeticError, AssertionError}
)
"""Exceptions that callables raise, and signal handlers do not."""


class Deferral:
    """The handler of SIGINT."""

    def __init__(self) -> None:
        self._gates: tuple[weakref.ref[DatabaseLock], ...] = ()
        self._found: Any = None
        self._comes_again = False

    def guard(self, db_lock: DatabaseLock) -> None:
        """Defer Ctrl-C from now on while the main thread runs a critical section of this lock."""
        alive = [known for known in self._gates if known() is not None]
        self._gates = (*alive, weakref.ref(db_lock))
        found = _handler()
        if found is not None and found != self._handle:
            self._found = found
            signal.signal(signal.SIGINT, self._handle)

    def release(self, db_lock: DatabaseLock) -> None:
        """Raise the Ctrl-C that was deferred, if any."""
        noted, db_lock.noted = db_lock.noted, None
        if noted is not None:
            self._found(*noted)

    def hold_back(self, db_lock: DatabaseLock) -> bool:
        """Defer Ctrl-C until `is_held_back` is reset; return True if this call started that.

        Only the main thread can.
        """
        if db_lock.is_held_back or threading.current_thread() is not threading.main_thread():
            return False
        db_lock.is_held_back = True
        return True

    def release_later(self, db_lock: DatabaseLock) -> None:
        """Raise the deferred Ctrl-C a little later, since it would be lost at this place."""
        noted, db_lock.noted = db_lock.noted, None
        if noted is not None:
            _thread.start_new_thread(self._come_again, (noted[0],))

    def _handle(self, number: int, frame: Any) -> None:
        """Handle SIGINT: note it if a critical section runs, else pass it to the handler before."""
        if _is_lost_in(frame):
            if not self._comes_again:
                self._comes_again = True
                _thread.start_new_thread(self._come_again, (number,))  # may be in `threading`
            return
        for known in self._gates:
            db_lock = known()
            if db_lock is None or db_lock.noted is not None:
                continue
            is_critical = db_lock.is_held_back or (db_lock.critical and db_lock.depth_here)
            if is_critical or db_lock is _opened_in(frame):
                db_lock.noted = number, frame
                return
        self._found(number, frame)

    def _come_again(self, number: int) -> None:
        """Send a signal to the main thread a little later; again until it has been handled."""
        time.sleep(LATER)
        self._comes_again = False
        if hasattr(signal, "pthread_kill"):  # this also ends a sleep of the main thread
            ident = threading.main_thread().ident
            signal.pthread_kill(ident, number)  # type: ignore[arg-type]
        else:
            _thread.interrupt_main(signal.Signals(number))


def _is_lost_in(frame: FrameType | None) -> bool:
    """Return True if an exception would be lost here: in a finalizer, such as a transaction's."""
    for _ in range(DEEPEST):
        if frame is None:
            return False
        if frame.f_code.co_name == "__del__" or frame.f_code in FINALIZERS:
            return True
        frame = frame.f_back
    return False


class _Locked(Protocol):
    """The engine of a transaction."""

    @property
    def db_lock(self) -> DatabaseLock: ...


class _Opened(Protocol):
    """The part of a transaction that tells whether it is open."""

    @property
    def _engine(self) -> _Locked: ...

    @property
    def _entered(self) -> object: ...


def _opened_in(frame: FrameType | None) -> DatabaseLock | None:
    """Return the lock of an open transaction whose begin or end is running; None if none is."""
    for _ in range(DEEPEST):
        if frame is None:
            return None
        if frame.f_code.co_name in ENDS and frame.f_globals.get("__name__") in TRANSACTIONS:
            transaction: _Opened = frame.f_locals["self"]
            if transaction._entered:
                return transaction._engine.db_lock
        frame = frame.f_back
    return None


SIGINT = Deferral()


def is_common(error: BaseException) -> bool:
    """Return True if an exception was raised by called code, and is not asynchronous."""
    return type(error) in COMMON or not is_asynchronous(error)


def reraise_asynchronous(error: Exception) -> None:
    """Reraise an asynchronous exception: a fallback would swallow a time limit."""
    if not is_common(error):
        raise error


def is_asynchronous(error: BaseException | None) -> bool:
    """Return True if an exception may have occurred at any moment, independent of the running code.

    True for exceptions that are no `Exception`, such as `KeyboardInterrupt`, and for exceptions
    raised by a signal handler, such as a time limit. False for None, and wherever it was raised for
    a `ReactiveError` or an exception of the classes in `COMMON`.
    """
    if not isinstance(error, Exception):
        return error is not None
    if type(error) in COMMON or isinstance(error, ReactiveError):
        return False
    traceback = error.__traceback__
    if traceback is None:  # never raised
        return False
    handlers = _codes_of_handlers()
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _codes_of_handlers() -> set[CodeType]:
    """Return the code objects of all Python signal handlers that are installed."""
    found: set[CodeType] = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a `functools.partial`
        call = getattr(type(handler), "__call__", None)  # noqa: B004
        for function in (handler, call):
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if isinstance(code, CodeType):
                found.add(code)
    return found


def surely(put_back: Callable[[], None]) -> None:
    """Call a function once, completely; run the handler of Ctrl-C after it.

    This holds even if Ctrl-C arrives while it is being deferred, but only in the main thread, where
    handlers run: an exception thrown into a thread by other means is immediate.
    """
    has_begun, early = False, None
    while not has_begun:
        try:
            with _put_off():
                has_begun = True
                put_back()
        except BaseException as error:
            if has_begun:
                raise
            early = error
    if early is not None:
        raise early


@contextmanager
def _put_off() -> Iterator[None]:
    """Defer SIGINT until the block ends; only the first one is handled then."""
    handler = _handler()
    if handler is None:
        yield
        return
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *given: came.append(given))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


def _handler() -> Any:
    """Return the handler of Ctrl-C in this thread; None if it is unknown or cannot be replaced."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
    except (TypeError, ValueError):  # not set by Python; not in the main interpreter
        return None
    return handler if callable(handler) else None

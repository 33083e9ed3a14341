"""Ctrl-C waits while something is half changed; what comes all the same, at any moment, is known.

CPython runs signal handlers where a function begins, after calls, and where a loop goes back, so no
order of statements is safe from an exception that one raises.

    SIGINT      one handler for the process, before the one found. While the main thread is at
                something critical the first Ctrl-C is noted, and comes when that is done; a second
                one comes immediately. Critical is also where a transaction has begun and its block
                has not, or the reverse at the end: nobody else would end it.
    others      An exception that a handler raises, or that is thrown into a thread, may leave
                anything half done: the database repairs itself at the next access (`commit.py`).

State:  the handler that was found, and weakly the gates of all databases: of the process, as
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
from typing import TYPE_CHECKING, Any

from optimizer.errors import ReactiveError

if TYPE_CHECKING:
    from reactive.engine.runtime.lock import DatabaseLock

DEEPEST = 10
"""Calls up to which a finalizer, or the beginning or end of a transaction, is looked for."""
LATER = 0.001
"""Seconds after which a Ctrl-C comes again that nobody would hear of in a finalizer."""
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
"""Exceptions that callables raise, and no signal handler does."""


class Deferral:
    """The handler of SIGINT."""

    def __init__(self) -> None:
        self._gates: tuple[weakref.ref[DatabaseLock], ...] = ()
        self._found: Any = None
        self._comes_again = False

    def guard(self, db_lock: DatabaseLock) -> None:
        """From now on Ctrl-C waits while the main thread is at something critical in there."""
        alive = [known for known in self._gates if known() is not None]
        self._gates = (*alive, weakref.ref(db_lock))
        found = _handler()
        if found is not None and found != self._handle:
            self._found = found
            signal.signal(signal.SIGINT, self._handle)

    def release(self, db_lock: DatabaseLock) -> None:
        """Let the Ctrl-C come that waited for what was critical."""
        noted, db_lock.noted = db_lock.noted, None
        if noted is not None:
            self._found(*noted)

    def hold_back(self, db_lock: DatabaseLock) -> bool:
        """Have it wait until `is_held_back` is taken away, if this is the main thread and nobody
        has; whether it does from now on."""
        if db_lock.is_held_back or threading.current_thread() is not threading.main_thread():
            return False
        db_lock.is_held_back = True
        return True

    def release_later(self, db_lock: DatabaseLock) -> None:
        """As `release`, from where nobody would hear of what it raises."""
        noted, db_lock.noted = db_lock.noted, None
        if noted is not None:
            _thread.start_new_thread(self._come_again, (noted[0],))

    def _handle(self, number: int, frame: Any) -> None:
        if _is_lost_in(frame):
            if not self._comes_again:
                self._comes_again = True
                _thread.start_new_thread(self._come_again, (number,))  # `threading` may be at work
            return
        for known in self._gates:
            db_lock = known()
            if db_lock is None or db_lock.noted is not None:
                continue
            is_critical = db_lock.is_held_back or (db_lock.critical and db_lock.held)
            if is_critical or db_lock is _opened_in(frame):
                db_lock.noted = number, frame
                return
        self._found(number, frame)

    def _come_again(self, number: int) -> None:
        """Raise a signal a little later, in the main thread; again until it has been handled."""
        time.sleep(LATER)
        self._comes_again = False
        if hasattr(signal, "pthread_kill"):  # which also ends a sleep of the main thread
            ident = threading.main_thread().ident
            signal.pthread_kill(ident, number)  # type: ignore[arg-type]
        else:
            _thread.interrupt_main(signal.Signals(number))


def _is_lost_in(frame: FrameType | None) -> bool:
    """Whether an exception would reach nobody: in a finalizer, such as that of a transaction."""
    for _ in range(DEEPEST):
        if frame is None:
            return False
        if frame.f_code.co_name == "__del__" or frame.f_code in FINALIZERS:
            return True
        frame = frame.f_back
    return False


def _opened_in(frame: FrameType | None) -> DatabaseLock | None:
    """The lock of a transaction that is open, and at its own beginning or end."""
    for _ in range(DEEPEST):
        if frame is None:
            return None
        if frame.f_code.co_name in ENDS and frame.f_globals.get("__name__") in TRANSACTIONS:
            transaction = frame.f_locals["self"]
            if transaction._entered:
                return transaction._engine.db_lock  # type: ignore[no-any-return]
        frame = frame.f_back
    return None


SIGINT = Deferral()


def is_common(error: BaseException) -> bool:
    """Whether an exception was raised by what was called, and not from outside."""
    return type(error) in COMMON or not is_asynchronous(error)


def reraise_asynchronous(error: Exception) -> None:
    """Let pass what came from outside; who goes on in another way would swallow a time limit."""
    if not is_common(error):
        raise error


def is_asynchronous(error: BaseException | None) -> bool:
    """Whether an exception may have come at any moment, wherever it passes through.

    So do those that are no `Exception`, such as `KeyboardInterrupt`, and those that a handler of a
    signal raised, such as a time limit.
    """
    if not isinstance(error, Exception):
        return error is not None
    if type(error) in COMMON or isinstance(error, ReactiveError):
        return False
    handlers = _codes_of_handlers()
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


def _codes_of_handlers() -> set[CodeType]:
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
    """Do it, once; have what Ctrl-C does, whatever that is, happen after it.

    Also if that comes while it is about to be put off. Only in the main thread, where it would
    come: what is raised in a thread by other means comes immediately.
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
    """What Ctrl-C does here; None if it cannot be told, or be kept from it."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
    except (TypeError, ValueError):  # not set by Python; not in the main interpreter
        return None
    return handler if callable(handler) else None

"""Run a call in a thread with a large stack, for texts nested too deeply for a usual stack.

Parsers and translators recurse over their input. A text written by a program may nest 1,000
brackets or chain 10,000 operators, and exceed the recursion limit of the calling thread. Such a
call runs in a thread of its own, with a stack of `STACK` bytes and a limit of `LIMIT` frames.

The call must be pure: it must take no lock, since the calling thread may hold one.

Python has one recursion limit for all threads. While it is raised, a thread with a small stack
could recurse until that stack overflows, which ends the process. So the limit is raised only while
no call of `call_with_any_stack` runs on its own thread's stack, and while it is raised, such calls
use a large stack immediately. Endless recursion elsewhere in the program is not covered.

State:  the recursion limit to restore, and the number of calls on either kind of stack.
Cost:   about 0.1 ms per call with a large stack, 1 us for one without.

`is_too_deep` measures the depth of a JSON text without recursion, since parsers in C overflow.

[{"a": [1]}]     3
"[[["            0
"""

from __future__ import annotations

import contextvars
import re
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
STACK = 512 * 1024 * 1024
"""Bytes of virtual memory; pages are allocated when touched."""
LIMIT = 150_000
"""Frames; each needs at most about 2 KB of the stack, where C calls Python."""


class _RecursionLimit:
    """The recursion limit of the interpreter, raised while calls run on large stacks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._large = 0
        self._small = 0
        self._before = 0
        self._thread = threading.local()

    def begin_small(self, *, wait: bool = False) -> bool:
        """Begin a call on the stack of this thread, unless the limit is raised."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: not self._large)
            elif self._large:
                return False
            self._small += 1
        self._thread.is_small = True
        return True

    def end_small(self) -> None:
        """Note that this thread needs the usual limit no longer, and wake waiting threads."""
        self._thread.is_small = False
        with self._changed:
            self._small -= 1
            self._changed.notify_all()

    def is_small(self) -> bool:
        """Return True if this thread runs a call on its own stack."""
        return getattr(self._thread, "is_small", False)

    def __enter__(self) -> None:
        with self._changed:
            self._large += 1
            self._changed.wait_for(lambda: not self._small)
            if not self._before:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(LIMIT, self._before))

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._large -= 1
            if not self._large:
                sys.setrecursionlimit(self._before)
                self._before = 0
                self._changed.notify_all()


_limit = _RecursionLimit()
_starting = threading.Lock()


class _Caller(threading.Thread):
    """A thread that makes one call, and keeps its result or its exception."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(name="reactive-large-stack", daemon=True)
        self._call = call
        self._context = contextvars.copy_context()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the call with the large limit, and store its result or its error."""
        try:
            with _limit:
                self.result = self._context.run(self._call)
        except BaseException as error:
            self.error = error


def _start(thread: threading.Thread) -> None:
    """Start a thread with a large stack; the stack size of other threads stays."""
    with _starting:
        before = threading.stack_size(STACK)
        try:
            thread.start()
        finally:
            threading.stack_size(before)


def has_large_stack() -> bool:
    """Return True if the current thread was started by `call_with_large_stack`."""
    return isinstance(threading.current_thread(), _Caller)


def call_with_large_stack(call: Callable[[], T]) -> T:
    """Run a call with a large stack; return its result, or raise its exception.

    >>> def depth(n: int) -> int:
    ...     return n and 1 + depth(n - 1)
    >>> call_with_large_stack(lambda: depth(20_000))
    20000

    Raises
    ------
    RecursionError: the large stack is too small, too.
    """
    if has_large_stack():
        return call()
    thread = _Caller(call)
    if is_inside := _limit.is_small():
        _limit.end_small()
    try:
        _start(thread)
        thread.join()
    finally:
        if is_inside:
            _limit.begin_small(wait=True)
    if thread.error is not None:
        raise thread.error
    result: T = thread.result
    return result


def call_with_any_stack(call: Callable[[], T]) -> T:
    """Run a pure call here, and again with a large stack if it exceeds the recursion limit."""
    if has_large_stack() or _limit.is_small():
        return call()
    if _limit.begin_small():
        try:
            return call()
        except RecursionError:
            pass
        finally:
            _limit.end_small()
    return call_with_large_stack(call)


NESTED = 500
"""Maximum depth of nested brackets that is read."""
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def is_too_deep(text: str) -> bool:
    """Return True if lists and objects are nested more than `NESTED` deep.

    >>> is_too_deep("[" * 501), is_too_deep("[" * 500), is_too_deep("[]" * 501)
    (True, False, False)
    """
    if len(text) <= NESTED or text.count("[") + text.count("{") <= NESTED:
        return False
    depth = 0
    for found in _BRACKET.finditer(text):
        sign = found[0]
        depth += (sign in "[{") - (sign in "]}")
        if depth > NESTED:
            return True
    return False

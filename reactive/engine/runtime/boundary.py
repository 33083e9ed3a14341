"""The boundary of the library: tracebacks show the user's frames and hide the library's.

    Traceback (most recent call last):
      File "shop.py", line 12, in <module>            the user's call
        sales.add(Sale(0, 2.0))
      File "shop.py", line 7, in <lambda>             the callable that raised, if one did
        ratios = sales.select(lambda s: s.price / s.id).materialize("ratios")
    ZeroDivisionError: float division by zero
      in select of view 'ratios' (shop.py:7), on row Sale(id=0, price=2.0)

A public method can catch an exception, remove frames, its own too, and reraise it by a bare
`raise`: its frame is not added again, since Python adds a frame only where the exception is raised.
A `try` without an exception costs nothing. The decorator `boundary` adds such a `try` to methods
that can afford one more call.

All frames are shown if the environment variable `REACTIVE_TRACEBACK` is `full`, or if the exception
can only be a bug of the library.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import iscoroutinefunction
from os.path import dirname
from types import FunctionType, TracebackType
from typing import Any, TypeVar

import sortedcontainers

from optimizer.callables.source import FOLDERS
from optimizer.errors import ReactiveError
from reactive.engine.runtime.foreign_names import KEYWORDS

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

GENERATED = "<reactive "
"""The prefix of the names of generated files."""
VARIABLE = "REACTIVE_TRACEBACK"
HELPERS = (contextlib.__file__, f"{dirname(sortedcontainers.__file__)}{os.sep}", "<string>")
"""Files that the library calls through; dataclasses compile their methods from a string."""
BUGS = (AssertionError, NameError, NotImplementedError, RecursionError, SystemError)
"""Exceptions that the library never raises on purpose."""
OPERATORS = frozenset(f"__{n}__" for n in ("or", "and", "sub", "add", "iter", "copy", "deepcopy"))
OPERATORS |= {"__reduce_ex__", "__getattr__"}


def _name_keyword(error: TypeError, name: str) -> None:
    """Append a hint to the message about an argument that has another name here.

    The error stays unchanged if no other name is known, or if it is not of the call itself.
    `name` is the name of the called function.
    """
    known = KEYWORDS.get(name)
    traceback = error.__traceback__
    if known is None or traceback is None or traceback.tb_next is not None or not error.args:
        return
    text = str(error.args[0])
    _, found, rest = text.partition(" got an unexpected keyword argument '")
    hint = known.get(rest.rstrip("'"))
    if found and hint is not None:
        error.args = (f"{text}\n  {hint}",)


def hide(error: BaseException) -> None:
    """Remove the library's frames from the traceback of an exception and of its causes.

    >>> def fails():
    ...     raise ValueError("no")
    >>> try: fails()
    ... except ValueError as error:
    ...     hide(error)
    ...     print([frame.f_code.co_name for frame in frames(error.__traceback__)])
    ['<module>', 'fails']
    """
    if os.environ.get(VARIABLE) == "full":
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            _hide(each)
            waiting += [each.__cause__, each.__context__]


def outermost(function: F) -> F:
    """Wrap a public function, so that tracebacks do not show the library's frames."""
    # `made` has the globals of the function: `doctest` finds the function by them
    take_out, note = hide, _name_keyword

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except TypeError as error:
            note(error, function.__name__)
            take_out(error)
            raise
        except Exception as error:
            take_out(error)
            raise

    module: dict[str, Any] = function.__globals__
    made = FunctionType(call.__code__, module, function.__name__, None, call.__closure__)
    return wraps(function)(made)  # type: ignore[return-value]


def boundary(kind: C) -> C:
    """Wrap the public methods of a class by `outermost`, except methods that `hide` themselves."""
    for name, value in list(vars(kind).items()):
        is_called = not name.startswith("_") or name in OPERATORS
        if is_called and isinstance(value, FunctionType) and not _hides(value):
            setattr(kind, name, outermost(value))
    return kind


def _hides(function: FunctionType) -> bool:
    return "hide" in function.__code__.co_names or iscoroutinefunction(function)


def frames(traceback: TracebackType | None) -> Iterator[Any]:
    """Yield the frames of a traceback, from the call to the place of the error."""
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _hide(error: BaseException) -> None:
    """Remove the library's frames from a traceback, unless the error is a bug of the library."""
    kept: list[TracebackType] = []
    traceback, is_ours = error.__traceback__, False
    while traceback is not None:
        is_ours = _is_ours(traceback.tb_frame.f_code.co_filename, is_ours)
        if not is_ours:
            kept.append(traceback)
        traceback = traceback.tb_next
    if is_ours and isinstance(error, BUGS) and not isinstance(error, ReactiveError):
        return  # a bug: show where it is
    context = error.__context__
    if context is not None and context.__traceback__ is not None and _is_inner(context):
        error.__suppress_context__ = True
    following: TracebackType | None = None
    for each in reversed(kept):
        if each.tb_next is not following:
            each.tb_next = following
        following = each
    error.__traceback__ = following


def _is_inner(error: BaseException) -> bool:
    """Return True if an exception was raised and caught within the library."""
    files = [frame.f_code.co_filename for frame in frames(error.__traceback__)]
    return all(file.startswith((*FOLDERS, GENERATED)) for file in files)


def _is_ours(file: str, was_ours: bool) -> bool:
    """Return True if a frame belongs to the library, or to a helper that it called."""
    return file.startswith((*FOLDERS, GENERATED)) or (was_ours and file.startswith(HELPERS))

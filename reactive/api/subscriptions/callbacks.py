"""What `subscribe` and `observe` take: callbacks, observers, and where and when they are to run."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from optimizer.callables.source import place_of
from optimizer.errors import PlanError
from reactive.api.subscriptions.relay import Callback, Relay, is_loop
from reactive.engine.dataflow.delta import Delta
from reactive.engine.dataflow.limits import Limits
from reactive.engine.runtime.timer import Timer

Event = tuple[Callable[..., object], tuple[Any, ...]]
"""A method of an observer, and what it is called with."""


def relay(
    callback: Callback,
    on: Any,
    every: float | None,
    timer: Timer,
    limits: Limits,
    own: tuple[int | None, str | None] = (None, None),
) -> Relay | None:
    """What takes deltas to a callback; None for one that runs in the thread of the writer.

    Raises
    ------
    PlanError: what is given is nothing of the kind; or the callback is asynchronous, and there is
        no loop to run it.
    """
    _check(on, every)
    _check_called(callback)
    _check_awaited("subscribe", callback, on)
    if own != (None, None) and (on is None or every is not None):
        raise PlanError(
            "maxsize= and when_full= are of what waits for on=executor or on=loop\n"
            "  with every= one delta waits; without on= the writer does"
        )
    if on is None and every is None:
        return None
    bound(latest=False, maxsize=own[0])
    return Relay(callback, on, every, timer, limits.of_one(*own))


def notify(observer: Any, on: Any) -> Callback:
    """The callback that calls an observer's methods."""
    names = ("added", "removed", "updated")
    found = {name: getattr(observer, name, None) for name in names}
    methods = {name: method if callable(method) else None for name, method in found.items()}
    given = [method for method in methods.values() if method is not None]
    if not given:
        raise PlanError(
            f"observe takes an object with a method added, removed or updated, not {observer!r}\n"
            "  for a function of one argument use subscribe()"
        )
    for method in given:
        _check_awaited("observe", method, on)
    added = methods["added"] or _ignore
    removed = methods["removed"] or _ignore
    updated = methods["updated"]

    def events(delta: Delta[Any]) -> Iterator[Event]:
        for row in delta.removed:
            yield removed, (row,)
        for old, new in delta.updated:
            if updated is not None:
                yield updated, (old, new)
            else:
                yield removed, (old,)
                yield added, (new,)
        for row in delta.added:
            yield added, (row,)

    def call(delta: Delta[Any]) -> None:
        for method, given in events(delta):
            method(*given)

    async def wait_for(delta: Delta[Any]) -> None:
        for method, given in events(delta):
            result = method(*given)
            if inspect.isawaitable(result):
                await result

    return wait_for if any(map(_is_asynchronous, given)) else call


def bound(latest: bool, maxsize: int | None) -> int | None:
    """How many deltas may wait for a reader of `changes`."""
    if not latest and maxsize is None:
        return None
    if latest and maxsize not in (None, 1):
        raise PlanError(
            f"changes(latest=True, maxsize={maxsize}): latest=True is maxsize=1\n  give one of them"
        )
    if not latest and (type(maxsize) is not int or maxsize < 1):
        raise PlanError(
            f"changes(maxsize={maxsize!r}) is no number of deltas that may wait\n"
            "  give an integer from 1 on; latest=True is maxsize=1"
        )
    return 1 if latest else maxsize


def _check(on: Any, every: Any) -> None:
    if every is not None and (
        isinstance(every, bool) or not isinstance(every, int | float) or not 0 < every < math.inf
    ):
        raise PlanError(
            f"every={every!r} is no interval\n  give the seconds from one call to the next"
        )
    if on is None or is_loop(on):
        return
    if not hasattr(on, "submit"):
        raise PlanError(
            f"on={on!r:.100} is neither an executor nor an event loop\n"
            "  such as on=ThreadPoolExecutor(1), or on=asyncio.get_running_loop()"
        )
    if _leaves_the_interpreter(on):
        raise PlanError(
            f"on={on!r:.100}: a callback cannot go to another process or interpreter\n"
            "  use a ThreadPoolExecutor"
        )


def _leaves_the_interpreter(executor: Any) -> bool:
    kinds = (("process", "ProcessPoolExecutor"), ("interpreter", "InterpreterPoolExecutor"))
    for module, name in kinds:
        kind = getattr(sys.modules.get(f"concurrent.futures.{module}"), name, None)
        if kind is not None and isinstance(executor, kind):
            return True
    return False


def _check_called(callback: Any) -> None:
    """Refuse what cannot be called with a delta, of which else the log would tell."""
    if not callable(callback):
        raise PlanError(
            f"subscribe takes a callable, delta -> anything, not {callback!r:.100}\n"
            "  observe() takes an object with methods added, removed and updated"
        )
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # of some that are not in Python
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise PlanError(
            f"subscribe calls its callable with one argument, the delta: {_named(callback)} takes "
            f"{signature}\n  use `lambda delta: ...`"
        ) from error


def _named(function: Any) -> str:
    """A function, and where it is written."""
    place = place_of(function)
    name = getattr(function, "__qualname__", type(function).__name__).rpartition(".<locals>.")[2]
    return f"{name}{'' if place is None else f' ({place})'}"


def _check_awaited(role: str, function: Any, on: Any) -> None:
    """Refuse a function that gives something to be awaited, where nobody would."""
    if is_loop(on) or not _is_asynchronous(function):
        return
    raise PlanError(
        f"{role}: {_named(function)} is asynchronous, and nobody would await it\n"
        "  `async for delta in relation.changes()`, or on=loop, the event loop that is to run it"
    )


def _is_asynchronous(function: Any) -> bool:
    call = getattr(type(function), "__call__", None)  # noqa: B004
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(is_kind(each) for is_kind in kinds for each in (function, call))


def _ignore(row: Any) -> None:
    """What is done about an event that an observer has no method for."""

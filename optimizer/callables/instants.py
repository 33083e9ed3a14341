"""Zoned datetimes that a callable reads of variables, also in the functions that it calls.

    LATE = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    def is_late(time): return time == LATE
    calls.where(lambda c: is_late(c.t))       calls a copy, whose LATE is 02:30+01:00

A variable of a method, or an attribute, is no variable that a copy could have: `without_zone` tells
of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from types import CellType, FunctionType
from typing import Any

from optimizer.callables.loads import defaults, global_names, is_users
from optimizer.kinds.instants import with_instants

SMALL = 100
"""Items of a container in which constants are looked for."""
HOLDERS = (list, dict, set, tuple, frozenset)
"""Containers in which constants are looked for."""
MOST_CALLED = 100
"""Functions that are looked at for zoned datetimes, of those that one function calls."""


def frozen_instant(value: Any) -> Any:
    kind: Any = type(value)
    if kind is datetime or (kind in HOLDERS and value and len(value) <= SMALL):
        return with_instants(value)
    return value


def with_called_instants(function: FunctionType, known: dict[int, FunctionType]) -> FunctionType:
    """Return a function of the user's in whose variables zoned datetimes are instants, also in the
    functions that it calls; the function itself if all are.

    `known` has the copies of functions that are being made, by the identity of the function: one
    may call itself.
    """
    if id(function) in known:
        return known[id(function)]
    if not is_users(function) or not _has_ambiguous(function, set()):
        return function
    cells, live = function.__closure__ or (), dict(function.__globals__)
    copies = tuple(CellType() if _is_changed(cell) else cell for cell in cells)
    made = FunctionType(function.__code__, live, function.__name__, None, copies or None)
    made.__dict__.update(function.__dict__)
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    known[id(function)] = made
    for cell, copied_cell in zip(cells, copies, strict=True):
        if copied_cell is not cell:
            copied_cell.cell_contents = _with_instants(cell.cell_contents, known)
    for name in global_names(function.__code__):
        if name in live:
            live[name] = _with_instants(live[name], known)
    given = {name: _with_instants(value, known) for name, value in defaults(function).items()}
    positional = len(function.__defaults__ or ())
    made.__defaults__ = tuple(given.values())[:positional] or None
    made.__kwdefaults__ = {n: given[n] for n in function.__kwdefaults__ or ()} or None
    return made


def _with_instants(value: Any, known: dict[int, FunctionType]) -> Any:
    is_function = type(value) is FunctionType
    return with_called_instants(value, known) if is_function else frozen_instant(value)


def _is_changed(cell: CellType) -> bool:
    try:
        value = cell.cell_contents
    except ValueError:
        return False
    return _is_ambiguous(value, set())


def _is_ambiguous(value: Any, seen: set[int]) -> bool:
    """True of a datetime that Python takes for another instant, and of what holds or calls one."""
    if type(value) is FunctionType:
        return is_users(value) and _has_ambiguous(value, seen)
    return frozen_instant(value) is not value


def _has_ambiguous(function: FunctionType, seen: set[int]) -> bool:
    if id(function) in seen or len(seen) >= MOST_CALLED:
        return False
    seen.add(id(function))
    return any(_is_ambiguous(value, seen) for _, value in _variables(function))


def ambiguous_variable(function: FunctionType) -> str | None:
    """The name of a variable that Python takes for another instant, or whose functions read one."""
    found = (name for name, value in _variables(function) if _is_ambiguous(value, set()))
    return next(found, None)


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables of a function that have values now."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from defaults(function).items()
    live = function.__globals__
    yield from ((name, live[name]) for name in global_names(function.__code__) if name in live)

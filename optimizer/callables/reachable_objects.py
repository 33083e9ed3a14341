"""Search the objects that a callable reaches through objects and collections, by its code alone.

    def __call__(self, c):
        return any(o.customer == c.id for o in self.orders)         self.orders

    lambda c: any(o.customer == c.id for o in tables[0])            tables[0]
    lambda c: any(o.customer == c.id for t in tables for o in t)    each of tables

Objects that are a variable, or an attribute of one, are left out: the reader of callables sees
them. It does not see functions that are reached through an object, a collection or a wrapper, so
that the variables of these are searched, too. No code of the user runs, so that computed objects
are missed.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

from optimizer.callables.captures import (
    CELLS,
    GLOBALS,
    SMALL,
    UNSET,
    Path,
    attribute,
    is_users,
    variable,
)

DEEPEST = 4
CONTAINERS = (list, tuple, dict, set, frozenset)
FOLLOWED = ("LOAD_ATTR", "LOAD_METHOD")
SKIPPED = ("PRECALL", "PUSH_NULL", "CACHE", "NOP", "RESUME")
Found = Iterator[tuple[str, Any]]
Steps = tuple[Any, ...]


def find_reachable_objects(function: Callable[..., Any], is_sought: Callable[[Any], bool]) -> Found:
    """Iterate over the sought objects that a callable reaches, or their methods, and how it reads
    them.

    Objects that a variable names are left out, and methods of sought objects are not searched.
    """
    yield from _Walk(is_sought).callable(function, "", is_read=True)


class _Walk:
    """One search, which looks at each code once."""

    def __init__(self, is_sought: Callable[[Any], bool]) -> None:
        self._is_sought = is_sought
        self._seen: set[tuple[int, int]] = set()
        self._depth = 0

    def callable(self, called: Any, label: str, *, is_read: bool) -> Found:
        """Iterate over the objects that a call reaches; with `is_read`, the reader of callables
        reads it."""
        if isinstance(called, FunctionType):
            yield from self._function(called, UNSET, label, is_read=is_read)
        elif isinstance(called, MethodType) and isinstance(called.__func__, FunctionType):
            yield from self._function(called.__func__, called.__self__, label, is_read=is_read)
        elif isinstance(called, partial):
            yield from self.callable(called.func, label, is_read=is_read)
        elif isinstance(getattr(called, "__wrapped__", None), FunctionType):
            yield from self._function(called.__wrapped__, UNSET, label, is_read=False)
        elif not isinstance(called, type):
            own = inspect.getattr_static(type(called), "__call__", None)
            if isinstance(own, FunctionType):
                yield from self._function(own, called, label, is_read=False)

    def _function(self, function: FunctionType, owner: Any, label: str, *, is_read: bool) -> Found:
        """Search the code of a user's function once per `owner`, its `self`; not deeper than
        `DEEPEST`."""
        key = (id(function), id(owner))
        if key in self._seen or self._depth >= DEEPEST or not is_users(function):
            return
        self._seen.add(key)
        self._depth += 1
        yield from self._code(function, function.__code__, owner, label, is_read)
        self._depth -= 1

    def _code(
        self, function: FunctionType, code: CodeType, owner: Any, label: str, is_read: bool
    ) -> Found:
        """Search each variable that the code loads, then the code of its inner functions."""
        steps, loads = _steps(code)
        for place in loads:
            is_own = _is_owner(function, steps[place])
            value = owner if is_own else _loaded_variable(function, steps[place])
            if value is not UNSET:
                yield from self._path(steps, place, value, label, is_read and not is_own)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from self._code(function, inner, owner, label, is_read)

    def _path(self, steps: Steps, place: int, value: Any, label: str, is_named: bool) -> Found:
        """Iterate over the objects that the steps after a load read of a variable."""
        name = str(steps[place].argval)
        while True:
            place += 1
            owner, value, name, more = value, *_next(steps, place, value, name)
            if not more:
                break
            is_named &= more == 1
            place += more - 1
        whole = f"{label}{name}"
        for part, each in _ends_of_path(steps, place, owner, whole):
            own = each.__self__ if isinstance(each, MethodType) else each
            if self._is_sought(own):
                if not (is_named and part == whole):
                    yield part, each
            elif callable(each) and not isinstance(each, type):
                is_plain = is_named and isinstance(each, FunctionType)
                yield from self.callable(each, f"{part} -> ", is_read=is_plain)


@lru_cache(maxsize=1024)
def _steps(code: CodeType) -> tuple[Steps, tuple[int, ...]]:
    """Return the steps of a code, and the places of steps that may load a variable from outside."""
    steps = tuple(s for s in dis.get_instructions(code) if s.opname not in SKIPPED)
    loads = GLOBALS | CELLS | {"LOAD_FAST"}
    return steps, tuple(place for place, step in enumerate(steps) if step.opname in loads)


def _is_owner(function: FunctionType, step: Any) -> bool:
    """Return True if a step loads the first parameter, the object whose method it is."""
    code = function.__code__
    name = step.argval
    is_first = bool(code.co_argcount) and name == code.co_varnames[0]
    return is_first and step.opname not in GLOBALS and name not in code.co_freevars


def _loaded_variable(function: FunctionType, step: Any) -> Any:
    """Return the variable from outside that a step loads."""
    is_in_cell, name = step.opname in CELLS, str(step.argval)
    if step.opname not in GLOBALS and not (is_in_cell and name in function.__code__.co_freevars):
        return UNSET
    try:
        found = variable(function, Path(is_in_cell, (name,)))
    except ValueError:
        return UNSET
    return UNSET if found is None else found


def _next(steps: Steps, place: int, value: Any, name: str) -> tuple[Any, str, int]:
    """Return the attribute or item that is read next, its name, and the number of steps; 0 if none
    is."""
    step = steps[place] if place < len(steps) else None
    if step is not None and step.opname in FOLLOWED:
        found = _attribute(value, str(step.argval))
        return found, f"{name}.{step.argval}", int(found is not UNSET)
    if step is not None and step.opname == "LOAD_CONST" and _is_item(steps, place + 1):
        found = _plain_item(value, step.argval)
        return found, f"{name}[{step.argval!r}]", 2 if found is not UNSET else 0
    return value, name, 0


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute read without running code, or a method bound to `owner`; else `UNSET`."""
    found = attribute(owner, name)
    if found is not UNSET or isinstance(owner, type):
        return found
    method = getattr(type(owner), name, UNSET)
    return MethodType(method, owner) if isinstance(method, FunctionType) else UNSET


def _is_item(steps: Steps, place: int) -> bool:
    """Return True if the step at `place` subscripts a value: `a[b]`."""
    step = steps[place] if place < len(steps) else None
    return step is not None and (
        step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
    )


def _plain_item(owner: Any, key: Any) -> Any:
    """Return the item of a built-in list, tuple or dict; `UNSET` if there is none, or for other
    owners."""
    if type(owner) not in (list, tuple, dict):
        return UNSET
    try:
        return owner[key]
    except (LookupError, TypeError):
        return UNSET


def _ends_of_path(steps: Steps, place: int, value: Any, name: str) -> Found:
    """Return the object at the end of a path; each element of a collection that is iterated
    over."""
    if type(value) not in CONTAINERS or len(value) > SMALL:
        yield name, value
        return
    if _goes_through(steps, place):
        elements = value.values() if isinstance(value, dict) else value
        yield from ((f"each of {name}", element) for element in elements)


def _goes_through(steps: Steps, place: int) -> bool:
    """Return True if the steps after `place` read all elements, or an element by an unknown key."""
    step = steps[place] if place < len(steps) else None
    if step is None:
        return False
    if step.opname in FOLLOWED:
        return step.argval in ("values", "items", "get")
    is_variable = step.opname.startswith("LOAD") and step.opname != "LOAD_CONST"
    return step.opname == "GET_ITER" or (is_variable and _is_item(steps, place + 1))

"""Which variables a function reads from outside, and which attributes it reads of them; and zoned
datetimes among these as instants, also in the functions that it calls.

    LATE = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    def is_late(time): return time == LATE
    calls.where(lambda c: is_late(c.t))       calls a copy, whose LATE is 02:30+01:00

A variable of a method, or an attribute, is no variable that a copy could have: `without_zone` tells
of these.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from types import CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

from optimizer.kinds.instants import with_instants

GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME"}
CELLS = {"LOAD_DEREF", "LOAD_CLASSDEREF"}
UNSET: Any = object()
SMALL = 100
"""Items of a container in which constants are looked for."""
HOLDERS = (list, dict, set, tuple, frozenset)
"""Containers in which constants are looked for."""
SEARCHED = frozenset({FunctionType, datetime, *HOLDERS})
"""Classes of values that may be, hold or read a zoned datetime."""
MOST_CALLED = 100
"""Functions that are looked at for zoned datetimes, of those that one function calls."""
REFLECTIVE = frozenset({"locals", "vars", "eval", "exec", "dir"})


class Path(NamedTuple):
    """A variable from outside, in a closure cell or else global, and attributes read from it."""

    in_cell: bool
    names: tuple[str, ...]


@lru_cache(maxsize=1024)
def paths(code: CodeType) -> tuple[Path, ...]:
    """What the code, or a function nested in it, loads from outside of it."""
    found: list[Path] = []
    following = False
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname in GLOBALS | CELLS:
            found.append(Path(instruction.opname in CELLS, (name,)))
            following = True
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and following:
            found[-1] = Path(found[-1].in_cell, (*found[-1].names, name))
        elif instruction.opname not in ("PRECALL", "PUSH_NULL", "CACHE", "NOP"):
            following = False
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    found += (path for inner in nested for path in paths(inner))
    outside = (p for p in found if not p.in_cell or p.names[0] in code.co_freevars)
    return tuple(dict.fromkeys(outside))


def unread_parameters(function: Any) -> frozenset[int]:
    """The positions of parameters that a plain function certainly never reads.

    >>> sorted(unread_parameters(lambda a, b, c: b))
    [0, 2]
    """
    if not isinstance(function, FunctionType):
        return frozenset()
    return _unread(function.__code__)


@lru_cache(maxsize=1024)
def _unread(code: CodeType) -> frozenset[int]:
    loaded = {*code.co_cellvars, *REFLECTIVE.intersection(code.co_names)}
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            value = instruction.argval
            loaded.update(value if isinstance(value, tuple) else [str(value)])
    if loaded & REFLECTIVE:
        return frozenset()
    names = code.co_varnames[: code.co_argcount]
    return frozenset(place for place, name in enumerate(names) if name not in loaded)


def variable(function: FunctionType, path: Path) -> Any:
    """The value of the variable that a path begins with; None where there is none."""
    name = path.names[0]
    if path.in_cell:
        cells = function.__closure__ or ()
        try:
            return cells[function.__code__.co_freevars.index(name)].cell_contents
        except ValueError:
            return None
    builtins = function.__globals__.get("__builtins__", {})
    names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
    return function.__globals__.get(name, names.get(name))


def attribute(owner: Any, name: str) -> Any:
    """The value of a plain attribute, found without running code; `UNSET` if it is not plain."""
    value = inspect.getattr_static(owner, name, UNSET)
    if isinstance(value, MemberDescriptorType):  # of a class with slots
        return getattr(owner, name, UNSET)
    return UNSET if hasattr(type(value), "__get__") else value


def defaults(function: FunctionType) -> dict[str, Any]:
    """The default values of a function's parameters, by name."""
    code, values = function.__code__, function.__defaults__ or ()
    if not values and not function.__kwdefaults__:
        return {}
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


@lru_cache(maxsize=1024)
def global_names(code: CodeType) -> tuple[str, ...]:
    """The global names that the code, or a function nested in it, reads."""
    return tuple(dict.fromkeys(path.names[0] for path in paths(code) if not path.in_cell))


def is_users(function: FunctionType) -> bool:
    """Return True for what is neither of the standard library nor of an installed package."""
    module = str(function.__module__).partition(".")[0]
    installed = "site-packages" in function.__code__.co_filename
    return module not in sys.stdlib_module_names and not installed


# Instants.


def frozen_instant(value: Any) -> Any:
    kind: Any = type(value)
    if kind is datetime or (kind in HOLDERS and value and len(value) <= SMALL):
        return with_instants(value)
    return value


def _with_called_instants(function: FunctionType, known: dict[int, FunctionType]) -> FunctionType:
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
            copied_cell.cell_contents = with_live_instants(cell.cell_contents, known)
    for name in global_names(function.__code__):
        if name in live:
            live[name] = with_live_instants(live[name], known)
    given = {name: with_live_instants(value, known) for name, value in defaults(function).items()}
    positional = len(function.__defaults__ or ())
    made.__defaults__ = tuple(given.values())[:positional] or None
    made.__kwdefaults__ = {n: given[n] for n in function.__kwdefaults__ or ()} or None
    return made


def with_live_instants(value: Any, known: dict[int, FunctionType]) -> Any:
    """Return a value of a variable with instants in it, and in what it calls."""
    is_function = type(value) is FunctionType
    return _with_called_instants(value, known) if is_function else frozen_instant(value)


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
    live = function.__globals__
    found = [live.get(name) for name in global_names(function.__code__)]
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        found = [value for _, value in _variables(function)]
    return any(type(value) in SEARCHED and _is_ambiguous(value, seen) for value in found)


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

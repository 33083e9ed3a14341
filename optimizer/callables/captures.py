"""Captured variables: the names that a callable reads from outside, and the values they had when
the relation was made.

`freeze` keeps the captured variables of a callable as they were when the relation was made.

    limit = 30
    view = people.where(lambda p: p.age > limit).materialize()
    limit = 40                  # the view still uses 30; the next commit raises

A lambda reads its closure cells and globals when it is called. A maintained result would then
mix rows judged by the old value with rows judged by the new one. So the relation holds a copy
of the function with its variables frozen, and the originals to notice a change.

Small built-in containers (at most 100 elements) are copied too, so that changing them in place
is noticed. Attributes of captured objects (`self.limit`) cannot be frozen; their changes are
noticed too. So are changes of the variables of the user's functions that a callable names, and that
these name.

`paths` finds the variables that a function reads from outside, and the attributes that it reads of
them. Zoned datetimes among these become instants, also in the functions that it calls.

    LATE = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    def is_late(time): return time == LATE
    calls.where(lambda c: is_late(c.t))       calls a copy, whose LATE is 02:30+01:00

A copy cannot have its own variable of a method, or attribute: `without_zone` refuses these.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from enum import Enum
from functools import lru_cache, partial
from operator import attrgetter, is_, itemgetter, methodcaller
from sys import getrefcount
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, NamedTuple

from optimizer.kinds.instants import with_instants
from optimizer.record import record

GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME"}
CELLS = {"LOAD_DEREF", "LOAD_CLASSDEREF"}
UNSET: Any = object()
SMALL = 100
"""Most items of a container that is searched for constants."""
HOLDERS = (list, dict, set, tuple, frozenset)
"""Containers that are searched for constants."""
SEARCHED = frozenset({FunctionType, datetime, *HOLDERS})
"""Classes of values that may be, hold or read a zoned datetime."""
MOST_CALLED = 100
"""Functions called by one function that are searched for zoned datetimes."""
READ_VARIABLES = frozenset({"locals", "vars", "eval", "exec", "dir"})


class Path(NamedTuple):
    """A variable from outside, in a closure cell or else global, and attributes read from it."""

    in_cell: bool
    names: tuple[str, ...]


@lru_cache(maxsize=1024)
def paths(code: CodeType) -> tuple[Path, ...]:
    """Return the variables that the code, or a function nested in it, loads from outside of it."""
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
    """Return the positions of parameters that a plain function certainly never reads.

    >>> sorted(unread_parameters(lambda a, b, c: b))
    [0, 2]
    """
    if not isinstance(function, FunctionType):
        return frozenset()
    return find_unread_parameters(function.__code__)


@lru_cache(maxsize=1024)
def find_unread_parameters(code: CodeType) -> frozenset[int]:
    """Return the places of parameters that the code never loads; empty if it names `locals` or
    `eval`."""
    loaded = {*code.co_cellvars, *READ_VARIABLES.intersection(code.co_names)}
    for instruction in dis.get_instructions(code):
        if "LOAD" in instruction.opname:
            value = instruction.argval
            loaded.update(value if isinstance(value, tuple) else [str(value)])
    if loaded & READ_VARIABLES:
        return frozenset()
    names = code.co_varnames[: code.co_argcount]
    return frozenset(place for place, name in enumerate(names) if name not in loaded)


def variable(function: FunctionType, path: Path) -> Any:
    """Return the value of the variable that a path begins with; None without a variable."""
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
    """Return the value of a plain attribute, found without running code; `UNSET` if it is not
    plain."""
    value = inspect.getattr_static(owner, name, UNSET)
    if isinstance(value, MemberDescriptorType):  # of a class with slots
        return getattr(owner, name, UNSET)
    return UNSET if hasattr(type(value), "__get__") else value


def defaults(function: FunctionType) -> dict[str, Any]:
    """Return the default values of a function's parameters, by name."""
    code, values = function.__code__, function.__defaults__ or ()
    if not values and not function.__kwdefaults__:
        return {}
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


@lru_cache(maxsize=1024)
def global_names(code: CodeType) -> tuple[str, ...]:
    """Return the global names that the code, or a function nested in it, reads."""
    return tuple(dict.fromkeys(path.names[0] for path in paths(code) if not path.in_cell))


def is_users(function: FunctionType) -> bool:
    """Return True for a function that is not of the standard library or an installed package."""
    module = str(function.__module__).partition(".")[0]
    installed = "site-packages" in function.__code__.co_filename
    return module not in sys.stdlib_module_names and not installed


# Instants.


def frozen_instant(value: Any) -> Any:
    """Return a datetime or a small built-in container with ambiguous times as instants; else
    `value`."""
    kind: Any = type(value)
    if kind is datetime or (kind in HOLDERS and value and len(value) <= SMALL):
        return with_instants(value)
    return value


def _with_called_instants(function: FunctionType, known: dict[int, FunctionType]) -> FunctionType:
    """Return a function of the user with instants for the zoned datetimes in its variables.

    The functions that it calls are copied likewise. Return the function itself if it has none.
    `known` has the copies in progress, by the identity of the function: one may call itself.
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
    """Return the value of a variable with instants in it, and in the functions that it calls."""
    is_function = type(value) is FunctionType
    return _with_called_instants(value, known) if is_function else frozen_instant(value)


def _is_changed(cell: CellType) -> bool:
    """Return True if the value of a cell has to be replaced by its instant; False for an empty
    cell."""
    try:
        value = cell.cell_contents
    except ValueError:
        return False
    return _is_ambiguous(value, set())


def _is_ambiguous(value: Any, seen: set[int]) -> bool:
    """Return True for a datetime that Python takes for another instant, or a value that has one."""
    if type(value) is FunctionType:
        return is_users(value) and _has_ambiguous(value, seen)
    return frozen_instant(value) is not value


def _has_ambiguous(function: FunctionType, seen: set[int]) -> bool:
    """Return True if a variable of a function, or of the user's functions that it reads, is
    ambiguous.

    Functions in `seen` are not searched again; the function is added to `seen`.
    """
    if id(function) in seen or len(seen) >= MOST_CALLED:
        return False
    seen.add(id(function))
    live = function.__globals__
    found = [live.get(name) for name in global_names(function.__code__)]
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        found = [value for _, value in _variables(function)]
    return any(type(value) in SEARCHED and _is_ambiguous(value, seen) for value in found)


def ambiguous_variable(function: FunctionType) -> str | None:
    """Return the name of the first variable that is an ambiguous time, holds one or reads one; None
    if none."""
    found = (name for name, value in _variables(function) if _is_ambiguous(value, set()))
    return next(found, None)


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Iterate over the variables of a function that have values."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    yield from defaults(function).items()
    live = function.__globals__
    yield from ((name, live[name]) for name in global_names(function.__code__) if name in live)


DEEPEST = 3
REFLECTIVE = frozenset({"globals", "vars", "eval", "exec", "__import__"})
OF_MODULE = ("__name__", "__file__", "__package__", "__spec__", "__loader__", "__doc__")
"""Names of a module that are not searched for in code."""
CONTAINERS = (list, dict, set, bytearray)
PLAIN = (int, str, bytes, bool, type(None))
OF_DATA = frozenset({"datetime", "decimal", "fractions"})
"""Modules whose objects never change, and show all their data."""
CODE = (
    *(type, FunctionType, BuiltinFunctionType, MethodDescriptorType, ModuleType),
    *(attrgetter, itemgetter, methodcaller),
)


@record
class Capture:
    """One variable of a callable, with the value that it had when the relation was made.

    `source` is where the variable lives: the closure cell, the dictionary of globals, or the
    function whose default it is; or the object whose `attribute` it is. The callable gets `frozen`,
    and the variable is compared with `witness`. `reader` is the function that reads it, if that is
    not the callable itself.
    """

    name: str
    source: Any
    original: Any
    frozen: Any
    witness: Any
    attribute: str | None = None
    reader: str | None = None

    @property
    def is_live(self) -> bool:
        """True if the callable sees a change: the variable could not be frozen."""
        return self.attribute is not None or self.reader is not None

    @property
    def is_copy(self) -> bool:
        """True for a set or list that the callable gets a copy of."""
        return type(self.frozen) in (set, list) and self.frozen is not self.original

    @property
    def is_final(self) -> bool:
        """True if no other object refers to the variable, so that it cannot change."""
        is_variable = self.source.__class__ is CellType and self.attribute is None
        return is_variable and self.witness is self.original and _references(self) <= FROM_HERE

    def changed(self) -> bool:
        """Return True if the variable's meaning has changed since the relation was made."""
        source, original = self.source, self.original
        if source.__class__ is CellType and self.attribute is None:  # as `now`, for many views
            try:
                now = source.cell_contents
            except ValueError:
                now = UNSET
        else:
            now = self.now()
        if now is original:
            return self.witness is not original and bool(now != self.witness)
        return bool(meaning(now) != meaning(self.witness))

    def now(self) -> Any:
        """Return the current value of the variable; UNSET without a value."""
        if self.attribute is not None:
            return getattr(self.source, self.attribute, UNSET)
        if isinstance(self.source, CellType):
            try:
                return self.source.cell_contents
            except ValueError:
                return UNSET
        if isinstance(self.source, FunctionType):
            return defaults(self.source).get(self.name, UNSET)
        return self.source.get(self.name, UNSET)


def _references(capture: Capture) -> int:
    """Return the number of references to the place of a variable."""
    return getrefcount(capture.source)


FROM_HERE = _references(Capture("", CellType(None), None, None, None))
"""References to a variable that only its record has, counting references of the interpreter."""


def freeze(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Capture, ...]]:
    """Return the callable with its variables fixed to their current values, and its captures.

    A callable without Python code of its own, or without variables, is returned itself.
    """
    if isinstance(function, partial):
        return _of_partial(function), ()
    if isinstance(function, MethodType):
        inner, captures = freeze(function.__func__)
        return (MethodType(inner, function.__self__) if captures else function), captures
    if not isinstance(function, FunctionType):
        return function, ()
    own = tuple(_captures(function))
    captures = (*own, *_of_callees(own))
    return (_rebuilt(function, captures) if captures else function), captures


def _of_partial(function: partial[Any]) -> partial[Any]:
    """Return a partial whose arguments, and variables of its function, are instants.

    Return `function` itself if they all are so already.
    """
    called, given = _frozen(function.func), tuple(map(frozen_instant, function.args))
    named = {name: frozen_instant(value) for name, value in function.keywords.items()}
    is_same = called is function.func and all(map(is_, given, function.args))
    if is_same and all(value is function.keywords[name] for name, value in named.items()):
        return function
    return partial(called, *given, **named)


def meaning(value: Any) -> Any:
    """Return a hashable stand-in, equal for values that no callable can distinguish.

    >>> meaning(1) == meaning(1), meaning(1) == meaning(True), meaning(0.0) == meaning(-0.0)
    (True, False, False)
    >>> from datetime import date
    >>> meaning(date(2024, 1, 2)) == meaning(date(2024, 1, 2))
    True
    """
    try:
        return _meaning_of_value(value)
    except RecursionError:
        return object()


def _meaning_of_value(value: Any) -> Any:
    """Return the content of data, the identity of code, and a new object for a mutable object."""
    kind = type(value)
    if kind in PLAIN:
        return (kind, value)
    if kind is float or kind is complex:
        return (kind, repr(value))
    if kind is tuple or kind is frozenset:
        return (kind, kind(map(_meaning_of_value, value)))
    if kind in CONTAINERS and len(value) <= SMALL:
        content = value.items() if kind is dict else value
        return (kind, (frozenset if kind is set else tuple)(map(_meaning_of_value, content)))
    if isinstance(value, (*CODE, Enum)):
        return id(value)
    if kind.__module__ in OF_DATA and getattr(value, "tzinfo", None) is None:
        return (kind, repr(value))
    return object()


def _captures(function: FunctionType) -> Iterator[Capture]:
    """Yield the captured variables of a function: cells, globals, changeable defaults, attributes.

    Unassigned cells, unset globals and modules are left out.
    """
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue  # not assigned yet (a function that names itself): stays live
        yield Capture(name, cell, value, _frozen(value), copy_container(value))
    for name in global_names(function.__code__):
        live = function.__globals__
        value = live.get(name, UNSET)
        if value is not UNSET and not isinstance(value, ModuleType):
            yield Capture(name, live, value, _frozen(value), copy_container(value))
    for name, value in defaults(function).items():
        if (
            copy_container(value) is not value or _frozen(value) is not value
        ):  # its content can change
            yield Capture(name, function, value, _frozen(value), copy_container(value))
    yield from _captured_attributes(function)


def _captured_attributes(function: FunctionType) -> Iterator[Capture]:
    """Iterate over the attributes that the function reads of its captured objects, if plain
    data."""
    for path in paths(function.__code__):
        if len(path.names) == 1:
            continue
        owner = variable(function, path)
        for depth, name in enumerate(path.names[1:], 2):
            value = attribute(owner, name)
            if value is UNSET or callable(value) or isinstance(value, Enum):
                break
            if not isinstance(value, ModuleType):
                label = ".".join(path.names[:depth])
                yield Capture(label, owner, value, value, copy_container(value), name)
            owner = value


def _of_callees(captures: tuple[Capture, ...], depth: int = 1) -> Iterator[Capture]:
    """Iterate over the data that the user's functions read which a callable names, and which these
    name."""
    for capture in captures:
        called = capture.original
        if depth <= DEEPEST and isinstance(called, FunctionType) and is_users(called):
            own = tuple(_captures(called))
            for inner in own:
                if not callable(inner.original) and inner.attribute is None:
                    yield replace(inner, reader=called.__name__)
            yield from _of_callees(own, depth + 1)


def _frozen(value: Any) -> Any:
    """Return a copy of a small container, with instants for zoned datetimes.

    An empty container is not copied: it may be meant as itself, such as a sentinel.
    """
    kind: Any = type(value)
    value = with_live_instants(value, {})
    return copy_container(value) if kind in CONTAINERS and value else value


def copy_container(value: Any) -> Any:
    """Return a copy of a small container, or the value itself."""
    if type(value) in CONTAINERS and len(value) <= SMALL:
        return value.copy()
    return value


def _rebuilt(function: FunctionType, captures: tuple[Capture, ...]) -> FunctionType:
    """Return a copy of a function that reads the frozen values of its captures; live ones stay."""
    captures = tuple(c for c in captures if not c.is_live)
    by_cell = {id(c.source): c.frozen for c in captures if isinstance(c.source, CellType)}
    cells = tuple(
        CellType(by_cell[id(cell)]) if id(cell) in by_cell else cell
        for cell in function.__closure__ or ()
    )
    names = {c.name: c.frozen for c in captures if isinstance(c.source, dict)}
    rebuilt = FunctionType(
        function.__code__,
        _globals(function, names),
        function.__name__,
        None,
        cells or None,
    )
    held = {c.name: c.frozen for c in captures if isinstance(c.source, FunctionType)}
    fixed = {name: held.get(name, value) for name, value in defaults(function).items()}
    positional = len(function.__defaults__ or ())
    rebuilt.__defaults__ = tuple(fixed.values())[:positional] or None
    rebuilt.__kwdefaults__ = {name: fixed[name] for name in function.__kwdefaults__ or ()} or None
    rebuilt.__qualname__ = function.__qualname__
    rebuilt.__module__ = function.__module__
    return rebuilt


def _globals(function: FunctionType, frozen: dict[str, Any]) -> dict[str, Any]:
    """Return the globals with the frozen values.

    Return the live ones if a name is not defined yet, or if the code may look at all of them.
    """
    live, names = function.__globals__, global_names(function.__code__)
    if not REFLECTIVE.isdisjoint(names):
        return live
    if any(name not in live and not hasattr(builtins, name) for name in names):
        return live
    modules = {name: live[name] for name in names if name in live}
    own = {name: live[name] for name in OF_MODULE if name in live}
    return {"__builtins__": builtins, **own, **modules, **frozen}

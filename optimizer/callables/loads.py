"""Which variables a function reads from outside, and which attributes it reads of them."""

from __future__ import annotations

import dis
import inspect
import sys
from functools import lru_cache
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME"}
CELLS = {"LOAD_DEREF", "LOAD_CLASSDEREF"}
UNSET: Any = object()
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
    """Whether it is neither of the standard library nor of an installed package."""
    module = str(function.__module__).partition(".")[0]
    installed = "site-packages" in function.__code__.co_filename
    return module not in sys.stdlib_module_names and not installed

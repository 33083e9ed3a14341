"""Which variables a function reads from outside, and which attributes it reads of them."""

from __future__ import annotations

import dis
import inspect
from functools import lru_cache
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
Path = tuple[str, ...]
UNSET: Any = object()


@lru_cache(maxsize=1024)
def paths(code: CodeType) -> tuple[Path, ...]:
    """Every global or captured name that is loaded, with the attributes read from it."""
    found: list[Path] = []
    current: Path | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in LOADS:
            current = (str(instruction.argval),)
            found.append(current)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and current is not None:
            current = (*current, str(instruction.argval))
            found[-1] = current
        elif instruction.opname not in ("PRECALL", "PUSH_NULL", "CACHE", "NOP"):
            current = None
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return tuple(dict.fromkeys([*found, *(path for inner in nested for path in paths(inner))]))


def variable(function: FunctionType, name: str) -> Any:
    """The value that a function sees under a name now; None where there is none."""
    if name in function.__code__.co_freevars and function.__closure__ is not None:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
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

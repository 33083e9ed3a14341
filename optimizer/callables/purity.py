"""Refuse callables that are known to answer differently from one call to the next.

A query's callable is called once when a row arrives and again when it leaves, and both calls
must agree. Whatever is known to break that (randomness, clocks, input and output, writing to
captured variables) is refused when the relation is made. What is not known is trusted.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from optimizer.callables.loads import Path, paths, variable

MODULES = frozenset({"random", "secrets", "subprocess", "socket"})
FUNCTIONS = frozenset(
    {
        *(f"time.{n}" for n in ("time", "time_ns", "monotonic", "monotonic_ns", "sleep")),
        *(f"time.{n}" for n in ("perf_counter", "perf_counter_ns", "process_time", "localtime")),
        *(f"datetime.datetime.{n}" for n in ("now", "today", "utcnow")),
        "datetime.date.today",
        *(f"builtins.{n}" for n in ("print", "input", "open")),
        *("_io.open", "io.open", "posix.urandom", "nt.urandom", "uuid.uuid1", "uuid.uuid4"),
    }
)


def impurity(function: Callable[..., Any]) -> str | None:
    """Why the callable is known to be impure, in a few words; None if nothing is known.

    >>> import random
    >>> impurity(lambda row: random.random() < 0.5)
    'it uses random.random'
    """
    if isinstance(function, MethodType):
        function = function.__func__
    name = _impure_name(function)
    if name is not None:
        return f"it is {name}"
    if not isinstance(function, FunctionType):
        return None
    for path in paths(function.__code__):
        name = _impure_path(function, path)
        if name is not None:
            return f"it uses {name}"
    written = _written(function.__code__)
    return f"it assigns the captured variable {written!r}" if written else None


STORES = frozenset(
    dis.opmap[f"{verb}_{what}"] for verb in ("STORE", "DELETE") for what in ("GLOBAL", "DEREF")
)


@lru_cache(maxsize=1024)
def _written(code: CodeType) -> str | None:
    if STORES.isdisjoint(code.co_code[::2]):
        return None
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            return name
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and name in code.co_freevars:
            return name
    return None


PLAIN = frozenset({int, str, float, bytes, bool, type(None)})
"""Classes of values that do nothing."""


def _impure_path(function: FunctionType, path: Path) -> str | None:
    value = variable(function, path)
    if type(value) in PLAIN:
        return None
    for attribute in path.names[1:]:
        if isinstance(value, ModuleType | type):
            value = getattr(value, attribute, None)
    name = _impure_name(value)
    return ".".join(path.names) if name is not None else None


def _impure_name(value: Any) -> str | None:
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType | type):
        return _random_name(owner)
    module = getattr(owner, "__name__", None) if isinstance(owner, ModuleType) else None
    module = module or getattr(owner, "__module__", None) or getattr(value, "__module__", None)
    if not callable(value) or isinstance(value, type):
        return _random_name(value)
    name = f"{module}.{getattr(value, '__qualname__', '')}"
    return name if name in FUNCTIONS or str(module) in MODULES else None


def _random_name(value: Any) -> str | None:
    """A random number generator, without importing the module that defines it."""
    is_generator = any(
        (c.__module__, c.__name__) in {("random", "Random"), ("_random", "Random")}
        for c in type(value).__mro__
    )
    return "random" if is_generator else None

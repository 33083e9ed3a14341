"""Callables of users as values in a plan.

An `Opaque` is a callable kept whole. Two of them are equal if nothing can distinguish their
results: the same code with the same captured values. So two views that were made by the same line
share their operators.

`impurity` refuses callables that are known to return different results from call to call.

A query's callable is called once when a row is inserted and again when it is deleted, and both
calls must agree. Known sources of difference (randomness, clocks, input and output, writing to
captured variables) are refused when the relation is made. Other code is trusted.
"""

from __future__ import annotations

import ast
import dis
import inspect
from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from optimizer.callables.captures import Capture, Path, defaults, freeze, meaning, paths, variable
from optimizer.callables.source import Place, place_of
from optimizer.callables.syntax import shared_syntax_of
from optimizer.errors import PlanError
from optimizer.record import record

FROM_TEXT = "a text"
"""The role of a callable that stands for a part of a text in another language: its name is that
part."""


@record
class Opaque:
    """A callable of a query, with its captured variables as they were when it was made."""

    function: Callable[..., Any] = field(compare=False)
    parameters: int
    name: str = field(compare=False)
    place: Place | None = field(compare=False)
    captures: tuple[Capture, ...] = field(compare=False, repr=False)
    identity: object = field(repr=False)
    role: str = field(default="", compare=False)
    """The use of the callable: `"where"`, `"the left key of join"`."""
    is_part: bool = field(default=False, compare=False)
    """True if it is a part of the user's callable."""
    copies: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """Captured sets and lists that are copies, which only the callable itself can change."""
    readings: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Its readings, by the shapes of its arguments."""

    def __str__(self) -> str:
        return _name_with_place(self.name, self.place)


def opaque(function: Callable[..., Any], parameters: int, role: str) -> Opaque:
    """Take a user's callable into a plan.

    Parameters
    ----------
    function: the callable of the user.
    parameters: the number of arguments that it will be called with.
    role: its use, named in errors: `"where"`, `"the left key of join"`.

    Raises
    ------
    PlanError: not callable, cannot take that number of arguments, or known to be impure.
    """
    if not callable(function):
        raise PlanError(
            f"{role} takes a callable, not {function!r}\n"
            "  write a lambda with one parameter per binding"
        )
    place = place_of(function)
    name = getattr(function, "__qualname__", type(function).__name__).rpartition(".")[2]
    reason = impurity(function)
    if _is_asynchronous(function):
        reason = "it is asynchronous, and gives a coroutine instead of an answer"
    if reason is not None:
        raise PlanError(
            f"{role}: {_name_with_place(name, place)} cannot be used in a query: {reason}\n"
            f"  a callable must give the same answer each time; {instead_of(reason)}"
        )
    if not _takes(function, parameters):
        _check_parameters(function, parameters, role, _name_with_place(name, place))
    if _is_empty(function):
        raise PlanError(
            f"{role}: {_name_with_place(name, place)} has an empty body, and returns nothing\n"
            "  write what it is to return; `lambda row: None` gives None"
        )
    frozen, captures = freeze(function)
    identity = _identity(function, captures)
    copies = tuple(c.frozen for c in captures if c.is_copy)
    return Opaque(frozen, parameters, name, place, captures, identity, role, copies=copies)


def _is_empty(function: Callable[..., Any]) -> bool:
    """Return True for `def f(row): ...`.

    It compiles like `return None`, and only its text differs; a function without a text is
    accepted.
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_name == "<lambda>" or code.co_names or code.co_freevars:
        return False
    if code.co_code not in _EMPTY:
        return False
    found = shared_syntax_of(code, getattr(function, "__globals__", {}))
    return isinstance(found, ast.FunctionDef) and all(
        isinstance(each, ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in found.body
    )


def _nothing(row: Any) -> Any: ...


def _documented(row: Any) -> Any:
    """Nothing."""


_EMPTY = frozenset({_nothing.__code__.co_code, _documented.__code__.co_code})
"""Byte code of empty functions; with a docstring, None is another constant."""


def _identity(function: Callable[..., Any], captures: tuple[Capture, ...]) -> object:
    """Return a value that is equal for callables that always agree.

    Each `id` in it is of an object that the callable holds.
    """
    if isinstance(function, MethodType):
        return (meaning(function.__self__), _identity(function.__func__, captures))
    if not isinstance(function, FunctionType):
        return meaning(function)
    captured = {id(c.source) for c in captures}
    unset = tuple(id(cell) for cell in function.__closure__ or () if id(cell) not in captured)
    values = tuple((c.name, meaning(c.witness)) for c in captures)
    fixed = tuple((n, meaning(v)) for n, v in defaults(function).items())
    return (function.__code__, id(function.__globals__), fixed, values, unset)


def _name_with_place(name: str, place: Place | None) -> str:
    return name if place is None else f"{name} ({place})"


def _is_asynchronous(function: Callable[..., Any]) -> bool:
    if type(function) is FunctionType and not function.__dict__:
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function)


def _check_parameters(function: Callable[..., Any], parameters: int, role: str, label: str) -> None:
    """Raise `PlanError` if a callable cannot be called with `parameters` positional arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a built-in without signature
    try:
        signature.bind(*range(parameters))
    except TypeError:
        raise PlanError(
            f"{role} calls its callable with {_count_arguments(parameters)}, "
            f"but {label} takes {_count_taken_arguments(signature)}\n"
            "  one argument for each binding of the relation"
        ) from None


def _takes(function: Callable[..., Any], parameters: int) -> bool:
    """Return True if a plain function can be called like that; a fast check."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    least = code.co_argcount - len(function.__defaults__ or ())
    return not code.co_kwonlyargcount and least <= parameters <= code.co_argcount


def _count_taken_arguments(signature: inspect.Signature) -> str:
    """Return the number of positional parameters of a signature, and its text, for messages."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in signature.parameters.values() if p.kind in kinds]
    return f"{len(positional)}: {signature}"


def _count_arguments(number: int) -> str:
    return f"{number} argument" + "s" * (number != 1)


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


def instead_of(reason: str) -> str:
    """Return what to write instead of a callable that is impure for a reason."""
    reads_time = reason.rpartition(".")[2] in ("now", "today", "utcnow", "time", "time_ns")
    return (
        "write now(), the time of the database" if reads_time else "put such values into the rows"
    )


def impurity(function: Callable[..., Any]) -> str | None:
    """Return why the callable is known to be impure, in a few words; None if it is not known to be.

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
    written = _assigned_variable(function.__code__)
    return f"it assigns the captured variable {written!r}" if written else None


STORES = frozenset(
    dis.opmap[f"{verb}_{what}"] for verb in ("STORE", "DELETE") for what in ("GLOBAL", "DEREF")
)


@lru_cache(maxsize=1024)
def _assigned_variable(code: CodeType) -> str | None:
    """Return the name of the first global or closure variable that the code assigns or deletes;
    None if none."""
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
"""Classes of values without behaviour."""


def _impure_path(function: FunctionType, path: Path) -> str | None:
    """Return the dotted name of an impure function or random generator that a path reads; None if
    pure."""
    value = variable(function, path)
    if type(value) in PLAIN:
        return None
    for attribute in path.names[1:]:
        if isinstance(value, ModuleType | type):
            value = getattr(value, attribute, None)
    name = _impure_name(value)
    return ".".join(path.names) if name is not None else None


def _impure_name(value: Any) -> str | None:
    """Return the name of a value if it is a random generator, or a function known to be impure;
    else None."""
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
    """Return "random" if a value is a random number generator, else None; `random` is not
    imported."""
    is_generator = any(
        (c.__module__, c.__name__) in {("random", "Random"), ("_random", "Random")}
        for c in type(value).__mro__
    )
    return "random" if is_generator else None

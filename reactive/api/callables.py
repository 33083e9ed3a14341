"""Take a user's callable into a query, refusing one that reads tables or views on the side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, overload

from optimizer.callables import reached
from optimizer.callables.captures import Capture, freeze
from optimizer.callables.loads import defaults
from optimizer.callables.opaque import Opaque, opaque
from optimizer.errors import PlanError
from optimizer.expr import Function
from optimizer.lifting import outer_values, passed
from reactive.api.columns import Column
from reactive.engine.runtime.copying import NotCopied
from reactive.engine.runtime.name_hints import Hinting

READING = frozenset({"count", "items", "get", "keys", "values", "snapshot", "__contains__"})
"""Methods of tables and views that read rows; others change them, which fails when it is tried."""


class Live(NotCopied, Hinting):
    """Base of what changes by itself: relations and views."""


NOWHERE = (int, float, str, bytes, type(None), type, BuiltinFunctionType, Live)
"""Classes of values that hold no relation, or are one that is named."""


@overload
def taken(function: Callable[..., Any], parameters: int, role: str) -> Opaque: ...
@overload
def taken(
    function: Callable[..., Any],
    parameters: int,
    role: str,
    read: Callable[[Opaque], Function] | None,
) -> Function: ...
def taken(
    function: Callable[..., Any],
    parameters: int,
    role: str,
    read: Callable[[Opaque], Function] | None = None,
) -> Function:
    """The callable as the plan holds it; `read` reads one that names relations.

    Raises
    ------
    PlanError: as `optimizer.callables.opaque.opaque`; it names a relation or a view where none can
        be, cannot be read, or has one as a default, as an argument of a partial or as its owner.
    """
    if isinstance(function, Column):
        raise PlanError(
            f"{role} takes a callable, not {function!r}\n"
            "  col(...) stands where a relation's methods take a callable of its rows"
        )
    result = opaque(function, parameters, role)
    check_noticed(function, result)
    for capture in result.captures:
        if isinstance(capture.original, Live):
            if read is not None:
                return read(result)
            raise _unnoticed(result, capture.name, capture.original)
    return result


def check_noticed(function: Callable[..., Any], result: Opaque) -> None:
    """Refuse a callable that comes to relations or views where nobody would notice their changes.

    Raises
    ------
    PlanError: it has one as a default, as an argument of a partial or as its owner, or reads one of
        an object, a collection, or by a function in such.
    """
    is_alone = isinstance(function, FunctionType) and all(map(_leads_nowhere, result.captures))
    if is_alone and not function.__defaults__ and not function.__kwdefaults__:
        return
    for name, value in _held(function, result):
        if isinstance(value, Live):
            raise _unnoticed(result, name, value)
    if is_alone:
        return
    for name, value in reached.reached(function, _is_live):
        if isinstance(value, Live):
            raise _unnoticed(result, name, value)
        if value.__name__ in READING:
            raise _unnoticed(result, name, value.__self__)


def _leads_nowhere(capture: Capture) -> bool:
    """Whether nothing comes of a variable beside its value: most code is not looked at further."""
    return isinstance(capture.original, NOWHERE)


def _is_live(value: Any) -> bool:
    return isinstance(value, Live)


def check_values(fields: Mapping[str, Any]) -> None:
    """Refuse values to compare fields with that change by themselves, or are meant as callables."""
    for name, value in fields.items():
        if isinstance(value, Live) and not isinstance(value, outer_values.OuterValue):
            raise PlanError(
                f"where: {name}= is a {type(value).__name__}\n"
                "  a query would not notice its changes; join it instead"
            )
        if isinstance(value, FunctionType) and value.__name__ == "<lambda>":
            raise PlanError(
                f"where: {name}= takes the value that the field has to equal, not a lambda\n"
                f"  where(lambda row: ... row.{name} ...) takes one"
            )


def kind_shown(thing: Any) -> str:
    """What something is that should be a relation, for messages."""
    return "None (does it have a return?)" if thing is None else type(thing).__name__


def _unnoticed(function: Opaque, name: str, value: Live) -> PlanError:
    if isinstance(value, outer_values.OuterValue):
        return PlanError(
            f"{function.role}: {function} reads {name!r}, a row around the query, where it cannot\n"
            "  read it in a callable of where, select or join: what these give can be read anywhere"
        )
    return PlanError(
        f"{function.role}: {function} reads {name!r}, which is a {type(value).__name__}\n"
        "  a query would not notice its changes; join it instead"
    )


def _held(function: Callable[..., Any], result: Opaque) -> Iterator[tuple[str, Any]]:
    """What a callable, and those that it names, are given beforehand, which nobody reads."""
    names = tuple(getattr(getattr(function, "__code__", None), "co_varnames", ()))
    yield from _left(_given(function), names[: result.parameters])
    for capture in result.captures:
        if isinstance(capture.original, FunctionType):
            always = passed.always_passed(function, capture.name, capture.original)
            yield from _left(_given(capture.original), always)
        elif isinstance(capture.original, MethodType | partial):
            yield from _given(capture.original)


def _left(given: Iterator[tuple[str, Any]], passed: Collection[str]) -> Iterator[tuple[str, Any]]:
    """What is given beforehand to parameters that calls do not pass."""
    return ((name, value) for name, value in given if name not in passed)


def _given(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(function, partial):
        yield from (("an argument", value) for value in function.args)
        yield from function.keywords.items()
        yield from ((capture.name, capture.original) for capture in freeze(function.func)[1])
        yield from _given(function.func)
    elif isinstance(function, MethodType):
        yield "self", function.__self__
        yield from _given(function.__func__)
    elif isinstance(function, FunctionType):
        yield from defaults(function).items()

"""Take a user's callable into a query, refusing one that reads tables or views on the side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from optimizer.callables.captures import defaults
from optimizer.callables.opaque import Opaque, opaque
from optimizer.errors import PlanError
from reactive.runtime.copying import NotCopied
from reactive.runtime.name_hints import Hinting


class Live(NotCopied, Hinting):
    """Base of what changes by itself: relations and views."""


def taken(function: Callable[..., Any], parameters: int, role: str) -> Opaque:
    """The callable as the plan holds it.

    Raises
    ------
    PlanError: as `optimizer.callables.opaque.opaque`; or it captures a relation or a view.
    """
    result = opaque(function, parameters, role)
    for name, value in _variables(function, result):
        if isinstance(value, Live):
            raise PlanError(
                f"{role}: {result} reads {name!r}, which is a {type(value).__name__}\n"
                "  a query would not notice its changes; join it instead"
            )
    return result


def check_values(fields: Mapping[str, Any]) -> None:
    """Refuse values to compare fields with that change by themselves, or are meant as callables."""
    for name, value in fields.items():
        if isinstance(value, Live):
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


def _variables(function: Callable[..., Any], result: Opaque) -> Iterator[tuple[str, Any]]:
    yield from ((capture.name, capture.original) for capture in result.captures)
    if isinstance(function, FunctionType):
        yield from defaults(function).items()

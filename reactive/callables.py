"""Take a user's callable into a query, refusing one that reads tables or views on the side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from optimizer.captures import defaults
from optimizer.errors import PlanError
from optimizer.opaque import Opaque, opaque
from reactive.copying import NotCopied
from reactive.missing import Hinting


class Live(NotCopied, Hinting):
    """Base of what changes by itself: relations and views."""


def taken(function: Callable[..., Any], parameters: int, role: str) -> Opaque:
    """The callable as the plan holds it.

    Raises
    ------
    PlanError: as `optimizer.opaque.opaque`; or it captures a relation or a view.
    """
    result = opaque(function, parameters, role)
    for name, value in _variables(function, result):
        if isinstance(value, Live):
            raise PlanError(
                f"{role}: {result} reads {name!r}, which is a {type(value).__name__}\n"
                "  a query would not notice its changes; join it instead"
            )
    return result


def _variables(function: Callable[..., Any], result: Opaque) -> Iterator[tuple[str, Any]]:
    yield from ((capture.name, capture.original) for capture in result.captures)
    if isinstance(function, FunctionType):
        yield from defaults(function).items()

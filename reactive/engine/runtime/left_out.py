"""Optional packages: borders and languages may be missing, so lower rooms load them by name.

making = optional("borders.sinks.making")     nothing is imported
making.write_to(view, ...)                    imports it, or raises an error that names the package
"""

from __future__ import annotations

from typing import Any

from optimizer.errors import PlanError
from optimizer.lazy import Lazy


class LeftOutError(PlanError):
    """A required package of `reactive` is not installed."""


LeftOutError.__name__ = LeftOutError.__qualname__ = PlanError.__name__


def optional(name: str) -> Any:
    """Return a placeholder of a module of `reactive`, which is imported on first use.

    Raises
    ------
    PlanError: on first use, if its package is missing.

    >>> optional("borders.sinks.making")
    <lazy module 'reactive.borders.sinks.making'>
    """
    return _Optional(f"reactive.{name}")


def left_out(error: ModuleNotFoundError) -> ModuleNotFoundError | LeftOutError:
    """Return the error for a missing package of `reactive`; return other errors unchanged."""
    package, *rest = (error.name or "").split(".")
    if package != "reactive" or len(rest) < 2:
        return error
    name = ".".join((package, *rest[:2]))
    return LeftOutError(
        f"this needs {name}, which is left out of this installation\n"
        "  install reactive-collections as it is released"
    )


class _Optional(Lazy):
    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except ModuleNotFoundError as error:
            raise left_out(error) from None

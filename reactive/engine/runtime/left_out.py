"""Borders and languages can be left out: what stands below them asks for their modules by name.

making = optional("borders.sinks.making")     nothing is imported
making.write_to(view, ...)                    imports it, or says which package is left out
"""

from __future__ import annotations

from typing import Any

from optimizer.errors import PlanError
from optimizer.lazy import Lazy


class LeftOutError(PlanError):
    """A package of `reactive` is needed that is not installed."""


LeftOutError.__name__ = LeftOutError.__qualname__ = PlanError.__name__


def optional(name: str) -> Any:
    """Return what stands for a module of `reactive`, which is imported when it is first used.

    Raises
    ------
    PlanError: when it is used, if its package is left out.

    >>> optional("borders.sinks.making")
    <lazy module 'reactive.borders.sinks.making'>
    """
    return _Optional(f"reactive.{name}")


def left_out(error: ModuleNotFoundError) -> ModuleNotFoundError | LeftOutError:
    """Return the error of a package of ours that is left out; any other as it is."""
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

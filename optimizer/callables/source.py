"""Where things are written: the file and line of a callable, and of the call under way."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable
from dataclasses import field
from os.path import basename, dirname, join
from types import CodeType, FrameType, FunctionType
from typing import Any

from optimizer.callables.cells import cell_of
from optimizer.record import record

PACKAGES = ("optimizer", "reactive", "spark_backend")
FOLDERS = tuple(join(dirname(dirname(dirname(__file__))), name, "") for name in PACKAGES)


@record
class Place:
    """A line of a file. Prints as `people.py:12`; of a notebook as `In[3], line 4`; with a column
    as `people.py:12:7` and `SQL, line 1, column 27`."""

    file: str
    line: int
    cell: str | None = field(default=None, compare=False)
    """What the notebook calls the cell that it is a line of; or what a text is that has no file."""
    column: int | None = field(default=None, compare=False)
    """From 1 on, where it is known."""

    def __str__(self) -> str:
        at = "" if self.column is None else f", column {self.column}"
        if self.cell is not None:
            return f"{self.cell}, line {self.line}{at}"
        return f"{basename(self.file)}:{self.line}" + at.replace(", column ", ":")


def place_at(file: str, line: int) -> Place:
    """A line of a file, or of the cell that the file name stands for."""
    return Place(file, line, cell_of(file))


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """The code object that runs when `function` is called; None for one without Python code."""
    while isinstance(function, functools.partial):
        function = function.func
    for candidate in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def place_of(function: Callable[..., Any]) -> Place | None:
    """Where `function` is written, or None where Python does not know."""
    code = function.__code__ if type(function) is FunctionType else code_of(function)
    return None if code is None else place_at(code.co_filename, code.co_firstlineno)


def caller() -> Place:
    """The line outside this library that is being executed, seen from inside it."""
    frame = _outside()
    return place_at(frame.f_code.co_filename, frame.f_lineno)


def result_is_discarded() -> bool:
    """Whether the line outside this library that is being executed throws away what we return."""
    frame = _outside()
    rest = (i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    following = next(rest, None)
    return following is not None and following.opname == "POP_TOP"


def _outside() -> FrameType:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDERS):
        frame = frame.f_back
    return frame

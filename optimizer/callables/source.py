"""Source texts of callables: the file, text or notebook cell that a code object was compiled from.

`texts` returns guesses: files change, tools rewrite, file names lie. The caller must prove that a
text is the right one, so that a failed guess is skipped, and a wrong one does no harm.

`running_shell` finds the IPython shell, which names the cells that code was compiled from. IPython
is not imported: a running shell has imported it.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import field
from importlib.util import decode_source
from os.path import basename, dirname, exists, isfile, join
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from optimizer.record import record

# Places: the file and line of a callable, and of the current call.

PACKAGES = ("optimizer", "reactive", "spark_backend")
FOLDERS = tuple(join(dirname(dirname(dirname(__file__))), name, "") for name in PACKAGES)


@record
class Place:
    """A line of a file.

    It prints as `people.py:12`; in a notebook as `In[3], line 4`; with a column as `people.py:12:7`
    and `SQL, line 1, column 27`.
    """

    file: str
    line: int
    cell: str | None = field(default=None, compare=False)
    """The notebook's name of the cell that has the line; or a name for a text without file."""
    column: int | None = field(default=None, compare=False)
    """From 1 on; None if unknown."""

    def __str__(self) -> str:
        at = "" if self.column is None else f", column {self.column}"
        if self.cell is not None:
            return f"{self.cell}, line {self.line}{at}"
        return f"{basename(self.file)}:{self.line}" + at.replace(", column ", ":")


def place_at(file: str, line: int) -> Place:
    """Return a line of a file, or of the cell that the file name stands for."""
    return Place(file, line, cell_of(file))


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code object that runs when `function` is called; None without Python code."""
    while isinstance(function, functools.partial):
        function = function.func
    for candidate in (function, getattr(type(function), "__call__", None)):  # noqa: B004
        code = getattr(candidate, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def place_of(function: Callable[..., Any]) -> Place | None:
    """Return the place of `function` in a file, or None if Python does not know it."""
    code = function.__code__ if type(function) is FunctionType else code_of(function)
    return None if code is None else place_at(code.co_filename, code.co_firstlineno)


def caller() -> Place:
    """Return the line outside this library that is being executed."""
    frame = _outside()
    return place_at(frame.f_code.co_filename, frame.f_lineno)


def result_is_discarded() -> bool:
    """Return True if the line outside this library that is being executed discards our result."""
    frame = _outside()
    rest = (i for i in dis.get_instructions(frame.f_code) if i.offset > frame.f_lasti)
    following = next(rest, None)
    return following is not None and following.opname == "POP_TOP"


def _outside() -> FrameType:
    """Return the nearest frame above the caller's caller that is not of the library's folders."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDERS):
        frame = frame.f_back
    return frame


HINTS = ("__name__", "__loader__", "__spec__", "__file__")


def texts(code: CodeType, hints: dict[str, Any]) -> Iterator[str]:
    """Iterate over the texts that may be the source of `code`, each once, the likeliest first.

    Parameters
    ----------
    code: the compiled code.
    hints: the `HINTS` among the globals of its module.

    >>> linecache.cache["<rules>"] = (8, None, ["f = max", "g = min"], "<rules>")
    >>> list(texts(compile("f = max", "<rules>", "exec"), {}))
    ['f = maxg = min']
    """
    seen: set[str] = set()
    for guess in GUESSES:
        try:
            text = guess(code, hints)
        except (RecursionError, MemoryError):  # not caused by the text
            raise
        except Exception:  # from a loader, a decoder or a tool that patched linecache
            continue
        if text and text not in seen:
            seen.add(text)
            yield text


def _cached_text(code: CodeType, hints: dict[str, Any]) -> str | None:
    """Return the text that linecache has cached, which may be older than the file, and right; None
    for a file that may block.

    For a module that has no file, but a loader, `linecache` calls the loader.
    """
    if _blocks(code.co_filename):
        return None
    return "".join(linecache.getlines(code.co_filename, hints))


def _on_disk(code: CodeType, hints: dict[str, Any]) -> str | None:
    return _read_source(code.co_filename)


def _of_module(code: CodeType, hints: dict[str, Any]) -> str | None:
    """Return the text of the module's file, for code with an invented or outdated file name; None
    without one."""
    name = None if _is_pseudonym(code) else hints.get("__file__")
    return _read_source(name) if isinstance(name, str) and name.endswith(".py") else None


def _interactive(code: CodeType, hints: dict[str, Any]) -> str | None:
    """Return the text of a prompt or `python -c`, which Python 3.13 keeps; None for code of a
    file."""
    if not _is_pseudonym(code):
        return None
    cells = tuple(CellType() for _ in code.co_freevars)
    function = FunctionType(code, hints, closure=cells)
    return "".join(inspect.findsource(function)[0])


GUESSES: tuple[Callable[[CodeType, dict[str, Any]], str | None], ...] = (
    _cached_text,
    _on_disk,
    _of_module,
    _interactive,
)


def _read_source(name: str) -> str | None:
    """Return the text of a file, decoded as Python source; None if reading the file could block."""
    if _blocks(name):
        return None
    with open(name, "rb") as file:
        return decode_source(file.read())


def _is_pseudonym(code: CodeType) -> bool:
    """Return True if the code is from a pseudo-file (`<string>`, `<stdin>`), not from a module's
    file."""
    name = code.co_filename
    return name.startswith("<") and not name.startswith("<frozen ")


def _blocks(name: str) -> bool:
    """Return True if reading could wait for ever: a pipe or a terminal as source of a script."""
    return exists(name) and not isfile(name)


def running_shell() -> Any:
    """Return the shell of IPython, or of a notebook's kernel; None without one."""
    module = sys.modules.get("IPython")
    find = getattr(module, "get_ipython", None)
    return None if find is None else find()


def cell_of(file: str) -> str | None:
    """Return the cell that an invented file name stands for, as `In[3]`; None for other files."""
    shell = running_shell()
    name = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = None if name is None else name(file)
    return None if found is None else str(found[1])

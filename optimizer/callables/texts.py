"""The texts that a code object may have been compiled from.

Only guesses: files change, tools rewrite, file names lie. Whoever asks must prove that a text is
the right one, so a guess that fails is skipped, and a wrong one does no harm.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator
from importlib.util import decode_source
from os.path import exists, isfile
from types import CellType, CodeType, FunctionType
from typing import Any

HINTS = ("__name__", "__loader__", "__spec__", "__file__")


def texts(code: CodeType, hints: dict[str, Any]) -> Iterator[str]:
    """Each text that may be the source of `code`, once, the likeliest first.

    Parameters
    ----------
    code: what was compiled.
    hints: the `HINTS` among the globals of its module.

    >>> linecache.cache["<rules>"] = (8, None, ["f = max", "g = min"], "<rules>")
    >>> list(texts(compile("f = max", "<rules>", "exec"), {}))
    ['f = maxg = min']
    """
    seen: set[str] = set()
    for guess in GUESSES:
        try:
            text = guess(code, hints)
        except (RecursionError, MemoryError):  # says nothing about the text
            raise
        except Exception:  # of a loader, a decoder or a tool that patched linecache
            continue
        if text and text not in seen:
            seen.add(text)
            yield text


def _remembered(code: CodeType, hints: dict[str, Any]) -> str | None:
    """As cached when it was first asked for: that may be older than the file, and right.

    For a module that has no file, but a loader, `linecache` asks the loader.
    """
    if _blocks(code.co_filename):
        return None
    return "".join(linecache.getlines(code.co_filename, hints))


def _on_disk(code: CodeType, hints: dict[str, Any]) -> str | None:
    return _read(code.co_filename)


def _of_module(code: CodeType, hints: dict[str, Any]) -> str | None:
    """For a file name that was relative to a folder left since, or made up."""
    name = None if _is_pseudonym(code) else hints.get("__file__")
    return _read(name) if isinstance(name, str) and name.endswith(".py") else None


def _interactive(code: CodeType, hints: dict[str, Any]) -> str | None:
    """What a prompt or `python -c` was given: Python 3.13 keeps it, and `inspect` finds it."""
    if not _is_pseudonym(code):
        return None
    cells = tuple(CellType() for _ in code.co_freevars)
    function = FunctionType(code, hints, closure=cells)
    return "".join(inspect.findsource(function)[0])


GUESSES: tuple[Callable[[CodeType, dict[str, Any]], str | None], ...] = (
    _remembered,
    _on_disk,
    _of_module,
    _interactive,
)


def _read(name: str) -> str | None:
    if _blocks(name):
        return None
    with open(name, "rb") as file:
        return decode_source(file.read())


def _is_pseudonym(code: CodeType) -> bool:
    """Whether the code is from a pseudo-file (`<string>`, `<stdin>`), and not from a module's
    file."""
    name = code.co_filename
    return name.startswith("<") and not name.startswith("<frozen ")


def _blocks(name: str) -> bool:
    """Whether reading could wait for ever: a pipe or a terminal that a script came from."""
    return exists(name) and not isfile(name)

"""Compare a raised error with a golden text: class, message and notes, line by line.

Places (`file.py:12`) are filled in from the code, so that a text holds when lines move.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest


def told(error: BaseException) -> str:
    """All that a user reads of an exception below the traceback."""
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def place(function: Callable[..., Any]) -> str:
    """Return the place of a function in the form of messages."""
    code = function.__code__
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def here() -> str:
    """The line that calls this."""
    frame = sys._getframe(1)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


@contextmanager
def refused(text: str, **places: str) -> Iterator[None]:
    """Check that the block raises, with the message `text`."""
    with pytest.raises(Exception) as caught:
        yield
    assert told(caught.value) == expected(text, **places)


def expected(text: str, **places: str) -> str:
    """Return the golden text of a test, with its places filled in."""
    result = dedent(text).strip("\n")
    for name, value in places.items():
        result = result.replace(f"<{name}>", value)
    return result

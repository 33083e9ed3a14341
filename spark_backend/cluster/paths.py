"""Folders by their names: which are of this machine, and what is said where one cannot be used.

What is said where a folder cannot be written or read: what failed, why, and what to do.

State:  none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reactive.errors import OffloadError

# Which folders are of this machine, by what they are called. Nothing is imported for it.


def is_remote(folder: str) -> bool:
    """Whether a path or URI is of a file system beyond this machine's own.

    >>> is_remote("hdfs://name/folder"), is_remote("file:///folder"), is_remote("folder")
    (True, False, False)
    """
    return "://" in folder and not folder.startswith("file://")


def without_scheme(folder: str) -> str:
    """The path of a folder of this machine.

    >>> without_scheme("file:///folder"), without_scheme("folder/of/mine")
    ('/folder', 'folder/of/mine')
    """
    return folder.removeprefix("file://")


def absolute(folder: str) -> str:
    """The folder, whatever the working directory is later; without a slash at its end.

    >>> absolute("hdfs://name/folder/"), absolute("file:///folder/")
    ('hdfs://name/folder', '/folder')
    """
    if is_remote(folder):
        return folder.rstrip("/")
    return str(Path(without_scheme(folder)).absolute())


MAKE_ANEW = (
    "view.recall() computes its views in the process again, and view.offload() makes the state anew"
)


@contextmanager
def writing(folder: str) -> Iterator[None]:
    """What is done meanwhile changes files in a folder, and nothing if it fails.

    Raises
    ------
    OffloadError: that cannot be done, as there is no room for instance; it says what to do.
    """
    try:
        yield
    except OSError as error:
        raise OffloadError(
            f"{folder} cannot be written: {error}\n"
            "  nothing has changed; see that the folder is there, may be written and has room,"
            " and try again"
        ) from error


@contextmanager
def reading(folder: str) -> Iterator[None]:
    """State is read meanwhile that somebody else may have removed or damaged.

    Raises
    ------
    OffloadError: it cannot be read; it says what to do.
    """
    try:
        yield
    except OffloadError:
        raise
    except Exception as error:
        raise OffloadError(
            f"what is kept in {folder} cannot be read: {said(error)}\n  {MAKE_ANEW}"
        ) from error


def said(error: Exception) -> str:
    """What Spark said: the line after the one that only names the call, where there is one."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip()]
    of_call = len(lines) > 1 and lines[0].startswith("An error occurred while calling")
    return f"{(lines or [''])[of_call]:.500}"

"""Paths and URIs of folders, and the errors of a folder that cannot be read or written.

State:  none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reactive.errors import OffloadError

# Classify folders by their names; this imports nothing.


def is_remote(folder: str) -> bool:
    """Return True if a path or URI is on a file system other than that of this machine.

    >>> is_remote("hdfs://name/folder"), is_remote("file:///folder"), is_remote("folder")
    (True, False, False)
    """
    return "://" in folder and not folder.startswith("file://")


def without_scheme(folder: str) -> str:
    """Return the path of a folder of this machine.

    >>> without_scheme("file:///folder"), without_scheme("folder/of/mine")
    ('/folder', 'folder/of/mine')
    """
    return folder.removeprefix("file://")


def absolute_path(folder: str) -> str:
    """Return the folder as an absolute path, without a slash at its end.

    >>> absolute_path("hdfs://name/folder/"), absolute_path("file:///folder/")
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
    """Turn an `OSError` in this context into an `OffloadError`; the context must change all or
    nothing.

    Raises
    ------
    OffloadError: writing failed, for example because the disk is full; the text says what to do.
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
    """Turn an error of reading state in this context into an `OffloadError`: files may be missing
    or damaged.

    Raises
    ------
    OffloadError: the state cannot be read; the text says what to do.
    """
    try:
        yield
    except OffloadError:
        raise
    except Exception as error:
        raise OffloadError(
            f"what is kept in {folder} cannot be read: {spark_message(error)}\n  {MAKE_ANEW}"
        ) from error


def spark_message(error: Exception) -> str:
    """Return the message of Spark, without a first line that only names the call."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip()]
    of_call = len(lines) > 1 and lines[0].startswith("An error occurred while calling")
    return f"{(lines or [''])[of_call]:.500}"

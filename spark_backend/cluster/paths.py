"""Which folders are of this machine, by what they are called. Nothing is imported for it."""

from __future__ import annotations

from pathlib import Path


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

"""The file system of a folder: that of this machine, or one that pyarrow knows by a URI."""

from __future__ import annotations

from typing import Any

from pyarrow import fs


def file_system(folder: str) -> tuple[Any, str]:
    """The file system of a path or URI, and the path in it. Nothing is made there."""
    if "://" in folder:
        files, path = fs.FileSystem.from_uri(folder)
        return files, path.rstrip("/")
    files = fs.LocalFileSystem()
    return files, files.normalize_path(folder).rstrip("/")

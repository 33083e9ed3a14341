"""Which Python, and which state of this library, a process runs.

The same number of a version may stand for other code where a library is sent along (`--py-files`)
or read from a checkout; so the code counts too, as a digest of the sources.

State:  none.
Cost:   a reading of all sources.
"""

from __future__ import annotations

import hashlib
import sys
from importlib import metadata, resources
from typing import Any

NAME = "reactive-collections"
PACKAGES = ("optimizer", "reactive", "spark_backend")


def python() -> str:
    """Two numbers: workers understand code of the same."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def library() -> str:
    """The version of this library, if it is installed, and a digest of its code."""
    try:
        version = f"{metadata.version(NAME)} "
    except metadata.PackageNotFoundError:
        version = ""
    digest = hashlib.sha256()
    for package in PACKAGES:
        _take_in(digest, resources.files(package), package)
    return f"{NAME} {version}({digest.hexdigest()[:8]})"


def _take_in(digest: Any, folder: Any, path: str) -> None:
    """The sources in a folder, which may be one of a zip file."""
    for entry in sorted(folder.iterdir(), key=lambda entry: str(entry.name)):
        if entry.is_dir():
            _take_in(digest, entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".py"):
            digest.update(f"{path}/{entry.name}\n".encode())
            digest.update(entry.read_bytes())

"""Name what installs a library that is optional; the core imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

from optimizer.errors import PlanError

EXTRAS = {"pyarrow": "arrow", "narwhals": "frames", "numpy": "columns"}
"""The extra that brings a library; others are installed by their name."""
WHERE = "in the folder of reactive-collections"


def installing(extra: str) -> str:
    """Return the command that installs an extra. There is no release yet that an index has.

    >>> installing("sql")
    "pip install '.[sql]'   (in the folder of reactive-collections)"
    """
    return f"pip install '.[{extra}]'   ({WHERE})"


def check(what: str, library: str = "pyarrow") -> None:
    """Refuse what needs a library that is not installed.

    >>> check("to_arrow", "no_such_library")
    Traceback (most recent call last):
    optimizer.errors.PlanError: to_arrow needs no_such_library, which is not installed
      pip install no_such_library
    """
    if find_spec(library) is None:
        extra = EXTRAS.get(library)
        command = f"pip install {library}" if extra is None else installing(extra)
        raise PlanError(f"{what} needs {library}, which is not installed\n  {command}")

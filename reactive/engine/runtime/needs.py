"""Libraries that frames need, none of which the core imports."""

from __future__ import annotations

from importlib.util import find_spec

from optimizer.errors import PlanError

EXTRAS = {"pyarrow": "arrow", "narwhals": "frames", "numpy": "columns"}
"""What installs a library along with this one; others are installed by their name."""


def check(what: str, library: str = "pyarrow") -> None:
    """Refuse what needs a library that is not installed.

    >>> check("to_arrow", "no_such_library")
    Traceback (most recent call last):
    optimizer.errors.PlanError: to_arrow needs no_such_library, which is not installed
      pip install no_such_library
    """
    if find_spec(library) is None:
        extra = EXTRAS.get(library)
        package = library if extra is None else f"'reactive-collections[{extra}]'"
        raise PlanError(f"{what} needs {library}, which is not installed\n  pip install {package}")

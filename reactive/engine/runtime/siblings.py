"""Check that the package `optimizer` is ours: a user's own `optimizer.py` would shadow it.

Python searches the folder of a script or notebook first. Our imports would then fail with
"'optimizer' is not a package", or run the user's script once more. So this check runs before the
first such import, and does not execute the module.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from os.path import abspath, basename, dirname, join

BELOW = "optimizer"
OURS = abspath(join(dirname(__file__), "..", "..", "..", BELOW))


def check_siblings() -> None:
    """Raise `ImportError` if another module has the name of the package that this one needs."""
    file = _file_of(BELOW)
    if file is None or dirname(abspath(file)) == OURS:
        return
    found = dirname(file) if basename(file) == "__init__.py" else file
    raise ImportError(
        f"reactive needs its own package {BELOW!r}, but Python found yours first: {found}\n"
        "  rename yours, also where it is imported; or take its folder off sys.path",
        name=BELOW,
        path=file,
    )


def _file_of(name: str) -> str | None:
    """Return the file of a module, imported or not; None if there is none."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    spec = find_spec(name)
    return None if spec is None else spec.origin

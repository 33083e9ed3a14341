"""How a function gets to Python workers: with the paths and the classes of the driver.

The function is named, not sent: a worker imports its module once it knows the driver's paths.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any


def shipped(paths: list[str], module: str, name: str, *given: Any) -> Callable[..., Any]:
    """A function for `mapInArrow`: it calls one of a module with what is given, and the batches.

    It carries nothing that a worker would have to import before it has the driver's paths.
    """

    def run(batches: Any) -> Any:
        import importlib
        import sys

        sys.path.extend([path for path in paths if path not in sys.path])
        return getattr(importlib.import_module(module), name)(*given, batches)

    return run


def adopt(classes: dict[str, bytes]) -> None:
    """Make the classes of the driver's script known by the name that rows know them by."""
    main = sys.modules["__main__"]
    for name, data in classes.items():
        if name not in vars(main):
            setattr(main, name, pickle.loads(data))

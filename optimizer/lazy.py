"""Modules that are imported when a name in them is first read.

    lazily("room.join")            is called once, before other modules are imported
    from room import join          imports a stand-in for the module: its file is not read
    join.Join(left, right)         imports the module

A small program uses a third of all modules, and importing one costs 0.2 to 0.5 ms. The stand-in is
an attribute of the package, which `from package import module` finds; importing the module replaces
it by the module itself. So `import package.module`, `from package.module import name`, pickles and
type checkers work as usual, and threads wait for each other as in any import.

Needs: names are read as `module.name`, in functions. A name read while a module is imported, by
       a base class, a decorator, a default, a constant, imports the other one immediately. The
       module must not undo a commit or report an error: an import may fail if no file can be
       opened, and takes long.
Cost:  2 us for the first read of each name, then 20 ns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dis import opname
from importlib import import_module
from types import FrameType, MappingProxyType
from typing import Any

_NONE: Mapping[str, str] = MappingProxyType({})


class Lazy:
    """Stand-in for a module until a name in it is read.

    >>> fractions = Lazy("fractions")
    >>> fractions
    <lazy module 'fractions'>
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    >>> "Fraction" in dir(fractions)
    True
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # tools look for these in every object
            raise AttributeError(f"lazy module {self._name!r} has no {name!r}")
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)  # next time a plain attribute
        return found

    def __dir__(self) -> Iterable[str]:
        return dir(import_module(self._name))

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazily(*names: str) -> None:
    """Make modules be imported when a name in them is first read.

    Modules that are imported already stay as they are; modules of a package that is left out are
    skipped.
    """
    for name in names:
        if name not in sys.modules:
            package, _, leaf = name.rpartition(".")
            try:
                holder = import_module(package)
            except ModuleNotFoundError as error:
                if not package.startswith(error.name or "."):
                    raise
            else:
                setattr(holder, leaf, Lazy(name))


def make_module_getattr(
    package: str, modules: dict[str, str], elsewhere: Mapping[str, str] = _NONE
) -> Any:
    """Return the `__getattr__` of a package with names from modules that are imported lazily.

    `modules` maps each name to its module. Other names raise `AttributeError`, with a hint if
    `elsewhere` has one for the name; in an import statement, `ImportError` with the hint.
    """

    def name_of_module(name: str) -> Any:
        if name not in modules:
            hint = f"\n  {elsewhere[name]}" if name in elsewhere else ""
            if hint and _is_imported(sys._getframe(1)):
                raise ImportError(f"cannot import name {name!r} from {package!r}{hint}", name=name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        found = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return name_of_module


def _is_imported(frame: FrameType) -> bool:
    """Return True for `from package import name`, which replaces the message of an
    AttributeError."""
    return opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"

"""Modules that are imported when something in them is first asked for.

    lazily("room.join")            is said once, before others import anything
    from room import join          gives what stands for the module: nothing is read yet
    join.Join(left, right)         imports it

A small program uses a third of all modules, and importing one costs 0.2 to 0.5 ms. What stands for
a module is an attribute of its package, which `from package import module` finds; importing the
module puts the module itself there. So `import package.module`, `from package.module import name`,
pickles and type checkers see modules as ever, and threads wait for each other as in any import.

Needs: names are read as `module.name`, in functions. A name read while a module is imported, by
       a base class, a decorator, a default, a constant, imports the other one at once. And it is
       nothing that undoes a commit or reports an error: an import may fail, where no file can be
       opened, and takes long.
Cost:  of each name 2 us when it is first read, then 20 ns.
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
    """Stands for a module until something in it is asked for.

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
        if name.startswith("__"):  # what tools look for in all that there is
            raise AttributeError(f"lazy module {self._name!r} has no {name!r}")
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)  # the next time it is read as of any object
        return found

    def __dir__(self) -> Iterable[str]:
        return dir(import_module(self._name))

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


def lazily(*names: str) -> None:
    """Have modules be imported when something in them is first asked for.

    Those that are imported already stay as they are; those of a package that is left out are not
    there.
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


def exported(package: str, modules: dict[str, str], elsewhere: Mapping[str, str] = _NONE) -> Any:
    """The `__getattr__` of a package, some of whose names are those of modules not yet imported.

    `elsewhere` has hints for names that the package does not have.
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
    """Return True for `from package import name`, which replaces an AttributeError by another
    message."""
    return opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"

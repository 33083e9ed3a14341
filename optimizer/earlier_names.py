"""The names that modules had before they moved: what was written by them is read after it.

    an import, a pickle    reactive.collections.bag         reactive.engine.collections.bag is found
    a fingerprint          reactive.engine.collections.bag  counts as reactive.collections.bag

A pickle, a checkpoint and a command that somebody has noted name modules. `MOVED` is the one list
of what has moved; a module that moves again is changed there.

State:  an entry of `sys.meta_path`; a module is in `sys.modules` by each name that it was asked by.
Cost:   0.3 us for each import of a module that is not there yet.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, MappingProxyType, ModuleType
from typing import Any

MOVED = MappingProxyType(
    {
        "reactive.codegen": "reactive.engine.codegen",
        "reactive.collections": "reactive.engine.collections",
        "reactive.collections.arrow_columns": "reactive.borders.frames.arrow_columns",
        "reactive.collections.arrow_delta": "reactive.borders.frames.arrow_delta",
        "reactive.collections.arrow_rows": "reactive.borders.frames.arrow_rows",
        "reactive.compiler": "reactive.engine.compiler",
        "reactive.dataflow": "reactive.engine.dataflow",
        "reactive.datalog": "reactive.languages.datalog",
        "reactive.durable": "reactive.borders.durable",
        "reactive.frames": "reactive.borders.frames",
        "reactive.mirrors": "reactive.borders.mirrors",
        "reactive.objects": "reactive.borders.objects",
        "reactive.offload": "reactive.borders.offload",
        "reactive.operators": "reactive.engine.operators",
        "reactive.operators.generated": "reactive.engine.operators.loops",
        "reactive.reference": "reactive.engine.reference",
        "reactive.remote": "reactive.engine.remote",
        "reactive.runtime": "reactive.engine.runtime",
        "reactive.sinks": "reactive.borders.sinks",
        "reactive.sources": "reactive.borders.sources",
        "reactive.sql": "reactive.languages.sql",
        "reactive.storage": "reactive.engine.storage",
        "reactive.subscriptions": "reactive.api.subscriptions",
        "reactive.transactions": "reactive.engine.transactions",
        "reactive.transactions.kept_views": "reactive.borders.durable.kept_views",
        "reactive.transactions.read_only": "reactive.borders.durable.read_only",
        "reactive.transactions.stored_views": "reactive.borders.durable.stored_views",
        "reactive.transactions.two_commits": "reactive.borders.two_commits",
    }
)
PRESENT = frozenset({"reactive.datalog", "reactive.sql"})
"""Modules of today that have the name of a package of before, whose modules have moved."""
_BEFORE = MappingProxyType({now: before for before, now in MOVED.items()})


def current_name(module: str) -> str:
    """Return the name of today of a module, which may be given by an earlier one.

    >>> current_name("reactive.operators.generated.single"), current_name("reactive.api.table")
    ('reactive.engine.operators.loops.single', 'reactive.api.table')
    """
    return _renamed(module, MOVED)


def earlier_name(module: str) -> str:
    """Return the first name of a module, which does not change when it moves.

    >>> earlier_name("reactive.engine.operators.loops.single"), earlier_name("json.decoder")
    ('reactive.operators.generated.single', 'json.decoder')
    """
    return _renamed(module, _BEFORE)


def _renamed(module: str, names: MappingProxyType[str, str]) -> str:
    if not module.startswith("reactive."):
        return module
    parts = module.split(".", 4)
    for count in range(min(len(parts), 4), 1, -1):
        prefix = ".".join(parts[:count])
        if prefix in names:
            return names[prefix] + module[len(prefix) :]
    return module


def import_by_earlier_names() -> None:
    """Let an import of an earlier name find the module of today; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds modules by their earlier names, before the folders are looked at: a package by an
    earlier name has the folder of today, and its modules would be imported a second time."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        current = current_name(name)
        if current == name or name in PRESENT:
            return None
        found = find_spec(current)
        if found is None:
            return None
        loader: Any = _Loader(found)
        spec = ModuleSpec(name, loader, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec


class _Loader:
    """Gives the module of today, unchanged, for its earlier name."""

    def __init__(self, found: ModuleSpec) -> None:
        self._found = found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(self._found.name)

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import system has set: the module is known by its name of today."""
        module.__spec__ = self._found

    def get_code(self, name: str) -> CodeType | None:
        """Return the code for `python -m` with an earlier name."""
        loader: Any = self._found.loader
        code: CodeType | None = loader.get_code(self._found.name)
        return code

"""The names that modules had before they moved or were merged: old files are read by these names.

    an import, a pickle    reactive.collections.bag         reactive.engine.collections.bag is found
    a fingerprint          reactive.engine.collections.bag  counts as reactive.collections.bag

Pickles, checkpoints and noted commands contain names of modules. `MOVED` lists the packages that
have moved; a package that moves again is changed there. `merged_names.txt` lists the modules that
are part of another one today, with the classes and functions that each had:

    reactive.engine.operators.matching              the current module
        outer_join: OuterJoin                       an earlier module, and its definitions
    reactive.engine.dataflow.leaves = materialized  a module whose largest part had another name

State:  two entries of `sys.meta_path`; a module is in `sys.modules` by each name that it was
        imported by. The file is read when the first merged module is imported.
Cost:   0.3 us for each import of a module that is not loaded yet; reading the file takes 1 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from os.path import dirname, join
from types import CodeType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

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
        "reactive.sql.partitions": "reactive.engine.operators.windows",
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
"""Current modules with the name of an earlier package, whose modules have moved."""
_BEFORE = MappingProxyType({now: before for before, now in MOVED.items()})


def current_name(module: str) -> str:
    """Return the current name of a module, which may be given by an earlier name.

    >>> current_name("reactive.operators.generated.single"), current_name("reactive.api.table")
    ('reactive.engine.operators.loops.grouped', 'reactive.api.table')
    """
    moved = _replace_prefix(module, MOVED)
    return (
        _read_merged_names().targets.get(moved, moved) if _is_module_of_packages(moved) else moved
    )


def earlier_name(module: str, name: str = "") -> str:
    """Return the first name of a module, which does not change when it moves or is merged.

    `name` is the qualified name of a class or function of the module; without it, a merged module
    counts as its largest part.

    >>> earlier_name("reactive.engine.operators.matching", "OuterJoin.step")
    'reactive.operators.outer_join'
    >>> earlier_name("reactive.engine.operators.matching"), earlier_name("json.decoder")
    ('reactive.operators.matching', 'json.decoder')
    """
    if _is_module_of_packages(module):
        merged = _read_merged_names()
        largest = merged.largest.get(module, module)
        module = merged.parts.get((module, name.partition(".")[0]), largest)
    return _replace_prefix(module, _BEFORE)


def _is_module_of_packages(module: str) -> bool:
    return module.startswith(("reactive.", "optimizer.", "spark_backend."))


class _MergedModules(NamedTuple):
    """The modules that are part of another module today.

    `targets`: earlier module -> current module.
    `largest`: current module -> earlier module, where the names differ.
    `parts`: current module and name defined in it -> earlier module.
    """

    targets: Mapping[str, str]
    largest: Mapping[str, str]
    parts: Mapping[tuple[str, str], str]


@lru_cache(1)
def _read_merged_names() -> _MergedModules:
    """Read `merged_names.txt`, also from a zip file."""
    loader: Any = globals()["__loader__"]
    text = loader.get_data(join(dirname(__file__), "merged_names.txt")).decode()
    targets, largest, parts = dict[str, str](), dict[str, str](), dict[tuple[str, str], str]()
    today = ""
    for line in text.splitlines():
        if line.startswith(" "):
            leaf, _, names = line.strip().partition(":")
            before = _sibling_module(today, leaf)
            targets[before] = today
            parts.update(dict.fromkeys(((today, name) for name in names.split()), before))
        else:
            today, _, leaf = line.partition(" = ")
            if leaf:
                largest[today] = _sibling_module(today, leaf)
    return _MergedModules(targets, largest, parts)


def _sibling_module(module: str, leaf: str) -> str:
    return f"{module.rpartition('.')[0]}.{leaf}"


def _replace_prefix(module: str, names: MappingProxyType[str, str]) -> str:
    """Return a module's name with its longest known prefix replaced; without such a prefix,
    unchanged."""
    if not module.startswith("reactive."):
        return module
    parts = module.split(".", 4)
    for count in range(min(len(parts), 4), 1, -1):
        prefix = ".".join(parts[:count])
        if prefix in names:
            return names[prefix] + module[len(prefix) :]
    return module


def import_by_earlier_names() -> None:
    """Register the import of modules by earlier names; a second call changes nothing."""
    if not any(isinstance(finder, _EarlierNameFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _EarlierNameFinder())
        sys.meta_path.append(_MergedFinder())


class _EarlierNameFinder:
    """Finds modules by their earlier names, before the folders are searched.

    A package by an earlier name has the current folder, and its modules would be imported twice.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a spec that imports a moved module by its earlier name; None if the name is
        current."""
        current = self._current(name)
        if current == name or name in PRESENT:
            return None
        found = find_spec(current)
        if found is None:
            return None
        loader: Any = _Loader(found)
        spec = ModuleSpec(name, loader, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def _current(self, name: str) -> str:
        return _replace_prefix(name, MOVED)


class _MergedFinder(_EarlierNameFinder):
    """Finds modules that are part of another one today, after the folders were searched.

    An import of a current module does not read the list.
    """

    def _current(self, name: str) -> str:
        return (
            _read_merged_names().targets.get(name, name) if _is_module_of_packages(name) else name
        )


class _Loader:
    """Returns the current module, unchanged, for its earlier name."""

    def __init__(self, found: ModuleSpec) -> None:
        self._found = found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return import_module(self._found.name)

    def exec_module(self, module: ModuleType) -> None:
        """Undo the changes of the import system: the module keeps its current name."""
        module.__spec__ = self._found

    def get_code(self, name: str) -> CodeType | None:
        """Return the code for `python -m` with an earlier name; None if the module has no code."""
        loader: Any = self._found.loader
        code: CodeType | None = loader.get_code(self._found.name)
        return code

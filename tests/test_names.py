"""One name is one thing: no two modules of a package define classes of one name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHARED = {
    "optimizer": {"Table", "Values"},
    "reactive": {"Column", "Edit", "FrozenDict", "Node", "Quoted", "_Fields", "_Part"},
    "spark_backend": set[str](),
}
"""Names that still stand for two classes, each with a reason: `Table` and `Values` are nodes of
plans and kinds of values; `Column`, `Edit` and `FrozenDict` are names that users have from two
borders; the others are parts of plans, whose fingerprints and pickles have their names."""


@pytest.mark.parametrize("package", SHARED)
def test_a_name_of_a_class_stands_for_one_class(package: str) -> None:
    modules = defaultdict[str, list[str]](list)
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(path.relative_to(ROOT)))
    several = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert {name: paths for name, paths in several.items() if name not in SHARED[package]} == {}
    assert several.keys() == SHARED[package], "a name that is one thing again leaves the list"

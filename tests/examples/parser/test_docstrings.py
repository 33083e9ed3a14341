"""The examples in docstrings run, with the stated results."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import examples.parser
from tests.doctests import tried

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(examples.parser.__path__, "examples.parser.")
]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_examples_in_docstrings_run(name: str) -> None:
    assert tried(importlib.import_module(name)).failed == 0

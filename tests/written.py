"""Queries given as text: evaluated so that their callables can be read, as if from a file.

The text is registered in `linecache` under a name of its own.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Mapping
from typing import Any

_numbers = itertools.count(1)


def evaluated(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression with these names."""
    file = f"<query {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return eval(compile(text, file, "eval", dont_inherit=True), dict(names))


def executed(text: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The names that some statements define, beside the given ones."""
    file = f"<query {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace = dict(names)
    exec(compile(text, file, "exec", dont_inherit=True), namespace)
    return namespace

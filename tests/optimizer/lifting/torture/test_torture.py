"""Syntax trees are right for functions from every kind of place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.optimizer.lifting.torture.run import Context, contexts, lacks, objections

VERSIONS = [(3, minor) for minor in range(11, 15) if (3, minor) != sys.version_info[:2]]
"""The others than the one that runs the tests."""


@pytest.mark.long
@pytest.mark.parametrize("context", contexts(), ids=lambda context: context.name)
def test_no_tree_is_wrong_in(context: Context, tmp_path: Path) -> None:
    if lacks(sys.executable, context.needs):
        pytest.skip(f"{context.needs} is not installed")
    assert "\n".join(objections(context, sys.executable, tmp_path)) == ""


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: f"python3.{version[1]}")
def test_no_tree_is_wrong_on(version: tuple[int, int], tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no CPython {version[0]}.{version[1]} on PATH or among the versions of pyenv")

    def judged(context: Context) -> list[str]:
        return list(objections(context, python, tmp_path / context.name))

    able = [context for context in contexts() if not lacks(python, context.needs)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert "\n".join(line for lines in pool.map(judged, able) for line in lines) == ""


def test_every_case_has_a_name_of_its_own() -> None:
    names = [(context.name, case) for context in contexts() for case in context.cases]
    assert len({case for _, case in names}) == len(names) > 200


def interpreter(version: tuple[int, int]) -> str | None:
    """A working CPython of this version that is installed here."""
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: tuple[int, int]) -> Iterator[str]:
    name = f"{version[0]}.{version[1]}"
    found = shutil.which(f"python{name}")
    if found is not None:
        yield found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in sorted((root / "versions").glob(f"{name}.*"), reverse=True):
        yield str(folder / "bin" / "python")


def _runs(python: str, version: tuple[int, int]) -> bool:
    """Return False for a launcher of a version that is not installed."""
    code = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=20)
    except OSError:
        return False
    return done.stdout.split() == ["cpython", *map(str, version)]

"""Verdicts of type checkers on users' programs, and a run of the accepted ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.types.accepted import PROGRAMS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHECKED = [str(HERE / "accepted.py"), str(HERE / "refused.py")]
CACHE = ROOT / ".mypy_cache" / "of_users"
PLUGIN_CACHE = ROOT / ".mypy_cache" / "with_the_plugin"
MARK = "  # error"
SECONDS = 600

Errors = dict[str, dict[int, str]]
"""The first error on each line of each program."""


def mypy(folder: Path) -> Errors:
    return by_mypy(folder, CHECKED, CACHE)


def by_mypy(folder: Path, files: list[str], cache: Path, plugins: str = "") -> Errors:
    config = folder / "mypy.ini"
    config.write_text(
        f"[mypy]\nstrict = True\npython_version = 3.11\n{plugins}"
        "[mypy-sortedcontainers.*]\nignore_missing_imports = True\n"
    )
    options = ["--config-file", str(config), "--cache-dir", str(cache), "--no-pretty"]
    text = run([sys.executable, "-m", "mypy", "--no-error-summary", *options, *files])
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)", text, re.MULTILINE)
    assert found, text
    return by_line((file, int(line), message) for file, line, message in found)


def pyright(folder: Path) -> Errors:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install -e '.[dev]'")
    text = run([sys.executable, "-m", "pyright", "--outputjson", *CHECKED])
    start = text.find("{")
    if start < 0:  # the first run downloads the JavaScript program
        pytest.skip(f"pyright cannot be run, which needs node or a network: {text.strip():.300}")
    found: list[Any] = json.loads(text[start:])["generalDiagnostics"]
    return by_line(
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1, d["message"])
        for d in found
        if d["severity"] == "error"
    )


def by_line(found: Any) -> Errors:
    errors: Errors = {Path(path).name: {} for path in CHECKED}
    for file, line, message in found:
        errors.setdefault(file, {}).setdefault(line, message)
    return errors


def run(command: list[str]) -> str:
    """Return the output of a command."""
    variables = os.environ | {"MYPYPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    result = subprocess.run(
        command,
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return result.stdout or result.stderr


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    checker: Callable[[Path], Errors] = request.param
    return checker(tmp_path_factory.mktemp("checked"))


@pytest.mark.long
def test_what_users_write_is_accepted_with_exact_types(errors: Errors) -> None:
    assert {file: of for file, of in errors.items() if file != "refused.py"} == {"accepted.py": {}}


@pytest.mark.long
def test_mistakes_are_refused_where_they_are(errors: Errors) -> None:
    lines = enumerate((HERE / "refused.py").read_text().splitlines(), 1)
    expected = {number for number, line in lines if line.endswith(MARK)}
    found = errors["refused.py"]
    assert len(expected) > 30
    assert {number: found[number] for number in found.keys() - expected} == {}
    assert expected - found.keys() == set()


@pytest.mark.long
def test_the_plugin_knows_keys_by_name_and_rows_of_named_aggregates(tmp_path: Path) -> None:
    """Run mypy twice: the second run reads its cache."""
    named = HERE / "named.py"
    lines = enumerate(named.read_text().splitlines(), 1)
    expected = {number for number, line in lines if line.endswith("  # error")}
    for _ in range(2):
        found = by_mypy(tmp_path, [str(named)], PLUGIN_CACHE, "plugins = reactive.mypy\n")
        of_named = found["named.py"]
        assert {number: of_named[number] for number in of_named.keys() - expected} == {}
        assert of_named.keys() == expected and len(expected) == 7


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_accepted_runs(program: Callable[[], None]) -> None:
    program()

"""A user's own module that has the name of our package is named in the error, and not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent
LOUD = "print('was run')\n"


def stderr_of(script: Path) -> str:
    """Return the stderr of a failing script, in a folder outside the project."""
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=script.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 1
    assert "was run" not in done.stdout
    return done.stderr


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_a_module_beside_the_script_is_named(tmp_path: Path) -> None:
    shadow = written(tmp_path / "optimizer.py", LOUD)
    error = stderr_of(written(tmp_path / "main.py", "import reactive"))
    assert f"found yours first: {shadow}\n" in error
    assert "rename yours" in error


def test_a_package_beside_the_script_is_named(tmp_path: Path) -> None:
    shadow = written(tmp_path / "optimizer" / "__init__.py", LOUD)
    error = stderr_of(written(tmp_path / "main.py", "from reactive import Database"))
    assert f"found yours first: {shadow.parent}\n" in error


def test_the_script_itself_may_have_the_name(tmp_path: Path) -> None:
    script = written(tmp_path / "optimizer.py", "from reactive import Database\n" + LOUD)
    assert f"found yours first: {script}\n" in stderr_of(script)


def test_a_module_that_is_imported_already_is_named(tmp_path: Path) -> None:
    shadow = written(tmp_path / "optimizer.py", "")
    error = stderr_of(written(tmp_path / "main.py", "import optimizer\nimport reactive"))
    assert f"found yours first: {shadow}\n" in error


def test_the_part_for_spark_says_the_same(tmp_path: Path) -> None:
    shadow = written(tmp_path / "optimizer.py", LOUD)
    error = stderr_of(written(tmp_path / "main.py", "import spark_backend"))
    assert f"found yours first: {shadow}\n" in error


@pytest.mark.parametrize("folder", ["optimizer", "other"])
def test_a_folder_without_modules_is_no_hindrance(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    script = written(tmp_path / "main.py", "import reactive, sys\nsys.exit(1)")
    assert stderr_of(script) == ""

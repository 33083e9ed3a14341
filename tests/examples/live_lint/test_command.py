"""The command line: exit codes, JSON, and the replay with its verification."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples.live_lint.__main__ import main

ROOT = Path(__file__).parents[3]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The program, from the outside."""
    command = [sys.executable, "-m", "examples.live_lint", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with three findings, one of them in a file that nobody can read."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "cart.py").write_text("import json\nfrom .prices import nothing\nprint(nothing)\n")
    (package / "prices.py").write_text("def price(x): return x\n")
    (package / "binary.py").write_bytes(b"x = '\xff'\n")
    (package / "notes.txt").write_text("import nothing\n")
    (package / ".hidden").mkdir()
    (package / ".hidden" / "a.py").write_text("import nothing\n")
    return package


def test_json_has_all_findings_and_the_exit_code_tells_that_there_are_some(folder: Path) -> None:
    done = run(folder, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [(f["file"], f["line"], f["check"]) for f in found] == [
        ("binary.py", 1, "syntax-error"),
        ("cart.py", 1, "unused-import"),
        ("cart.py", 2, "missing-name"),
    ]
    assert found[1]["message"] == "json is imported, not used"
    assert found[2]["message"] == "shop.prices has no name nothing"


def test_a_clean_folder_exits_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "binary.py").unlink()
    (folder / "cart.py").write_text("from .prices import price\nprint(price(1))\n")
    assert main([str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("wrong", [["--json", "--watch"], ["no/such/folder"], ["--replay", "0"]])
def test_wrong_usage_exits_with_2(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(wrong)
    assert error.value.code == 2


def test_the_tables_show_a_check_and_its_findings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--limit", "0"]) == 1
    shown = capsys.readouterr().out
    assert "unused-import: 1" in shown
    assert "cart.py:1" in shown


def test_a_replay_verifies_the_views_and_exits_with_0_whatever_is_found(folder: Path) -> None:
    done = run(folder, "--replay", "12")
    assert done.returncode == 0, done.stderr
    assert "verified: after 12 edits" in done.stdout
    assert "times faster" in done.stdout


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["--help"])
    assert error.value.code == 0
    assert "exit codes" in capsys.readouterr().out

"""The command line: exit codes, JSON, and the replay with its verification."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from examples.live_lint.__main__ import main
from examples.live_lint.folder import Folder
from examples.terminal import progress

ROOT = Path(__file__).parents[3]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The program, from the outside."""
    command = [sys.executable, "-m", "examples.live_lint", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with three findings, one of them in an unreadable file."""
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


@pytest.mark.long
def test_a_replay_verifies_the_views_and_exits_with_0_whatever_is_found(folder: Path) -> None:
    done = run(folder, "--replay", "12")
    assert done.returncode == 0, done.stderr
    assert "verified: after 12 edits" in done.stdout
    assert "times faster" in done.stdout


@pytest.mark.long
def test_edits_show_examples_first_and_the_verification_last(folder: Path) -> None:
    lines = run(folder, "--replay", "2", "--limit", "1").stdout.splitlines()
    assert "cart.py:1: json is imported, not used [unused-import]" in lines
    assert lines[-1].startswith("verified: after 2 edits")
    assert "0.0 s" not in "\n".join(lines)


@pytest.mark.long
def test_without_a_terminal_each_phase_is_a_line_on_stderr(folder: Path) -> None:
    assert run(folder, "--replay", "3").stderr.splitlines() == [
        "reading: 4 files",
        "editing: 3 edits",
        "analysing again: 4 files",
        "verifying: 16 views",
    ]


@pytest.mark.parametrize("sources", [{}, {"binary.py": b"x = '\xff'\n"}])
def test_a_replay_without_a_file_that_can_be_edited_exits_with_2(
    tmp_path: Path, sources: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, source in sources.items():
        (tmp_path / name).write_bytes(source)
    assert main([str(tmp_path), "--replay", "2"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("no Python files")
    assert error.endswith(f" in {tmp_path}\n")


def test_an_interrupt_is_one_line_and_exits_with_130(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(self: Folder) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Folder, "sources", interrupted)
    assert main([str(folder)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_counts_what_is_done(terminal: bool) -> None:
    out = Console(force_terminal=terminal, width=100, record=True)
    with out.capture() as shown, progress(out, "reading", 2, "file") as tick:
        for what in ("a.py", "b.py", "into tables"):
            tick(what)
    text = shown.get()
    assert ("2/2" in text) is terminal
    assert "3/" not in text
    assert ("reading: 2 files" in text) is not terminal


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["--help"])
    assert error.value.code == 0
    assert "exit codes" in capsys.readouterr().out

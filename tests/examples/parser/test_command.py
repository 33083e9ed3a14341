"""The command line: its output and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from examples.parser.__main__ import main
from examples.parser.rows import Edge
from examples.parser.scratch import parse

ROOT = Path(__file__).parents[3]
SMALL = ["--tokens", "150", "--edits", "12", "--shown", "3"]


def test_it_runs_from_the_outside_without_a_terminal() -> None:
    command = [sys.executable, "-m", "examples.parser", *SMALL, "--verify"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "'ideas' is added at 5" in done.stdout
    assert "12 edits of single words" in done.stdout
    assert "from scratch 14 times, equal each time" in done.stdout


def test_it_shows_what_the_known_edits_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    printed = capsys.readouterr().out
    for edges in (39, 42, 46, 34, 31, 45):
        assert f"edges: {edges} (" in printed
    assert "26 passive, 13 active" in printed
    assert "+ - bind as tightly as * / %" in printed
    assert max(map(len, printed.splitlines())) <= 120


@pytest.mark.parametrize(
    "arguments",
    [["--tokens", "3"], ["--edits", "0"], ["--edits", "many"], ["--shown", "-1"], ["file"]],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2


def test_edges_that_differ_from_scratch_exit_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = Edge(0, 1, "Nothing")
    monkeypatch.setattr("examples.parser.steps.parse", lambda *of: parse(*of) | {more})
    assert main(SMALL) == 1
    assert "NOT verified: 1 edges differ" in capsys.readouterr().err

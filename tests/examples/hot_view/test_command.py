"""The command line: the phases in order, the comparison, and how it ends otherwise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.hot_view import story
from examples.hot_view.__main__ import main
from reactive import OffloadError
from spark_backend.cluster.session import check_spark

ROOT = Path(__file__).parents[3]
SMALL = ["--orders", "20000", "--customers", "6000", "--threshold", "1"]
PATIENT = """
import runpy
from examples.hot_view import story
story.SOON = 600.0  # a machine may be busy
runpy.run_module("examples.hot_view", run_name="__main__")
"""
PHASES = [
    story.GROWING,
    story.MOVING,
    story.SERVING,
    story.LOSING,
    story.SERVING_AGAIN,
    story.ENDING,
    story.COMPARING,
]


@pytest.fixture
def _spark() -> None:
    try:
        check_spark()
    except OffloadError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.usefixtures("_spark")
def test_the_view_moves_loses_its_jvm_and_is_the_same_as_in_process() -> None:
    command = [sys.executable, "-c", PATIENT, *SMALL]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout
    assert [line.partition("== ")[2] for line in told.splitlines() if "== " in line] == PHASES
    # a flush of few rows may end before the signal comes
    assert re.search(r"was killed (in the middle of a flush|between two flushes)", told)
    assert "Spark: " in told.partition(story.SERVING)[2]
    assert re.search(r"orders and views took .* MB in the process .*: \d+% less", told)
    assert "the same as in process, all rows of all views: spending" in told.splitlines()[-1]


@pytest.mark.usefixtures("_spark")
def test_a_threshold_that_is_never_passed_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(story, "SOON", 0)
    assert main(["--orders", "1000", "--customers", "50", "--threshold", "100"]) == 2
    assert "the first 60% of 1,000 orders did not fill 100 MB" in capsys.readouterr().err


def test_without_java_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert main(SMALL) == 2
    error = capsys.readouterr().err
    assert "Java 17" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", [["--orders", "0"], ["--threshold", "much"], ["more"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2

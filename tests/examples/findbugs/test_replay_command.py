"""The command line of the replay."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

from examples.findbugs.faults import history
from examples.findbugs.plain import PLAIN
from examples.findbugs.program import Program
from examples.findbugs.replay import __main__
from examples.findbugs.replay.__main__ import main
from examples.findbugs.replay.mirror import Mirror
from examples.findbugs.replay.show import Layout, lines
from examples.findbugs.replay.sources import of_builds
from examples.findbugs.replay.steps import replay

from .jars import jars_of

HERE = str(Path(__file__).parent)
CaptureFixture: TypeAlias = pytest.CaptureFixture[str]


@pytest.fixture
def jars(tmp_path: Path) -> list[str]:
    revisions = history(seed=1, revisions=4)
    return [str(path) for path in jars_of(tmp_path, (revision.classes for revision in revisions))]


def shown(capsys: CaptureFixture) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.long
def test_a_history_is_shown_revision_by_revision(capsys: CaptureFixture) -> None:
    assert main(["flashcards", "--no-figures"]) == 0
    lines = shown(capsys)
    revisions = [line.split() for line in lines if line[:1].isdigit()]
    assert lines[0].split() == ["revision", "files", "facts", "read", "updating", "findings"]
    assert [row[0] for row in revisions] == [str(number) for number in range(18)]
    assert revisions[0][1:4] == ["27", "2,617", "1,107"]
    assert [row[-1] for row in revisions[:8]] == ["4", "4", "4", "4", "4", "4", "0", "1"]
    assert lines[-1] == "verified: all 15 views equal plain evaluation at the end"


def test_findings_that_come_and_go_are_lines(capsys: CaptureFixture) -> None:
    assert main(["flashcards", "--only", "l", "--no-figures"]) == 0
    changed = [line for line in shown(capsys) if line.startswith("  ")]
    height = "de.tud.cs.se.flashcards.model.Flashcard.HEIGHT: is public static int"
    assert changed[0].startswith(f"  + L  {height}")
    assert changed[2].startswith(f"  - L  {height}")
    assert len(changed) == 4


def test_verifying_every_revision_shows_the_time_from_scratch(
    capsys: CaptureFixture,
) -> None:
    assert main(["py4j", "--verify", "--stored", "--repeat", "2", "--no-figures"]) == 0
    lines = shown(capsys)
    assert lines[0].split()[-3:] == ["scratch", "ratio", "findings"]
    assert any(line.startswith("from scratch: ") for line in lines)
    assert lines[-1] == "verified: all 15 views equal plain evaluation after every revision"


def test_jars_are_replayed_with_times_of_reading_and_comparing(
    jars: list[str], capsys: CaptureFixture
) -> None:
    assert main([*jars, "--no-figures", "--unoptimized", "--limit", "0"]) == 0
    lines = shown(capsys)
    assert lines[0].split()[-4:] == ["reading", "comparing", "updating", "findings"]
    assert [line.split()[0] for line in lines if line.startswith("r0")] == ["r0"]
    assert lines[1].split()[-1] == "16"


def test_json_has_everything_and_nothing_else_is_printed(
    jars: list[str], capsys: CaptureFixture
) -> None:
    assert main([*jars, "--json", "--no-figures", "--only", "E"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "r0-to-r3"
    assert [revision["revision"] for revision in found["revisions"]] == ["r0", "r1", "r2", "r3"]
    first = found["revisions"][0]
    assert first["files"] == 16
    assert [finding["analysis"] for finding in first["came"]] == ["DM_GC", "DM_GC"]
    assert first["updating"] > 0 and first["peak"] > 0
    assert found["summary"]["whole"] >= found["summary"]["first"] > 0


def test_findings_of_a_revision_are_limited(jars: list[str], capsys: CaptureFixture) -> None:
    assert main([*jars, "--no-figures", "--no-memory", "--only", "E", "--limit", "1"]) == 0
    lines = shown(capsys)
    assert [line.startswith("  + E  ") for line in lines[1:5]] == [False, True, True, False]
    assert lines[3] == "  + E  ... 1 more"


def test_builds_may_be_folders_with_the_jars_in_them(
    jars: list[str], tmp_path: Path, capsys: CaptureFixture
) -> None:
    for number, path in enumerate(jars):
        (tmp_path / f"b{number}").mkdir()
        Path(path).rename(tmp_path / f"b{number}" / "shop.jar")
    builds = [str(tmp_path / f"b{number}") for number in range(len(jars))]
    assert main([*builds, "--no-figures", "--no-memory"]) == 0
    assert {"b0", "b1", "b2", "b3"} <= {line.split(" ")[0] for line in shown(capsys)}


def test_what_came_is_red_and_what_went_green(jars: list[str]) -> None:
    layout = Layout(names=2, of_builds=True, verify=False, limit=0)
    steps = replay(Program(), Mirror(), of_builds([*map(Path, jars)]), verify=False)
    found = [line for step in steps for line in lines(layout, step)]
    colours = {line.plain[:3]: line.style for line in found if line.plain.startswith("  ")}
    assert colours == {"  +": "red", "  -": "green"}


def test_numbers_have_their_forms(jars: list[str], capsys: CaptureFixture) -> None:
    assert main([*jars[:1] * 2, "--no-figures", "--only", "dm_gc", "--verify"]) == 0
    lines = shown(capsys)
    assert lines[-1] == ("verified: the view of E equals plain evaluation after every revision")
    assert any(line.endswith("(revision r0: 0 facts read)") for line in lines)
    assert not any("0.0 x" in line for line in lines)


@pytest.mark.long
def test_memory_is_told_to_be_of_a_second_replay_which_can_be_left_out(
    capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["flashcards", "--no-figures"]) == 0
    assert "memory is traced in a second replay, which no time above is of" in shown(capsys)
    monkeypatch.setattr(__main__, "memory", None)
    assert main(["flashcards", "--no-figures", "--no-memory"]) == 0
    assert not any("memory" in line for line in shown(capsys))
    assert main(["flashcards", "--no-figures", "--no-memory", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {revision["peak"] for revision in found["revisions"]} == {None}
    assert (found["summary"]["peak"], found["summary"]["held"]) == (None, None)


@pytest.mark.long
def test_an_analysis_without_plain_evaluation_is_named_and_the_others_are_verified(
    capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(PLAIN, "E")
    assert main(["flashcards", "--no-figures", "--no-memory", "--verify"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "no plain evaluation for E"
    assert captured.out.splitlines()[-1].startswith("verified: all 14 views")
    assert main(["flashcards", "--no-figures", "--no-memory", "--only", "E", "--verify"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "no plain evaluation for E"
    assert "verified" not in captured.out


@pytest.mark.long
def test_figures_are_drawn_into_a_folder(tmp_path: Path, capsys: CaptureFixture) -> None:
    pytest.importorskip("matplotlib")
    assert main(["flashcards", "--figures", str(tmp_path)]) == 0
    assert len([*tmp_path.glob("findbugs-flashcards-*.png")]) == 2
    assert "findbugs-flashcards-time.png" in capsys.readouterr().err


def test_figures_of_builds_are_named_after_the_first_and_the_last(
    jars: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    assert main([*jars, "--no-memory", "--figures", str(tmp_path)]) == 0
    assert [file.name for file in tmp_path.glob("*.png")] == ["findbugs-r0-to-r3-time.png"]


@pytest.mark.long
def test_without_matplotlib_the_replay_succeeds_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["flashcards", "--figures", str(tmp_path)]) == 0
    assert "pip install matplotlib" in capsys.readouterr().err


@pytest.mark.long
def test_a_view_that_differs_exits_with_1_and_says_which(
    monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture
) -> None:
    monkeypatch.setitem(PLAIN, "E", lambda base: set())
    assert main(["flashcards", "--no-figures"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("NOT verified: at the end the views of E differ:")
    assert "Invoke(cls=" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no history nowhere; of the example: flashcards, hibernate"),
        (["shop.jar"], "there is no shop.jar"),
        (["a.jar", "b.jar"], "there is no a.jar"),
        ([HERE], f"{HERE} alone has no changes: give two or more jars or folders"),
        (["py4j", "vespucci"], "py4j is a recorded history: give it alone"),
        ([HERE, __file__], f"{__file__} is no folder, no .class file, and no archive"),
        (["py4j", "--only", "AX"], "there is no analysis 'AX'"),
        (["py4j", "--repeat", "0"], "--repeat takes a number of times from 1 on"),
        (["py4j", "--limit", "-1"], "--limit takes a number of findings from 0 on"),
        (["py4j", "--figures", "no/folder"], "--figures takes a folder, and no/folder is none"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(
    arguments: list[str], said: str, capsys: CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", ["broken.jsonl", "broken.jsonl.xz", "empty.jsonl"])
def test_a_file_that_is_no_history_exits_with_2_and_is_named(
    name: str, tmp_path: Path, capsys: CaptureFixture
) -> None:
    path = tmp_path / name
    path.write_text("" if "empty" in name else "no history")
    assert main([str(path), "--no-figures"]) == 2
    assert str(path) in capsys.readouterr().err.replace("\n", "")


def test_an_interrupt_is_one_line_and_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(__main__, "replay", interrupted)
    assert main(["flashcards"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_help_tells_the_histories_and_the_exit_codes(capsys: CaptureFixture) -> None:
    with pytest.raises(SystemExit) as error:
        main(["--help"])
    assert error.value.code == 0
    text = capsys.readouterr().out
    assert "flashcards, hibernate, py4j, vespucci" in text
    assert "exit codes" in text

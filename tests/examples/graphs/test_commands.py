"""The examples run, and print inserted and deleted rows; their doctests hold."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest
from rich.console import Console

import examples.graphs
from examples.graphs.points_to.__main__ import main
from examples.graphs.show import Story
from reactive import Database
from tests.doctests import tried

MODULES = [
    module.name for module in pkgutil.walk_packages(examples.graphs.__path__, "examples.graphs.")
]
SHOWN = {
    "closure": ["+ c -> c", "- c -> c"],
    "same_generation": ["+ dirk and dora", "- dirk and dora"],
    "shortest_paths": ["- home to town: 4", "+ home to town: 6", "- from home: mill -> town"],
    "longest_chain": [
        "+ move in: 6",
        "- move in: 5",
        "- roof: 4",
        "+ roof: 20",
        "+ roof: 4",
        "- roof",
    ],
    "page_rank": ["+ left: 1.000000", "- left: 1.000000"],
    "k_means": ["- (4, 4) in 1", "+ (4, 4) in 3"],
}
PROGRAM = "class C:\n    def f(self): return []\nx = C().f()\n"


@pytest.mark.long
@pytest.mark.parametrize("name", SHOWN)
def test_an_example_shows_what_edits_change(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(f"examples.graphs.{name}").main()
    shown = capsys.readouterr().out
    assert "at the beginning" in shown
    for line in SHOWN[name]:
        assert line in shown


@pytest.mark.long
@pytest.mark.parametrize("module", MODULES)
def test_doctests(module: str) -> None:
    result = tried(importlib.import_module(module))
    assert result.failed == 0


@pytest.mark.long
def test_points_to_shows_a_small_program_and_verifies_real_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--edits", "3"]) == 0
    shown = capsys.readouterr().out
    assert "- shop:first may hold dict from store.Store.__init__:1" in shown
    assert "3 edits of single files" in shown
    assert "afterwards all views equal those of a fresh analysis" in shown


def test_points_to_takes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.py").write_text(PROGRAM)
    assert main([str(tmp_path), "--edits", "0"]) == 0
    assert "m:1 calls m.C.f" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(tmp_path / "nowhere")])


def test_a_story_tells_what_came_and_went_in_one_commit_and_what_is_left_out() -> None:
    db = Database()
    words = db.table(str)
    out = Console(record=True, width=80)
    with out.capture() as shown:
        story = Story("Words", db, {"all": words.materialize()}, limit=2, out=out)
        words.add("old")
        story.begin()
        with story.edit("some words"):
            words.remove("old")
            words.add_all(["a", "b", "c", "d"])
        with story.edit("nothing"):
            pass
    lines = [line.replace(" ", "") for line in shown.get().splitlines()]
    assert db.version == 2
    for row in (
        "│all│1│old│",
        "│all│4│5│-old│",
        "││││+a│",
        "││││+b│",
        "││││+...2more│",
        "│all│4│0│none│",
    ):
        assert row in lines, shown.get()

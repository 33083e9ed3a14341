"""Small programs, through histories of changes, against naive evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.budget import seeds, share_of
from tests.languages.datalog.play import play

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.dl"))


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 40


@pytest.mark.long
@pytest.mark.parametrize("path", share_of(PROGRAMS, "programs", 2), ids=lambda path: path.stem)
def test_a_program_is_what_naive_evaluation_gives_after_every_commit(path: Path) -> None:
    text = path.read_text()
    for seed in seeds(4):
        play(text, seed)
    play(text, 3, optimize=False)

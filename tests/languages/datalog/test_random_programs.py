"""Random stratified programs, through histories of changes, against naive evaluation."""

from __future__ import annotations

from random import Random

import pytest

from reactive import PlanError
from tests.budget import seeds
from tests.languages.datalog.generate import random_program
from tests.languages.datalog.play import play


@pytest.mark.parametrize("seed", seeds(40))
def test_a_random_program_is_what_naive_evaluation_gives(seed: int) -> None:
    text = random_program(Random(seed))
    try:
        play(text, seed, optimize=bool(seed % 4))
    except PlanError as error:
        assert "has to compare its rows with those around by tests" in str(error)
    except Exception as error:
        error.add_note(text)
        raise

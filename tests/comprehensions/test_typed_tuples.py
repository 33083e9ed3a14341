"""A row of the user's own tuple type is no pair of a key and a row, whatever places are read."""

from __future__ import annotations

import pytest

from tests.comprehensions.typed_tuples import play_comprehension, play_group

EACH = 60


@pytest.mark.parametrize("seed", range(0, 3_000, 1_000))
def test_comprehensions_are_what_python_computes_of_their_texts(seed: int) -> None:
    for each in range(seed, seed + EACH):
        play_comprehension(each)


@pytest.mark.parametrize("seed", range(0, 3_000, 1_000))
def test_queries_of_groups_are_what_python_computes(seed: int) -> None:
    for each in range(seed, seed + EACH // 2):
        play_group(each)

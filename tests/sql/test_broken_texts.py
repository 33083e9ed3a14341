"""Broken texts are results or a `PlanError`: a sample of what the soak plays."""

from __future__ import annotations

import pytest

from tests.sql.broken_texts import Player

TEXTS, STATEMENTS = 450, 50


@pytest.fixture(scope="module")
def player() -> Player:
    return Player(strange=True)


def test_a_broken_text_raises_nothing_of_its_own(player: Player) -> None:
    said = [player.play(seed) for seed in range(TEXTS)]
    assert said.count("made") > TEXTS / 10
    assert said.count("refused") > TEXTS / 10


def test_a_broken_statement_raises_nothing_of_its_own(player: Player) -> None:
    said = {player.play_statement(seed) for seed in range(STATEMENTS)}
    assert said == {"made", "refused"}

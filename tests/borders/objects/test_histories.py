"""Tables of objects equal the objects, after every commit of random histories."""

from __future__ import annotations

import pytest

from tests.borders.objects import histories, inner_histories, shared_histories
from tests.budget import seeds
from tests.thresholds import WAYS, thresholds


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(160, 16))
def test_tables_and_views_are_as_the_objects(seed: int, way: str) -> None:
    with thresholds(WAYS[way]):
        histories.play(seed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(80, 20))
def test_they_are_as_what_is_inside_of_objects(seed: int, way: str) -> None:
    with thresholds(WAYS[way]):
        inner_histories.play(seed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(80, 20))
def test_they_are_as_what_several_objects_hold(seed: int, way: str) -> None:
    with thresholds(WAYS[way]):
        shared_histories.play(seed)

"""Tables of objects show what the objects are, after every commit of random histories."""

from __future__ import annotations

import pytest

from tests.budget import seeds
from tests.objects.histories import play
from tests.thresholds import WAYS, thresholds


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(160))
def test_tables_and_views_are_as_the_objects(seed: int, way: str) -> None:
    with thresholds(WAYS[way]):
        play(seed)

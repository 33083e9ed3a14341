"""Measurements leave the garbage collector in its former state."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from asv_benchmarks.turns import unwatched


@pytest.fixture(autouse=True)
def _frozen() -> Iterator[None]:
    """Freeze objects, as all tests do."""
    gc.freeze()
    yield
    gc.freeze()


def test_what_others_have_frozen_stays_so() -> None:
    with unwatched():
        made = [[number] for number in range(10)]
        assert any(each is made[5] for each in gc.get_objects())
    assert gc.get_freeze_count()


@pytest.mark.long
def test_what_nobody_has_frozen_is_looked_at_again() -> None:
    gc.unfreeze()
    with unwatched():
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()

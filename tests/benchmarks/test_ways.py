"""The measurement of special ways, at its shortest: each can be switched off; rows are the same."""

from __future__ import annotations

import pytest

from asv_benchmarks import ways
from asv_benchmarks.ways import WAYS, Way


def decided() -> list[Way]:
    return [way for way in WAYS if not way.pays]


def kept() -> list[Way]:
    """Ways of which only the rows are compared; those that have to pay are compared there."""
    return [way for way in WAYS if way.pays]


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("way", kept(), ids=lambda way: way.name)
def test_a_way_is_switched_off_and_gives_the_same(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways, "LARGE", 200)
    for query in way.queries:
        time, ratio = ways.gain(way, query, runs=1)
        assert time > 0
        assert ratio > 0


@pytest.mark.long(whole=True)
@pytest.mark.parametrize("way", decided(), ids=lambda way: way.name)
def test_a_way_pays(way: Way) -> None:
    """Measure both sides in turns, in processor time; repeat on a busy machine."""
    gains = []
    for runs in (7, 15, 30):
        gains = [ways.gain(way, query, runs)[1] for query in way.queries]
        if ways.verdict(way, gains) == "stays":
            return
    pytest.fail(f"{way.name} gains {gains}: take it out, or say in `pays` what it is for")


def test_the_files_of_each_way_are_there() -> None:
    for way in WAYS:
        for name in way.files:
            assert (ways.ROOT / name).exists(), name

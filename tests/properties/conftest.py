"""Test properties with the shipped thresholds, and with all thresholds at their lowest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.thresholds import LOWEST, SHIPPED, thresholds


@pytest.fixture(
    autouse=True,
    scope="module",
    params=[pytest.param(SHIPPED, id="as shipped"), pytest.param(LOWEST, id="at their lowest")],
)
def settings_of_thresholds(request: pytest.FixtureRequest) -> Iterator[None]:
    with thresholds(request.param):
        yield

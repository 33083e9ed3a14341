"""By "drop" and "null" no row stops those who write, whatever raises, in whatever operator."""

from __future__ import annotations

import pytest

from tests.errors.policies import FAILURES, OPERATORS, POLICIES, REFUSED, played

OF_KEYS = "`==` raises"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("failure", [name for name in FAILURES if name != OF_KEYS])
def test_no_row_stops_a_writer(operator: str, failure: str) -> None:
    for policy in POLICIES[1:]:
        assert played(operator, failure, policy) != REFUSED

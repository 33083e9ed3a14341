from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.borders.two_commits.shop import Order, Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "shop.db")
    with made.db.transaction(commit_with=made.sql):
        made.put(Order(1, "ann", 5))
    made.heard.clear()
    yield made
    made.close()

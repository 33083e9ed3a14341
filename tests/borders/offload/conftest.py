"""Transfers in pieces of a few rows, so that small tables need several pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import reactive.engine.dataflow.snapshot  # noqa: F401


def small_pieces(patch: pytest.MonkeyPatch, count: int) -> None:
    """Transfer `count` rows at a time."""
    patch.setattr(sys.modules["reactive.engine.dataflow.snapshot"], "PIECE", count)


@pytest.fixture(autouse=True, scope="session")
def _small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        small_pieces(patch, 3)
        yield

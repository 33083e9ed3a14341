"""The keys by which rows of facts belong together."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def of_class(row: Any) -> Hashable:
    """The key of what belongs to a class."""
    found: Hashable = row.cls
    return found


def of_method(row: Any) -> Hashable:
    """The key of what belongs to a method."""
    return row.cls, row.method


def of_name(row: Any) -> Hashable:
    """The key of a class."""
    found: Hashable = row.name
    return found

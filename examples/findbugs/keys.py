"""The keys by which facts are joined."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def of_class(row: Any) -> Hashable:
    """Return the key of facts of a class."""
    found: Hashable = row.cls
    return found


def of_method(row: Any) -> Hashable:
    """Return the key of facts of a method."""
    return row.cls, row.method


def of_name(row: Any) -> Hashable:
    """Return the key of a class."""
    found: Hashable = row.name
    return found

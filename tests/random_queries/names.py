"""The names that the texts of callables use, and the callables that they define."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache, partial, wraps
from typing import Any

from tests.random_queries.rows import A, D, M, S
from tests.random_queries.values import POOLS, hash_of, n, same, small
from tests.written import executed


def namespace(source: str, mode: str) -> Mapping[str, Any]:
    """Return the callables that a text defines, by name; the library can read their source."""
    return executed(source, _known(mode))


def named(source: str, mode: str) -> Mapping[str, Any]:
    """Return the callables that a text defines, by name, only to evaluate them."""
    names = _known(mode)
    exec(source, names)
    return names


def _known(mode: str) -> dict[str, Any]:
    return {
        "n": n,
        "small": small,
        "same": same,
        "hash_of": hash_of,
        "partial": partial,
        "lru_cache": lru_cache,
        "through": through,
        "inverted": inverted,
        "D": D,
        "S": S,
        "A": A,
        "M": M,
        "LOW": 1,
        "INF": math.inf,
        "Decimal": Decimal,
        "POOL": POOLS[mode],
    }


def through(function: Any) -> Any:
    """A decorator whose result the library cannot read."""

    @wraps(function)
    def call(*row: Any) -> Any:
        return function(*row)

    return call


def inverted(function: Any) -> Any:
    """A decorator that says the contrary."""

    @wraps(function)
    def call(*row: Any) -> Any:
        return not function(*row)

    return call

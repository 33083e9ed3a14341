"""The names that the texts of callables use, and the callables that they define."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache, partial, wraps
from types import MappingProxyType
from typing import Any

from reactive import monotone
from tests.random_queries.histories import Model
from tests.random_queries.rows import A, D, M, S
from tests.random_queries.values import POOLS, hash_of, n, same, small
from tests.written import executed


def namespace(
    source: str, mode: str, also: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Return the callables that a text defines, by name; the library can read their source."""
    return executed(source, {**_known(mode), **also})


def named(
    source: str, mode: str, also: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Return the callables that a text defines, by name, only to evaluate them."""
    names = {**_known(mode), **also}
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
        "monotone": monotone,
        "through": through,
        "inverted": inverted,
        "D": D,
        "S": S,
        "A": A,
        "M": M,
        "LOW": 1,
        "INF": math.inf,
        "Decimal": Decimal,
        "timedelta": timedelta,
        "POOL": POOLS[mode],
    }


class Present:
    """The moment and the parameters of a model, as the oracle's callables read them."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names: Mapping[str, Any] = {
            "now": lambda: self.model.now,
            "p0": lambda: self.model.values[0],
            "p1": lambda: self.model.values[1],
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

"""Public names of lattices, for `fixpoint(step, keep=..., by=...)`; see `reactive.api.lattices`."""

from reactive.api.lattices import (
    TOP,
    Lattice,
    check,
    common_prefix,
    flat,
    intersection,
    interval,
    is_all,
    is_any,
    largest,
    mapping,
    product,
    smallest,
    union,
)
from reactive.engine.collections.frozen_dict import FrozenDict

__all__ = [
    "TOP",
    "FrozenDict",
    "Lattice",
    "check",
    "common_prefix",
    "flat",
    "intersection",
    "interval",
    "is_all",
    "is_any",
    "largest",
    "mapping",
    "product",
    "smallest",
    "union",
]

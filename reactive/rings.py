"""Public names of rings, for `Aggregate(ring=..., of=...)`; see `reactive.api.rings`."""

from reactive.api.rings import (
    INTEGERS,
    POLYNOMIALS,
    Covariance,
    FeatureSums,
    Polynomial,
    Ring,
    check_ring,
    variable,
)

__all__ = [
    "INTEGERS",
    "POLYNOMIALS",
    "Covariance",
    "FeatureSums",
    "Polynomial",
    "Ring",
    "check_ring",
    "variable",
]

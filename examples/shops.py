"""Shared by both examples of shops: regions, and amounts of orders."""

from __future__ import annotations

from random import Random

REGIONS = ("north", "east", "south", "west", "coast", "islands")
TYPICAL, SPREAD = 3.5, 0.9
"""Mean and deviation of the logarithm of an amount: the median is 33 euros, 1 % are above 270."""


def amount(random: Random) -> float:
    """Return the amount of an order, in euros: log-normal, in whole cents.

    >>> amount(Random(1))
    57.21
    """
    return round(random.lognormvariate(TYPICAL, SPREAD), 2)

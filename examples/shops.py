"""What both examples of shops have in common: regions, and what orders come to."""

from __future__ import annotations

from random import Random

REGIONS = ("north", "east", "south", "west", "coast", "islands")
TYPICAL, SPREAD = 3.5, 0.9
"""Of the logarithm of an amount: the median is 33 euros, one in a hundred is above 270."""


def amount(random: Random) -> float:
    """Of an order, in euros: log-normal, in whole cents.

    >>> amount(Random(1))
    57.21
    """
    return round(random.lognormvariate(TYPICAL, SPREAD), 2)

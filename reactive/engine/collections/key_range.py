"""Which keys of an index by values in order match a key of the other side of a join."""

from __future__ import annotations

from typing import Literal

from optimizer.record import record

Form = Literal["point", "interval", "low", "high"]
"""What a key is: a point, both ends of an interval, or one of them."""


@record
class Range:
    """Which keys of an index match a key of the other side.

        own low <= other high   and   other low <= own high

    `closed` says of both comparisons whether they are `<=`, or `<`. An end that is missing is not
    compared.
    """

    own: Form
    other: Form
    closed: tuple[bool, bool] = (True, True)

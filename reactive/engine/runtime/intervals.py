"""How long a `trigger=` is: of sinks, and of streams on Spark.

    2, 0.5                        seconds
    "10s", "500 ms", "5 minutes"  a number and a unit; the words also as plurals

State:  none.
"""

from __future__ import annotations

import math
import re
from typing import Any

from optimizer.errors import PlanError

UNITS = {
    **dict.fromkeys(("ms", "millisecond"), 0.001),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3600.0),
    **dict.fromkeys(("d", "day"), 86400.0),
}
"""Seconds of each; in text they may have an s at their end."""


def seconds(trigger: Any, *, otherwise: str, may_be_zero: bool = False) -> float:
    """An interval in seconds.

    Parameters
    ----------
    otherwise: what else can be given, for the error.
    may_be_zero: whether no time at all is one, which stands for "as soon as it can be".

    Raises
    ------
    PlanError: it is none.

    >>> [seconds(given, otherwise="") for given in ("10s", "500 ms", "2 hours", 0.5)]
    [10.0, 0.5, 7200.0, 0.5]
    """
    found = _of_text(trigger) if isinstance(trigger, str) else _of_number(trigger)
    if found is None or not (0 < found < math.inf or (may_be_zero and found == 0)):
        raise PlanError(
            f"trigger={trigger!r} is no interval\n"
            f'  give seconds, or a number with one of {", ".join(UNITS)}, such as "10s" or '
            f'"5 minutes"; {otherwise}'
        )
    return found


def _of_text(text: str) -> float | None:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower(), re.ASCII)
    if match is None:
        return None
    unit = UNITS.get(match[2], UNITS.get(match[2].removesuffix("s")))
    return None if unit is None else float(match[1]) * unit


def _of_number(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if is_number else None

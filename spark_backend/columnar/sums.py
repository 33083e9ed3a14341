"""Sums by group that are exact, and rounded once: those of `math.fsum`, of many groups at a time.

    value  =  high * 2**unit  +  low * 2**(unit - width)         integers, of each value
    sum    =  sum of high, sum of low                            integers of 64 bits, of each group

Both are exact, so that adding them as floats rounds once. Values whose bits are further apart than
both have are summed one group after the other.

State:  none.
Cost:   O(values), some ten passes over them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, fsum
from typing import Any

import numpy as np

from spark_backend.columnar.trees import Array, NotColumnar

BITS = 52
"""Of a sum of high parts, which has to be a float."""
WHOLE = 62
"""Of a sum of low parts."""
LARGEST, LEAST = 2.0**900, -900
"""Above and below, what floats are added up from may be none itself."""


class Groups:
    """Values arranged by group.

    Parameters
    ----------
    order: puts values of a group side by side; `starts` is where each group begins.
    """

    def __init__(self, keys: Array) -> None:
        self.keys = keys
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        new = np.ones(len(keys), bool)
        new[1:] = ordered[1:] != ordered[:-1]
        self._starts = np.flatnonzero(new)
        self.names = ordered[self._starts]
        self.counts = np.diff(np.append(self._starts, len(keys)))
        self._most = int(self.counts.max()) if len(keys) else 1

    def sums(self, kind: type, values: Array) -> Array:
        """The sum of each group.

        Raises
        ------
        NotColumnar: there are values that are no numbers, or are too large.
        """
        ordered = values[self._order]
        if not len(ordered):
            return ordered
        if kind is int:
            if float(np.abs(ordered.astype(np.float64)).max()) * self._most >= 2.0**WHOLE:
                raise NotColumnar("large integers")
            return np.add.reduceat(ordered, self._starts)
        most = float(np.abs(ordered).max())
        if not most < LARGEST:
            raise NotColumnar("infinity, NaN or large numbers")
        found = self._exact(ordered, most)
        return self._one_by_one(ordered) if found is None else found

    def folded(self, fold: Any, values: Array) -> Array:
        """Values of each group folded by a function of numpy."""
        ordered = values[self._order]
        return fold.reduceat(ordered, self._starts) if len(ordered) else ordered

    def _exact(self, ordered: Array, most: float) -> Array | None:
        spare = self._most.bit_length()
        width = min(BITS, WHOLE - spare)
        unit = frexp(most)[1] - (BITS - spare)
        if unit - width < LEAST or width < 1 or spare >= BITS:
            return None if most else np.zeros(len(self._starts))
        high = np.trunc(np.ldexp(ordered, -unit))
        rest = np.ldexp(ordered - np.ldexp(high, unit), width - unit)
        low = np.trunc(rest)
        if not np.array_equal(low, rest):
            return None
        ups = np.add.reduceat(high.astype(np.int64), self._starts)
        downs = np.add.reduceat(low.astype(np.int64), self._starts)
        ups += downs >> width
        downs &= (1 << width) - 1
        one, other = ups.astype(np.float64), downs.astype(np.float64)
        return np.ldexp(one, unit) + np.ldexp(other, unit - width)

    def _one_by_one(self, ordered: Array) -> Array:
        ends = np.append(self._starts[1:], len(ordered))
        listed = ordered.tolist()
        pairs = zip(self._starts.tolist(), ends.tolist(), strict=True)
        return np.array([fsum(listed[begin:end]) for begin, end in pairs])


def kept_groups() -> Callable[[Array], Groups]:
    """Groups of keys, which stay as long as the keys do."""
    last: list[Groups] = []

    def groups(keys: Array) -> Groups:
        if not last or not np.array_equal(last[0].keys, keys):
            last[:] = [Groups(keys)]
        return last[0]

    return groups

"""Derivations of a recursive relation: the number of each row's, and the round it is present since.

    support       row -> its number of derivations from rows and inputs that are present
    rounds        row -> the round that inserted it; a row without one is not present
    well_founded  row -> its number of derivations from rows of earlier rounds; 1 if not listed

A derivation arrives as a pair: the row, and as its weight the latest round of the recursive rows
that it was derived from (the first round if there are none), negative if it is removed. It is
well-founded for a row that is present since a later round than that.

Rows may raise when they are hashed or compared: a derivation is then counted or not, never half.
Counted derivations are logged, and `RecursiveRelation.undo` reverts the log.

State:  two numbers per row; a third if a row has not exactly one well-founded derivation.
Cost:   O(1) per added or removed derivation.
Source: derivation counts of [counting], dated as in [elastic] to tell circular support apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice, repeat
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta

GIVEN = 1
"""The round of rows derived from inputs alone."""

Undo = tuple[Callable[[Any], None], Any]


class Derivations:
    """The derivations of one relation.

    >>> derivations = Derivations()
    >>> derivations.take([("a", GIVEN), ("b", GIVEN), ("a", 7)])
    >>> derivations.support
    {'a': 2, 'b': 1}
    """

    __slots__ = (
        *("_entered", "_found", "_fresh", "_gone", "_is_single", "_known"),
        *(
            "_leaving",
            "_left",
            "_log",
            "_was_empty",
            "depth",
            "derivations",
            "vanished",
            "well_founded",
            "lost",
            "may_be_negative",
            "rounds",
        ),
        *("support", "touched"),
    )

    def __init__(self) -> None:
        self.support: dict[Row, int] = {}
        self.rounds: dict[Row, int] = {}
        self.well_founded: dict[Row, int] = {}
        self.touched = 0
        self.derivations = 0
        """Number of derivations."""
        self.may_be_negative = False
        """True if more copies of a row may be deleted than were inserted (tables that are not
        stored)."""
        self._begin()

    def _begin(self) -> None:
        """Reset what is recorded of one commit, the undo log included."""
        self.lost: list[Row] = []
        """Present rows that may have lost their last well-founded derivation."""
        self.depth = 0
        """Derivation steps between the changed inputs and the rows that entered last."""
        self._found: dict[Row, None] = {}  # supported, but not present
        self._fresh: list[Row] = []  # the same, after their first derivation
        self._gone: dict[Row, int] = {}  # removed rows, whose dependents must still be derived
        self._leaving: dict[Row, int] = {}  # removed rows, whose dependents are being derived
        self._log: list[Undo] = []
        self._entered: list[list[Row]] = []
        self._left: list[Iterable[Row]] = []
        self._is_single = False  # True if all derivations since rows last entered are fresh
        self._known = -1  # number of supported rows then; -1 if other derivations came since
        self._was_empty = not self.support
        self.vanished = 0
        """Number of derivations that this commit has removed."""

    def take(self, derivations: Pairs) -> None:
        """Apply derivations that changed inputs add or remove."""
        self.touched += len(derivations)
        self._is_single, self._known = False, -1
        if self._fresh:  # otherwise a row derived again here would enter twice
            self._found.update(dict.fromkeys(self._fresh))
            self._fresh = []
        at = None
        try:
            for at in derivations:
                self._take(*at)
        except BaseException:
            derivations = derivations[: _derivation_place(derivations, at)]
            raise
        finally:
            gone = sum([weight < 0 for _, weight in derivations])
            self.vanished += gone
            self.derivations += len(derivations) - 2 * gone
            self._note(self._take_back, derivations)

    def follow(self, derivations: Pairs) -> None:
        """Apply derivations from rows that entered or left, or derivations that are all removed."""
        if self.may_be_negative:
            self.take(derivations)
            return
        self.touched += len(derivations)
        if type(derivations) is UniformDelta:
            if derivations.weight > 0:
                self._count(derivations)
            else:
                self._drop_only_ones(derivations)
        elif derivations and derivations[0][1] < 0:
            self._drop(derivations)
        else:
            self.take(derivations)

    def _take(self, row: Row, weight: int) -> None:
        """Count one derivation: added if `weight` is positive, else removed."""
        since = self.rounds.get(row)
        supported = self.support.get(row, 0)
        if since is None:
            self._support_absent(row, supported + (1 if weight > 0 else -1))
        elif weight > 0:
            self._support_more(row, supported + 1, weight < since)
        else:
            self._support_less(row, supported - 1, -weight < since)

    def _support_absent(self, row: Row, supported: int) -> None:
        """Set the number of derivations of a row that is not present; it may be negative."""
        if supported > 0:
            self._found[row] = None
        else:
            self._forget(row)
        if supported:
            self.support[row] = supported
        else:
            del self.support[row]

    def _support_more(self, row: Row, supported: int, is_well_founded: bool) -> None:
        """Count a new derivation of a present row; `supported` is the number with it."""
        well_founded = self.well_founded.get(row, 1) + is_well_founded
        if supported:
            self.support[row] = supported
        else:  # the number was negative in this commit
            del self.support[row]
        if is_well_founded:
            self._or_else(row, supported - 1, well_founded)

    def _support_less(self, row: Row, supported: int, is_well_founded: bool) -> None:
        """Count a removed derivation of a present row; without a well-founded one, it is lost."""
        well_founded = self.well_founded.get(row, 1) - is_well_founded
        if supported:
            self.support[row] = supported
        else:
            del self.support[row]
        if is_well_founded:
            self._or_else(row, supported + 1, well_founded)
            if not well_founded:
                self.lost.append(row)

    def _or_else(self, row: Row, supported: int, well_founded: int) -> None:
        """Set the well-founded number; if hashing the row raises, restore both numbers."""
        try:
            self._set_well_founded(row, well_founded)
        except BaseException:
            self.support[row] = supported
            raise

    def _count(self, derivations: UniformDelta) -> None:
        """Add derivations from rows of the current round; none of them is well-founded yet."""
        rows, support = derivations.rows, self.support
        before = len(support)
        counting = iter(rows)
        try:
            Counter.update(support, counting)  # type: ignore[call-overload]
        except BaseException:
            rows = rows[: len(rows) - sum(1 for _ in counting) - 1]
            raise
        finally:
            self.derivations += len(rows)
            self._note(self._take_back, UniformDelta(rows, derivations.weight))
        new = len(support) - before
        if new == len(rows):
            self._fresh += rows
        else:
            self._is_single = False
            self._fresh += list(islice(reversed(support), new))[::-1]

    def _drop(self, derivations: Pairs) -> None:
        """Remove derivations. A row that loses its only one leaves in this call."""
        support, rounds, well_founded = self.support, self.rounds, self.well_founded
        take, leave = support.pop, rounds.pop
        leaving: dict[Row, int] = {}
        at = taken = left = None
        self._is_single, self._known = False, -1
        try:
            for at in derivations:
                row, weight = at
                supported = take(row)
                taken = at
                if supported == 1:
                    since = leave(row, None)
                    left = at
                    if since is None:
                        self._forget(row)
                    else:
                        leaving[row] = since
                    continue
                support[row] = supported - 1
                since = rounds.get(row)
                if since is not None and -weight < since:
                    number = well_founded.get(row, 1) - 1
                    self._set_well_founded(row, number)
                    if not number:
                        self.lost.append(row)
        except BaseException:
            if taken is at is not None:  # the row raised when hashed or compared
                support[row] = supported
            if left is at is not None and since is not None:
                rounds[row] = since
                leaving.pop(row, None)
            derivations = derivations[: _derivation_place(derivations, at)]
            raise
        finally:
            self.vanished += len(derivations)
            self.derivations -= len(derivations)
            self._note(self._take_back, derivations)
            self._put_out(leaving)
            self._gone.update(leaving)

    def _drop_only_ones(self, derivations: UniformDelta) -> None:
        """Remove derivations, each the only one of its row, as `has_only_ones` says."""
        rows, sinces = derivations.rows, list[int]()
        supports: list[int] = []
        self._is_single, self._known = False, -1
        try:
            supports.extend(map(self.support.pop, rows))
            sinces.extend(map(self.rounds.pop, rows, repeat(0)))
            leaving = dict(zip(rows, sinces, strict=True))
        except BaseException:  # a row raised when hashed or compared
            self.support.update(zip(rows, supports, strict=False))
            self.rounds.update((r, since) for r, since in zip(rows, sinces, strict=False) if since)
            raise
        if 0 in sinces:
            for row in [row for row, since in leaving.items() if not since]:
                del leaving[row]
                self._forget(row)
        self.vanished += len(rows)
        self.derivations -= len(rows)
        self._note(self._take_back, derivations)
        self._put_out(leaving)
        self._gone.update(leaving)

    def _set_well_founded(self, row: Row, number: int) -> None:
        """Set the number of well-founded derivations of a row; 1 is not stored."""
        if number == 1:
            self.well_founded.pop(row, None)
        else:
            self.well_founded[row] = number

    def _forget(self, row: Row) -> None:
        """Forget a row that is not present and lost its last derivation."""
        self._found.pop(row, None)

    @property
    def has_only_ones(self) -> bool:
        """True if each row has exactly one derivation."""
        return self.derivations == len(self.support) and not self.may_be_negative

    def _put_out(self, leaving: dict[Row, int]) -> None:
        """Record that rows leave."""
        if leaving:
            owed = self._negative(leaving) if self.may_be_negative else {}
            self._note(self._put_back, (leaving, owed))
            self._left.append(leaving)
            if self.well_founded:
                for row in leaving:
                    self.well_founded.pop(row, None)

    def _note(self, take_back: Callable[[Any], None], what: Any) -> None:
        """Log how to undo a change; a relation that was empty is cleared instead."""
        if not self._was_empty:
            self._log.append((take_back, what))

    def _take_back(self, derivations: Pairs) -> None:
        """Undo derivations, the last first."""
        for row, weight in reversed(derivations):
            self._take(row, -weight)
            self.derivations += 1 if weight < 0 else -1

    def _negative(self, rows: Iterable[Row]) -> dict[Row, int]:
        """Return the rows that lost more well-founded derivations than they had."""
        return {row: n for row in rows if (n := self.well_founded.get(row, 0)) < 0}

    def _put_back(self, left: tuple[dict[Row, int], dict[Row, int]]) -> None:
        """Restore rows that left, with the number of their well-founded derivations: zero or
        negative."""
        rows, owed = left
        self.rounds.update(rows)
        self.well_founded.update(dict.fromkeys(rows, 0))
        self.well_founded.update(owed)


def _derivation_place(derivations: Pairs, pair: Pair | None) -> int:
    """Return the place of a pair in a delta, by identity; 0 if it is None."""
    return next((i for i, other in enumerate(derivations) if other is pair), 0)

"""How often each row of a recursive relation is derived, and since which round it is there.

    support       row -> how many derivations it has from rows and inputs that are present
    rounds        row -> the round in which it was inserted; a row without one is not present
    well_founded  row -> how many derivations are from rows of earlier rounds; 1 if not listed

A derivation comes as a pair: the row, and as its weight the latest round of the recursive rows
that it is made of (the first round if there are none), negative if it vanishes. It is well-founded
for a row that is there since a later round than that.

Rows may raise when they are hashed or compared: then a derivation is counted, or it is not, and
what was counted is noted in a log, from which `RecursiveRelation.undo` takes it back.

State:  two numbers per row; a third where a row has not exactly one well-founded derivation.
Cost:   O(1) per derivation that comes or goes.
Source: derivation counts of [counting], dated as in [elastic] to tell circular support apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice, repeat
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta

GIVEN = 1
"""The round of what is derived from inputs alone."""

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
        """How many there are."""
        self.may_be_negative = False
        """Whether rows may be taken away that never were there (of tables that are not stored)."""
        self._begin()

    def _begin(self) -> None:
        self.lost: list[Row] = []
        """Rows that are there and may have no well-founded derivation any more."""
        self.depth = 0
        """How many steps those that entered last are away from what changed."""
        self._found: dict[Row, None] = {}  # supported, and not there
        self._fresh: list[Row] = []  # the same, just derived for the first time
        self._gone: dict[Row, int] = {}  # rows that are out, whose followers still have to go
        self._leaving: dict[Row, int] = {}  # the same, those whose followers are going
        self._log: list[Undo] = []
        self._entered: list[list[Row]] = []
        self._left: list[Iterable[Row]] = []
        self._is_single = False  # whether all that was derived since rows entered last is fresh
        self._known = -1  # how many rows had support then; -1 if others than fresh ones came since
        self._was_empty = not self.support
        self.vanished = 0
        """How many derivations this commit has taken away."""

    def take(self, derivations: Pairs) -> None:
        """Take in derivations that changed inputs bring, or take away."""
        self.touched += len(derivations)
        self._is_single, self._known = False, -1
        if self._fresh:  # or a row that is derived again here would enter twice
            self._found.update(dict.fromkeys(self._fresh))
            self._fresh = []
        at = None
        try:
            for at in derivations:
                self._take(*at)
        except BaseException:
            derivations = derivations[: _place(derivations, at)]
            raise
        finally:
            gone = sum([weight < 0 for _, weight in derivations])
            self.vanished += gone
            self.derivations += len(derivations) - 2 * gone
            self._note(self._take_back, derivations)

    def follow(self, derivations: Pairs) -> None:
        """Take in what follows from rows that entered or left, or derivations that all vanish."""
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
        since = self.rounds.get(row)
        supported = self.support.get(row, 0)
        if since is None:
            self._support_absent(row, supported + (1 if weight > 0 else -1))
        elif weight > 0:
            self._support_more(row, supported + 1, weight < since)
        else:
            self._support_less(row, supported - 1, -weight < since)

    def _support_absent(self, row: Row, supported: int) -> None:
        """A row that is not there has this number of derivations now: none, some, or a negative
        number."""
        if supported > 0:
            self._found[row] = None
        else:
            self._forget(row)
        if supported:
            self.support[row] = supported
        else:
            del self.support[row]

    def _support_more(self, row: Row, supported: int, is_well_founded: bool) -> None:
        well_founded = self.well_founded.get(row, 1) + is_well_founded
        if supported:
            self.support[row] = supported
        else:  # of a number that was negative in the same commit
            del self.support[row]
        if is_well_founded:
            self._or_else(row, supported - 1, well_founded)

    def _support_less(self, row: Row, supported: int, is_well_founded: bool) -> None:
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
        """Note well-founded derivations; if the row does not let itself be hashed, both numbers
        stay."""
        try:
            self._set_well_founded(row, well_founded)
        except BaseException:
            self.support[row] = supported
            raise

    def _count(self, derivations: UniformDelta) -> None:
        """Derivations from rows of this round, the latest there is: none is well-founded yet."""
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
        """Derivations that vanish. A row that loses its only one leaves at once."""
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
            if taken is at is not None:  # a row that does not let itself be hashed or compared
                support[row] = supported
            if left is at is not None and since is not None:
                rounds[row] = since
                leaving.pop(row, None)
            derivations = derivations[: _place(derivations, at)]
            raise
        finally:
            self.vanished += len(derivations)
            self.derivations -= len(derivations)
            self._note(self._take_back, derivations)
            self._put_out(leaving)
            self._gone.update(leaving)

    def _drop_only_ones(self, derivations: UniformDelta) -> None:
        """Derivations that vanish, each the only one of its row: `has_only_ones` said so."""
        rows, sinces = derivations.rows, list[int]()
        supports: list[int] = []
        self._is_single, self._known = False, -1
        try:
            supports.extend(map(self.support.pop, rows))
            sinces.extend(map(self.rounds.pop, rows, repeat(0)))
            leaving = dict(zip(rows, sinces, strict=True))
        except BaseException:  # a row that does not let itself be hashed or compared
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
        if number == 1:
            self.well_founded.pop(row, None)
        else:
            self.well_founded[row] = number

    def _forget(self, row: Row) -> None:
        """A row that is not there has no derivation any more."""
        self._found.pop(row, None)

    @property
    def has_only_ones(self) -> bool:
        """Whether each row has one derivation."""
        return self.derivations == len(self.support) and not self.may_be_negative

    def _put_out(self, leaving: dict[Row, int]) -> None:
        """Note that rows leave."""
        if leaving:
            owed = self._negative(leaving) if self.may_be_negative else {}
            self._note(self._put_back, (leaving, owed))
            self._left.append(leaving)
            if self.well_founded:
                for row in leaving:
                    self.well_founded.pop(row, None)

    def _note(self, take_back: Callable[[Any], None], what: Any) -> None:
        if not self._was_empty:
            self._log.append((take_back, what))

    def _take_back(self, derivations: Pairs) -> None:
        for row, weight in reversed(derivations):
            self._take(row, -weight)
            self.derivations += 1 if weight < 0 else -1

    def _negative(self, rows: Iterable[Row]) -> dict[Row, int]:
        """Of which rows more well-founded derivations have been taken away than there were."""
        return {row: n for row in rows if (n := self.well_founded.get(row, 0)) < 0}

    def _put_back(self, left: tuple[dict[Row, int], dict[Row, int]]) -> None:
        """Restore rows that left without a well-founded derivation, or with a negative number of
        them."""
        rows, owed = left
        self.rounds.update(rows)
        self.well_founded.update(dict.fromkeys(rows, 0))
        self.well_founded.update(owed)


def _place(derivations: Pairs, pair: Pair | None) -> int:
    return next((i for i, other in enumerate(derivations) if other is pair), 0)

"""How the rows of a recursion change, round by round, by how often and when each was derived.

    derivations   of a row, from inputs and from rows that are there
    founded       those from inputs, or from rows that came in earlier rounds
    round         in which it came; rounds are numbered through, over all flushes

    1. what changes in the inputs changes derivations of the rows that read it
    2. rows of which no founded derivation is left leave, and what they derived is derived less
    3. rows that are not there and are derived enter, in a new round; what they derive is counted

A row is there if and only if it has a founded derivation, so that rows that derive each other in a
cycle do not hold each other up. Rows that left in 2 and are still derived come back in 3.

Sound:  as `reactive/engine/operators/fixpoint`, whose invariants these are. Each derivation reads
        one recursive row, so that what a row derives is known from it alone, and all rows of a
        round can be asked together.
State:  none; what is known of rows is looked up and given back.
Cost:   O(derivations that rows that change are part of), and a look-up per round.
Source: [counting]; [elastic].
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from reactive import FixpointError
from reactive.engine.collections.zset import Row

Bag = Counter[Row]
MOST_SHOWN = 3


class Known(NamedTuple):
    """What is known of a row; its round is 0 if it is not there."""

    derivations: int
    founded: int
    round: int


NOT_THERE = Known(0, 0, 0)
_DERIVATIONS, _FOUNDED, _ROUND = range(3)


class Derivations(Protocol):
    """What derives rows of relations from one row of one of them, and what is known of rows."""

    def known(self, relation: int, rows: Iterable[Row]) -> Mapping[Row, Known]:
        """What is known of rows as of before; of those that are not there, nothing."""
        ...

    def readers(self) -> Sequence[Iterable[Row]]:
        """The rows of each relation as of before that meet a row of an input that changes; perhaps
        others."""
        ...

    def derived(self, rows: Sequence[list[Row]], *, before: bool) -> Sequence[Bag]:
        """The rows of each relation that some rows of each derive, by how often; over the inputs
        as they were or as they are."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rounds there may be, and the names of the relations, which an error tells."""

    names: tuple[str, ...]
    most: int | None


Change = tuple[Row, Known, Known]
"""A row with what was known of it and what is now."""


def followed(
    of: Derivations, seeds: Sequence[Bag], first: int, limits: Limits
) -> list[list[Change]]:
    """How what is known of the rows of each relation changes.

    Parameters
    ----------
    seeds: how the rows that are derived from inputs alone change, of each relation.
    first: the number of the first round, larger than those of all rows.

    Raises
    ------
    FixpointError: rows still come after `limits.most` rounds.
    """
    following = _Following(of, len(limits.names))
    following.inputs_change(seeds)
    following.leave()
    following.enter(first, limits)
    return following.changes()


class _Following:
    def __init__(self, of: Derivations, relations: int) -> None:
        self._of = of
        self._now: list[dict[Row, list[int]]] = [{} for _ in range(relations)]
        self._was: list[dict[Row, Known]] = [{} for _ in range(relations)]
        self._doubtful: list[set[Row]] = [set() for _ in range(relations)]
        """Rows that are there, and have or had no founded derivation left."""
        self._waiting: list[dict[Row, None]] = [{} for _ in range(relations)]
        """Rows that are not there, and are or were derived."""

    def inputs_change(self, seeds: Sequence[Bag]) -> None:
        """Count the derivations that come and go with rows of the inputs."""
        self._count(seeds, 0, 1)
        readers = [list(rows) for rows in self._of.readers()]
        for since, rows in self._by_round(readers).items():
            before = self._of.derived(rows, before=True)
            found = self._of.derived(rows, before=False)
            for bag, less in zip(found, before, strict=True):
                bag.subtract(less)
            self._count(found, since, 1)

    def leave(self) -> None:
        """Take away rows that have no founded derivation, and the derivations from them."""
        while any(self._doubtful):
            doubtful, self._doubtful = self._doubtful, [set() for _ in self._doubtful]
            pairs = zip(self._now, doubtful, strict=True)
            leaving = [[row for row in rows if _has_to_leave(now[row])] for now, rows in pairs]
            by_round = self._by_round(leaving)
            for now, rows, waiting in zip(self._now, leaving, self._waiting, strict=True):
                for row in rows:
                    now[row][_ROUND] = 0
                waiting.update(dict.fromkeys(rows))
            for since, some in by_round.items():
                self._count(self._of.derived(some, before=False), since, -1)

    def enter(self, first: int, limits: Limits) -> None:
        """Let rows enter that are derived, round after round."""
        number = first
        while True:
            waiting, self._waiting = self._waiting, [{} for _ in self._waiting]
            pairs = zip(self._now, waiting, strict=True)
            entering = [[row for row in rows if _may_enter(now[row])] for now, rows in pairs]
            if not any(entering):
                return
            if limits.most is not None and number - first >= limits.most:
                raise _endless(limits, entering)
            for now, rows in zip(self._now, entering, strict=True):
                for row in rows:
                    of = now[row]
                    of[_FOUNDED], of[_ROUND] = of[_DERIVATIONS], number
            self._count(self._of.derived(entering, before=False), number, 1)
            number += 1

    def changes(self) -> list[list[Change]]:
        """What is known now of rows, where it is something else than it was."""
        return [
            [
                (row, was[row], after)
                for row, of in now.items()
                if (after := Known(*of) if of[_ROUND] else NOT_THERE) != was[row]
            ]
            for now, was in zip(self._now, self._was, strict=True)
        ]

    def _by_round(self, rows: Sequence[list[Row]]) -> dict[int, list[list[Row]]]:
        """Rows by the round in which they came, and by relation."""
        found: dict[int, list[list[Row]]] = defaultdict(lambda: [[] for _ in self._now])
        for relation, some in enumerate(rows):
            self._look_up(relation, some)
            now = self._now[relation]
            for row in some:
                found[now[row][_ROUND]][relation].append(row)
        return found

    def _count(self, found: Sequence[Bag], since: int, sign: int) -> None:
        """Add derivations from rows that came in a round; `sign` is -1 if they go."""
        for relation, bag in enumerate(found):
            self._look_up(relation, bag)
            now, waiting = self._now[relation], self._waiting[relation]
            doubtful = self._doubtful[relation]
            for row, count in bag.items():
                of = now[row]
                of[_DERIVATIONS] += sign * count
                if not of[_ROUND]:
                    waiting[row] = None
                elif since < of[_ROUND]:
                    of[_FOUNDED] += sign * count
                    if of[_FOUNDED] < 1:
                        doubtful.add(row)

    def _look_up(self, relation: int, rows: Iterable[Row]) -> None:
        """Know rows that have not been met yet."""
        now, was = self._now[relation], self._was[relation]
        new = [row for row in rows if row not in now]
        if new:
            known = self._of.known(relation, new)
            for row in new:
                was[row] = found = known.get(row, NOT_THERE)
                now[row] = list(found)


def _has_to_leave(of: list[int]) -> bool:
    return bool(of[_ROUND]) and of[_FOUNDED] < 1


def _may_enter(of: list[int]) -> bool:
    return not of[_ROUND] and of[_DERIVATIONS] > 0


def _endless(limits: Limits, entering: Sequence[list[Row]]) -> FixpointError:
    rows = [row for some in entering for row in some]
    shown = ", ".join(f"{row!r:.60}" for row in rows[:MOST_SHOWN])
    return FixpointError(
        f"fixpoint {', '.join(map(repr, limits.names))} has not come to an end after "
        f"{limits.most} rounds\n"
        f"  rows that still arrive: {shown}{', ...' * (len(rows) > MOST_SHOWN)}\n"
        "  bound what the step makes of a row, or raise max_rounds="
    )

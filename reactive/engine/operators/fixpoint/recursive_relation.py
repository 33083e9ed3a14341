"""Rows of a recursive relation: all derived rows, or the best row of each key.

Recursive relation: decide by their derivations which rows enter and leave.

Invariants, between two calls
-----------------------------
1. A present row has a well-founded derivation, or is in `lost`. So each has a proof from inputs
   alone, by induction over the rounds: rows that support each other in a cycle are not all
   well-founded.
2. Rounds are dates of arrival, not distances. A new derivation changes nothing but a count.
3. `support` counts all derivations; a row that left and is still supported can enter again
   in the same commit.

State:  that of `derivations.py`.
Cost:   O(1) per row that enters or leaves.
Source: docs/recursion.md.

Subsuming relation: keep the best row of each key; the other rows wait.

    entries   row -> its rank and key, for all supported rows
    groups    key -> the entries of its rows, the best one first
    chosen    key -> the row that is in the relation

Rows enter best first over all keys, as in Dijkstra's algorithm: if no row leads to a better one
than itself, each key is decided once. A dominated row leaves first, with all rows that depend on
it, before the better row enters. If the better row was derived from the dominated one, it leaves
too; the dominated row then returns and stays, without being shown.

State:  that of `RecursiveRelation`, and an entry for each row that waits or is present.
Cost:   O(log rows) per derived row, as long as groups are small.
Source: superior functions: Knuth, *A Generalization of Dijkstra's Algorithm*, 1977.
"""

from __future__ import annotations

import sys
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from heapq import heappop, heappush
from itertools import compress, islice, repeat
from typing import Any, Self

from reactive.engine.collections.index import NOTHING
from reactive.engine.collections.sorting import Rank, ranker
from reactive.engine.collections.zset import Pair, Row, UniformDelta, canonical, consolidate
from reactive.engine.operators.aggregate import State, compress_constant, expand_constant
from reactive.engine.operators.fixpoint.derivations import GIVEN, Derivations


class RecursiveRelation(Derivations):
    """One relation of a fixpoint.

    >>> relation = RecursiveRelation()
    >>> relation.take([("b", GIVEN), ("a", GIVEN)])
    >>> relation.enter(2, 0), relation.lost
    (['b', 'a'], [])
    >>> relation.take([("a", -GIVEN), ("b", -GIVEN), ("b", 7)])
    >>> relation.leave(), list(relation.rounds), relation.enter(8, 0)
    ([('a', -2), ('b', -2)], [], ['b'])
    """

    __slots__ = ()

    @property
    def is_losing(self) -> bool:
        """True if rows have to leave before others may enter."""
        return bool(self.lost or self._gone)

    def enter(self, now: int, depth: int) -> list[Row]:
        """Insert all supported rows that are not present, and return them.

        `depth` is the depth of the rows that the new rows were derived from.
        """
        rows = self._fresh
        if self._found:
            rows = [*self._found, *self._fresh]
        if rows:
            self._found, self._fresh = {}, []
            self.depth = depth + 1
            self._enter(rows, now)
        return rows

    def _enter(self, rows: list[Row], now: int) -> None:
        """Insert absent rows in round `now`, with the numbers of their derivations."""
        try:
            self.rounds.update(zip(rows, repeat(now), strict=False))
        finally:
            self._note(self._take_out, (rows, now))
        if not self._is_single:
            self.well_founded.update([pair for pair in self._supports(rows) if pair[1] != 1])
        self._is_single, self._known = True, len(self.support)
        self._entered.append(rows)

    def _supports(self, rows: list[Row]) -> Iterable[tuple[Row, int]]:
        """Return the new rows with their numbers of derivations, in any order."""
        support = self.support
        if self._known >= 0:  # the new rows are the last keys
            return islice(reversed(support.items()), len(rows))
        return zip(rows, map(support.__getitem__, rows), strict=True)

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Remove all rows without a well-founded derivation; return them with their rounds.

        If no row has several derivations, rounds are not needed, and left out if `dated` is False.
        Rows that are still supported may enter again, after all rows that depend on them have left.
        """
        lost, self.lost = self.lost, []
        self._is_single, self._known = False, -1
        rounds, well_founded = self.rounds, self.well_founded
        self._leaving, self._gone = self._gone, {}
        if self._fresh:
            self._found.update(dict.fromkeys(self._fresh))
            self._fresh = []
        if lost:
            more = {
                row: rounds[row] for row in lost if well_founded.get(row, 1) < 1 and row in rounds
            }
            self._found.update([(row, None) for row in more if self.support.get(row, 0) > 0])
            self._put_out(more)
            for row in more:
                del rounds[row]
            self._leaving.update(more)
        if not dated:
            return UniformDelta(list(self._leaving), -GIVEN)
        return [(row, -since) for row, since in self._leaving.items()]

    def since(self, row: Row) -> int:
        """Return the round of a row that is present, or was among the last to leave."""
        found = self.rounds.get(row)
        return self._leaving[row] if found is None else found

    @property
    def shown(self) -> Mapping[Row, object]:
        """The rows of the relation, as other operators see them."""
        return self.rounds

    def net(self, moved: Sequence[Pair]) -> Sequence[Pair]:
        """Return the net change of the shown rows; `moved` are the rows that entered or left."""
        return moved

    def moved_rows(self) -> Sequence[Pair]:
        """Return the rows that entered and left in this commit."""
        entered = self._entered
        came = entered[0] if len(entered) == 1 else [row for rows in entered for row in rows]
        if not self._left:
            return UniformDelta(came, 1) if came else ()
        went = [row for rows in self._left for row in rows]
        if not came:
            return UniformDelta(went, -1)
        return consolidate([*UniformDelta(went, -1), *UniformDelta(came, 1)])

    def undo(self) -> None:
        """Undo the commit."""
        if self._was_empty:
            self.derivations = 0
            for state in (self.support, self.rounds, self.well_founded):
                state.clear()
        log, self._log = self._log, []
        for take_back, what in reversed(log):
            take_back(what)
        self.commit()

    def set_aside(self) -> Self:
        """Empty the relation; return a copy of its previous state, with its undo log."""
        before = copy(self)
        self._empty(before)
        self._begin()
        return before

    def _empty(self, before: Any) -> None:
        """Replace the state by an empty one; `before` keeps the old state."""
        before.rounds = dict(self.rounds)
        self.rounds.clear()  # cleared in place, because views read it
        self.support, self.well_founded, self.derivations = {}, {}, 0

    def bring_back(self, before: Self) -> None:
        """Restore the state before the commit, from what `set_aside` returned."""
        rounds, touched = self.rounds, self.touched
        for each in type(self).__mro__:
            for name in getattr(each, "__slots__", ()):
                setattr(self, name, getattr(before, name))
        self.rounds, self.touched = rounds, touched
        replace_contents(rounds, before.rounds)
        self.undo()

    def commit(self) -> None:
        """Drop the undo log."""
        self._begin()

    def state(self) -> State | None:
        """Return the rows with rounds and derivations; None if a number may be negative."""
        rows = list(self.rounds)
        if self.may_be_negative or len(self.support) != len(rows):
            return None
        supports = list(map(self.support.__getitem__, rows))
        well_founded = self.well_founded
        return {
            "rows": rows,
            "rounds": compress_constant(list(self.rounds.values())),
            "supports": compress_constant(supports),
            "well_founded": compress_constant(list(map(well_founded.get, rows, repeat(1))))
            if well_founded
            else 1,
            "derivations": self.derivations,
        }

    def show(self, state: State) -> None:
        """Load the rows of a stored state, and nothing else; the relation was empty."""
        rows = state["rows"]
        self.rounds.update(zip(rows, expand_constant(state["rounds"], len(rows)), strict=True))

    def restore(self, state: State) -> None:
        """Load the rest of a stored state, whose rows are already shown."""
        rows = state["rows"]
        self.support = dict.fromkeys(self.rounds, 1)  # from `rounds`: this hashes no row
        self.well_founded = {}
        for held, counts in (
            (self.support, state["supports"]),
            (self.well_founded, state["well_founded"]),
        ):
            if counts != 1:
                pairs = zip(rows, expand_constant(counts, len(rows)), strict=True)
                held.update([pair for pair in pairs if pair[1] != 1])
        self.derivations = state["derivations"]
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries."""
        return len(self.rounds), sum(
            map(sys.getsizeof, (self.support, self.rounds, self.well_founded))
        )

    def _take_out(self, came: tuple[list[Row], int]) -> None:
        """Undo `_enter`: remove the rows that are present since this round."""
        rows, now = came
        for row in rows:
            if self.rounds.get(row) == now:
                del self.rounds[row]
                self.well_founded.pop(row, None)


def replace_contents(rows: dict[Row, Any], others: Mapping[Row, Any]) -> None:
    """Replace the contents of `rows` by a copy of `others`."""
    rows.clear()
    rows.update(others)


Entry = tuple[Any, Any, Row, Any]
"""Value, tie, row and key."""


class SubsumingRelation(RecursiveRelation):
    """Relation that admits one row per key.

    >>> relation = SubsumingRelation(by=lambda row: row[0], value=lambda row: row[1], largest=False)
    >>> relation.take([(("a", 5), 1), (("a", 3), 1), (("b", 4), 1)])
    >>> relation.enter(2, 0), relation.enter(3, 1)
    ([('a', 3)], [('b', 4)])
    """

    __slots__ = (
        *("_beaten", "_born", "_by", "_changed", "_open", "_rank", "_shows", "_was_beaten"),
        *("chosen", "entries", "groups"),
    )

    def __init__(
        self, *, by: Callable[[Row], Any], value: Callable[[Row], Any], largest: bool
    ) -> None:
        self._by = by
        self._rank: Callable[[Row], Rank] = ranker(value, largest=largest)
        self.entries: dict[Row, Entry] = {}
        self.groups: dict[Any, list[Entry]] = {}
        self.chosen: dict[Any, Row] = {}
        self._shows: dict[Row, None] = {}
        super().__init__()

    def _begin(self) -> None:
        """Reset what is recorded of one commit, the candidates of each key included."""
        super()._begin()
        self._open: list[tuple[Any, int, Entry]] = []  # a heap of possible best entries
        self._beaten: list[Row] = []
        self._was_beaten: dict[Row, None] = {}
        self._born: dict[Row, int] = {}
        self._changed: list[Pair] = []  # changes of the shown rows

    @property
    def shown(self) -> Mapping[Row, object]:
        return self._shows

    def enter(self, now: int, depth: int) -> list[Row]:
        """Insert the best rows that are not present; none if other rows must leave first."""
        self._arrange(depth)
        while best := self._pop_best():
            self._beaten = [row for row in map(self._dominated_by, best) if row is not NOTHING]
            if self._beaten:
                for entry in best:
                    self._push(entry)
                return []
            rows = [row for _, _, row, _ in best if row not in self.rounds]
            if rows:
                self._is_single, self._known = False, -1
                self._enter(rows, now)
                self.depth = max(self._born.get(row, 1) for row in rows)
            for _, _, row, key in best:
                self._choose(key, row)
            if rows:
                return rows
        return []

    def _dominated_by(self, entry: Entry) -> Row:
        """Return the row that must leave before the best row of its key enters.

        Return NOTHING if that row has left before, and returned because no better row exists
        without it.
        """
        row = self.chosen.get(entry[3], NOTHING)
        return NOTHING if row in self._was_beaten else row

    def net(self, moved: Sequence[Pair]) -> Sequence[Pair]:
        return consolidate(self._changed)

    def undo(self) -> None:
        """Undo the commit; a relation that was empty is cleared as a whole."""
        if self._was_empty:
            for state in (self.entries, self.groups, self.chosen, self._shows):
                state.clear()
        super().undo()

    def _empty(self, before: Any) -> None:
        """Replace the state by an empty one, `_shows` in place; `before` keeps the old state."""
        super()._empty(before)
        before._shows = dict(self._shows)
        self._shows.clear()
        self.entries, self.groups, self.chosen = {}, {}, {}

    def bring_back(self, before: Self) -> None:
        """Restore the state before the commit; `_shows` stays one object, because views read it."""
        shows = self._shows
        replace_contents(shows, before._shows)
        before._shows = shows
        super().bring_back(before)

    def state(self) -> State | None:
        """Return the derived rows with derivations and rounds (0 if not present), and which are
        shown.

        Return None if a row may have a negative number of derivations.
        """
        if self.may_be_negative:
            return None
        rows = list(self.support)
        return {
            "rows": rows,
            "supports": compress_constant(list(self.support.values())),
            "rounds": compress_constant(list(map(self.rounds.get, rows, repeat(0)))),
            "well_founded": compress_constant(list(map(self.well_founded.get, rows, repeat(1)))),
            "shown": compress_constant([row in self._shows for row in rows]),
            "derivations": self.derivations,
        }

    def show(self, state: State) -> None:
        """Load the shown rows of a stored state; the relation was empty."""
        rows = state["rows"]
        shown = compress(rows, expand_constant(state["shown"], len(rows)))
        self._shows.update(dict.fromkeys(shown))

    def restore(self, state: State) -> None:
        """Load the rest of a stored state, whose rows are already shown."""
        rows, length = state["rows"], len(state["rows"])
        rounds, supports, well_founded = (
            expand_constant(state[name], length) for name in ("rounds", "supports", "well_founded")
        )
        self.support = dict(zip(rows, supports, strict=True))
        replace_contents(self.rounds, {row: at for row, at in zip(rows, rounds, strict=True) if at})
        pairs = zip(rows, well_founded, strict=True)
        self.well_founded = {row: number for row, number in pairs if number != 1}
        self.entries, self.groups, self.chosen = {}, {}, {}
        for row in rows:
            self._insert((*self._rank(row), row, canonical(self._by(row))))
        self.chosen = {self.entries[row][3]: row for row in self._shows}
        self.derivations = state["derivations"]
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """Return the number of rows, and the bytes of the dictionaries, groups and entries."""
        rows, size = super().footprint()
        states = (self.entries, self.groups, self.chosen, self._shows, *self.groups.values())
        entry = sys.getsizeof((0, 0, 0, 0))
        return rows, size + sum(map(sys.getsizeof, states)) + entry * len(self.entries)

    @property
    def is_losing(self) -> bool:
        return super().is_losing or bool(self._beaten)

    @property
    def has_only_ones(self) -> bool:
        return False

    def leave(self, *, dated: bool = True) -> Sequence[Pair]:
        """Remove rows without a well-founded derivation, and beaten rows; ignores `dated`."""
        pairs = super().leave()
        beaten = {row: self.rounds[row] for row in self._beaten if row in self.rounds}
        self._beaten = []
        self._note(
            self._restore_well_founded, [(row, self.well_founded.get(row, 1)) for row in beaten]
        )
        self._put_out(beaten)
        for row in beaten:
            del self.rounds[row]
        self._leaving.update(beaten)
        self._was_beaten.update(dict.fromkeys(beaten))
        self._born.update(dict.fromkeys(beaten, self.depth + 1))
        return [*pairs, *((row, -since) for row, since in beaten.items())]

    def _put_out(self, leaving: dict[Row, int]) -> None:
        """Record that rows leave, and push the next best row of each of their keys."""
        super()._put_out(leaving)
        for row in leaving:
            _, _, row, key = self.entries[row]
            if self.chosen.get(key, NOTHING) is row:
                self._choose(key, NOTHING)
            if self.support.get(row, 0) < 1:
                self._remove(row)
            self._open_group(key)

    def _forget(self, row: Row) -> None:
        """Forget an absent row without derivations; push the best row left of its key."""
        super()._forget(row)
        if row in self.entries:
            key = self.entries[row][3]
            self._remove(row)
            self._open_group(key)

    def _arrange(self, depth: int) -> None:
        """Insert the derived rows into their groups."""
        for row in [*self._found, *self._fresh]:
            if row not in self.entries:
                key = canonical(self._by(row))
                self._insert((*self._rank(row), row, key))
                self._note(self._discard, row)
                self._born[row] = depth + 1
            self._open_group(self.entries[row][3])
        self._found, self._fresh = {}, []

    def _pop_best(self) -> list[Entry]:
        """Remove the best entries of all open keys from the heap, and return all that tie."""
        best: dict[Any, Entry] = {}
        while self._open:
            value, _, entry = self._open[0]
            if best and next(iter(best.values()))[0] < value:
                break
            heappop(self._open)
            if self._is_open(entry):
                best[entry[3]] = entry
        return list(best.values())

    def _is_open(self, entry: Entry) -> bool:
        """Return True if an entry is the best of its key, and not chosen."""
        _, _, row, key = entry
        group = self.groups.get(key)
        return group is not None and group[0] is entry and self.chosen.get(key, NOTHING) is not row

    def _open_group(self, key: Any) -> None:
        """Push the best entry of a key to the heap, if it is not chosen."""
        group = self.groups.get(key)
        if group and self._is_open(group[0]):
            self._push(group[0])

    def _push(self, entry: Entry) -> None:
        heappush(self._open, (entry[0], id(entry), entry))

    # Each change below is made whole or not at all, even if a row or key raises in `__hash__`.

    def _insert(self, entry: Entry) -> None:
        """Insert an entry into the sorted group of its key."""
        group = self.groups.setdefault(entry[3], [])
        try:
            place = bisect(group, entry)
            self.entries[entry[2]] = entry
        except BaseException:
            if not group:
                del self.groups[entry[3]]
            raise
        group.insert(place, entry)

    def _remove(self, row: Row) -> None:
        """Remove the entry of a row, and log that for undo."""
        entry = self.entries[row]
        self._discard(row)
        self._note(self._insert, entry)

    def _discard(self, row: Row) -> None:
        """Remove the entry of a row, and its group if that is empty then; writes no undo log."""
        entry = self.entries[row]
        group = self.groups[entry[3]]
        del self.entries[row]
        if len(group) > 1:
            del group[next(place for place, other in enumerate(group) if other is entry)]
            return
        try:
            del self.groups[entry[3]]
        except BaseException:
            self.entries[row] = entry
            raise

    def _choose(self, key: Any, row: Row) -> None:
        """Show `row` for its key; NOTHING shows none."""
        before = self.chosen.get(key, NOTHING)
        self._note(self._chose, (key, before))
        self._chose((key, row))
        self._changed += [(before, -1)] if before is not NOTHING else []
        self._changed += [(row, 1)] if row is not NOTHING else []

    def _chose(self, choice: tuple[Any, Row]) -> None:
        """Show the row of `(key, row)` for its key, or none if NOTHING; writes no undo log."""
        key, row = choice
        before = self.chosen.pop(key, NOTHING)
        if before is not NOTHING:
            self._shows.pop(before, None)
        if row is not NOTHING:
            self.chosen[key] = row
            self._shows[row] = None

    def _restore_well_founded(self, well_founded: list[tuple[Row, int]]) -> None:
        for row, number in well_founded:
            self._set_well_founded(row, number)

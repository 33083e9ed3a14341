"""Look ahead: the values that keys rise to, found without counting derivations.

A value that rises round a loop takes a round per step. Each step replaces rows, and the derivations
of the replaced rows are removed. From the fourth step of a key on, the commit looks ahead instead:

    values      key -> the join so far; derivations of smaller values are neither added nor removed
    targets     key -> its last value, when nothing rises any more

Then rounds go on as before, but a key waits until its members give its target. If all keys that may
rise wait, they depend on each other: each gets its target, as a value that no round justifies.

Sound:  a target is a hint. After the last round each key must have the join of its members.
Needs:  generated loops, and sets whose rows do not depend on each other.
State:  during the commit, a value per key that rises, and the derivations of rows of sets that are
        joined with rows of the recursion.
Cost:   a derivation per row that a step changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from reactive.engine.collections.zset import Row, UniformDelta
from reactive.engine.operators.fixpoint.growth import RoundLimit
from reactive.engine.operators.fixpoint.lattice_relation import LatticeRelation
from reactive.engine.operators.fixpoint.loops import Entering, RecursiveIndex
from reactive.engine.operators.fixpoint.rising_relation import Change, RisingRelation
from reactive.engine.operators.fixpoint.set_relation import SetRelation
from reactive.engine.runtime.interrupts import reraise_asynchronous

Relation = LatticeRelation | SetRelation
Reading = tuple[Entering, int, int | None]
"""A rule that reads a relation; the relation that it makes rows for, and the one it joins."""


class Lookahead:
    """The relations of a recursion while their values rise, without dates.

    Parameters
    ----------
    relations: those of the recursion.
    rules: by relation, the rules that read it.
    indexes: by relation, its indexes that rules join with rows of another relation.
    """

    __slots__ = ("_behind", "_indexes", "_made", "_relations", "_retracts", "_rules")

    def __init__(
        self,
        relations: Sequence[Relation],
        rules: Sequence[Sequence[Reading]],
        indexes: Sequence[Sequence[RecursiveIndex]],
    ) -> None:
        self._relations, self._rules, self._indexes = relations, rules, indexes
        self._retracts = self._retracting()
        self._made: list[tuple[list[Row], list[Row]]] = [([], []) for _ in relations]
        self._behind: list[dict[Row, bool]] = [{} for _ in relations]
        """By relation, changes that its indexes lack: True for a row that enters."""

    def _retracting(self) -> list[bool]:
        """Return for each relation whether it is a set whose rows must leave: if they are joined
        with rows of the recursion, there would be ever more pairs."""
        places = range(len(self._relations))
        are_sets = [isinstance(relation, SetRelation) for relation in self._relations]
        found = [are_sets[place] and bool(self._indexes[place]) for place in places]
        for _ in places:
            for place in places:
                heads = [head for _, head, _ in self._rules[place]]
                found[place] |= are_sets[place] and any(found[head] for head in heads)
        return found

    def find(self, limit: RoundLimit) -> None:
        """Set the targets of all relations: none if a rule raises."""
        relations, places = self._relations, range(len(self._relations))[::-1]
        changes = [
            relation.start_ahead(retracts=retracts)
            for relation, retracts in zip(relations, self._retracts, strict=True)
        ]
        is_found = moves = True
        for place in places:
            is_found &= self._pass_on(place, changes[place])
        while is_found and moves:
            if limit.next_round():
                limit.check([UniformDelta(rows, 1) for _, rows in self._made])
            moves = False
            for place in places:
                if self._made[place][0] or self._made[place][1]:
                    moves = True
                    is_found &= self._pass_on(place, self._next(place))
        for place in places:
            now, ahead = relations[place].end_ahead(is_found=is_found)
            self._note_behind(place, (ahead, now))
            self._update_indexes(place)

    def _next(self, place: int) -> Change:
        """Return the change of a relation by the rows that were made for it."""
        gone, came = self._made[place]
        self._made[place] = ([], [])
        return self._relations[place].go_ahead(gone, came, retracts=self._retracts[place])

    def _pass_on(self, place: int, change: Change) -> bool:
        """Make the rows of a change; return False if a rule raises.

        The indexes of the relation follow when a rule reads them: a pair of two changes is made
        once, with the later one.
        """
        gone, came = change
        made, retracts, behind = self._made, self._retracts, self._behind
        for _, _, other in self._rules[place]:
            if other is not None and behind[other]:
                self._update_indexes(other)
        try:
            for derive, head, _ in self._rules[place]:
                if gone and retracts[head]:
                    made[head][0].extend(derive(gone))
                if came:
                    made[head][1].extend(derive(came))
        except Exception as error:  # the rounds repeat the work, and raise if they need it
            reraise_asynchronous(error)
            return False
        finally:
            self._note_behind(place, change)
        return True

    def _note_behind(self, place: int, change: Change) -> None:
        """Note a change of a relation for its indexes, net."""
        if not self._indexes[place]:
            return
        behind = self._behind[place]
        for rows, enters in zip(change, (False, True), strict=True):
            for row in rows:
                if behind.get(row, enters) is not enters:
                    del behind[row]
                else:
                    behind[row] = enters

    def _update_indexes(self, place: int) -> None:
        """Apply the changes that the indexes of a relation lack."""
        behind, self._behind[place] = self._behind[place], {}
        gone = [(row, 1) for row, enters in behind.items() if not enters]
        came = [row for row, enters in behind.items() if enters]
        for index in self._indexes[place]:
            index.replace(gone, came)


def can_look_ahead(relations: Sequence[RisingRelation]) -> bool:
    """Return True if the relations are lattices, and sets whose rows do not keep each other."""
    return all(
        isinstance(relation, LatticeRelation | SetRelation) and not relation.falls
        for relation in relations
    )

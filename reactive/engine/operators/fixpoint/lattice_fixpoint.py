"""Fixpoint over lattices: rows of a key are replaced by rows with larger values.

    inputs --> losses: keys that may have fallen are reset --> rises, by rounds --> net changes

1. The changed inputs add and remove derivations.
2. Keys whose value is no longer justified are reset, and so are keys derived from them.
3. In each round all keys with new members rise together: derivations of their old rows are removed,
   then those of their new rows are added, and only then the receivers are looked at.

Sound:  each derivation rises, if the rows rise that it was made of. At the end each key has the
        join of its present members, else the step is not monotone, which is an error.
        A rule that reads a value together with another row (`reads_values`) may have derived a
        value from rows that it does not pair with the present one. If it loses rows, all rows that
        no round justifies are reset.
State:  that of `lattice_relation.py`.
Cost:   O(derivations of the keys that are reset or rise).
Source: docs/lattices.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reactive.engine.collections.zset import Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.fixpoint.delta_rules import BinaryRule, Circuit, Fed
from reactive.engine.operators.fixpoint.fixpoint import MOST_SHOWN, Fixpoint
from reactive.engine.operators.fixpoint.growth import RoundLimit, shown_row
from reactive.engine.operators.fixpoint.lattice_relation import LatticeRelation
from reactive.engine.operators.fixpoint.lookahead import Lookahead, can_look_ahead
from reactive.engine.operators.fixpoint.loops import RISEN, Derived, Moved, RecursiveIndex, dated
from reactive.engine.operators.fixpoint.rising_relation import Moves, RisingRelation
from reactive.errors import FixpointError

Reader = tuple[Any, RisingRelation | None]
"""A rule that reads a relation, and the relation that it joins with it, if it does."""


@dataclass(slots=True)
class RulesOfRelation:
    """The rules that read a relation, as left and as right side, and its indexes that follow."""

    left: list[Reader]
    right: list[Reader]
    indexes: list[RecursiveIndex]
    is_alone: bool = True
    """True if no rule joins the relation with itself."""


class LatticeFixpoint(Fixpoint):
    """Emit one delta per named relation, of which at least one is over a lattice."""

    __slots__ = ("_checks_step", "_fallen", "_relations", "_rules")

    def __init__(self, circuit: Circuit) -> None:
        super().__init__(circuit)
        self._rules: list[RulesOfRelation] | None = None
        self._fallen: list[tuple[RisingRelation, Row]] = []
        self._checks_step = False
        """True if the step is checked to be monotone: in strict mode, unless rows of sets leave for
        a while."""
        self._relations: list[RisingRelation] = circuit.relations  # type: ignore[assignment]

    def _take(self, inputs: Sequence[Sequence[Any]], fed: Sequence[Fed]) -> None:
        super()._take(inputs, fed)
        reading = self._circuit.value_rules
        if reading and any(id(rule) in reading and inputs[port] for rule, port in fed):
            self._reset_risen()

    def _reset_risen(self) -> None:
        for relation in self._relations:
            relation.reset_risen()

    def _let_leave(self) -> None:
        """Let the rows of each relation leave in turn, repeatedly."""
        relations = self._relations
        while self._is_losing():
            for place, relation in enumerate(relations):
                if relation.is_losing:
                    leaving = relation.leave()
                    if leaving:
                        self._pass_on_losses(place, leaving)

    def _pass_on_losses(self, place: int, leaving: Sequence[Pair]) -> None:
        """Remove the derivations of rows that leave, as `_derive`."""
        self._ask_about([leaving if at == place else () for at in range(len(self._relations))])
        rules = self._rules_of_relations()[place]
        out = [(rule.head, rule.from_left(leaving)) for rule, _ in rules.left]
        for index in rules.indexes:
            index.change(leaving)
        out += [(rule.head, rule.from_right(leaving)) for rule, _ in rules.right]
        if self._is_measured:
            self._ask(sum([len(derivations) for _, derivations in out]))
        for head, derivations in out:
            if derivations:
                self._relations[head].follow(derivations)
        reading = self._circuit.value_rules
        if not reading or self._relations[0].is_rising:
            return
        if any(id(rule) in reading for rule, _ in (*rules.left, *rules.right)):
            self._reset_risen()

    def _settle(self) -> None:
        """Let values fall and rise until nothing changes."""
        self._let_leave()
        relations = self._relations
        if not _any_moves(relations):
            self._check_settled()
            return
        for relation in relations:
            relation.is_rising = True
        falls = any(relation.falls for relation in relations)
        self._checks_step = self._circuit.strict and not falls
        places = range(len(relations))[::-1]  # those that the user named are the last
        limit = RoundLimit(self._circuit, self._endless)
        looks = not falls
        while _any_moves(relations):
            if limit.next_round():
                limit.check([UniformDelta(r.fresh_rows(), 1) for r in relations])
            for place in places:
                if falls:
                    self._let_leave()
                if relations[place].has_fresh:
                    self._rise(place)
                    if looks and relations[place].climbs:
                        looks = False
                        if self._can_look_ahead():
                            self._look_ahead(limit.copy())
        self._check_settled()

    def _can_look_ahead(self) -> bool:
        """Return True if the relations may look ahead; in strict mode each step is checked."""
        circuit = self._circuit
        if circuit.strict or circuit.value_rules or not can_look_ahead(self._relations):
            return False
        return all(rules.is_alone for rules in self._rules_of_relations())

    def _look_ahead(self, limit: RoundLimit) -> None:
        """Find the last values of keys that rise in many steps, if all rules have loops."""
        every = self._rules_of_relations()
        places = {id(relation): place for place, relation in enumerate(self._relations)}
        found = [
            [
                (rule.entering(side), rule.head, None if other is None else places[id(other)])
                for side, some in enumerate((rules.left, rules.right))
                for rule, other in some
            ]
            for rules in every
        ]
        if all(derive is not None for rules in found for derive, _, _ in rules):
            indexes = [rules.indexes for rules in every]
            Lookahead(self._relations, found, indexes).find(limit)  # type: ignore[arg-type]

    def _rise(self, place: int) -> None:
        """Replace the rows of a relation whose values rise, with their derivations."""
        now = self._round = self._round + 1
        relation = self._relations[place]
        removed, entering, risen = relation.rise(now)
        if removed and self._checks_step:
            self._fallen = []
            self._replace(place, (list(removed), entering, risen), now)
            self._check_monotone(removed, [*entering, *risen])
        else:
            self._replace(place, (removed, entering, risen), now)

    def _replace(self, place: int, moves: Moves, now: int) -> None:
        """Insert the rows of a rise, and pass all of them on."""
        removed, entering, risen = moves
        relation = self._relations[place]
        relation.put(entering, now)
        if self._rules_of_relations()[place].is_alone and not relation.restamps:
            relation.put(risen, RISEN)
            if removed or entering or risen:
                self._pass_on(place, (removed, entering, risen, now))
            return
        if removed:
            self._pass_on(place, (removed, (), (), now))
        if entering:
            self._pass_on(place, ((), entering, (), now))
        if risen:
            relation.put(risen, RISEN)
            self._pass_on(place, ((), (), risen, now))

    def _pass_on(self, place: int, moves: Moved) -> None:
        """Apply the derivations of rows that leave and that enter while values rise, as `_derive`.

        All derivations are made before the first one is counted.
        """
        rules = self._rules_of_relations()[place]
        gone, came, late, now = moves
        out: list[tuple[int, Sequence[Pair], Sequence[Row]]] = []
        for rule, other in rules.left:
            is_later = other is not None and other.risen > 0
            made = rule.derive_moves(0, moves, later=is_later)
            if made is None:
                made = _derive_slowly(rule.from_left, other, moves)
            out.append((rule.head, *made))
        for recursive_index in rules.indexes:
            recursive_index.replace(gone, [*came, *late] if late else came)
        for rule, other in rules.right:
            is_later = other is not None and other.risen > 0
            made = rule.derive_moves(1, moves, later=is_later)
            if made is None:
                made = _derive_slowly(rule.from_right, other, moves)
            out.append((rule.head, *made))
        relations = self._relations
        for head, lost, rows in out:
            if lost:
                relations[head].follow(lost)
            if rows:
                relations[head].follow(UniformDelta(rows, now))
        if self._checks_step:
            heads = [relations[head] for head, _, _ in out]
            if all(isinstance(relation, LatticeRelation) for relation in heads):
                self._fallen += [
                    (relations[head], row)
                    for head, lost, _ in out
                    for row, since in lost
                    if since < 0
                ]

    def _rules_of_relations(self) -> list[RulesOfRelation]:
        """Return what reads each relation."""
        if self._rules is None:
            circuit = self._circuit
            self._rules = [RulesOfRelation([], [], []) for _ in circuit.relations]
            for rule, of in circuit.left:
                other = _other_relation(rule, is_left=True)
                self._rules[of].left.append((rule, other))
                self._rules[of].is_alone &= other is not circuit.relations[of]
            for binary, of in circuit.right:
                self._rules[of].right.append((binary, _other_relation(binary, is_left=False)))
            for index in circuit.recursive_indexes:
                if index.follows:
                    self._rules[circuit.relations.index(index.relation)].indexes.append(index)
        return self._rules

    def _check_monotone(self, removed: Sequence[Pair], came: Sequence[Row]) -> None:
        """Raise `FixpointError` if the step makes less of the rows that replace smaller ones."""
        for relation, row in self._fallen:
            if isinstance(relation, LatticeRelation) and not relation.covers(row):
                name = self._circuit.names[0]
                old = ", ".join([shown_row(row) for row, _ in removed[:MOST_SHOWN]])
                new = ", ".join(map(shown_row, came[:MOST_SHOWN]))
                raise FixpointError(
                    f"fixpoint {name!r} is not monotone: of {old} it makes {shown_row(row)}\n"
                    f"  of {new} it makes nothing as large\n"
                    "  transaction rolled back: no table or view changed\n"
                    "  a larger value must lead to as large or larger values, never to fewer rows"
                )
        self._fallen = []

    def _check_settled(self) -> None:
        """Raise `FixpointError` if the value of a key is not the join of its members."""
        for place, relation in enumerate(self._relations):
            for row, given in relation.unsettled():
                names = self._circuit.names
                name = names[place] if place < len(names) else names[0]
                made = "no row of that key" if given is None else f"{given!r:.60}"
                raise FixpointError(
                    f"fixpoint {name!r} is not monotone: it has {row!r:.80}\n"
                    f"  of the rows as they are now, the step makes {made}\n"
                    "  transaction rolled back: no table or view changed\n"
                    "  a larger value must lead to as large or larger values, never to fewer rows"
                )
            relation.sweep()


def _any_moves(relations: Sequence[RisingRelation]) -> bool:
    """Return True if a row of some relation may enter or leave; if all wait, they wait no more."""
    for relation in relations:
        if relation.has_fresh or relation.is_losing:
            return True
    forced = [relation.force() for relation in relations]
    return any(forced)


def _other_relation(rule: Any, *, is_left: bool) -> RisingRelation | None:
    """Return the relation on the other side of a join; None if there is none."""
    if not isinstance(rule, BinaryRule):
        return None
    other = rule.right if is_left else rule.left
    return other.relation if isinstance(other, RecursiveIndex) else None  # type: ignore[return-value]


def _derive_slowly(
    derive: Callable[[Pairs], Pairs], other: RisingRelation | None, moves: Moved
) -> Derived:
    """Return the derivations of changed rows; a partner of a later round dates new ones."""
    gone, came, late, now = moves
    lost = derive(gone) if gone else ()
    if other is None:
        return [*lost, *derive(dated(came, late, now))], ()
    new = derive([(row, -round_) for row, round_ in dated(came, late, now)])
    return [*lost, *[(row, -since) for row, since in new]], ()

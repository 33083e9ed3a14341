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

from collections.abc import Sequence
from typing import Any

from reactive.engine.collections.zset import Pairs, UniformDelta
from reactive.engine.operators.fixpoint.delta_rules import BinaryRule, Circuit, Fed
from reactive.engine.operators.fixpoint.fixpoint import Fixpoint
from reactive.engine.operators.fixpoint.loops import RecursiveIndex
from reactive.engine.operators.fixpoint.rising_relation import RISEN, RisingRelation
from reactive.errors import FixpointError


class LatticeFixpoint(Fixpoint):
    """Emit one delta per named relation, of which at least one is over a lattice."""

    __slots__ = ("_following", "_relations")

    def __init__(self, circuit: Circuit) -> None:
        super().__init__(circuit)
        self._following: list[tuple[RecursiveIndex, int]] | None = None
        self._relations: list[RisingRelation] = circuit.relations  # type: ignore[assignment]

    def _take(self, inputs: Sequence[Sequence[Any]], fed: Sequence[Fed]) -> None:
        super()._take(inputs, fed)
        reading = self._circuit.value_rules
        if any(id(rule) in reading and inputs[port] for rule, port in fed):
            self._reset_risen()

    def _reset_risen(self) -> None:
        for relation in self._relations:
            relation.reset_risen()

    def _derive(self, changed: Sequence[Pairs], *, is_loss: bool = False) -> None:
        super()._derive(changed, is_loss=is_loss)
        if not is_loss or self._relations[0].is_rising or not self._circuit.value_rules:
            return
        circuit = self._circuit
        rules = [*circuit.left, *circuit.right]
        if any(id(rule) in circuit.value_rules and changed[of] for rule, of in rules):
            self._reset_risen()

    def _settle(self) -> None:
        """Let values fall and rise until nothing changes."""
        self._let_leave()
        for relation in self._relations:
            relation.is_rising = True
        most, number = self._circuit.max_rounds, 0
        while True:
            self._let_leave()
            now = self._round = self._round + 1
            moves = [relation.rise(now) for relation in self._relations]
            removed = [move[0] for move in moves]
            if any(removed):
                super()._derive(removed)
            for place, since in ((1, now), (2, RISEN)):
                rows = [move[place] for move in moves]
                if any(rows):
                    self._enter(rows, since)
            if any(any(move) for move in moves):
                number += 1
                if most is not None and number > most:
                    found = [UniformDelta([*move[1], *move[2]], now) for move in moves]
                    raise self._endless(found)
            elif not self._is_losing():
                break
        self._check_settled()

    def _enter(self, rows: list[list[Any]], since: int) -> None:
        """Insert rows, and add the derivations from them."""
        for relation, some in zip(self._relations, rows, strict=True):
            relation.put(some, since)
        changed = [UniformDelta(some, since) for some in rows]
        circuit = self._circuit
        out = [
            (rule.head, self._from(rule, rule.from_left, changed[of], is_left=True))
            for rule, of in circuit.left
            if changed[of]
        ]
        for recursive_index, of in self._following_indexes():
            if changed[of]:
                recursive_index.change(changed[of])
        out += [
            (rule.head, self._from(rule, rule.from_right, changed[of], is_left=False))
            for rule, of in circuit.right
            if changed[of]
        ]
        for head, derivations in out:
            circuit.relations[head].follow(derivations)

    def _following_indexes(self) -> list[tuple[RecursiveIndex, int]]:
        """Return the indexes that follow the rounds, with the places of their relations."""
        if self._following is None:
            circuit = self._circuit
            self._following = [
                (index, circuit.relations.index(index.relation))
                for index in circuit.recursive_indexes
                if index.follows
            ]
        return self._following

    def _from(self, rule: Any, derive: Any, delta: UniformDelta, *, is_left: bool) -> Pairs:
        """Return the derivations of new rows; a partner of a later round dates them."""
        other = None
        if isinstance(rule, BinaryRule):
            other = rule.right if is_left else rule.left
        if (
            delta.weight == RISEN
            or not isinstance(other, RecursiveIndex)
            or not other.relation.risen  # type: ignore[attr-defined]
        ):
            return derive(delta)  # type: ignore[no-any-return]
        pairs = derive([(row, -delta.weight) for row in delta.rows])
        return [(row, -weight) for row, weight in pairs]

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

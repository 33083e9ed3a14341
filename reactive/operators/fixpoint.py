"""Fixpoint: relations that are what their clauses derive from them and from inputs.

                +-----------------------------+
                v                             |
    inputs --> ways --> derivations --> facts +--> net changes
                                              |
                       rows that enter or leave in this round

A commit goes through rounds, in each of which some rows enter or leave and the derivations that
follow are counted, until nothing changes:

1. The changed inputs bring derivations, and take some away.
2. While rows have lost their last firm derivation, they leave, with what was derived from them.
   This ends before any row enters: no row comes back by support that is about to go.
3. Rows that are supported and not there enter, as of a new round; those that left in 2 for want of
   a firm derivation among them, if something else supports them.

What was there before the change and is not affected is never looked at.

State:  for every row two numbers (`recursion/facts.py`); an index per recursive side of a join.
Cost:   O(derivations of the rows that enter or leave, and of those that changed inputs make).
Source: docs/recursion.md; [dbsp] section 5; [counting]; [elastic].
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reactive.errors import FixpointError
from reactive.recursion.facts import GIVEN, Facts
from reactive.recursion.premise import Premise
from reactive.recursion.ways import Copied, Given, Lone, Paired
from reactive.zset import Batch, Pair, Pairs

MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Side:
    """What a way reads on one side: a premise by its number, or an input by its port."""

    premise: int | None
    port: int | None


@dataclass(slots=True)
class Circuit:
    """What a fixpoint is made of: its relations, and the ways that lead from rows to rows."""

    facts: list[Facts]
    names: tuple[str, ...]
    max_rounds: int
    premises: list[Premise] = field(default_factory=list)
    given: list[tuple[Given, int]] = field(default_factory=list)
    copied: list[Copied] = field(default_factory=list)
    paired: list[tuple[Paired | Lone, Side, Side]] = field(default_factory=list)

    def wiring(self) -> Hashable:
        """Which way leads from where to where."""
        return (
            tuple((way.head, port) for way, port in self.given),
            tuple((way.head, way.relation) for way in self.copied),
            tuple((way.head, left, right) for way, left, right in self.paired),
        )


class Fixpoint:
    """Gives out one delta per relation that has a name."""

    __slots__ = ("_circuit", "_round")

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._round = GIVEN

    @property
    def touched(self) -> int:
        circuit = self._circuit
        ways = [way for way, _, _ in circuit.paired]
        return sum(part.touched for part in (*circuit.facts, *ways))

    def step(self, *inputs: Sequence[Any]) -> Sequence[Sequence[Pair]]:
        self._take_inputs(inputs)
        depth = 0
        while True:
            if any(facts.is_losing for facts in self._circuit.facts):
                self._derive([facts.leave() for facts in self._circuit.facts])
                continue
            now = self._round = self._round + 1
            entering = [Batch(facts.enter(now, depth), now) for facts in self._circuit.facts]
            if any(entering):
                depth = self._depth(entering)
                self._derive(entering)
            elif not any(facts.is_losing for facts in self._circuit.facts):
                break
        deltas = [facts.net() for facts in self._circuit.facts[: len(self._circuit.names)]]
        return deltas if any(deltas) else ()

    def undo(self) -> None:
        for premise in self._circuit.premises:
            premise.undo()
        for facts in self._circuit.facts:
            facts.undo()

    def commit(self) -> None:
        for premise in self._circuit.premises:
            premise.commit()
        for facts in self._circuit.facts:
            facts.commit()

    def contents(self) -> Sequence[Sequence[Pair]]:
        return [self.rows(index) for index in range(len(self._circuit.names))]

    def rows(self, relation: int) -> Sequence[Pair]:
        """All rows of a relation."""
        return Batch(list(self._circuit.facts[relation].rounds), 1)

    def footprint(self) -> tuple[int, int]:
        sizes = [facts.footprint() for facts in self._circuit.facts]
        sizes += [premise.index_by.footprint() for premise in self._circuit.premises]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def _take_inputs(self, inputs: Sequence[Sequence[Any]]) -> None:
        circuit = self._circuit
        for way, port in circuit.given:
            if inputs[port]:
                circuit.facts[way.head].take(way.given(inputs[port]))
        for pair, left, right in circuit.paired:
            deltas = [() if s.port is None else inputs[s.port] for s in (left, right)]
            if any(deltas):
                circuit.facts[pair.head].take(pair.derived(*deltas))

    def _depth(self, entering: Sequence[Batch]) -> int:
        """How many steps the rows that enter are away from the inputs that changed."""
        facts = self._circuit.facts
        depth = max(f.depth for f, rows in zip(facts, entering, strict=True) if rows)
        if depth > self._circuit.max_rounds:
            raise self._endless(entering)
        return depth

    def _derive(self, changed: Sequence[Pairs]) -> None:
        """Take in what follows from rows that enter or leave."""
        circuit = self._circuit
        out: list[tuple[int, Sequence[Pair]]] = []
        keyed = [
            premise.change(changed[premise.relation]) if changed[premise.relation] else ()
            for premise in circuit.premises
        ]
        for copied in circuit.copied:
            if changed[copied.relation]:
                out.append((copied.head, copied.derived(changed[copied.relation])))
        for way, left, right in circuit.paired:
            deltas = [() if s.premise is None else keyed[s.premise] for s in (left, right)]
            if any(deltas):
                out.append((way.head, way.derived(*deltas)))
        for head, derivations in out:
            circuit.facts[head].take(derivations)

    def _endless(self, entering: Sequence[Batch]) -> FixpointError:
        circuit = self._circuit
        named = ", ".join(map(repr, circuit.names))
        rows = [row for batch in entering[: len(circuit.names)] for row in batch.rows]
        shown = ", ".join(f"{row!r:.60}" for row in rows[:MOST_SHOWN])
        return FixpointError(
            f"fixpoint {named} has not come to an end after {circuit.max_rounds} rounds\n"
            f"  rows that still arrive: {shown}{', ...' * (len(rows) > MOST_SHOWN)}\n"
            "  transaction rolled back: no table or view changed\n"
            "  bound what the step makes of a row, or raise max_rounds="
        )


class Output:
    """One of the relations of a fixpoint.

    It has no state of its own.
    """

    __slots__ = ("_fixpoint", "_relation", "touched")

    def __init__(self, fixpoint: Fixpoint, relation: int) -> None:
        self._fixpoint = fixpoint
        self._relation = relation
        self.touched = 0

    def step(self, deltas: Sequence[Sequence[Pair]]) -> Sequence[Pair]:
        return deltas[self._relation] if deltas else ()

    def contents(self) -> Sequence[Pair]:
        return self._fixpoint.rows(self._relation)

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

State:  for every row two numbers (`fixpoint/facts.py`); an index per recursive side of a join.
Cost:   O(derivations of the rows that enter or leave, and of those that changed inputs make).
Source: docs/recursion.md; [dbsp] section 5; [counting]; [elastic].
"""

from __future__ import annotations

import gc
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any

from reactive.collections.index import KeyedPair
from reactive.collections.zset import Batch, Pair, Pairs, Row
from reactive.errors import FixpointError
from reactive.operators.fixpoint.derivations import GIVEN
from reactive.operators.fixpoint.facts import Facts
from reactive.operators.fixpoint.premise import Premise
from reactive.operators.fixpoint.ways import Copied, Given, Lone, Paired
from reactive.operators.index_by import IndexBy
from reactive.runtime.interrupts import reraise_asynchronous

MOST_SHOWN = 3
Fed = tuple[Given | Paired | Lone, int]
"""A way that an input leads into, and its port."""


@dataclass(slots=True)
class Circuit:
    """What a fixpoint is made of: its relations, and the ways that lead from rows to rows."""

    facts: list[Facts]
    names: tuple[str, ...]
    max_rounds: int
    premises: list[Premise] = field(default_factory=list)
    fed: list[Fed] = field(default_factory=list)
    left: list[tuple[Copied | Paired | Lone, int]] = field(default_factory=list)
    """Ways that a relation leads into, on the left if they have two sides, and its number."""
    indexes: dict[int, IndexBy] = field(default_factory=dict)
    """The inputs that are indexes, by port."""
    right: list[tuple[Paired, int]] = field(default_factory=list)
    """Ways that a relation leads into on the right."""

    def wiring(self) -> Hashable:
        """Which way leads from where to where."""
        ways = (self.fed, self.left, self.right)
        return tuple(tuple((way.head, source) for way, source in some) for some in ways)


class Fixpoint:
    """Gives out one delta per relation that has a name."""

    __slots__ = ("_circuit", "_round")

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._round = GIVEN

    @property
    def source(self) -> str | None:
        """The generated loops, if there are any."""
        ways = dict.fromkeys(way for way, _ in (*self._circuit.left, *self._circuit.right))
        return "\n".join(text for way in ways for text in way.sources()) or None

    @property
    def touched(self) -> int:
        circuit = self._circuit
        ways = {way for way, _ in (*circuit.left, *circuit.right)}
        facts = sum(facts.touched for facts in circuit.facts)
        return facts + sum(way.touched for way in ways)

    def step(self, *inputs: Sequence[Any]) -> Sequence[Sequence[Pair]]:
        collects = gc.isenabled()
        try:  # as `collector.paused`, which takes longer than many a step
            gc.disable()
            return self._step(inputs)
        finally:
            if collects:
                gc.enable()

    def _step(self, inputs: Sequence[Sequence[Any]]) -> Sequence[Sequence[Pair]]:
        try:
            self._take(inputs, self._circuit.fed)
            self._settle()
        except FixpointError:
            raise
        except Exception as error:
            reraise_asynchronous(error)
            if not (self._is_negated(inputs) or _is_mixed(inputs)):
                raise
            self.undo()
            self._carefully(inputs)
        return self._finished()

    def _is_negated(self, inputs: Sequence[Sequence[Any]]) -> bool:
        """Whether rows come where something of an input goes, and go where something comes."""
        return any(isinstance(way, Lone) and inputs[port] for way, port in self._circuit.fed)

    def _carefully(self, inputs: Sequence[Sequence[Any]]) -> None:
        """The same, so that no callable sees a pair of a row that leaves and one that comes.

        What goes is dealt with before what comes is there, and so is what comes to a negation, as
        it takes rows away. This takes longer where both derive the same rows, and is done only
        where something raised.
        """
        gone, came = (
            [[part for part in delta if _weight(part) * sign > 0] for delta in inputs]
            for sign in (-1, 1)
        )
        circuit = self._circuit
        negated = [(way, port) for way, port in circuit.fed if isinstance(way, Lone)]
        others = [(way, port) for way, port in circuit.fed if not isinstance(way, Lone)]
        with ExitStack() as hidden:
            for port, index in circuit.indexes.items():
                hidden.enter_context(index.without(came[port]))
            self._take_with(gone, others, [way.before(gone[port]) for way, port in negated])
            back = [[*gone[port], *_negated(came[port])] for _, port in negated]
            seeing = [way.before(keyed) for (way, _), keyed in zip(negated, back, strict=True)]
            self._take_with(came, negated, seeing)
        self._take(came, others)
        self._take(gone, negated)
        self._settle()
        self._forget_premises()  # they are told of all changes at the end

    def _take_with(
        self,
        gone: Sequence[Sequence[Any]],
        fed: Sequence[Fed],
        seeing: Sequence[AbstractContextManager[None]],
    ) -> None:
        """Deal with changes of inputs that take rows away, while negations see others."""
        with ExitStack() as seen:
            for each in seeing:
                seen.enter_context(each)
            self._take(gone, fed)
            self._let_leave()
        self._forget_premises()
        self._tell_premises()

    def _forget_premises(self) -> None:
        for premise in self._circuit.premises:
            if not premise.follows:
                premise.undo()

    def _let_leave(self) -> None:
        """Rows without a firm derivation leave, and those that so lose theirs."""
        relations = self._circuit.facts
        while self._is_losing():
            dated = not all(facts.has_only_ones for facts in relations)
            self._derive([facts.leave(dated=dated) for facts in relations])

    def _is_losing(self) -> bool:
        for facts in self._circuit.facts:  # noqa: SIM110 - a generator takes as long as the rest
            if facts.is_losing:
                return True
        return False

    def _settle(self) -> None:
        """Let rows leave and enter until nothing changes."""
        depth, relations = 0, self._circuit.facts
        while True:
            self._let_leave()
            now = self._round = self._round + 1
            entering = [Batch(facts.enter(now, depth), now) for facts in relations]
            if any(entering):
                depth = self._depth(entering)
                self._derive(entering)
            elif not self._is_losing():
                return

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
        return Batch(list(self.shown(relation)), 1)

    def shown(self, relation: int) -> Mapping[Row, object]:
        """The rows of a relation: not a copy."""
        return self._circuit.facts[relation].shown

    def footprint(self) -> tuple[int, int]:
        sizes = [facts.footprint() for facts in self._circuit.facts]
        sizes += [premise.index_by.footprint() for premise in self._circuit.premises]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def _take(self, inputs: Sequence[Sequence[Any]], fed: Sequence[Fed]) -> None:
        out = [(w.head, w.given(inputs[port])) for w, port in fed if inputs[port]]
        is_loss = all(weight < 0 for _, derivations in out for _, weight in derivations)
        for head, derivations in out:
            facts = self._circuit.facts[head]
            if is_loss:
                facts.follow(derivations)
            else:
                facts.take(derivations)

    def _finished(self) -> Sequence[Sequence[Pair]]:
        """The net changes, which premises that do not follow the rounds take in now."""
        moved = self._tell_premises()
        named = range(len(self._circuit.names))
        deltas = [self._circuit.facts[index].net(moved[index]) for index in named]
        return deltas if any(deltas) else ()

    def _tell_premises(self) -> list[Sequence[Pair]]:
        """Tell them which rows of each relation have entered and left."""
        circuit = self._circuit
        moved = [facts.moved() for facts in circuit.facts]
        for premise in circuit.premises:
            if not premise.follows:
                delta = moved[circuit.facts.index(premise.facts)]
                if delta:
                    premise.change(delta)
        return moved

    def _depth(self, entering: Sequence[Batch]) -> int:
        """How many steps the rows that enter are away from the inputs that changed."""
        facts = self._circuit.facts
        depth = max(f.depth for f, rows in zip(facts, entering, strict=True) if rows)
        if depth > self._circuit.max_rounds:
            raise self._endless(entering)
        return depth

    def _derive(self, changed: Sequence[Pairs]) -> None:
        """Take in what follows from rows that enter or leave.

        With `+` and `-` for what enters and leaves, of two relations first d(L) R, then L' d(R).
        """
        circuit = self._circuit
        out = [(w.head, w.from_left(changed[of])) for w, of in circuit.left if changed[of]]
        for premise in circuit.premises:
            delta = changed[circuit.facts.index(premise.facts)]
            if premise.follows and delta:
                premise.change(delta)
        out += [(w.head, w.from_right(changed[of])) for w, of in circuit.right if changed[of]]
        for head, derivations in out:
            circuit.facts[head].follow(derivations)

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


def _is_mixed(inputs: Sequence[Sequence[Any]]) -> bool:
    return len({_weight(part) > 0 for delta in inputs for part in delta}) > 1


def _negated(keyed: Sequence[KeyedPair]) -> list[KeyedPair]:
    return [(key, (row, -weight)) for key, (row, weight) in keyed]


def _weight(part: Any) -> int:
    """The weight of a pair, or of a pair beside its key."""
    weight: int = part[1] if isinstance(part[1], int) else part[1][1]
    return weight


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

    @property
    def shown(self) -> Mapping[Row, object]:
        """The rows that are there now: not a copy."""
        return self._fixpoint.shown(self._relation)

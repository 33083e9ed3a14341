"""A recursion evaluated anew: from all rows of its inputs, and compared with what it was.

    followed    derivations that vanish, one by one; what still holds comes back
    anew        nothing, then all derivations that there are now

Following what comes costs no more than deriving it anew does. What vanishes does: a derivation that
is taken away takes about `RATIO` times as long as one that is made, and may be made again at once.
So it is measured as it goes. Where vanishing has taken half of what is left to derive, the commit
goes over to the other way: never more than 1.5 times of again, if what is left by then is there in
the end. It is asked before derivations are taken away, and if they are many, before they are made:
some of the rows that go are asked what vanishes with them.

State:  during the commit, what there was before it: nothing is undone unless the commit is.
Cost:   that of a load, and of a look at each row that was there or is.
Source: as in `operators/loop/measured.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reactive.engine.collections.keyed_batch import KeyedBatch
from reactive.engine.collections.zset import Batch, Pair, Pairs, Row
from reactive.engine.operators.fixpoint.circuit import Circuit
from reactive.engine.operators.fixpoint.delta_rules import Negating
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.loop.measured import affordable
from reactive.engine.runtime.interrupts import reraise_asynchronous

RATIO = 3
"""How many times as long a derivation takes that vanishes than one that is made."""
MANY = 64
"""Rows of a change of which some are asked first."""
ASKED = 16
"""How many are asked."""


class TooMany(Exception):
    """More derivations vanish than pays to follow."""


def is_dear(relations: Sequence[RecursiveRelation], more: int = 0) -> bool:
    """Whether it takes too long to follow what vanishes, with some more derivations that will."""
    for relation in relations:
        more += relation.vanished
    if more <= affordable(0, RATIO):
        return False
    left = sum(relation.derivations + relation.vanished for relation in relations) - more
    return more > affordable(max(left, 0), RATIO)


def expected(circuit: Circuit, inputs: Sequence[Sequence[Any]]) -> int:
    """About how many derivations vanish at once with a large change of the inputs."""
    return sum(
        [
            vanishing(rule.given, _deleted(inputs[port]))
            for rule, port in circuit.fed
            if not isinstance(rule, Negating)
        ]
    )


def following(circuit: Circuit, leaving: Sequence[Pairs]) -> int:
    """The same with many rows that leave."""
    left = [vanishing(rule.from_left, leaving[of]) for rule, of in circuit.left]
    return sum([*left, *(vanishing(rule.from_right, leaving[of]) for rule, of in circuit.right)])


def vanishing(derive: Callable[[Any], Sequence[Any]], delta: Sequence[Any]) -> int:
    """About how many derivations vanish with a change: of a large one, by asking some rows of it.

    >>> vanishing(lambda rows: [*rows, *rows], range(10_000)), vanishing(list, range(10))
    (20000, 0)
    """
    if len(delta) < MANY:
        return 0
    some = delta[:: max(len(delta) // ASKED, 1)]
    try:
        return len(derive(some)) * len(delta) // len(some)
    except Exception as error:  # it raises, or does not count, when all of them are dealt with
        reraise_asynchronous(error)
        return 0


def _deleted(delta: Sequence[Any]) -> Sequence[Any]:
    """The pairs of a large change, beside their keys or not, that go."""
    if len(delta) < MANY:
        return ()
    if isinstance(delta, Batch | KeyedBatch):
        return delta if delta.weight < 0 else ()
    return [part for part in delta if _weight(part) < 0]


class Before:
    """What relations and their indexes held before they began from nothing."""

    __slots__ = ("_indexes", "_relations")

    def __init__(self, circuit: Circuit) -> None:
        self._relations = [(relation, relation.set_aside()) for relation in circuit.relations]
        self._indexes = [(index, index.set_aside()) for index in circuit.recursive_indexes]

    def bring_back(self) -> None:
        """Have them as they were before the commit."""
        for index, held in self._indexes:
            index.bring_back(held)
        for relation, before in self._relations:
            relation.bring_back(before)

    def changes(self, place: int) -> Sequence[Pair]:
        """How the rows of a relation differ from those before the commit."""
        relation, before = self._relations[place]
        return differences(relation.shown, before.shown, before.net(before.moved()))


def differences(
    now: Mapping[Row, object], was: Mapping[Row, object], moved: Sequence[Pair]
) -> Sequence[Pair]:
    """How rows differ from others, which had `moved` already.

    >>> list(differences({"b": 1, "c": 1}, {"a": 1, "b": 1}, ()))
    [('a', -1), ('c', 1)]
    >>> list(differences({"b": 1, "c": 1}, {"a": 1}, [("a", 1), ("b", -1)]))
    [('c', 1)]
    """
    if moved:
        rows = dict(was)
        for row, weight in moved:
            if weight > 0:
                del rows[row]
            else:
                rows[row] = 1
        was = rows
    came = [row for row in now if row not in was]
    went = [row for row in was if row not in now]
    if came and went:
        return [*Batch(went, -1), *Batch(came, 1)]
    return Batch(came or went, 1 if came else -1) if came or went else ()


def _weight(part: Any) -> int:
    weight: int = part[1] if isinstance(part[1], int) else part[1][1]
    return weight

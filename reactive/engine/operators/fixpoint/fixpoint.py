"""Fixpoint: relations that their clauses derive from inputs and from the relations themselves.

                    +------------------------------------+
                    v                                    |
    inputs --> delta rules --> derivations --> relations +--> net changes
                                                         |
                                  rows that enter or leave in this round

A commit runs rounds until nothing changes. In each, some rows enter or leave, and the derivations
that depend on them are counted:

1. The changed inputs add and remove derivations.
2. Rows that lost their last well-founded derivation leave, and so do rows derived from them. This
   ends before any row enters: no row returns by a derivation that will be removed.
3. Supported rows that are not present enter in a new round. These include rows that left in 2
   without a well-founded derivation, if other derivations support them.

Rows that were present before and are not affected are never touched.

If following the change would take longer than deriving all rows again, they are derived again.

State:  two numbers for every row (`recursive_relation.py`); an index per recursive side of a join.
        After a restore only the rows, until an input changes.
Cost:   O(derivations of the rows that enter or leave, and of the changed input rows).
Source: docs/recursion.md; [dbsp] section 5; [counting]; [elastic].

Recomputed recursion: derived from all rows of its inputs, and compared with its previous rows.

    followed      remove derivations one by one; rows with other derivations enter again
    recomputed    start empty, then add all current derivations

Following insertions never costs more than recomputing. Following deletions can: to remove a
derivation takes about `RATIO` times as long as to add one, and the row may be derived again in the
same commit. So the fixpoint measures. When removals have taken half the time of deriving the
remaining rows, the commit switches to recomputing: never more than 1.5 times the cost of
recomputing, if the derivations left by then also hold at the end. The check precedes each removal
of derivations; for large changes a sample of the deleted rows predicts how many derivations they
will remove.

State:  during the commit, the previous rows, for an undo.
Cost:   that of a load, and of comparing each previous and each current row.
Source: as in `operators/loop/loop_recomputation.py`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from reactive.engine.collections.index import KeyedPair
from reactive.engine.collections.zset import KeyedBatch, Pair, Pairs, Row, UniformDelta
from reactive.engine.operators.aggregate import Inputs, State
from reactive.engine.operators.fixpoint.delta_rules import BaseRule, Circuit, Fed, Negating
from reactive.engine.operators.fixpoint.derivations import GIVEN
from reactive.engine.operators.fixpoint.growth import FEW_ROUNDS, Growth, shown_row
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.loop.loop_recomputation import affordable
from reactive.engine.runtime.interrupts import reraise_asynchronous
from reactive.errors import FixpointError

MOST_SHOWN = 3


class Fixpoint:
    """Emit one delta per named relation."""

    __slots__ = ("_before", "_circuit", "_is_measured", "_round", "_stored", "evaluated")

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._round = GIVEN
        self._before: StateBefore | None = None
        self._is_measured = False
        self._stored: State | None = None
        """A restored state whose derivations and indexes are not built yet."""
        self.evaluated = 0
        """Number of recomputations."""

    @property
    def circuit(self) -> Circuit:
        """Return the relations and the rules between them."""
        return self._circuit

    @property
    def source(self) -> str | None:
        """The code of the generated loops, if there are any."""
        delta_rules = dict.fromkeys(rule for rule, _ in (*self._circuit.left, *self._circuit.right))
        return "\n".join(text for rule in delta_rules for text in rule.sources()) or None

    @property
    def touched(self) -> int:
        """Number of rows and derivations that the relations and the rules have read."""
        circuit = self._circuit
        delta_rules = {rule for rule, _ in (*circuit.left, *circuit.right)}
        relation = sum(relation.touched for relation in circuit.relations)
        return relation + sum(rule.touched for rule in delta_rules)

    def step(self, *inputs: Sequence[Any]) -> Sequence[Sequence[Pair]]:
        """Return the net changes by relation, or () if there are none."""
        collects = gc.isenabled()
        try:  # like `pause_collector`, which takes longer than many a step
            gc.disable()
            return self._step(inputs)
        finally:
            if collects:
                gc.enable()

    def _step(self, inputs: Sequence[Sequence[Any]]) -> Sequence[Sequence[Pair]]:
        """Follow the changes; recompute if too much is removed, unless that raises."""
        if self._stored is not None:
            self._build(self._stored)
        self._is_measured = self._circuit.begins_anew
        try:
            return self._follow(inputs)
        except TooManyLost:
            self._is_measured = False
            changes = self._recompute()
        if changes is None:
            self.undo()
            return self._follow(inputs)
        return changes

    def _recompute(self) -> Sequence[Sequence[Pair]] | None:
        """Recompute the recursion; return None if that raises."""
        circuit = self._circuit
        try:
            given = {port: find() for port, find in circuit.all_rows.items()}
            self._before = StateBefore(circuit)
            for rule, port in circuit.fed:
                if isinstance(rule, BaseRule):
                    circuit.relations[rule.head].take(rule.derive_from_input(given[port]))
            self._settle()
            self._notify_recursive_indexes()
        except Exception as error:  # recomputing may need more rounds than following a change
            reraise_asynchronous(error)
            return None
        self.evaluated += 1
        deltas = [self._before.changes(index) for index in range(len(circuit.names))]
        return deltas if any(deltas) else ()

    def _follow(self, inputs: Sequence[Sequence[Any]]) -> Sequence[Sequence[Pair]]:
        """Follow changes of the inputs. If measured, raise `TooManyLost` once it does not pay."""
        try:
            if max(map(len, inputs), default=0) >= MANY:
                self._ask(estimate_removed(self._circuit, inputs))
            self._take(inputs, self._circuit.fed)
            self._settle()
        except (FixpointError, TooManyLost):
            raise
        except Exception as error:
            reraise_asynchronous(error)
            if not (self._is_negated(inputs) or _has_both_signs(inputs)):
                raise
            self.undo()
            self._is_measured = False
            self._carefully(inputs)
        return self._finish()

    def _is_negated(self, inputs: Sequence[Sequence[Any]]) -> bool:
        """Return True if a changed input is negated: its inserts remove rows, and its deletes add
        rows.
        """
        return any(isinstance(rule, Negating) and inputs[port] for rule, port in self._circuit.fed)

    def _carefully(self, inputs: Sequence[Sequence[Any]]) -> None:
        """Follow changes so that no callable sees a leaving and an entering row in one pair.

        Deletions are applied before insertions are visible, and so are insertions into a negated
        input, since they remove rows. This takes longer if both derive the same rows, so it is done
        only after a callable raised.
        """
        gone, came = (
            [[part for part in delta if _part_weight(part) * sign > 0] for delta in inputs]
            for sign in (-1, 1)
        )
        circuit = self._circuit
        negated = [(rule, port) for rule, port in circuit.fed if isinstance(rule, Negating)]
        others = [(rule, port) for rule, port in circuit.fed if not isinstance(rule, Negating)]
        with ExitStack() as hidden:
            for port, index in circuit.indexes.items():
                hidden.enter_context(index.hide_delta(came[port]))
            self._take_with(gone, others, [rule.hide_delta(gone[port]) for rule, port in negated])
            back = [[*gone[port], *_negate_keyed(came[port])] for _, port in negated]
            seeing = [
                rule.hide_delta(keyed) for (rule, _), keyed in zip(negated, back, strict=True)
            ]
            self._take_with(came, negated, seeing)
        self._take(came, others)
        self._take(gone, negated)
        self._settle()
        self._forget_recursive_indexes()  # `_finished` notifies them of all changes

    def _take_with(
        self,
        gone: Sequence[Sequence[Any]],
        fed: Sequence[Fed],
        seeing: Sequence[AbstractContextManager[None]],
    ) -> None:
        """Apply changes of inputs that remove rows, inside the contexts `seeing`."""
        with ExitStack() as seen:
            for each in seeing:
                seen.enter_context(each)
            self._take(gone, fed)
            self._let_leave()
        self._forget_recursive_indexes()
        self._notify_recursive_indexes()

    def _forget_recursive_indexes(self) -> None:
        """Undo the changes of the indexes that do not follow the rounds."""
        for recursive_index in self._circuit.recursive_indexes:
            if not recursive_index.follows:
                recursive_index.undo()

    def _let_leave(self) -> None:
        """Remove the rows without a well-founded derivation, repeatedly."""
        relations = self._circuit.relations
        while self._is_losing():
            dated = not all(relation.has_only_ones for relation in relations)
            leaving = [relation.leave(dated=dated) for relation in relations]
            self._ask_about(leaving)
            self._derive(leaving, is_loss=True)

    def _ask(self, gone: int) -> None:
        """Raise `TooManyLost` if removing `gone` more derivations takes too long."""
        if self._is_measured and is_dear(self._circuit.relations, gone):
            raise TooManyLost

    def _ask_about(self, leaving: Sequence[Pairs]) -> None:
        """Raise `TooManyLost`, as `_ask`, if many rows leave."""
        if self._is_measured and max(map(len, leaving)) >= MANY:
            self._ask(estimate_following(self._circuit, leaving))

    def _is_losing(self) -> bool:
        """Return True if rows of some relation must leave before others enter."""
        for relation in self._circuit.relations:  # noqa: SIM110 - a generator takes as long as the rest
            if relation.is_losing:
                return True
        return False

    def _settle(self) -> None:
        """Remove and insert rows until nothing changes."""
        depth, relations = 0, self._circuit.relations
        growth = None
        while True:
            self._let_leave()
            now = self._round = self._round + 1
            entering = [UniformDelta(relation.enter(now, depth), now) for relation in relations]
            if any(entering):
                depth = self._depth(entering)
                if depth > FEW_ROUNDS:
                    growth = growth or Growth(self._circuit)
                    growth.check(entering, self._endless)
                self._derive(entering)
            elif not self._is_losing():
                return

    def undo(self) -> None:
        """Restore relations and indexes; nothing if a stored state is still to be built."""
        if self._stored is not None:
            return
        if self._before is not None:
            self._before.bring_back()
            self._before = None
            return
        for recursive_index in self._circuit.recursive_indexes:
            recursive_index.undo()
        for relation in self._circuit.relations:
            relation.undo()

    def commit(self) -> None:
        """Drop the undo state; nothing if a stored state is still to be built."""
        if self._stored is not None:
            return
        self._before = None
        for recursive_index in self._circuit.recursive_indexes:
            recursive_index.commit()
        for relation in self._circuit.relations:
            relation.commit()

    def contents(self) -> Sequence[Sequence[Pair]]:
        return [self.rows(index) for index in range(len(self._circuit.names))]

    def rows(self, relation: int) -> Sequence[Pair]:
        """Return all rows of a relation."""
        return UniformDelta(list(self.rows_of_relation(relation)), 1)

    def rows_of_relation(self, relation: int) -> Mapping[Row, object]:
        """Return the rows of a relation, not a copy."""
        return self._circuit.relations[relation].shown

    def state(self) -> State | None:
        """Return the state of each relation, by its place; None if one of them cannot be stored."""
        if self._stored is not None:
            return self._stored
        found: dict[str, Any] = {"round": self._round}
        for place, relation in enumerate(self._circuit.relations):
            state = relation.state()
            if state is None:
                return None
            found |= {f"{place} {name}": value for name, value in state.items()}
        return found

    def restore(self, state: State, inputs: Inputs) -> None:
        """Show the rows of a stored state; derivations and indexes are built by the next step."""
        self._round = state["round"]
        for place, relation in enumerate(self._circuit.relations):
            relation.show(_relation_state(state, place))
        self._stored = state

    def _build(self, state: State) -> None:
        """Build derivations and indexes of a stored state; a call that fails can be repeated."""
        circuit = self._circuit
        for place, relation in enumerate(circuit.relations):
            relation.restore(_relation_state(state, place))
        for index in circuit.recursive_indexes:
            index.set_aside()
            index.change(UniformDelta(list(index.relation.rounds), GIVEN))
        self._stored = None
        self.commit()

    def footprint(self) -> tuple[int, int]:
        """Return the rows and bytes of the relations and of the recursive indexes."""
        sizes = [relation.footprint() for relation in self._circuit.relations]
        sizes += [
            recursive_index.index_by.footprint()
            for recursive_index in self._circuit.recursive_indexes
        ]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def _take(self, inputs: Sequence[Sequence[Any]], fed: Sequence[Fed]) -> None:
        """Apply the derivations of changed inputs. Raises `TooManyLost` if too many are removed."""
        out = [
            (rule.head, derivations)
            for rule, port in fed
            if inputs[port] and (derivations := rule.derive_from_input(inputs[port]))
        ]
        gone = sum([weight < 0 for _, derivations in out for _, weight in derivations])
        if gone:
            self._ask(gone)
        is_loss = gone == sum([len(derivations) for _, derivations in out])
        for head, derivations in out:
            relation = self._circuit.relations[head]
            if is_loss:
                relation.follow(derivations)
            else:
                relation.take(derivations)

    def _finish(self) -> Sequence[Sequence[Pair]]:
        """Return the net changes; apply them to recursive indexes that do not follow the rounds."""
        moved = self._notify_recursive_indexes()
        named = range(len(self._circuit.names))
        deltas = [self._circuit.relations[index].net(moved[index]) for index in named]
        return deltas if any(deltas) else ()

    def _notify_recursive_indexes(self) -> list[Sequence[Pair]]:
        """Apply net changes to recursive indexes that do not follow; return them by relation."""
        circuit = self._circuit
        moved = [relation.moved_rows() for relation in circuit.relations]
        if not any(moved):
            return moved
        for recursive_index in circuit.recursive_indexes:
            if not recursive_index.follows:
                delta = moved[circuit.relations.index(recursive_index.relation)]
                if delta:
                    recursive_index.change(delta)
        return moved

    def _depth(self, entering: Sequence[UniformDelta]) -> int:
        """Return the derivation steps between the changed inputs and the rows that enter."""
        relations = self._circuit.relations
        depth = max(f.depth for f, rows in zip(relations, entering, strict=True) if rows)
        most = self._circuit.max_rounds
        if most is not None and depth > most:
            raise self._endless(entering, f"after {most} rounds", "raise max_rounds=")
        return depth

    def _derive(self, changed: Sequence[Pairs], *, is_loss: bool = False) -> None:
        """Apply the derivations of rows that enter or leave.

        Of a rule over two relations, first d(L) R, then L' d(R), where L' includes d(L).
        """
        circuit = self._circuit
        out = [(w.head, w.from_left(changed[of])) for w, of in circuit.left if changed[of]]
        for recursive_index in circuit.recursive_indexes:
            delta = changed[circuit.relations.index(recursive_index.relation)]
            if recursive_index.follows and delta:
                recursive_index.change(delta)
        out += [(w.head, w.from_right(changed[of])) for w, of in circuit.right if changed[of]]
        if is_loss:
            self._ask(sum([len(derivations) for _, derivations in out]))
        for head, derivations in out:
            circuit.relations[head].follow(derivations)

    def _endless(
        self, entering: Sequence[UniformDelta], limit: str, remedy: str = "pass max_rounds=None"
    ) -> FixpointError:
        """Return the error for a recursion beyond a limit, with some rows that still enter."""
        circuit = self._circuit
        named = ", ".join(map(repr, circuit.names))
        named_rows = [row for batch in entering[: len(circuit.names)] for row in batch.rows]
        rows = named_rows or [row for batch in entering for row in batch.rows]
        shown = ", ".join(map(shown_row, rows[:MOST_SHOWN]))
        return FixpointError(
            f"fixpoint {named} has not come to an end {limit}\n"
            f"  rows that still arrive: {shown}{', ...' * (len(rows) > MOST_SHOWN)}\n"
            "  transaction rolled back: no table or view changed\n"
            f"  bound what the step makes of a row, or {remedy}"
        )


def _relation_state(state: State, place: int) -> State:
    """Return the part of a fixpoint state that belongs to the relation at `place`."""
    own = f"{place} "
    return {name.removeprefix(own): v for name, v in state.items() if name.startswith(own)}


def _has_both_signs(inputs: Sequence[Sequence[Any]]) -> bool:
    return len({_part_weight(part) > 0 for delta in inputs for part in delta}) > 1


def _negate_keyed(keyed: Sequence[KeyedPair]) -> list[KeyedPair]:
    return [(key, (row, -weight)) for key, (row, weight) in keyed]


def _part_weight(part: Any) -> int:
    """Return the weight of a pair, or of a pair beside its key."""
    weight: int = part[1] if isinstance(part[1], int) else part[1][1]
    return weight


class FixpointRelation:
    """Emit the changes of one relation of a fixpoint. It has no state of its own."""

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
        """The current rows, not a copy."""
        return self._fixpoint.rows_of_relation(self._relation)


RATIO = 3
"""Time to remove a derivation, relative to the time to add one."""
MANY = 64
"""Least size of a change whose cost a sample predicts."""
ASKED = 16
"""Rows of the sample."""


class TooManyLost(Exception):
    """Raised if more derivations are removed than pays to follow."""


def is_dear(relations: Sequence[RecursiveRelation], more: int = 0) -> bool:
    """Return True if following the removed derivations, and `more`, takes too long."""
    for relation in relations:
        more += relation.vanished
    if more <= affordable(0, RATIO):
        return False
    left = sum(relation.derivations + relation.vanished for relation in relations) - more
    return more > affordable(max(left, 0), RATIO)


def estimate_removed(circuit: Circuit, inputs: Sequence[Sequence[Any]]) -> int:
    """Estimate how many derivations a large change of the inputs removes directly."""
    return sum(
        [
            estimate_removals(rule.derive_from_input, _deleted_pairs(inputs[port]))
            for rule, port in circuit.fed
            if not isinstance(rule, Negating)
        ]
    )


def estimate_following(circuit: Circuit, leaving: Sequence[Pairs]) -> int:
    """Estimate how many derivations many leaving rows remove directly."""
    left = [estimate_removals(rule.from_left, leaving[of]) for rule, of in circuit.left]
    return sum(
        [*left, *(estimate_removals(rule.from_right, leaving[of]) for rule, of in circuit.right)]
    )


def estimate_removals(derive: Callable[[Any], Sequence[Any]], delta: Sequence[Any]) -> int:
    """Estimate how many derivations a large change removes, from a sample of its rows.

    >>> estimate_removals(lambda rows: [*rows, *rows], range(10_000))
    20000
    >>> estimate_removals(list, range(10))
    0
    """
    if len(delta) < MANY:
        return 0
    some = delta[:: max(len(delta) // ASKED, 1)]
    try:
        return len(derive(some)) * len(delta) // len(some)
    except Exception as error:  # the real step raises, or skips the row
        reraise_asynchronous(error)
        return 0


def _deleted_pairs(delta: Sequence[Any]) -> Sequence[Any]:
    """Return the deleted pairs of a large change, with or without keys; () for a small change."""
    if len(delta) < MANY:
        return ()
    if isinstance(delta, UniformDelta | KeyedBatch):
        return delta if delta.weight < 0 else ()
    return [part for part in delta if _part_weight(part) < 0]


class StateBefore:
    """Rows of relations and their indexes before a recomputation in this commit."""

    __slots__ = ("_indexes", "_relations")

    def __init__(self, circuit: Circuit) -> None:
        self._relations = [(relation, relation.set_aside()) for relation in circuit.relations]
        self._indexes = [(index, index.set_aside()) for index in circuit.recursive_indexes]

    def bring_back(self) -> None:
        """Restore the relations and indexes as they were before the commit."""
        for index, held in self._indexes:
            index.bring_back(held)
        for relation, before in self._relations:
            relation.bring_back(before)

    def changes(self, place: int) -> Sequence[Pair]:
        """Return the difference between the rows of a relation now and before the commit."""
        relation, before = self._relations[place]
        return compare_rows(relation.shown, before.shown, before.net(before.moved_rows()))


def compare_rows(
    now: Mapping[Row, object], was: Mapping[Row, object], moved: Sequence[Pair]
) -> Sequence[Pair]:
    """Return the difference `now - was`, where `was` already includes the changes `moved`.

    >>> list(compare_rows({"b": 1, "c": 1}, {"a": 1, "b": 1}, ()))
    [('a', -1), ('c', 1)]
    >>> list(compare_rows({"b": 1, "c": 1}, {"a": 1}, [("a", 1), ("b", -1)]))
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
        return [*UniformDelta(went, -1), *UniformDelta(came, 1)]
    return UniformDelta(came or went, 1 if came else -1) if came or went else ()

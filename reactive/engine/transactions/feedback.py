"""Feedback: with each commit, tables get the rows that a query had after the commit before.

    commit n      the query has y(n), its table y(n - 1)       difference: what the table lacks
    commit n + 1  the table changes by the difference, with all other changes

The difference is a view, so that it is right after a commit that was undone, repaired, or repeated.
The change is one more statement of the transaction, and is undone and stored with it.

State:  the loops.
Cost:   of a commit, the rows that the last one changed in the queries.
Source: [dbsp] the delay operator, z^-1, in a feedback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.record import record
from reactive.engine.collections.zset import Pair, repeat_by_weight
from reactive.engine.runtime.interrupts import surely
from reactive.engine.transactions.transaction import Transaction, run_in_transaction

if TYPE_CHECKING:
    from reactive.engine.transactions.commit import Change
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.pending import Pending
    from reactive.engine.transactions.row_gate import Base


@record
class FeedbackLoop:
    """A table of the rows before a commit, and what it lacks of the rows after it."""

    table: Any
    query: plan.Node
    difference: Callable[[], Sequence[Pair]]
    """Return the difference after the last commit, with weights."""

    def step(self) -> Sequence[Pair]:
        """Change the table by the difference; return the delta."""
        pairs, do = self.difference(), self.table._do
        gone = [*repeat_by_weight((row, -weight) for row, weight in pairs if weight < 0)]
        come = [*repeat_by_weight(pair for pair in pairs if pair[1] > 0)]
        if not gone:
            return do.add_all(come) if come else ()
        return do.together(lambda: do.remove_all(gone), lambda: do.add_all(come))  # type: ignore[no-any-return]


class Feedback:
    """The loops of a database."""

    __slots__ = ("_engine", "loops")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.loops: tuple[FeedbackLoop, ...] = ()

    def write(self, table: Base, statement: Callable[[Any], Sequence[Pair]], of: Any) -> None:
        """Run a statement in a transaction of its own."""
        engine = self._engine
        run_in_transaction(Transaction(engine), lambda: engine.write(table, statement, of))

    def with_loops(self, changes: Sequence[Change], pending: Pending) -> list[Change]:
        """Return the changes of a commit and those of the loops, which become part of `pending`.

        If an interrupt comes before `pending` has a change, the change is undone here.
        """
        every = list(changes)
        for loop in self.loops:
            delta: Sequence[Pair] = ()
            try:
                delta = loop.step()
                if delta:
                    pending.append((loop.table, delta))
            except BaseException:
                if delta and not pending.has(delta):
                    surely(partial(loop.table._store.revert, delta))
                raise
            if delta:
                every.append((loop.table, delta))
        return every


def start_loop(engine: Engine, loop: FeedbackLoop) -> None:
    """Let each commit from now on change the table of a loop."""
    if engine.feedback is None:
        engine.feedback = Feedback(engine)
    engine.feedback.loops = (*engine.feedback.loops, loop)


def stop_loop(engine: Engine, loop: FeedbackLoop) -> None:
    """Leave the table of a loop as it is; do nothing if it is stopped already."""
    if engine.feedback is not None:
        left = tuple(each for each in engine.feedback.loops if each is not loop)
        if left:
            engine.feedback.loops = left
        else:
            engine.feedback = None

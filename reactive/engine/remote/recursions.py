"""Which recursions can be done elsewhere, how, and when that is the better place: what `explain`
says.

reach = edges U select (r.src, e.dst) (...)       by partitions of `src`, of which few are touched
same  = ... select (a.child, b.child) (...)       keeps no column: by rounds
ranks <- select (...)   n times                   all rounds, in one worker
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.decomposed import decomposed
from optimizer.plans.linear import linear
from reactive.engine.remote.whole import Holds, is_loop, whole_of

WORTH = 1_000_000
"""Rows of a recursion from which on a flush elsewhere costs less than what they take here: it takes
about as long as a million derivations in the process, whatever changes."""


def why_not(node: plan.Node, holds: Holds) -> str | None:
    """Why a recursion has to stay, as far as its plan says; None if it may go."""
    if isinstance(node, plan.Iterate) and not is_loop(node):
        return "its rounds are written out, one over the other, and move as operators do"
    if whole_of(node, holds) is None:
        return "what it reads stays in the process, or is of a table that keeps nothing"
    return None


def advice(node: plan.Node, held: int | None) -> str:
    """Where a recursion that may go is better off. `held` are its rows in the process."""
    of = decomposed(node)
    if of is None and linear(node) is None:
        return _of_one_worker(held)
    how = "can move, by rounds" if of is None else f"can move, by partitions of {of.column_name}"
    if held is None:
        return how
    if held < WORTH:
        return (
            f"{how}; with {held:,} rows this is the better place: a flush elsewhere takes about a "
            f"second, which pays from some {WORTH:,} rows on"
        )
    return f"{how}; with {held:,} rows view.offload() pays"


def _of_one_worker(held: int | None) -> str:
    how = "can move, to one Python worker, which brings it to its end anew in each flush"
    if held is None:
        return how
    if held < WORTH:
        return (
            f"{how}; with {held:,} rows this is the better place: what it keeps here fits, and "
            "changes are not sent"
        )
    return f"{how}; with {held:,} rows view.offload() frees what it keeps here"

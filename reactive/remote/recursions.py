"""Which recursions can be done elsewhere, and when that is the better place: what `explain` says.

reach = edges U select (r.src, e.dst) (...)       by partitions of `src`: one job per flush
same  = ... select (a.child, b.child) (...)       keeps no column: a job per round, so it stays
"""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.decomposed import decomposed
from reactive.remote.whole import Holds, whole_of

WORTH = 1_000_000
"""Rows of a recursion from which on a flush elsewhere costs less than what they take here: it takes
about as long as a million derivations in the process, whatever changes."""


def why_not(node: plan.Node, holds: Holds) -> str | None:
    """Why a recursion has to stay, as far as its plan says; None if it may go."""
    match node:
        case plan.Component():
            return "relations that are defined together stay in the process"
        case plan.Iterate():
            return "a loop that goes on until it settles stays in the process"
        case plan.Fixpoint() if decomposed(node) is None:
            return (
                "no column of its rows is kept by every step, so that each round would be a job; "
                "it stays in the process, and its inputs may be moved"
            )
        case plan.Fixpoint() if whole_of(node, holds) is None:
            return "what it reads stays in the process, or is of a table that keeps nothing"
        case _:
            return None


def advice(node: plan.Fixpoint, held: int | None) -> str:
    """Where a recursion that may go is better off. `held` are its rows in the process."""
    of = decomposed(node)
    assert of is not None
    how = f"can move, by partitions of {of.column_name}"
    if held is None:
        return how
    if held < WORTH:
        return (
            f"{how}; with {held:,} rows this is the better place: a flush elsewhere takes about a "
            f"second, which pays from some {WORTH:,} rows on"
        )
    return f"{how}; with {held:,} rows view.offload() pays"

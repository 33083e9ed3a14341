"""Operators as the graph sees them, and their code inside a generated commit.

    step(*deltas) -> delta      once per commit, all inputs at their new version

Every operator obeys these laws:

1. The sum of all emitted deltas equals the query on the sum of all received deltas.
2. A row occurs in a delta only if it is in the old or in the new output. Later operators never see
   a row that the query does not have.
3. `undo` reverts the last `step` exactly, even one that raised midway; `commit` announces that
   the step will not be undone. After either, `undo` does nothing.
4. Callables are evaluated before state changes, as far as possible.
5. While a callable runs on a row, the row is in a local variable `row`, or its pair in `pair`
   (`other` for the other side), of a plain loop: `error_notes.py` reads it there.
6. `contents` returns the whole current output, for a view that is attached later.

In-line code: lines of a generated commit for a delta of one row.

    if len(in_0) == 1:
        own_1.touched += 1                      no call between the commit and the loop
        try: out_1 = one_1(sums_1, in_0)
        ...
    else: out_1 = step_1(in_0)

They do the same as `step` and `commit` of the operator, which are the reference; for any other
delta they call these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from optimizer import plan
from optimizer.record import record


class Stateless(Protocol):
    """A stateless operator; `touched` counts the rows that it has read."""

    touched: int

    @property
    def step(self) -> Any: ...


class Stateful(Protocol):
    """Further methods of an operator with state."""

    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]:
        """Return the number of stored rows, and the approximate bytes of the state."""
        ...


@record
class DetachedState:
    """The state that an operator had before it was emptied.

    restore: makes it the state of the operator again, in place of the current one.
    changes: returns the difference of the output since then, as the operator is filled again; None
        if the output is not stored, but asked of the operator (`contents`).
    check: raises if the operator, filled again, may not be as after a step; None if it always is.
    """

    restore: Callable[[], None]
    changes: Callable[[], Sequence[Any]] | None = None
    check: Callable[[], None] | None = None


class Detachable(Protocol):
    """Further members of an operator that can be emptied and filled again within a commit."""

    change_cost: ClassVar[float]
    """The time that a changed row takes, as a multiple of that of a row of a load; 0 if it takes
    less."""
    emits_changes: ClassVar[bool]
    """True if the detached state has `changes`."""

    @property
    def is_detachable(self) -> bool:
        """True if its state depends on its rows alone, and no row has a negative weight."""
        ...

    def detach_state(self) -> DetachedState | None:
        """Empty the operator, and return its state; None if it holds none yet."""
        ...


def can_be_emptied(operator: Any) -> bool:
    """Return True if the class of an operator itself, not its base, defines `detach_state`, and the
    operator can be filled again."""
    return "detach_state" in vars(type(operator)) and bool(operator.is_detachable)


class BailOut(Exception):
    """Raised if an operator cannot maintain its result; `owner` is the node to compile again."""

    def __init__(self, owner: plan.Node, operator: Any) -> None:
        super().__init__("an aggregate is computed without factors from now on")
        self.owner = owner
        self.operator = operator


class CannotUndo(Exception):
    """Raised by `undo` of an operator that must be made again: all views are computed again."""


@record
class InLine:
    """Lines of code for one operator, with placeholders.

    `{n}` is the number of the node, `{out}` its output, and `{given}` or, with two inputs, `{left}`
    and `{right}` its deltas.

    step: replaces the call of `step`.
    finalize: replaces the call of `commit`.
    by_name: the objects that the lines use, by name; each name ends in the number of the node.
    """

    step: str
    finalize: str
    by_name: Mapping[str, Any]

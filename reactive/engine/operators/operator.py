"""What the graph needs of an operator.

    step(*deltas) -> delta      once per commit, all inputs at their new version

The laws that every operator keeps:

1. The sum of all deltas given out equals the query on the sum of all deltas taken in.
2. A row occurs in a delta only if it is in the old or in the new output. What is computed above
   never sees a row that the query does not have.
3. `undo` takes the last `step` back exactly, also one that raised midway; `commit` says that
   this will not be asked for. After either, `undo` does nothing.
4. Callables are evaluated before state changes, as far as possible.
5. While a callable runs on a row, the row is in a local variable `row`, or its pair in `pair`
   (`other` for the other side), of a plain loop: `error_notes.py` looks for it there.
6. `contents` gives the whole output of now, for a view that is attached late.

What an operator does with a single row, as lines of the generated commit that it is part of.

    if len(in_0) == 1:
        own_1.touched += 1                      no call between the commit and the loop
        try: out_1 = one_1(sums_1, in_0)
        ...
    else: out_1 = step_1(in_0)

They do what `step` and `commit` of the operator do, which are the reference; of any other delta
they call these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from optimizer import plan
from optimizer.record import record


class Operator(Protocol):
    """A stateless operator has these; `touched` counts the rows that it has looked at."""

    touched: int

    @property
    def step(self) -> Any: ...


class Stateful(Protocol):
    """An operator with state has these too."""

    def undo(self) -> None: ...
    def commit(self) -> None: ...
    def footprint(self) -> tuple[int, int]:
        """Rows held, and about how many bytes the state takes."""
        ...


class BailOut(Exception):
    """An aggregate cannot be kept by factors after all; `owner` is its node in the plan."""

    def __init__(self, owner: plan.Node, operator: Any) -> None:
        super().__init__("an aggregate is computed without factors from now on")
        self.owner = owner
        self.operator = operator


@record
class InLine:
    """Lines with `{n}` for the number of the node, `{out}` for what it emits, and `{given}` or,
    of two inputs, `{left}` and `{right}` for what it is given.

    step: in the place of `step`.
    finalize: in the place of `commit`.
    by_name: what they have by name; each name ends in the number of the node.
    """

    step: str
    finalize: str
    by_name: Mapping[str, Any]

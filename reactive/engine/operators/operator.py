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
"""

from __future__ import annotations

from typing import Any, Protocol

from optimizer import plan


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

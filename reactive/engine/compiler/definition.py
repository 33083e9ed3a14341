"""A recursion while it is being defined: what stands in the place of its relations' database.

The step of a fixpoint is called with relations that have no rows yet, and belong to no database
until they meet a relation that does.
"""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import free, nodes


class Definition:
    """The database of the recursive relations that a step is called with, once it is known."""

    def __init__(self, what: str) -> None:
        self.what = what
        """The relations, for messages."""
        self.engine: Any = None
        self.is_open = True
        self._others: list[Definition] = []

    def __getattr__(self, name: str) -> Any:
        raise outside(self.what)

    def moment_of(self, rows: plan.Node) -> Any:
        """What rows of another commit would need.

        Raises
        ------
        PlanError: always.
        """
        raise without_past(self.what)

    def learn(self, engine: Any) -> None:
        """Be told the database; those who wait for the same one are told too."""
        if self.engine is None:
            self.engine = engine
            for other in self._others:
                other.learn(engine)

    def finish(self) -> Any:
        """The database, or a definition around this one that waits for it; None if there is none.

        From now on the relations have no meaning of their own.
        """
        waiting = (other for other in self._others if other.is_open)
        found = self.engine if self.engine is not None else next(waiting, None)
        self.is_open = False
        return found

    def wait_with(self, other: Definition) -> None:
        """Learn the database when another definition does."""
        self._others.append(other)
        other._others.append(self)


def outside(what: str) -> PlanError:
    """The error of using a recursive relation where it has no meaning."""
    return PlanError(
        f"relation {what} has no rows but in the query that its step makes\n"
        "  use the relation that fixpoint(), iterate() or each() returns"
    )


def without_past(what: str) -> PlanError:
    """The error of asking for rows as they were that are not the same from commit to commit."""
    return PlanError(
        f"previous() of {what}: the rows of a step are not those of a commit\n"
        "  take previous() of what fixpoint(), iterate() or each() returns, or of a table"
    )


def database_of(engine: Any) -> Any:
    """The database itself, or None where it is not known yet."""
    if not isinstance(engine, Definition):
        return engine
    if not engine.is_open:
        raise outside(engine.what)
    return engine.engine


def agree(mine: Any, theirs: Any) -> bool:
    """Whether two relations may belong to the same database; from then on they do."""
    first, second = database_of(mine), database_of(theirs)
    if first is not None and second is not None:
        return first is second
    if first is None and second is None:
        if mine is not theirs:
            mine.wait_with(theirs)
    elif first is None:
        mine.learn(second)
    else:
        theirs.learn(first)
    return True


def open_names(root: plan.Node) -> str:
    """The recursive relations that are read and not defined."""
    read = (node for node in nodes(root) if isinstance(node, plan.Recursive))
    return ", ".join(sorted({repr(node.name) for node in read if node.level in free(root)}))

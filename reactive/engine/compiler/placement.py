"""Places of the parts of queries: in the process, elsewhere, or in a recursion that is being
defined.

What of a plan is elsewhere.

moved         part over nodes of the graph     a part that has grown too large
on tables     part over tables, fed there      its rows do not come by
scan          rows of such tables              wanted in the process, by what cannot move

A recursion while it is being defined: what stands in the place of its relations' database.

The step of a fixpoint is called with relations that have no rows yet, and belong to no database
until they meet a relation that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import free, nodes
from optimizer.traverse import has_components
from reactive.engine.compiler import levels as nests
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.plain import LINEAR, chain_over
from reactive.engine.remote.fragments import (
    RECURSIONS,
    STATEFUL,
    Fragment,
    Unmovable,
    is_loop,
    level_of,
    part_of,
    whole_of,
)
from reactive.engine.remote.remote import Adopt, ExternalSource, Remote

# Where the parts of queries are: what the rooms below `offload` ask of it.


class Overflow(Protocol):
    """Watches whether state outgrows the process."""

    is_due: bool

    def note(self, rows: int) -> None: ...

    def look_after(self) -> None: ...

    def stop(self) -> None: ...


class Placement(Protocol):
    """The parts of a database that are elsewhere."""

    moved: dict[plan.Node, Begin]

    @property
    def overflow(self) -> Overflow | None: ...

    @property
    def is_possible(self) -> bool:
        """Whether parts can be elsewhere at all."""
        ...

    @property
    def is_used(self) -> bool:
        """Whether anything is elsewhere."""
        ...

    def offloaded(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """What of the plans is elsewhere, for the compiler."""
        ...

    def flush(self) -> None:
        """Bring what is late to the state of the last commit, or a later one."""
        ...

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Have the tables in the process that a plan reads there."""
        ...

    def forget(self, table: Any) -> None:
        """A table was dropped."""
        ...

    def where(self, node: plan.Node) -> str | None:
        """Where a node of a plan runs, if there is anything to say."""
        ...

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """The rows of a leaf as a DataFrame."""
        ...

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Where the levels of a nest are that are elsewhere, by what they are called."""
        ...

    def reset(self) -> None:
        """Compute all in the process again."""
        ...

    def move(self, view: Any, adopt: Adopt | None = None) -> None: ...

    def recall(self, view: Any) -> None: ...

    def need(self) -> Any:
        """Where parts go; `OffloadError` if nowhere."""
        ...

    def close(self) -> None: ...


class AllHere:
    """The placement of a database whose parts can be nowhere else, as the border is left out."""

    overflow: Overflow | None = None
    is_possible = is_used = False

    def __init__(self, engine: Any, why: Exception) -> None:
        self.moved: dict[plan.Node, Begin] = {}
        self._engine, self._why = engine, why

    def need(self) -> Any:
        """Raise what says that the border is left out."""
        raise self._why

    def flush(self) -> None:
        """Refuse what a closed database refuses: nothing is late."""
        self._engine.check_open()

    def move(self, view: Any, adopt: Adopt | None = None) -> None:
        """Refuse to move a view."""
        self.need()

    def recall(self, view: Any) -> None:
        """Refuse, as of a view that has not moved."""
        self.need()

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """Refuse to give a DataFrame."""
        return self.need()

    def offloaded(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """Return None: nothing is elsewhere."""
        return None

    def where(self, node: plan.Node) -> str | None:
        """Return None: there is nothing to say of a node."""
        return None

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Return no levels: none is elsewhere."""
        return {}

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Leave the tables as they are: all are in the process."""

    def forget(self, table: Any) -> None:
        """Know nothing of a table."""

    def reset(self) -> None:
        """Leave all as it is: it is computed in the process."""

    def close(self) -> None:
        """Discard nothing."""


Begin = Callable[[Fragment], Remote]
Feeding = tuple[ExternalSource, plan.Table, tuple[plan.Node, ...]]
_ONLY_WHOLE = (*RECURSIONS, plan.Top, plan.Reduce)
"""What goes in no other way."""


class OffloadedNodes:
    """What of a database's plans is elsewhere.

    Parameters
    ----------
    moved: nodes that are to run there, with how to begin that.
    remote_tables: the tables whose rows are there, by their number.
    begin, scan: how to begin a part that reads such tables, and what fetches rows of them.
    apart: why a whole part of a plan cannot be done there as one, if it cannot.
    nested: has all rows of a nest, where the parts of its levels are.
    """

    def __init__(
        self,
        moved: Mapping[plan.Node, Begin],
        remote_tables: Mapping[int, ExternalSource],
        begin: Begin,
        scan: Begin,
        apart: Callable[[Fragment], str | None],
        nested: Callable[[Fragment, Sequence[Any]], Any],
    ) -> None:
        self.moved = moved
        self.remote_tables = remote_tables
        self._begin = begin
        self.scan = scan
        self._apart = apart
        self._nested = nested
        self._parts: dict[int, tuple[plan.Node, Fragment | None]] = {}
        self._reasons: dict[int, str] = {}
        self._levels: dict[int, tuple[plan.Node, nests.Levels | None]] = {}
        self._of_levels: dict[int, plan.Node] = {}
        """The nests whose levels are there, by the `id` of their parts."""

    def __bool__(self) -> bool:
        return bool(self.moved or self.remote_tables)

    def includes(self, node: plan.Node) -> bool:
        """Whether a node runs there."""
        if self.is_level(node):
            return True
        if node in self.moved:
            return self.levels(node) is None
        return bool(self.remote_tables) and self._is_fed(node)

    def holds(self, node: plan.Node) -> bool:
        """Whether the rows of a node are there, and it looks at one after the other."""
        _, base = chain_over(node)
        return isinstance(base, plan.Table) and base.number in self.remote_tables

    def reaches(self, node: plan.Node) -> bool:
        """Whether a node reads something that is there."""
        return bool(self) and any(self.includes(n) or self.holds(n) for n in nodes(node))

    def fragment(self, node: plan.Node) -> Fragment:
        """The part of a node that runs there."""
        part = self._part(node)
        assert part is not None
        return part

    def is_whole(self, node: plan.Node) -> bool:
        """Whether a node can run there together with all that is below it."""
        part = self._part(node)
        return part is not None and part.is_whole

    def stays(self, node: plan.Node) -> str:
        """Why a node does not go together with what is below it; empty if that is not known."""
        self._part(node)
        return self._reasons.get(id(node), "")

    # Nests, whose levels are parts of their own.

    def levels(self, root: plan.Node) -> nests.Levels | None:
        """The levels of a nest that can be there, each as a part."""
        if id(root) not in self._levels:
            found = nests.levels_of(root)
            can_be = found is not None and self._can_be_parts(root, found)
            self._levels[id(root)] = root, found if can_be else None
        return self._levels[id(root)][1]

    def levels_there(self, root: plan.Node) -> nests.Levels | None:
        """The same, of one whose levels are there."""
        if not self:
            return None
        found = self.levels(root)
        if found is None or not (root in self.moved or self._reads_there(root)):
            return None
        self._of_levels.update((id(part), root) for part in found.parts)
        return found

    def is_level(self, node: plan.Node) -> bool:
        """Whether a node is a part of such a nest."""
        return id(node) in self._of_levels

    def stands_for(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """The nodes that are there with what has moved."""
        return (top,) if self.levels(top) is not None else self.fragment(top).of

    def parts(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """The nodes that are parts there, of what has moved."""
        found = self.levels(top)
        return (top,) if found is None else found.parts

    def every(self, root: plan.Node) -> Callable[[Sequence[Any]], Any]:
        """What has all rows of a nest, of the operators of its parts, if they can be had there."""

        def found(operators: Sequence[Any]) -> Any:
            whole = whole_of(root, self.holds)
            can_be = whole is not None and self._apart(whole) is None
            return self._nested(whole, operators) if whole is not None and can_be else None

        return found

    def _can_be_parts(self, root: plan.Node, found: nests.Levels) -> bool:
        made = [level_of(part, self.holds) for part in found.parts]
        has_moved = root in self.moved
        if None in made or not (has_moved or self.is_whole(root.inputs()[0])):
            return False
        for part, fragment in zip(found.parts, made, strict=True):
            assert fragment is not None
            reason = None if has_moved else self._apart(fragment)
            if reason is not None:
                self._reasons[id(root)] = reason
                return False
            self._parts[id(part)] = part, fragment
        return True

    def _reads_there(self, root: plan.Node) -> bool:
        return bool(self.remote_tables) and any(map(self.holds, self.fragment(root).inputs))

    def takes(self, loop: plan.Iterate) -> bool:
        """Whether a loop can run there as one, so that its rounds are not written out."""
        if not is_loop(loop):
            return False
        if has_components(loop):
            found = self._found(plan.Component(loop, 0))
            return found is not None and found.is_whole
        return self.is_whole(loop)

    def begin(self, node: plan.Node) -> Begin:
        """How to begin the part of a node."""
        return self.moved.get(self._of_levels.get(id(node), node), self._begin)

    def _is_fed(self, node: plan.Node) -> bool:
        part = None if isinstance(node, LINEAR) else self._part(node)
        return part is not None and any(map(self.holds, part.inputs))

    def _part(self, node: plan.Node) -> Fragment | None:
        """The part of a node of the plan that is compiled, if it can be one; made once."""
        if id(node) not in self._parts:
            self._parts[id(node)] = node, self._found(node)
        return self._parts[id(node)][1]

    def _pays(self, whole: Fragment) -> bool:
        """Whether rows come from where they are in bulk, or would come by between operators."""
        operators = sum(isinstance(node, STATEFUL) for node in whole.of)
        alone = any(isinstance(node, _ONLY_WHOLE) for node in whole.of)
        return operators > 1 or alone or any(map(self.holds, whole.inputs))

    def _found(self, node: plan.Node) -> Fragment | None:
        if self.levels(node) is not None:
            below = self.fragment(node.inputs()[0])
            return replace(below, of=(node, *below.of))
        whole = whole_of(node, self.holds)
        reason = ""
        if whole is not None and self._pays(whole):
            found = self._apart(whole)
            if found is None:
                return whole
            reason = self._reasons[id(node)] = found
        try:
            return replace(part_of(node), apart=reason)
        except Unmovable:
            return None


def feeding(away: OffloadedNodes, node: plan.Node) -> Feeding:
    """What feeds a part there: the source, its table, and the chain over it."""
    chain, table = chain_over(node)
    assert isinstance(table, plan.Table)
    return away.remote_tables[table.number], table, chain


class StepDefinition:
    """The database of the recursive relations that a step is called with, once it is known."""

    def __init__(self, what: str) -> None:
        self.what = what
        """The relations, for messages."""
        self.engine: Any = None
        self.is_open = True
        self._others: list[StepDefinition] = []

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

    def wait_with(self, other: StepDefinition) -> None:
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
    if not isinstance(engine, StepDefinition):
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

"""Placement of the parts of queries: in the process, elsewhere, or in a recursion being defined.

`OffloadedNodes` tells which parts of a plan are elsewhere.

moved         part over nodes of the graph     a part that has grown too large
on tables     part over tables, fed there      its rows do not pass through the process
scan          rows of such tables              read in the process, by a part that cannot move

`StepDefinition` stands for the database of the recursive relations that a step is called with. They
have no rows yet, and belong to no database until they meet a relation that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.properties import free, nodes, reads_stream
from optimizer.traverse import has_components
from reactive.engine.compiler import levels as nests
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.plain import LINEAR, chain_over
from reactive.engine.remote.fragments import (
    RECURSIONS,
    STATEFUL,
    Fragment,
    Unmovable,
    is_kept_loop,
    level_fragment,
    offloaded_fragment,
    whole_fragment,
)
from reactive.engine.remote.remote import Adopt, ExternalSource, Remote

# The interface of `offload` for the rooms below it.


class Overflow(Protocol):
    """Watches if the state outgrows the process."""

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
        """True if parts can be elsewhere at all."""
        ...

    @property
    def is_used(self) -> bool:
        """True if anything is elsewhere."""
        ...

    def offloaded_nodes(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """Return the nodes of plans that are elsewhere, for the compiler."""
        ...

    def flush(self) -> None:
        """Bring deferred nodes to the state of the last commit, or a later one."""
        ...

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Load the tables into the process that a plan reads there."""
        ...

    def forget(self, table: Any) -> None:
        """Forget a dropped table."""
        ...

    def where(self, node: plan.Node) -> str | None:
        """Return the place of a node of a plan, for `explain`; or None."""
        ...

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """Return the rows of a leaf as a DataFrame."""
        ...

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Return the places of the levels of a nest that are elsewhere, by name."""
        ...

    def reset(self) -> None:
        """Recompute everything in the process."""
        ...

    def move(self, view: Any, adopt: Adopt | None = None) -> None: ...

    def recall(self, view: Any) -> None: ...

    def need(self) -> Any:
        """Return the backend for parts; raise `OffloadError` without one."""
        ...

    def close(self) -> None: ...


class AllHere:
    """The placement of a database without the border `offload`: everything is in the process."""

    overflow: Overflow | None = None
    is_possible = is_used = False

    def __init__(self, engine: Any, why: Exception) -> None:
        self.moved: dict[plan.Node, Begin] = {}
        self._engine, self._why = engine, why

    def need(self) -> Any:
        """Raise the error that the border is missing."""
        raise self._why

    def flush(self) -> None:
        """Raise if the database is closed; nothing is deferred."""
        self._engine.check_open()

    def move(self, view: Any, adopt: Adopt | None = None) -> None:
        """Refuse to move a view."""
        self.need()

    def recall(self, view: Any) -> None:
        """Refuse to recall a view, which cannot have moved."""
        self.need()

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """Refuse to make a DataFrame."""
        return self.need()

    def offloaded_nodes(self, moved: Mapping[plan.Node, Begin]) -> OffloadedNodes | None:
        """Return None: nothing is elsewhere."""
        return None

    def where(self, node: plan.Node) -> str | None:
        """Return None: there is nothing to say of a node."""
        return None

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Return no levels: none is elsewhere."""
        return {}

    def read_here(self, run: plan.Node, offloaded: OffloadedNodes) -> None:
        """Do nothing: every table is in the process."""

    def forget(self, table: Any) -> None:
        """Do nothing: no table is elsewhere."""

    def reset(self) -> None:
        """Do nothing: everything is computed in the process."""

    def close(self) -> None:
        """Do nothing: there is no backend to close."""


Begin = Callable[[Fragment], Remote]
Feeding = tuple[ExternalSource, plan.Table, tuple[plan.Node, ...]]
_ONLY_WHOLE = (*RECURSIONS, plan.Top, plan.Reduce)
"""Nodes that can only be offloaded together with all nodes below."""


class OffloadedNodes:
    """The nodes of a database's plans that are elsewhere.

    Parameters
    ----------
    moved: nodes that must run there, with the function that begins each.
    remote_tables: the tables whose rows are there, by their number.
    begin, scan: begin a part that reads such tables, and fetch rows of them.
    apart: returns why a whole part of a plan cannot run there as one, or None.
    nested: computes all rows of a nest, in the place of its levels.
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
        """Return True if a node runs there."""
        if self.is_level(node):
            return True
        if node in self.moved:
            return self.levels(node) is None
        return bool(self.remote_tables) and self._is_fed(node)

    def holds(self, node: plan.Node) -> bool:
        """Return True if the rows of a node are there, and it maps single rows."""
        _, base = chain_over(node)
        return isinstance(base, plan.Table) and base.number in self.remote_tables

    def reaches(self, node: plan.Node) -> bool:
        """Return True if a node reads something that is there."""
        return bool(self) and any(self.includes(n) or self.holds(n) for n in nodes(node))

    def fragment(self, node: plan.Node) -> Fragment:
        """Return the fragment of a node that runs there."""
        part = self._part(node)
        assert part is not None
        return part

    def is_whole(self, node: plan.Node) -> bool:
        """Return True if a node can run there together with all nodes below it."""
        part = self._part(node)
        return part is not None and part.is_whole

    def stays(self, node: plan.Node) -> str:
        """Return why a node cannot run there together with all nodes below it; empty if unknown."""
        self._part(node)
        return self._reasons.get(id(node), "")

    # Nests, whose levels are parts of their own.

    def levels(self, root: plan.Node) -> nests.Levels | None:
        """Return the levels of a nest, if each can be a part there; else None."""
        if id(root) not in self._levels:
            found = nests.levels_of(root)
            can_be = found is not None and self._can_be_parts(root, found)
            self._levels[id(root)] = root, found if can_be else None
        return self._levels[id(root)][1]

    def levels_there(self, root: plan.Node) -> nests.Levels | None:
        """Return the levels of a nest, if they are there; else None."""
        if not self:
            return None
        found = self.levels(root)
        if found is None or not (root in self.moved or self._reads_there(root)):
            return None
        self._of_levels.update((id(part), root) for part in found.parts)
        return found

    def is_level(self, node: plan.Node) -> bool:
        """Return True if a node is a level of such a nest."""
        return id(node) in self._of_levels

    def stands_for(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """Return the nodes that run there together with a moved node."""
        return (top,) if self.levels(top) is not None else self.fragment(top).of

    def parts(self, top: plan.Node) -> tuple[plan.Node, ...]:
        """Return the nodes that are parts there, of a moved node."""
        found = self.levels(top)
        return (top,) if found is None else found.parts

    def every(self, root: plan.Node) -> Callable[[Sequence[Any]], Any]:
        """Return the function that computes all rows of a nest from the operators of its parts.

        The function returns None if that cannot be done there.
        """

        def found(operators: Sequence[Any]) -> Any:
            whole = whole_fragment(root, self.holds)
            can_be = whole is not None and self._apart(whole) is None
            return self._nested(whole, operators) if whole is not None and can_be else None

        return found

    def _can_be_parts(self, root: plan.Node, found: nests.Levels) -> bool:
        """Return True if all levels of a nest can be remote.

        Notes their fragments, or the reason why they cannot.
        """
        made = [level_fragment(part, self.holds) for part in found.parts]
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
        """Return True if a loop can run there as one, so that its rounds are not unrolled."""
        if not is_kept_loop(loop):
            return False
        if has_components(loop):
            found = self._find_fragment(plan.Component(loop, 0))
            return found is not None and found.is_whole
        return self.is_whole(loop)

    def begin(self, node: plan.Node) -> Begin:
        """Return the function that begins the part of a node."""
        return self.moved.get(self._of_levels.get(id(node), node), self._begin)

    def _is_fed(self, node: plan.Node) -> bool:
        """Return True if a part can be elsewhere, and one of its inputs has its rows there."""
        part = None if isinstance(node, LINEAR) else self._part(node)
        return part is not None and any(map(self.holds, part.inputs))

    def _part(self, node: plan.Node) -> Fragment | None:
        """Return the fragment of a node, which is made once; None if it cannot be one."""
        if id(node) not in self._parts:
            self._parts[id(node)] = node, self._find_fragment(node)
        return self._parts[id(node)][1]

    def _pays(self, whole: Fragment) -> bool:
        """Return True if a whole part avoids that rows pass through the process in bulk."""
        operators = sum(isinstance(node, STATEFUL) for node in whole.of)
        alone = reads_stream(whole.of[0]) or any(isinstance(n, _ONLY_WHOLE) for n in whole.of)
        return operators > 1 or alone or any(map(self.holds, whole.inputs))

    def _find_fragment(self, node: plan.Node) -> Fragment | None:
        """Return the fragment of a part that would be remote; None if it cannot be moved."""
        if self.levels(node) is not None:
            below = self.fragment(node.inputs()[0])
            return replace(below, of=(node, *below.of))
        whole = whole_fragment(node, self.holds)
        reason = ""
        if whole is not None and self._pays(whole):
            found = self._apart(whole)
            if found is None:
                return whole
            reason = self._reasons[id(node)] = found
        if reads_stream(node):
            return None
        try:
            return replace(offloaded_fragment(node), apart=reason)
        except Unmovable:
            return None


def feeding(away: OffloadedNodes, node: plan.Node) -> Feeding:
    """Return the source that feeds a part there, its table, and the chain over it."""
    chain, table = chain_over(node)
    assert isinstance(table, plan.Table)
    return away.remote_tables[table.number], table, chain


class StepDefinition:
    """The database of the recursive relations of a step, once it is known."""

    def __init__(self, what: str) -> None:
        self.what = what
        """The relations, for messages."""
        self.engine: Any = None
        self.is_open = True
        self._others: list[StepDefinition] = []

    def __getattr__(self, name: str) -> Any:
        raise outside(self.what)

    def moment_of(self, rows: plan.Node) -> Any:
        """Refuse `previous()`.

        Raises
        ------
        PlanError: always.
        """
        raise without_past(self.what)

    def learn(self, engine: Any) -> None:
        """Set the database, also for the definitions that wait for the same one."""
        if self.engine is None:
            self.engine = engine
            for other in self._others:
                other.learn(engine)

    def finish(self) -> Any:
        """End the definition, outside of which its relations are invalid from now on.

        Return the database, or a definition around this one that waits for it; None if unknown.
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
    """Return the error for a recursive relation that is used outside its definition."""
    return PlanError(
        f"relation {what} has no rows but in the query that its step makes\n"
        "  use the relation that fixpoint(), iterate() or each() returns"
    )


def without_past(what: str) -> PlanError:
    """Return the error for `previous()` of rows that belong to no commit."""
    return PlanError(
        f"previous() of {what}: the rows of a step are not those of a commit\n"
        "  take previous() of what fixpoint(), iterate() or each() returns, or of a table"
    )


def database_of(engine: Any) -> Any:
    """Return the database itself, or None if it is not known yet."""
    if not isinstance(engine, StepDefinition):
        return engine
    if not engine.is_open:
        raise outside(engine.what)
    return engine.engine


def agree(mine: Any, theirs: Any) -> bool:
    """Return True if two relations can belong to the same database, and record that they do."""
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
    """Return the names of recursive relations that are read but not defined."""
    read = (node for node in nodes(root) if isinstance(node, plan.Recursive))
    return ", ".join(sorted({repr(node.name) for node in read if node.level in free(root)}))

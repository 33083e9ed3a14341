"""Restore the nodes of a view: start operators with their state from an earlier process.

    node is new, its operator is   restorable, and a state is stored    restored
                                   anything else                        computed from its inputs

A node is found by the class of its operator and the fingerprint of its part of the query: two nodes
that agree on both hold the same state. If tables have changed since, the operator steps over the
changes of its inputs, provided that they can be derived without the old rows.

    table                           its commits since
    where, select, join, index      derived from the changes of the inputs
    restored node                   emitted by its own step
    others with state               unknown: nodes above are recomputed

State:  the states, until the view is built; the time of each operator.
Cost:   O(rows) to restore; one fingerprint per node that has a state.

`TreeRows` is the leaf of a view of a nest whose rows are a tree: rows are built when read.

State:  none; the tree caches the rows that were read, if it is large.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import TYPE_CHECKING, Any

from optimizer.plans.fingerprint import fingerprint
from reactive.engine.collections.zset import (
    Pair,
    Row,
    UniformDelta,
    consolidate,
    repeat_by_weight,
)
from reactive.engine.dataflow.leaves import BorrowedLeaf
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.aggregate import State, is_restorable
from reactive.engine.operators.fixpoint.fixpoint import FixpointRelation
from reactive.engine.operators.index_by import IndexBy
from reactive.engine.operators.tree.tree import Tree

if TYPE_CHECKING:
    from reactive.engine.operators.windows.placed import PlacedRows

Find = Callable[[str], State | None]
Changed = Mapping[Node, Sequence[Pair]]


class RestoreFailure(Exception):
    """An operator could not be restored; its view must be built without stored states."""


class NotTold(Exception):
    """The changes of an input since a state was stored are unknown."""


class Restoration:
    """The stored states that restore the operators of a new view.

    Parameters
    ----------
    find: returns the state of a node by its name, or None.
    changed: the changes of tables since the states were stored, by node.
    """

    def __init__(self, find: Find = lambda name: None, changed: Changed | None = None) -> None:
        self._find = find
        self._deltas: dict[Node, Sequence[Any]] = dict(changed or {})
        """The changes of the outputs of nodes since the state was stored."""
        self._is_late = changed is not None
        self._held: set[Node] = set()
        """The nodes that were restored."""
        self.computed: dict[str, float] = {}
        """Seconds to compute each operator that could have been restored."""
        self.read: dict[str, float] = {}
        """Seconds to restore each operator."""
        self.names: dict[int, str] = {}
        """The names of nodes, by their ranks."""

    def fill(
        self, node: Node, inputs: Callable[[], Sequence[Any]], compute: Callable[[], None]
    ) -> None:
        """Restore the state of the operator of a new node, or compute it.

        Parameters
        ----------
        inputs: returns all current rows of its inputs.
        compute: steps its operator over these.
        """
        operator = node.operator
        if isinstance(operator, IndexBy) and not operator.is_made and self.holds(node.inputs[0]):
            operator.defer()
            return
        if node.deferred or not is_restorable(operator):
            compute()
            return
        name, start = state_name(node), perf_counter()
        self.names[node.rank] = name
        state = self._find(name)
        deltas = self._changes_of(node) if state is not None else None
        if state is None or deltas is None:
            compute()
            self.computed[name] = perf_counter() - start
            return
        try:
            operator.restore(state, lambda: _rows_before(inputs(), deltas))
            self._deltas[node] = _step_over(node, deltas) if any(deltas) else ()
        except Exception as error:
            raise RestoreFailure(f"{type(error).__name__}: {error}") from error
        self.read[name] = perf_counter() - start
        self._held.add(node)

    def holds(self, node: Node) -> bool:
        """Return True if a restored operator holds the rows of a node."""
        return (
            node.inputs[0] if isinstance(node.operator, FixpointRelation) else node
        ) in self._held

    def _changes_of(self, node: Node) -> Sequence[Sequence[Any]] | None:
        """Return the changes of the inputs of a node; None if they are not known."""
        if not self._is_late:
            return [()] * len(node.inputs)
        try:
            return [self._delta(source) for source in node.inputs]
        except NotTold:
            return None

    def _delta(self, node: Node) -> Sequence[Any]:
        """Return the changes of the output of a node since the state was stored."""
        if node not in self._deltas:
            self._deltas[node] = self._computed_delta(node)
        return self._deltas[node]

    def _computed_delta(self, node: Node) -> Sequence[Any]:
        """Return what a node emits for the deltas of its inputs.

        Raises `NotTold` if its operator has state, so that a step would change it.
        """
        operator = node.operator
        if not node.inputs:
            return ()
        if hasattr(operator, "undo") and not isinstance(operator, IndexBy):
            raise NotTold
        deltas = [self._delta(source) for source in node.inputs]
        if not any(deltas):
            return ()
        return (
            operator.add_keys(*deltas)
            if isinstance(operator, IndexBy)
            else _step_over(node, deltas)
        )


def _step_over(node: Node, deltas: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """Step an operator over changes that are already applied to its inputs."""
    with ExitStack() as seen:
        for source, delta in zip(node.inputs, deltas, strict=True):
            if isinstance(source.operator, IndexBy):
                seen.enter_context(source.operator.as_stepped(delta))
        found: Sequence[Any] = node.run(*deltas)
        node.finalize()
    return found


def state_name(node: Node) -> str:
    """Return the name under which the state of a node is stored."""
    return f"{type(node.operator).__name__} {fingerprint(node.plan)}"


def states_of(
    leaf: Node, names: Mapping[int, str], wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[tuple[str, State]]:
    """Yield the names and states of the operators below a leaf, except nodes of equal names.

    They are copies: later commits do not change them.

    Parameters
    ----------
    names: the known names, by the ranks of nodes.
    wanted: tells by the name if a state is needed.
    """
    named: dict[str, list[Node]] = {}
    for node in leaf.upstream():
        if node.operator is not None and not node.deferred and is_restorable(node.operator):
            named.setdefault(names.get(node.rank) or state_name(node), []).append(node)
    for name, found in named.items():
        state = found[0].operator.state() if len(found) == 1 and wanted(name) else None
        if state is not None:
            yield name, state


def _rows_before(inputs: Sequence[Any], deltas: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """Return the rows of inputs as they were before changes."""
    return [
        consolidate([*rows, *((row, -weight) for row, weight in delta)]) if delta else rows
        for rows, delta in zip(inputs, deltas, strict=True)
    ]


class TreeRows(BorrowedLeaf):
    """The rows of a tree, or of places, made when they are read.

    Those of a tree are read inside the lock, since reading may cache a bag.
    """

    __slots__ = ("count", "find", "keys", "pieces", "tree")

    def __init__(self, tree: Tree | PlacedRows) -> None:
        self.tree = tree
        self.count: Callable[[Row], int] = tree.count
        if isinstance(tree, Tree):
            self.find: Callable[[Any], Row | None] = tree.find
            self.keys: Callable[[], list[Any]] = tree.keys
        if hasattr(tree, "pieces"):
            self.pieces: Callable[[], Iterator[list[Pair]] | None] = tree.pieces

    def __len__(self) -> int:
        return len(self.tree)

    def items(self) -> Collection[Pair]:
        return self.tree.contents()

    def rows(self) -> list[Row]:
        pairs = self.tree.pairs()
        return list(pairs.rows if type(pairs) is UniformDelta else repeat_by_weight(pairs))

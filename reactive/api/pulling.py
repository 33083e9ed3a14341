"""Questions about a query as of the last commit: its rows with wanted values, without a view.

`Questions` are kept with the view that is asked. Their `Pull` is made again after a commit; only
views of recursions are kept over commits.

State:  per view that was asked, the sources of rows of the last version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.properties import free, nodes, shapes
from optimizer.rewriting.optimize import optimize
from optimizer.rewriting.report import with_own_levels
from optimizer.rules.read_callables import read_callables
from optimizer.traverse import without_views
from reactive.engine.collections.zset import Row
from reactive.engine.provenance.goals import Rounds
from reactive.engine.provenance.pull import Pull
from reactive.engine.provenance.row_sources import RowSource, source_of_bag
from reactive.engine.provenance.wanted import Evaluator
from reactive.engine.reference.bags import Bag, apply_changes, bag_delta, sum_pairs
from reactive.engine.reference.evaluate import evaluate_part
from reactive.engine.reference.recursion import relation_change
from reactive.engine.transactions.followers import followers_of
from reactive.errors import TableError, TransactionError

if TYPE_CHECKING:
    from reactive.api.view import AnyView
    from reactive.engine.transactions.engine import Engine

Recursion = plan.Fixpoint | plan.Iterate


class Questions:
    """Answers questions about one query, again and again.

    Parameters
    ----------
    make_view: returns a view of a plan of the same database.
    """

    def __init__(
        self, engine: Engine, written: plan.Node, make_view: Callable[[plan.Node], AnyView]
    ) -> None:
        self._engine, self._make_view = engine, make_view
        self.root = lifted(written)
        self.recursions = {each.level: each for each in recursions_in(self.root)}
        self._views: dict[tuple[Any, int], AnyView] = {}
        self._version: Any = None
        self._pulls: dict[Rounds, Pull] = {}
        self._sources: dict[tuple[int, Rounds], tuple[plan.Node, RowSource | None]] = {}
        self._rounds: dict[tuple[Any, Rounds], list[list[Bag]]] = {}

    def pull(self, rounds: Rounds = ()) -> Pull:
        """Return what finds rows as of the last commit; the caller holds the lock.

        rounds: for nodes inside iterations, the round whose rows their relations have.
        """
        supposed = self._engine.supposition
        if supposed is None and self._engine.pending is not None and any(self._engine.pending):
            raise TransactionError(
                "a transaction is open: its changes are in no view yet\n  ask after its end"
            )
        version = self._engine.version, None if supposed is None else supposed.state
        if self._version != version:
            self._version, self._pulls, self._sources, self._rounds = (
                version,
                {},
                {},
                {},
            )
        found = self._pulls.get(rounds)
        if found is None:
            found = self._pulls[rounds] = Pull(partial(self._source, rounds))
        return found

    def relation(self, node: plan.Node) -> tuple[Recursion, int]:
        """Return the recursion that a node reads, and the index of the relation in it."""
        match node:
            case plan.Recursive(level, index):
                return self.recursions[level], index
            case plan.Component(source, index):
                return source, index
        assert isinstance(node, Recursion)
        return node, 0

    def _source(self, rounds: Rounds, node: plan.Node) -> RowSource | None:
        if not isinstance(node, SOURCES):
            return None
        read = free(node) if not isinstance(node, plan.Recursive) else {node.level}
        key = id(node), tuple(each for each in rounds if each[0] in read)
        found = self._sources.get(key)
        if found is None:
            found = self._sources[key] = (node, self._made(node, rounds))
        return found[1]

    def _made(self, node: plan.Node, rounds: Rounds) -> RowSource | None:
        match node:
            case plan.Table():
                return self._of_table(node)
            case plan.View(source):
                view = self._open_view(source)
                return None if view is None else _of_view(view)
            case plan.Recursive(level, index) if level in dict(rounds):
                recursion = self.recursions[level]
                around = tuple(each for each in rounds if each[0] != level)
                return source_of_bag(
                    self._rows_by_round(recursion, around)[dict(rounds)[level]][index]
                )
        recursion, index = self.relation(node)
        if free(recursion):
            return source_of_bag(self.evaluated(plan.Component(recursion, index), rounds))
        return self._of_recursion(recursion, index)

    def evaluated(self, node: plan.Node, rounds: Rounds) -> Bag:
        """Return the rows of a node inside recursions, for the rows that these have."""
        given = {}
        for level in free(node):
            of = self.recursions[level]
            for index, body in enumerate(of.bodies):
                read = plan.Recursive(level, index, of.names[index], is_set=True, of=shapes(body))
                source = self._source(rounds, read)
                assert source is not None
                given[level, index] = source.rows((), 1, Evaluator())
        return evaluate_part(node, given, lambda table: self._engine.table_of(table)._all())

    def last_round(self, recursion: Recursion, rounds: Rounds) -> int:
        """Return the number of rounds that a recursion runs, evaluated from scratch."""
        return len(self._rows_by_round(recursion, rounds)) - 1

    def first_round(
        self, recursion: Recursion, index: int, row: Row, rounds: Rounds, last: int
    ) -> int:
        """Return the first round whose rows have a row, `last` if no earlier one has it."""
        every = self._rows_by_round(recursion, rounds)
        return next((at for at in range(last) if every[at][index].get(row, 0) > 0), last)

    def _rows_by_round(self, recursion: Recursion, around: Rounds) -> list[list[Bag]]:
        """Return the rows of all relations of a recursion, round by round, with the first ones."""
        around = tuple(each for each in around if each[0] in free(recursion))
        found = self._rounds.get((recursion.level, around))
        if found is None:
            found = self._rounds[recursion.level, around] = []
            if isinstance(recursion, plan.Iterate):
                self._add_rounds(recursion, around, found)
            else:
                self._add_rounds_of_fixpoint(recursion, around, found)
        return found

    def _add_rounds(self, iterate: plan.Iterate, around: Rounds, found: list[list[Bag]]) -> None:
        found.append([self.evaluated(start, around) for start in iterate.starts])
        while iterate.times is None or len(found) <= iterate.times:
            now = (*around, (iterate.level, len(found) - 1))
            rows = [self.evaluated(body, now) for body in iterate.bodies]
            if iterate.times is None and rows == found[-1]:
                break
            found.append(rows)

    def _add_rounds_of_fixpoint(
        self, fixpoint: plan.Fixpoint, around: Rounds, found: list[list[Bag]]
    ) -> None:
        relations = [relation_change(best) for best in fixpoint.best]
        found.append([Bag() for _ in relations])
        made = [Bag() for _ in relations]
        while True:
            now = (*around, (fixpoint.level, len(found) - 1))
            before, made = made, [self.evaluated(body, now) for body in fixpoint.bodies]
            rows = [bag.copy() for bag in found[-1]]
            for relation, bag, new, old in zip(relations, rows, made, before, strict=True):
                apply_changes(bag, relation.take(bag_delta(new, old)))
            if rows == found[-1]:
                break
            found.append(rows)

    def _of_table(self, node: plan.Table) -> RowSource:
        table = self._engine.table_of(node)
        if not node.stored:
            raise TableError(
                f"table {node.name!r} is not stored\n  there are no rows that could be found"
            )
        store = table._store
        gate, by_field = table._do.gate, None
        if self._engine.supposition is None:
            by_field = (followers_of(table).by_field, store)

        def weight(row: Any) -> int:
            return int(store.count(row)) if gate.is_row(row) else 0

        return RowSource(table._all, weight, lambda: len(store), by_field)

    def row_with_key_of(self, node: plan.Table, row: Row) -> Row | None:
        """Return the row of a table that has the key of another row; None if there is none."""
        keyed = self._engine.table_of(node)._keyed
        return None if keyed is None else keyed.by_key.get(keyed.key(row))

    def _open_view(self, written: plan.Node) -> AnyView | None:
        """Return a view of a plan that is open, if there is one."""
        for view in list(self._engine.views.values()):
            if not view.closed and view.relation.plan is written:
                found: AnyView = view
                return found
        return None

    def _of_recursion(self, node: Recursion, index: int) -> RowSource:
        key = (node.level, index)
        view = self._views.get(key)
        if view is None or view.closed:
            several = len(node.inputs()) > 1 and len(node.names) > 1
            whole = plan.Component(node, index) if several else node
            view = self._open_view(whole)
            if view is None and self._engine.supposition is not None:  # no view can be made
                return source_of_bag(self.evaluated(whole, ()))
            view = self._views[key] = view or self._make_view(whole)
        return _of_view(view)


SOURCES = (plan.Table, plan.View, plan.Recursive, plan.Component, plan.Fixpoint, plan.Iterate)


def _of_view(view: Any) -> RowSource:
    contents = view._contents
    if hasattr(contents, "count"):
        return RowSource(contents.items, contents.count, lambda: len(view))
    return source_of_bag(sum_pairs(contents.items()))


def lifted(written: plan.Node) -> plan.Node:
    """Return a query as written, with its callables read and a level for each recursion."""
    found = optimize(written, ((read_callables,),)).plan
    levels = [each.level for each in recursions_in(found)]
    if len(set(levels)) == len(levels):
        return found
    return with_own_levels(without_views(found))


def recursions_in(root: plan.Node) -> Iterator[Recursion]:
    """Yield the recursions of a query, each once."""
    for node in nodes(root):
        if isinstance(node, plan.Fixpoint | plan.Iterate):
            yield node

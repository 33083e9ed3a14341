"""Moves of parts of queries out of the process, and back.

A part moves in three steps. It is created beside the one in the process, which continues; it
receives what its inputs hold, while commits continue; then all views are compiled again with the
remote part, and the old one, which has no readers, is dropped with its state. Views keep their
subscribers and names.

    view                       view
      aggregate                  RemoteOperator  --flush-->  Remote
        join              ->       join
          orders                     orders
          customers                  customers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from optimizer import plan
from optimizer.plans import explain as explaining
from optimizer.plans.properties import free, nodes, reads_stream, tables
from optimizer.traverse import without_iterations
from reactive.api.internal_interface import channel_of
from reactive.borders.offload import overflow, remote_table
from reactive.borders.offload.spilling import Spilling
from reactive.engine.compiler import levels as nests
from reactive.engine.compiler import placement
from reactive.engine.compiler.leaves import reattach, refill
from reactive.engine.dataflow.node import Node
from reactive.engine.operators.plain import LINEAR
from reactive.engine.remote import flush as flushing
from reactive.engine.remote import fragments, remote, remote_operator, remote_tree
from reactive.engine.runtime.collector import pause_collector
from reactive.errors import OffloadError

if TYPE_CHECKING:
    from reactive.api.view import AnyView
    from reactive.borders.offload.backend import Offload
    from reactive.engine.remote.remote import Adopt
    from reactive.engine.transactions.engine import Engine


T = TypeVar("T")


class Offloading:
    """The remote parts of a database's queries."""

    def __init__(self, engine: Engine, offload: Offload | None) -> None:
        self._engine = engine
        self.offload = offload
        self.moved: dict[plan.Node, placement.Begin] = {}
        self._flush: flushing.Flush | None = None
        self._readers: remote_table.Readers | None = None
        self.spilling = Spilling(engine)
        self.overflow = None if offload is None else overflow.OverflowWatch(self, offload)
        if offload is not None:
            offload.open()

    @property
    def is_possible(self) -> bool:
        """True if the database has an offload."""
        return self.offload is not None

    @property
    def remotes(self) -> tuple[Node, ...]:
        """The nodes of the graph whose work is remote."""
        return self._engine.graph.remotes

    @property
    def late(self) -> list[Node]:
        """The nodes in the process with changes that wait for a flush."""
        return list(self._engine.graph.late)

    @property
    def is_used(self) -> bool:
        """True if any part or table is remote."""
        return bool(self.moved or self._remote_tables() or self._engine.graph.pinned)

    def _remote_tables(self) -> dict[int, remote_table.RemoteTable[Any]]:
        """Return the remote tables, by their number."""
        if self.offload is None:
            return {}
        tables = self._engine.tables
        return {n: t for n, t in tables.items() if isinstance(t, remote_table.RemoteTable)}

    def offloaded_nodes(
        self, moved: Mapping[plan.Node, placement.Begin]
    ) -> placement.OffloadedNodes | None:
        """Return the placement for the compiler; None without an offload."""
        offload = self.offload
        if offload is None:
            return None
        return placement.OffloadedNodes(
            moved,
            self._remote_tables(),
            lambda part: overflow.begin_remote(self, part, part.of[0]),
            lambda part: offload.scan(part, overflow.query_name(part.of[0])),
            offload.apart,
            self.nested,
        )

    def frame(self, leaf: Node, row_type: Any) -> Any:
        """Return the rows of a leaf as a DataFrame; remote rows do not pass through the process."""
        source = leaf.inputs[0]
        remote = source.operator.remote if source.is_remote else None
        if hasattr(source.operator, "every"):
            remote = source.operator.every()
        given = leaf.operator.items() if remote is None else ()
        return self.need().frame(remote, given, row_type)

    def nested(
        self, fragment: fragments.Fragment, operators: Sequence[remote_operator.RemoteOperator]
    ) -> remote_tree.AllRows | None:
        """Return all rows of a nest whose levels operators have."""
        return self.need().nested(fragment, [(each.remote, each.fed()) for each in operators])

    def read_here(self, run: plan.Node, offloaded: placement.OffloadedNodes) -> None:
        """Bring the rows that a plan reads in the process back from remote stores."""
        self.spilling.bring_back(run, offloaded)

    def forget(self, table: Any) -> None:
        """Forget a table that was dropped."""
        self.spilling.forget(table)

    # Flushes.

    def flush(self) -> None:
        """Bring deferred views to the state of the last commit, or a later one.

        Raises `OffloadError`, which names the views that are not up to date.
        """
        engine = self._engine
        if not self.is_used:
            engine.check_open()
            return
        with self._engine.inside():
            wanted = engine.version
        while self.is_used:
            with self._engine.inside():
                flush = self._flush
                if flush is None or flush.is_over:
                    flush = self._flush = flushing.Flush(engine.graph, engine.version)
            try:
                flush.run(engine.inside)
            except OffloadError as error:
                raise self._name_views(error) from error
            if flush.is_done and flush.version >= wanted:
                return

    def _name_views(self, error: OffloadError) -> OffloadError:
        """Return the error with the names of the views that are not up to date, and a remedy."""
        deferred = [str(leaf.leaf) for leaf in self._engine.graph.leaves() if leaf.deferred]
        return OffloadError(
            f"{error}\n  not up to date: {', '.join(deferred) or 'nothing'}; all others go on\n"
            "  view.recall() computes them in the process again"
        )

    def look(self, at: Callable[[list[Node]], T]) -> T:
        """Return the result of a function of the graph's nodes; commits wait."""
        with self._engine.inside():
            return at(self._engine.graph.nodes())

    # Moves.

    def move(self, view: AnyView, adopt: Adopt | None = None) -> None:
        """Move the parts of a view that can be moved.

        Parameters
        ----------
        adopt: "state" or "process": whose rows count if tables differ from those that an earlier
            process left.

        Raises
        ------
        OffloadError: no part can be moved, for the listed reasons; or tables differ from those that
            an earlier process left, and `adopt` is not given.
        """
        remote.check_adopt(adopt)
        found, reasons = self._parts(channel_of(view).plan)
        if not found:
            raise OffloadError(move_refusal(str(channel_of(view)), reasons))
        gone = self._move_whole(found, adopt)
        for node in found:
            if node not in gone:
                self.hand_over(node, adopt)

    def _move_whole(self, found: list[plan.Node], adopt: Adopt | None) -> set[plan.Node]:
        """Move the nodes that can move together with everything below them, upper ones first.

        adopt: as for `move`.

        Return the nodes that have moved.
        """
        away, gone = self.offloaded_nodes(self.moved), set[plan.Node]()
        assert away is not None
        for node in reversed(found):
            if away.levels(node) is not None:
                continue
            fragment = away.fragment(overflow.top_of(self, node))
            if fragment.is_whole and node not in gone:
                self.hand_over(node, adopt)
                gone.update(fragment.of)
        return gone

    def hand_over(self, node: plan.Node, adopt: Adopt | None = None) -> None:
        """Move one node, with the row-by-row chain that follows it.

        Does nothing if it has moved already. adopt: as for `move`.
        """
        engine, offload = self._engine, self.need()
        node = overflow.top_of(self, node)
        moved: dict[plan.Node, placement.Begin] = {
            node: lambda part: overflow.begin_remote(self, part, node)
        }
        with self._engine.inside():
            if node in self.moved:
                return
            self.flush()
            with pause_collector():
                top = engine.queries.compiled_beside(node, {**self.moved, **moved}).nodes[id(node)]
            made = [each for each in (top, *top.inputs) if each.is_remote]
            engine.graph.pinned.update(made)
        try:
            operators = [each.operator for each in made]
            lag = sum(operator.lag for operator in operators)
            with offload.progress(explaining.headline(node), lag):
                remote_table.fill_operators(engine, operators, adopt)
            self._switch({**self.moved, **moved})
            self.spilling.spill(node, offload)
            if self.overflow is not None and offload.flush_interval is not None:
                self.overflow.background.start()
        finally:
            with self._engine.inside():
                engine.graph.pinned.difference_update(made)
                engine.graph.sweep()
            del made, top, operators
            offload.release()

    def recall(self, view: AnyView) -> None:
        """Bring the parts of a view back into the process."""
        own = set(nodes(self.plan_of(channel_of(view).plan)))
        self.bring_back([node for node in self.moved if node in own])

    def bring_back(self, gone: list[plan.Node]) -> None:
        """Compute nodes in the process again; all nodes, if the remote side does not answer.

        Raises
        ------
        OffloadError: a table is not stored, so its rows cannot be read again.
        """
        for node in gone:
            check_tables_stored(node, "cannot be computed in the process again")
            self._check_events(node, "has given out events that it did not keep")
        away = self.offloaded_nodes(self.moved)
        assert away is not None
        back = {top for top in self.moved if not set(gone).isdisjoint(away.stands_for(top))}
        parts = {part for top in back for part in away.parts(top)}
        left = [node for node in self.remotes if node.plan in parts]
        try:
            self.flush()
        except OffloadError:
            self._rescue()
        else:
            self._switch({node: begin for node, begin in self.moved.items() if node not in back})
        for each in left:
            if each not in self.remotes:
                each.operator.remote.close()

    def need(self) -> Offload:
        """Return the offload. Raises `OffloadError` if the database has none."""
        if self.offload is None:
            raise OffloadError(
                "this database has nowhere to move a view to\n"
                "  make it with Database(offload=SparkOffload(...))"
            )
        return self.offload

    def roots(self) -> list[plan.Node]:
        """Return the plans of all leaves, as they are run."""
        return [self.plan_of(leaf.leaf.plan) for leaf in self._engine.graph.leaves()]

    def plan_of(self, written: plan.Node) -> plan.Node:
        """Return the plan that is run for a query.

        Its iterations are unrolled into the nodes of all rounds, unless they can be remote as a
        whole.
        """
        away = self.offloaded_nodes(self.moved)
        found = self._engine.queries.optimize(written).plan
        return found if away is None else without_iterations(found, away.takes)

    def _parts(self, written: plan.Node) -> tuple[list[plan.Node], list[str]]:
        """Return the movable nodes of a query, and the reasons why the others are not."""
        root, found, reasons = self.plan_of(written), [], []
        self.need()
        away = self.offloaded_nodes(self.moved)
        assert away is not None
        if away.levels(root) is not None:
            return [root], []
        inside = {id(n) for node in nodes(root) for n in overflow.nodes_inside(node)}
        for node in nodes(root):
            if id(node) in inside or isinstance(node, STATELESS):
                continue
            refused = self.refused(node)
            if refused is None or (away.is_whole(node) and not reads_stream(node)):
                found.append(node)
            else:
                apart = "" if reads_stream(node) else away.stays(node)
                reasons.append(
                    f"{explaining.headline(node)}: {refused}{f' ({apart})' * bool(apart)}"
                )
        return found, reasons

    def refused(self, node: plan.Node) -> str | None:
        """Return the reason why a node must stay in the process; None if it may move."""
        try:
            self._check_events(node, "has given out events that it did not keep")
            self._check_is_not_looked_up(node)
            check_rows(node, self.roots() if self._engine.moments else ())
            self._check_is_not_fed_back(node)
            if reads_stream(node):
                return overflow.why_stream_stays(self, node)
            if isinstance(node, overflow.RECURSIONS):
                return overflow.why_recursion_stays(self, node)
            part = fragments.offloaded_fragment(node)
        except (fragments.Unmovable, OffloadError) as error:
            return str(error)
        return self.need().refuse(part)

    def _check_events(self, node: plan.Node, why: str) -> None:
        """Raise `OffloadError` for a node over a stream whose events have flowed."""
        lost = self._lost_stream(node)
        if lost is not None:
            raise OffloadError(
                f"stream {lost.name!r} {why}; a view over it moves before its first event"
            )

    def _lost_stream(self, node: plan.Node) -> plan.Table | None:
        """Return a stream below a node whose events have flowed, or None."""
        events = (table for table in tables(node) if table.time is not None)
        return next((each for each in events if self._engine.table_of(each)._flowed), None)

    def _check_is_not_looked_up(self, node: plan.Node) -> None:
        """Raise `OffloadError` for a node that a look-up of events reads."""
        if not self._engine.graph.forgets:
            return
        inside = (each for root in self.roots() for each in nodes(root))
        if any(isinstance(each, plan.Lookup) and node in nodes(each) for each in inside):
            raise OffloadError(
                "a lookup reads the rows of each commit, which are only known in the process"
            )

    def _check_is_not_fed_back(self, node: plan.Node) -> None:
        """Raise `OffloadError` for a node that a feedback reads."""
        feedback = self._engine.feedback
        loops = () if feedback is None else feedback.loops
        if any(node in nodes(self.plan_of(loop.query)) for loop in loops):
            raise OffloadError(
                "a feedback reads the rows of each commit, which are only known in the process"
            )

    def operators(self, node: plan.Node) -> list[remote_operator.RemoteOperator]:
        """Return the remote operators of a node."""
        found = nests.levels_of(node) if node in self.moved else None
        of = () if found is None else found.parts
        return [m.operator for m in self.remotes if m.plan in of or node in m.operator.fragment.of]

    def where(self, node: plan.Node) -> str | None:
        """Describe where a node runs, for `explain`; None if there is nothing to say."""
        if self.offload is None or free(node):
            return None
        for operator in self.operators(node):
            return self.describe(operator)
        if isinstance(node, overflow.RECURSIONS):
            return overflow.describe_place(self, node)
        if isinstance(node, STATELESS):
            return None
        refused = self.refused(node)
        return "in the process" + (", can move" if refused is None else f": {refused}")

    def describe(self, operator: remote_operator.RemoteOperator) -> str:
        """Describe a remote operator: its place, its form, and the time of the last flush."""
        took = f"; last flush {operator.latency:.2f} s" if operator.latency else ""
        return f"{operator.describe()}{took}"

    def levels(self, written: plan.Node) -> dict[str, str]:
        """Describe the remote levels of a nest, for `explain`."""
        return {} if self.offload is None else overflow.levels_elsewhere(self, written)

    def _switch(self, moved: dict[plan.Node, placement.Begin]) -> None:
        """Compile the queries again that read parts which have moved out or in."""
        engine = self._engine
        with self._engine.inside():
            self.flush()
            changed = self.moved.keys() ^ moved.keys()
            self._readers = self._readers or remote_table.Readers(engine, self.plan_of)
            for leaf, source in self._compile_parts(moved, self._readers.of(changed)):
                reattach(engine.graph, leaf, source)

    def _rescue(self) -> None:
        """Compute everything in the process again, from the tables, without the remote side."""
        engine = self._engine
        with self._engine.inside():
            self._flush = None
            deferred = [leaf for leaf in engine.graph.leaves() if leaf.deferred]
            stays = {n: begin for n, begin in self.moved.items() if self._lost_stream(n)}
            sources = self._compile_parts(stays, engine.graph.leaves())
            changed = [
                change
                for leaf, source in sources
                if leaf in deferred
                for change in refill(engine.graph, leaf, source)
            ]
            engine.graph.announce(changed, engine.version)

    def _compile_parts(
        self, moved: dict[plan.Node, placement.Begin], leaves: Iterable[Node]
    ) -> list[tuple[Node, Node]]:
        """Return the leaves with their new sources, for these remote parts."""
        engine = self._engine
        before, self.moved = self.moved, moved
        try:
            return [(leaf, engine.queries.node(leaf.leaf.base)) for leaf in leaves]
        except BaseException:
            self.moved = before
            engine.graph.sweep()
            raise

    def reset(self) -> None:
        """Compute everything in the process again, as the remote parts are not trusted."""
        self.moved, self._flush = {}, None
        if self.overflow is not None:
            self.overflow.forget()

    def close(self) -> None:
        """Delete everything remote."""
        for node in self.remotes:
            node.operator.stop()
        for table in self._remote_tables().values():
            table.rows.stop()
        self.spilling.close()
        if self.offload is not None:
            self.offload.close()


STATELESS = (*LINEAR, plan.Table, plan.UnionAll, plan.Negate, plan.Empty, plan.Values)


# Reasons why parts of a query must stay in the process.


def check_tables_stored(node: plan.Node, why: str) -> None:
    """Raise `OffloadError` for a node over a table that is not stored, and no stream."""
    for table in tables(node):
        if not table.stored and table.time is None:
            raise OffloadError(f"table {table.name!r} {why}")


def check_rows(node: plan.Node, roots: Iterable[plan.Node]) -> None:
    """Raise `OffloadError` for a node over unstored tables, or with rows of negative weight.

    Also raise for a node that reads earlier rows, or whose earlier rows one of the queries
    reads.
    """
    check_tables_stored(node, "has given out rows that it did not keep")
    if any(isinstance(each, plan.Negate) for each in nodes(node)):
        raise OffloadError(
            "it reads rows of negate(), whose weights are negative, which are kept in the process; "
            "difference_all() takes rows away without them"
        )
    _check_present(node, roots)


def move_refusal(name: str, reasons: list[str]) -> str:
    """Return the error for a view with no movable part."""
    lines = reasons or ["it keeps nothing but its rows"]
    count = f"{len(lines)} obstacle" + "s" * (len(lines) != 1)
    return "\n".join([f"{name} cannot be moved: {count}", *(f"  {line}" for line in lines)])


def _check_present(node: plan.Node, roots: Iterable[plan.Node]) -> None:
    """Raise `OffloadError` for a node that reads earlier rows, or whose earlier rows are read."""
    past = [
        each for root in (node, *roots) for each in nodes(root) if isinstance(each, plan.Previous)
    ]
    if any(each in nodes(node) or node in nodes(each) for each in past):
        raise OffloadError(
            "previous() has rows of each commit, which are only known in the process; "
            "subscribe() tells what a commit changed of a view that is elsewhere"
        )

"""Which parts of a database's queries are elsewhere, and how they go there and come back.

A part moves in three steps. It is made apart, beside the one in the process, which goes on; it is
handed what its inputs hold, while commits go on; and then all views are compiled again, with it
apart, and the old one, which nobody reads any more, is dropped with its state. The views keep their
subscribers and their names.

    view                       view
      aggregate                  RemoteOperator  --flush-->  Remote
        join              ->       join
          orders                     orders
          customers                  customers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from optimizer import plan
from optimizer.plans import explain as explaining
from optimizer.plans.properties import free, nodes
from optimizer.traverse import without_iterations
from reactive.collections.zset import Pair
from reactive.compiler import offloaded as offloaded_nodes
from reactive.compiler.leaves import reattach, refill
from reactive.dataflow.node import Node
from reactive.errors import OffloadError
from reactive.offload import (
    beginning,
    chain_end,
    moving_recursions,
    overflow,
    readers,
    remote_table,
    resuming,
)
from reactive.offload.obstacles import check_rows, check_stored, refusal
from reactive.offload.spilling import Spilled, Spilling
from reactive.operators.plain import LINEAR
from reactive.remote import adoption, external, fragments, remote_operator, streams
from reactive.remote import flush as flushing
from reactive.remote import remote as remote_parts
from reactive.runtime.collector import paused
from reactive.storage.keyed_store import KeyedStore
from reactive.storage.store import BagStore

if TYPE_CHECKING:
    from reactive.api.view import AnyView
    from reactive.remote.adoption import Adopt
    from reactive.sinks.making import SinkOptions
    from reactive.sinks.target import Outbox, Target
    from reactive.transactions.engine import Engine

T = TypeVar("T")


class Offload(Protocol):
    """Where parts of queries can go, and from which size on. `SparkOffload` is one."""

    threshold_rows: int | None
    """How many rows an operator may hold in the process; None for any number."""
    threshold_bytes: int | None
    flush_interval: float | None
    """How many seconds there are between flushes that nobody asks for; None for no such ones."""
    max_waiting: int | None
    """How many entries may wait for a flush before writers wait too; None for any number."""
    max_waiting_bytes: int | None
    """About how many bytes they may take, of all parts; None for any number."""

    def refuse(self, fragment: fragments.Fragment) -> str | None:
        """Why a part cannot go there, if it cannot."""
        ...

    def apart(self, fragment: fragments.Fragment) -> str | None:
        """Why a whole part of a plan cannot be done there as one, if it cannot."""
        ...

    def begin(
        self,
        fragment: fragments.Fragment,
        name: str,
        views: Mapping[str, str] = ...,
        of: object = None,
    ) -> remote_parts.Remote:
        """A place for a part, with what an earlier process left of the same.

        Parameters
        ----------
        name: the same for the same query.
        views: of the views that it is for and that have a name, the fingerprint of the query.
        of: the database; parts of one may share what they keep. What waits has been flushed.
        """
        ...

    def scan(self, fragment: fragments.Fragment, name: str) -> remote_parts.Remote:
        """What fetches rows that are fed; nothing of them is kept."""
        ...

    def rows(self, rows: Any, row_type: Any, key: Any, name: str) -> external.ExternalRows:
        """The rows of a table that are there already."""
        ...

    def stream(
        self, rows: Any, row_type: Any, key: Any, name: str, options: streams.StreamOptions
    ) -> streams.ExternalStream:
        """What feeds a table that is there, and its rows."""
        ...

    def frame(self, remote: Any, pairs: Iterable[Pair], row_type: Any) -> Any:
        """Rows as a DataFrame: the output of a remote, or what is given if that is None."""
        ...

    def target(self, place: str, options: SinkOptions) -> Target:
        """What a view is written to."""
        ...

    def outbox(self, name: str | None, row_type: Any) -> Outbox | None:
        """Where batches of changes wait for a later process, if anything is kept for one."""
        ...

    def framed(
        self, function: Callable[[Any, int], object], name: str | None, row_type: Any
    ) -> Target:
        """What calls a function of frames of changes, and numbers."""
        ...

    def spill(self, name: str, row_type: Any, rows: BagStore | KeyedStore) -> Spilled:
        """A store that takes little of the process, for the rows of a table, which are still where
        they were."""
        ...

    def progress(self, name: str, rows: int) -> Any:
        """A context while `rows` rows are handed over, or awaited."""
        ...

    def release(self) -> None:
        """Something has moved there: give its memory back to the system."""
        ...

    def open(self) -> None:
        """A database that uses it has been made."""
        ...

    def close(self) -> None:
        """One of them is closed; what was begun is freed with the last."""
        ...


class Offloading:
    """The parts of a database that are elsewhere."""

    def __init__(self, engine: Engine, offload: Offload | None) -> None:
        self._engine = engine
        self.offload = offload
        self.moved: dict[plan.Node, offloaded_nodes.Begin] = {}
        self._flush: flushing.Flush | None = None
        self._readers: readers.Readers | None = None
        self.spilling = Spilling(engine)
        self.overflow = None if offload is None else overflow.Overflow(self, offload)
        if offload is not None:
            offload.open()

    @property
    def is_possible(self) -> bool:
        """Whether parts can be elsewhere at all."""
        return self.offload is not None

    @property
    def remotes(self) -> tuple[Node, ...]:
        """The nodes of the graph whose work is elsewhere."""
        return self._engine.graph.remotes

    @property
    def late(self) -> list[Node]:
        """The nodes in the process with which changes wait for a flush."""
        return list(self._engine.graph.late)

    @property
    def is_used(self) -> bool:
        """Whether anything is elsewhere."""
        return bool(self.moved or self._remote_tables() or self._engine.graph.pinned)

    def _remote_tables(self) -> dict[int, remote_table.RemoteTable[Any]]:
        """The tables whose rows are elsewhere, by their number."""
        if self.offload is None:
            return {}
        tables = self._engine.tables
        return {n: t for n, t in tables.items() if isinstance(t, remote_table.RemoteTable)}

    def offloaded(
        self, moved: Mapping[plan.Node, offloaded_nodes.Begin]
    ) -> offloaded_nodes.OffloadedNodes | None:
        """What a compiler is to know."""
        offload = self.offload
        if offload is None:
            return None
        return offloaded_nodes.OffloadedNodes(
            moved,
            self._remote_tables(),
            lambda part: beginning.begun(self, part, part.of[0]),
            lambda part: offload.scan(part, beginning.name_of(part.of[0])),
            offload.apart,
        )

    def read_here(self, run: plan.Node, offloaded: offloaded_nodes.OffloadedNodes) -> None:
        """Have the tables in the process that a plan reads there."""
        self.spilling.bring_back(run, offloaded)

    def forget(self, table: Any) -> None:
        """A table was dropped."""
        self.spilling.forget(table)

    # Flushes.

    def flush(self) -> None:
        """Bring what is late to the state of the last commit, or a later one."""
        engine = self._engine
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
                raise self._affected(error) from error
            if flush.is_done and flush.version >= wanted:
                return

    def _affected(self, error: OffloadError) -> OffloadError:
        deferred = [str(leaf.leaf) for leaf in self._engine.graph.leaves() if leaf.deferred]
        return OffloadError(
            f"{error}\n  not up to date: {', '.join(deferred) or 'nothing'}; all others go on\n"
            "  view.recall() computes them in the process again"
        )

    def look(self, at: Callable[[list[Node]], T]) -> T:
        """What there is to see in the graph while nobody changes it."""
        with self._engine.inside():
            return at(self._engine.graph.nodes())

    # Moves.

    def move(self, view: AnyView, adopt: Adopt | None = None) -> None:
        """Move the parts of a view that can be moved.

        Parameters
        ----------
        adopt: whose rows count where tables hold others than an earlier process left.

        Raises
        ------
        OffloadError: none can, for the reasons that it names; or tables hold other rows than an
            earlier process left, and nobody has said whose count.
        """
        adoption.check_adopt(adopt)
        found, reasons = self._parts(view.relation.plan)
        if not found:
            raise OffloadError(refusal(str(view._channel), reasons))
        gone = self._move_whole(found, adopt)
        for node in found:
            if node not in gone:
                self.hand_over(node, adopt)

    def _move_whole(self, found: list[plan.Node], adopt: Adopt | None) -> set[plan.Node]:
        """Move those of the nodes that go with all that is below them, the upper ones first; gives
        the nodes that have gone."""
        away, gone = self.offloaded(self.moved), set[plan.Node]()
        assert away is not None
        for node in reversed(found):
            fragment = away.fragment(chain_end.top_of(self, node))
            if fragment.is_whole and node not in gone:
                self.hand_over(node, adopt)
                gone.update(fragment.of)
        return gone

    def hand_over(self, node: plan.Node, adopt: Adopt | None = None) -> None:
        """Move one node of the plans, with what follows on it row by row."""
        engine, offload = self._engine, self.need()
        node = chain_end.top_of(self, node)
        moved: dict[plan.Node, offloaded_nodes.Begin] = {
            node: lambda part: beginning.begun(self, part, node)
        }
        with self._engine.inside():
            if node in self.moved:
                return
            self.flush()
            with paused():
                top = engine.queries.compiled_beside(node, {**self.moved, **moved}).nodes[id(node)]
            made = top if top.is_remote else top.inputs[0]
            engine.graph.pinned.add(made)
        try:
            with offload.progress(explaining.headline(node), made.operator.lag):
                resuming.fill(engine, made.operator, adopt)
            self._switch({**self.moved, **moved})
            self.spilling.spill(node, offload)
            if self.overflow is not None and offload.flush_interval is not None:
                self.overflow.background.start()
        finally:
            with self._engine.inside():
                engine.graph.pinned.discard(made)
                engine.graph.sweep()
            del made, top
            offload.release()

    def recall(self, view: AnyView) -> None:
        """Bring the parts of a view back into the process."""
        own = set(nodes(self.plan_of(view.relation.plan)))
        self.bring_back([node for node in self.moved if node in own])

    def bring_back(self, gone: list[plan.Node]) -> None:
        """Compute nodes of the plans in the process again; all, if nothing can be had from there.

        Raises
        ------
        OffloadError: a table is not stored, so that there is nothing to compute them from.
        """
        for node in gone:
            check_stored(node, "cannot be computed in the process again")
        away = self.offloaded(self.moved)
        assert away is not None
        back = {top for top in self.moved if not set(gone).isdisjoint(away.fragment(top).of)}
        left = [node.operator.remote for node in self.remotes if node.plan in back]
        try:
            self.flush()
        except OffloadError:
            self._rescue()
        else:
            self._switch({node: begin for node, begin in self.moved.items() if node not in back})
        for remote in left:
            remote.close()

    def need(self) -> Offload:
        """Where parts go."""
        if self.offload is None:
            raise OffloadError(
                "this database has nowhere to move a view to\n"
                "  make it with Database(offload=SparkOffload(...))"
            )
        return self.offload

    def roots(self) -> list[plan.Node]:
        """The queries of all leaves, as they are run."""
        return [self.plan_of(leaf.leaf.plan) for leaf in self._engine.graph.leaves()]

    def plan_of(self, written: plan.Node) -> plan.Node:
        """A query as it is run: its iterations are the nodes of all their rounds, but for those
        that can be elsewhere as one."""
        away = self.offloaded(self.moved)
        found = self._engine.queries.optimized(written).plan
        return found if away is None else without_iterations(found, away.takes)

    def _parts(self, written: plan.Node) -> tuple[list[plan.Node], list[str]]:
        """The nodes of a query that can be moved, and why the others cannot."""
        root, found, reasons = self.plan_of(written), [], []
        self.need()
        away = self.offloaded(self.moved)
        assert away is not None
        inside = {id(n) for node in nodes(root) for n in moving_recursions.within(node)}
        for node in nodes(root):
            if id(node) in inside or isinstance(node, STATELESS):
                continue
            refused = self.refused(node)
            if refused is None or away.is_whole(node):
                found.append(node)
            else:
                apart = away.stays(node)
                reasons.append(
                    f"{explaining.headline(node)}: {refused}{f' ({apart})' * bool(apart)}"
                )
        return found, reasons

    def refused(self, node: plan.Node) -> str | None:
        """Why a node of a plan has to stay, if it has to."""
        try:
            check_rows(node, self.roots() if self._engine.moments else ())
            if isinstance(node, moving_recursions.RECURSIONS):
                return moving_recursions.refused(self, node)
            part = fragments.part_of(node)
        except (fragments.Unmovable, OffloadError) as error:
            return str(error)
        return self.need().refuse(part)

    def operators(self, node: plan.Node) -> list[remote_operator.RemoteOperator]:
        """What does a node's work elsewhere."""
        return [m.operator for m in self.remotes if node in m.operator.fragment.of]

    def where(self, node: plan.Node) -> str | None:
        """Where a node of a plan runs, for `explain`; None if there is nothing to say."""
        if self.offload is None or free(node):
            return None
        for operator in self.operators(node):
            took = f"; last flush {operator.latency:.2f} s" if operator.latency else ""
            return f"{operator.describe()}{took}"
        if isinstance(node, moving_recursions.RECURSIONS):
            return moving_recursions.placed(self, node)
        if isinstance(node, STATELESS):
            return None
        refused = self.refused(node)
        return "in the process" + (", can move" if refused is None else f": {refused}")

    def _switch(self, moved: dict[plan.Node, offloaded_nodes.Begin]) -> None:
        """Compile the queries again that read parts that are elsewhere now, or are not any more."""
        engine = self._engine
        with self._engine.inside():
            self.flush()
            changed = self.moved.keys() ^ moved.keys()
            self._readers = self._readers or readers.Readers(engine, self.plan_of)
            for leaf, source in self._compiled(moved, self._readers.of(changed)):
                reattach(engine.graph, leaf, source)

    def _rescue(self) -> None:
        """Compute all in the process again, from the tables: there is nobody to ask any more."""
        engine = self._engine
        with self._engine.inside():
            self._flush = None
            deferred = [leaf for leaf in engine.graph.leaves() if leaf.deferred]
            sources = self._compiled({}, engine.graph.leaves())
            changed = [
                change
                for leaf, source in sources
                if leaf in deferred
                for change in refill(engine.graph, leaf, source)
            ]
            engine.graph.announce(changed, engine.version)

    def _compiled(
        self, moved: dict[plan.Node, offloaded_nodes.Begin], leaves: Iterable[Node]
    ) -> list[tuple[Node, Node]]:
        """Leaves with what they are to read, now that these parts are elsewhere."""
        engine = self._engine
        before, self.moved = self.moved, moved
        try:
            return [(leaf, engine.queries.node(leaf.leaf.base)) for leaf in leaves]
        except BaseException:
            self.moved = before
            engine.graph.sweep()
            raise

    def reset(self) -> None:
        """Compute all in the process again; its parts elsewhere are not believed any more."""
        self.moved, self._flush = {}, None
        if self.overflow is not None:
            self.overflow.forget()

    def close(self) -> None:
        """Discard all that is elsewhere."""
        for node in self.remotes:
            node.operator.stop()
        for table in self._remote_tables().values():
            table.rows.stop()
        self.spilling.close()
        if self.offload is not None:
            self.offload.close()


STATELESS = (*LINEAR, plan.Table, plan.UnionAll, plan.Negate, plan.Empty, plan.Values)

"""Views whose state outlives the process: `materialize("top", kept=True)` on a durable database.

    the view is made     states of an earlier process --> operators
    later                a thread: states --> bytes --> store           (`durable/sqlite_tables.py`)
    the database closes  states --> bytes --> store, once more

An operator is stored if reading its state is faster than computing it. Both are measured: computing
when it happens; reading first by the time that packing its bytes took, later when it happens. An
operator that does not pay is not stored.

The stored states of a view are used if they fit:

    another query, library or Python        no
    tables with other fields or counts      no
    a later version                         no
    an earlier version                      with the commits since, if the store keeps them all
    damaged bytes                           the undamaged parts

State:  a thread, while there is such a view; the facts about each view.
Cost:   a commit waits at most while states are copied, some 20 ns a row, and while their bytes are
        written, 128 kB at a time. A view is stored when `EVERY` seconds have passed, and `SHARE`
        times as long as storing it took the last time. Using a stored state takes one read of it,
        and of the history if there were commits since.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes, tables
from reactive.api.internal_interface import node_of, row_store_of
from reactive.borders.durable import sqlite_tables
from reactive.borders.durable.journal import Journal, net_changes_since
from reactive.borders.durable.rows.packed import Unreadable
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.store import Store, text_of_schema
from reactive.engine.collections.zset import Pair
from reactive.engine.dataflow.node import Node
from reactive.engine.dataflow.restoration import Restoration, RestoreFailure, states_of
from reactive.engine.runtime.background import Background
from reactive.engine.runtime.collector import pause_collector
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


EVERY = 1.0
"""The seconds between two checks whether a view is to be stored."""
SHARE = 20
"""The factor of the rest of a view to the time of storing it."""
GROWN = 2
"""The growth of the rows, or of the seconds, that makes times be measured again."""
log = logging.getLogger("reactive")


@dataclass(frozen=True, slots=True)
class KeptState:
    """The origin of the state of a view when it was made.

    state: "read" if operators began with a stored state, "computed" if none did.
    why: the reason, if a state was computed although it might have been read.
    version: the version of the stored state; None if there is none that fits.
    bytes: the size of the stored state.
    seconds: the time that the operators which can be stored took to be read or computed.

    >>> KeptState("computed", "nothing is stored of it yet", None, 0, 0.25).state
    'computed'
    """

    state: Literal["read", "computed"]
    why: str
    version: int | None
    bytes: int
    seconds: float


@dataclass(slots=True, eq=False)
class KeptView:
    """A view that is stored.

    query: the fingerprint of the query.
    rank: the rank of its leaf.
    made: the origin of its state, for `kept_state`.
    costs: the cost of each operator, by its name.
    names: the names of operators, by the ranks of their nodes.
    read: the ranks of the nodes that began with a stored state.
    version: the version of the stored state; None if there is none that fits.
    generation: the generation of the stored state, 0 or 1.
    rows: the number of rows of its tables when it was computed.
    due: the earliest time of the next storing.
    """

    name: str
    query: str
    tables: Sequence[Any]
    rank: int
    made: KeptState
    costs: dict[str, sqlite_tables.Cost]
    names: dict[int, str]
    read: frozenset[int]
    version: int | None
    generation: int
    rows: int
    due: float = 0.0

    def forget_computing(self) -> None:
        """Forget the measured times of computing, since the tables are much larger now."""
        for name, cost in self.costs.items():
            if cost.reading != inf:
                self.costs[name] = sqlite_tables.Cost()
        self.rows = _count_table_rows(self.tables)


@dataclass(frozen=True, slots=True)
class CopiedStates:
    """The states of operators as of one version, by their names."""

    version: int
    tables: Mapping[str, Sequence[Any]]
    states: dict[str, sqlite_tables.State] = field(default_factory=dict)


class KeptViews:
    """The kept views of a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._views: dict[str, KeptView] = {}
        self._thread: Background[KeptViews] = Background(self, KeptViews.look_after, EVERY)

    def make(self, name: str | None, node: plan.Node, make: Callable[[], Any]) -> Any:
        """Make a view of a query, from its stored state if there is one. The caller holds the lock.

        Raises
        ------
        PlanError: the view cannot be kept.
        """
        named = self._check_keepable(name, node)
        found, why, query = None, "", fingerprint_of(node)
        try:
            found = stored_view(self._engine, named, node, query)
        except UnusableState as misfit:
            why = str(misfit)
        try:
            view, restoration = self._make_view(found, make)
        except RestoreFailure as error:
            found, why = None, f"its state does not fit: {error}"
            view, restoration = self._make_view(None, make)
        read = tables_read(self._engine, node)
        self._views[named] = KeptView(
            named,
            query,
            read,
            node_of(view).rank,
            _describe_origin(found, why, restoration),
            _costs(found, restoration),
            restoration.names,
            frozenset(rank for rank, n in restoration.names.items() if n in restoration.read),
            None if found is None or found.changed or found.damage else found.states.header.version,
            generation_of(self._journal, named),
            _count_table_rows(read),
        )
        if self._journal.writes:
            self._thread.start()
        return view

    def state_of(self, rank: int) -> KeptState | None:
        """Return the origin of the state of the view of a leaf; None if it is not kept."""
        return next((kept.made for kept in self._views.values() if kept.rank == rank), None)

    def read_nodes(self) -> frozenset[int]:
        """Return the ranks of the nodes that began with a stored state."""
        return frozenset(rank for kept in self._views.values() for rank in kept.read)

    def look_after(self) -> None:
        """Store the views that have changed, if they are due."""
        for kept in list(self._views.values()):
            if monotonic() >= kept.due and self._journal.is_settled():
                self._store(kept)

    def close(self) -> None:
        """Store the views that have changed, and stop the thread."""
        self._thread.stop()
        for kept in list(self._views.values()):
            self._store(kept)
        self._views.clear()

    @property
    def _journal(self) -> Journal:
        journal: Journal = self._engine.journal
        return journal

    # Making.

    def _check_keepable(self, name: str | None, node: plan.Node) -> str:
        """Return the name of a view, or raise if it cannot be kept."""
        if name is None:
            raise PlanError('a view that is kept has a name\n  write materialize("top", kept=True)')
        held = self._views.get(name)
        if held is not None and any(held.rank == leaf.rank for leaf in self._engine.graph.leaves()):
            raise PlanError(
                f"a view {name!r} is kept already\n  give this one another name, or close that one"
            )
        for table in tables_read(self._engine, node):
            if table not in self._journal.kept:
                raise PlanError(
                    f"view {name!r} cannot be kept: it reads table {table.name!r}, which is not "
                    "durable\n  leave out kept=True, or durable=False of the table"
                )
        return name

    def _make_view(
        self, found: StoredView | None, make: Callable[[], Any]
    ) -> tuple[Any, Restoration]:
        """Call `make` while operators restore `found`; return the view and the restoration."""
        graph = self._engine.graph
        restoration = Restoration()
        if found is not None:
            restoration = Restoration(found.find, found.changed)
        graph.restoration = restoration
        try:
            return make(), restoration
        finally:
            graph.restoration = None

    # Storing.

    def _store(self, kept: KeptView) -> None:
        """Store a view, if it has changed; log what prevents it."""
        start = monotonic()
        try:
            copied = self._copy_states(kept)
            if copied is not None:
                self._write(kept, copied, _pack_states(kept, copied))
        except DurabilityError as error:
            log.warning("the state of view %r is not stored: %s", kept.name, error)
        finally:
            now = monotonic()
            kept.due = now + SHARE * (now - start)

    def _copy_states(self, kept: KeptView) -> CopiedStates | None:
        """Copy the current states; None if they are stored already, or cannot be copied now."""
        engine, journal = self._engine, self._journal
        with pause_collector(), self._inside() as is_open:
            leaf = next((leaf for leaf in engine.graph.leaves() if leaf.rank == kept.rank), None)
            if leaf is None:
                self._views.pop(kept.name, None)
            if not is_open or leaf is None or engine.pending is not None or not journal.writes:
                return None
            journal.settle()
            version = journal.store.version()
            if version == kept.version:
                return None
            if _count_table_rows(kept.tables) > GROWN * kept.rows:
                kept.forget_computing()
            copied = CopiedStates(version, describe_tables(journal, kept.tables))
            copied.states.update(states_of(leaf, kept.names, lambda name: _pays(kept, name)))
            return copied if copied.states or kept.version is None else None

    def _write(self, kept: KeptView, copied: CopiedStates, packed: Mapping[str, bytes]) -> None:
        """Write a view's states in pieces beside the current ones, and replace those at the end."""
        parts, generation = sqlite_tables.part_entries(packed), 1 - kept.generation
        header = sqlite_tables.Header(
            kept.query, copied.version, generation, copied.tables, kept.costs, parts
        )
        store = self._journal.store
        with self._block_commits():
            sqlite_tables.begin_generation(store, kept.name, generation)
        for change in sqlite_tables.state_changes(kept.name, generation, packed):
            with self._block_commits():
                self._journal.write_beside([change], is_safe=False)
        with self._block_commits():
            sqlite_tables.finish_generation(store, kept.name, header)
            kept.version, kept.generation = copied.version, generation

    @contextmanager
    def _block_commits(self) -> Iterator[None]:
        """Block other commits, after writing all earlier ones to the store.

        Raises `DurabilityError` if the database is closed, or earlier commits cannot be
        written.
        """
        with self._inside() as is_open:
            if not is_open:
                raise DurabilityError("the database was closed")
            self._journal.settle()
            yield

    @contextmanager
    def _inside(self) -> Iterator[bool]:
        """Block other commits; yield False if the database is closed."""
        with self._engine.db_lock.inside():
            yield not self._engine.db_lock.is_closed


def _pack_states(kept: KeptView, copied: CopiedStates) -> dict[str, bytes]:
    """Pack the states that are worth storing, and record how long each took.

    Each state is removed from `copied.states` as it is packed. One that cannot be stored is not
    tried again.
    """
    found = {}
    for name in list(copied.states):
        cost = kept.costs.get(name, sqlite_tables.Cost())
        try:
            data, seconds = sqlite_tables.pack_state(copied.states.pop(name))
        except Unstorable:
            data, seconds = b"", inf
        if cost.reading is None or seconds == inf:
            cost = kept.costs[name] = sqlite_tables.Cost(cost.computing, seconds)
        if cost.pays:
            found[name] = data
    return found


def _count_table_rows(read: Sequence[Any]) -> int:
    """Return the number of rows of tables."""
    return sum(len(row_store_of(table)) for table in read)


def _pays(kept: KeptView, name: str) -> bool:
    """Return True if the state of an operator is worth storing, or that is not known yet."""
    cost = kept.costs.get(name)
    return cost is None or cost.pays


def _costs(found: StoredView | None, restoration: Restoration) -> dict[str, sqlite_tables.Cost]:
    """Return the measured costs of operators, new or from before."""
    before = {} if found is None else found.states.header.costs
    costs = {}
    for name, seconds in restoration.computed.items():
        was = before.get(name, sqlite_tables.Cost())
        is_other = was.computing is None or seconds > GROWN * was.computing
        costs[name] = sqlite_tables.Cost(seconds, None if is_other else was.reading)
    for name, seconds in restoration.read.items():
        costs[name] = sqlite_tables.Cost(before.get(name, sqlite_tables.Cost()).computing, seconds)
    return costs


def _describe_origin(found: StoredView | None, why: str, restoration: Restoration) -> KeptState:
    """Return the origin of the state of a new view, for `kept_state`."""
    seconds = sum([*restoration.read.values(), *restoration.computed.values()])
    if found is None:
        return KeptState("computed", why, None, 0, seconds)
    header = found.states.header
    reasons = list(dict.fromkeys(found.damage))
    if not reasons and restoration.computed.keys() & header.parts.keys():
        reasons.append("what has changed of its inputs since is not known")
    if header.parts and not (restoration.read or restoration.computed):
        reasons.append("another view has its operators already")
    if not reasons and not restoration.read:
        reasons.append("it is computed as fast as it would be read")
    state: Literal["read", "computed"] = "read" if restoration.read else "computed"
    return KeptState(state, "; ".join(reasons), header.version, header.size, seconds)


class UnusableState(Exception):
    """The stored states of a view cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredView:
    """The stored states of a view, checked to fit.

    changed: the changes of tables since, by their nodes; None if there are none.
    damage: the problems with requested states.
    """

    states: sqlite_tables.StoredStates
    changed: Mapping[Node, Sequence[Pair]] | None
    damage: list[str] = field(default_factory=list)

    def find(self, name: str) -> sqlite_tables.State | None:
        """Return the stored state of an operator; None if there is none that can be read."""
        try:
            return self.states.state(name)
        except (Unreadable, Unstorable) as error:
            self.damage.append(f"a part of its state cannot be read: {error}")
            return None


def fingerprint_of(node: plan.Node) -> str:
    """Return a fingerprint of a query, and of everything else that states depend on."""
    version = getattr(sys.modules["reactive"], "__version__", "")
    return fingerprint(version, sys.version_info[:2], node)


def stored_view(engine: Engine, name: str, node: plan.Node, query: str) -> StoredView:
    """Return the stored states of a view; `query` is the fingerprint of its query.

    The caller holds the lock.

    Raises
    ------
    UnusableState: nothing that is stored can be used.
    """
    journal: Journal = engine.journal
    if engine.pending is not None:
        raise UnusableState("it was made inside a transaction")
    if any(isinstance(part, plan.Previous) for part in nodes(node)):
        raise UnusableState("it asks for rows as they were before the last commit")
    try:
        journal.settle()
        with _open_store(journal) as store:
            return _load_stored_view(engine, store, name, node, query)
    except Unreadable as error:
        raise UnusableState(f"its state cannot be read: {error}") from error
    except DurabilityError as error:
        raise UnusableState(str(error).partition("\n")[0]) from error


def generation_of(journal: Journal, name: str) -> int:
    """Return the number, 0 or 1, of the stored generation of a view; 0 if no file is written."""
    if not journal.writes:
        return 0
    return int(sqlite_tables.state_table_name(name, 1) in journal.store.tables())


def describe_tables(journal: Journal, read: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the schema, as text, and the number of rows of each table, by name."""
    return {
        table.name: [text_of_schema(journal.kept[table].codec.schema), len(row_store_of(table))]
        for table in read
    }


def tables_read(engine: Engine, node: plan.Node) -> list[Any]:
    """Return the tables that a query reads."""
    return [engine.table_of(table) for table in tables(node)]


@contextmanager
def _open_store(journal: Journal) -> Iterator[Store]:
    """Yield the store; for a read-only database, a newer snapshot of its file.

    Raises `UnusableState` if the history lacks commits that this process has not read.
    """
    if journal.writes:
        yield journal.store
        return
    snapshot: Any = journal.store
    newer = snapshot.newer()
    try:
        if not newer.has_all_since(snapshot):
            raise UnusableState("the file has gone on since it was read\n  call db.reread() before")
        yield newer
    finally:
        newer.close()


def _load_stored_view(
    engine: Engine, store: Store, name: str, node: plan.Node, query: str
) -> StoredView:
    """Return the stored states of a view, with the changes that its tables had since.

    Raises `UnusableState` if nothing is stored, the query or a table differs, or changes are
    unknown.
    """
    table = sqlite_tables.state_table_name(name)
    if sqlite_tables.is_name_taken(store, table):
        raise UnusableState(f"there is a table {table!r} of another kind\n  rename one of them")
    if table not in store.tables():
        raise UnusableState("nothing is stored of it yet")
    journal, read = engine.journal, tables_read(engine, node)
    states = sqlite_tables.StoredStates(store, name)
    header, now = states.header, _version(journal)
    if header.query != query:
        raise UnusableState("the query, the library or Python is not as it was when it was stored")
    if header.version > now:
        raise UnusableState(f"it is of version {header.version}, and the tables are of {now}")
    changed = None
    if header.version < now:
        changed = _read_changes(journal, store, header.version, read)
    _check_tables(header.tables, describe_tables(journal, read), changed, read)
    return StoredView(states, changed)


def _version(journal: Journal) -> int:
    """Return the version of the tables."""
    return journal.store.version() if journal.writes else journal.store.at  # type: ignore[attr-defined]


def _read_changes(
    journal: Journal, store: Store, version: int, read: Sequence[Any]
) -> Mapping[Node, Sequence[Pair]]:
    """Return the net changes since `version` by source node, with the rows that tables hold.

    Raises `UnusableState` if the history does not reach back to `version`.
    """
    found = net_changes_since(journal, store, version, _version(journal), read)
    if isinstance(found, str):
        raise UnusableState(f"it is of version {version}, and {found}")
    changed: dict[Node, Sequence[Pair]] = {}
    for table, pairs in zip(read, found, strict=True):
        held: Any = row_store_of(table)
        changed[node_of(table)] = [(held.held_row(row), weight) for row, weight in pairs]
    return changed


def _check_tables(
    stored: Mapping[str, Sequence[Any]],
    now: Mapping[str, Sequence[Any]],
    changed: Mapping[Node, Sequence[Pair]] | None,
    read: Sequence[Any],
) -> None:
    """Raise `UnusableState` if a table has another schema or number of rows than stored.

    The changes since then, if known, are counted.
    """
    for table in read:
        schema, count = stored.get(table.name, (None, 0))
        if changed is not None:
            count += sum(weight for _, weight in changed[node_of(table)])
        if [schema, count] != now[table.name]:
            raise UnusableState(f"table {table.name!r} is not as it was when it was stored")

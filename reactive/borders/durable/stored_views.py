"""The stored states of a view that is made, if they fit, and the commits since.

    another query, library or Python        no
    tables with other fields or counts      no
    a later version                         no
    an earlier one                          with the commits since, if the store keeps them all
    damaged                                 no, or not the part that is

Cost: one read of what is stored of the view, and of the history if there were commits since.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optimizer import plan
from optimizer.plans.fingerprint import fingerprint
from optimizer.plans.properties import nodes, tables
from reactive.borders.durable.history import changes_since
from reactive.borders.durable.journal import Journal
from reactive.borders.durable.kept_states import State, StoredStates, is_taken, table_of
from reactive.borders.durable.rows.packed import Unreadable
from reactive.borders.durable.rows.values import Unstorable
from reactive.borders.durable.schema_text import text_of_schema
from reactive.borders.durable.store import Store
from reactive.engine.collections.zset import Pair
from reactive.engine.dataflow.node import Node
from reactive.errors import DurabilityError

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


class Misfit(Exception):
    """The stored states of a view cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class StoredView:
    """The stored states of a view, which fit.

    changed: the changes of tables since, by their nodes; None if there are none.
    damage: what was wrong with states that were asked for.
    """

    states: StoredStates
    changed: Mapping[Node, Sequence[Pair]] | None
    damage: list[str] = field(default_factory=list)

    def find(self, name: str) -> State | None:
        """Return the state of an operator, if there is one that can be read."""
        try:
            return self.states.state(name)
        except (Unreadable, Unstorable) as error:
            self.damage.append(f"a part of its state cannot be read: {error}")
            return None


def fingerprint_of(node: plan.Node) -> str:
    """Return the fingerprint of a query, and of all else that states depend on."""
    version = getattr(sys.modules["reactive"], "__version__", "")
    return fingerprint(version, sys.version_info[:2], node)


def stored_view(engine: Engine, name: str, node: plan.Node, query: str) -> StoredView:
    """Return the stored states of a view of a query, which has a fingerprint.

    The caller holds the lock.

    Raises
    ------
    Misfit: it has nothing that can be used.
    """
    journal: Journal = engine.journal
    if engine.pending is not None:
        raise Misfit("it was made inside a transaction")
    if any(isinstance(part, plan.Previous) for part in nodes(node)):
        raise Misfit("it asks for rows as they were before the last commit")
    try:
        journal.settle()
        with _open_store(journal) as store:
            return _found(engine, store, name, node, query)
    except Unreadable as error:
        raise Misfit(f"its state cannot be read: {error}") from error
    except DurabilityError as error:
        raise Misfit(str(error).partition("\n")[0]) from error


def generation_of(journal: Journal, name: str) -> int:
    """Return which table of two has the bytes of a view; 0 if that is not known."""
    if not journal.writes:
        return 0
    return int(table_of(name, 1) in journal.store.tables())


def describe_tables(journal: Journal, read: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the entries of a header about tables."""
    return {
        table.name: [text_of_schema(journal.kept[table].codec.schema), len(table._store)]
        for table in read
    }


def tables_read(engine: Engine, node: plan.Node) -> list[Any]:
    """The tables that a query reads."""
    return [engine.table_of(table) for table in tables(node)]


@contextmanager
def _open_store(journal: Journal) -> Iterator[Store]:
    """Give the store; to a reader, whose own does not change, the file as it is now."""
    if journal.writes:
        yield journal.store
        return
    snapshot: Any = journal.store
    newer = snapshot.newer()
    try:
        if not newer.has_all_since(snapshot):
            raise Misfit("the file has gone on since it was read\n  call db.reread() before")
        yield newer
    finally:
        newer.close()


def _found(engine: Engine, store: Store, name: str, node: plan.Node, query: str) -> StoredView:
    if is_taken(store, table_of(name)):
        raise Misfit(f"there is a table {table_of(name)!r} of another kind\n  rename one of them")
    if table_of(name) not in store.tables():
        raise Misfit("nothing is stored of it yet")
    journal, read = engine.journal, tables_read(engine, node)
    states = StoredStates(store, name)
    header, now = states.header, _version(journal)
    if header.query != query:
        raise Misfit("the query, the library or Python is not as it was when it was stored")
    if header.version > now:
        raise Misfit(f"it is of version {header.version}, and the tables are of {now}")
    changed = None
    if header.version < now:
        changed = _changes(journal, store, header.version, read)
    _check_tables(header.tables, describe_tables(journal, read), changed, read)
    return StoredView(states, changed)


def _version(journal: Journal) -> int:
    """The version that the tables are of."""
    return journal.store.version() if journal.writes else journal.store.at  # type: ignore[attr-defined]


def _changes(
    journal: Journal, store: Store, version: int, read: Sequence[Any]
) -> Mapping[Node, Sequence[Pair]]:
    found = changes_since(journal, store, version, _version(journal), read)
    if isinstance(found, str):
        raise Misfit(f"it is of version {version}, and {found}")
    changed: dict[Node, Sequence[Pair]] = {}
    for table, pairs in zip(read, found, strict=True):
        held: Any = table._store
        changed[table._node] = [(held.held_row(row), weight) for row, weight in pairs]
    return changed


def _check_tables(
    stored: Mapping[str, Sequence[Any]],
    now: Mapping[str, Sequence[Any]],
    changed: Mapping[Node, Sequence[Pair]] | None,
    read: Sequence[Any],
) -> None:
    """Raise if a table has other fields, or not as many rows as it is to have."""
    for table in read:
        schema, count = stored.get(table.name, (None, 0))
        if changed is not None:
            count += sum(weight for _, weight in changed[table._node])
        if [schema, count] != now[table.name]:
            raise Misfit(f"table {table.name!r} is not as it was when it was stored")

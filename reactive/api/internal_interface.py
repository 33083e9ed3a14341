"""The internal interface: what borders and languages may ask of tables, views and databases.

    outer room --> function of this module --> private attribute of a `Table`, `View`, `Database`

Users see none of these attributes; outer rooms read them only here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from reactive.api.relation import AnyRelation
    from reactive.api.subscriptions.observe import Subscription
    from reactive.api.table import Table
    from reactive.api.view import AnyView
    from reactive.engine.collections.zset import Pair, Row
    from reactive.engine.dataflow.delta import Channel
    from reactive.engine.dataflow.node import Node
    from reactive.engine.storage.store import RowStore
    from reactive.engine.transactions.engine import Engine
    from reactive.engine.transactions.statements import Statements


class InDatabase(Protocol):
    """A database, or a table, relation or view of one."""

    @property
    def _engine(self) -> Engine: ...


class RowsByKey(Protocol):
    """The rows of a table with a key, as of the open transaction."""

    @property
    def key(self) -> Callable[[Row], Any]:
        """The function that returns the key of a row; it raises if the key is not allowed."""

    @property
    def by_key(self) -> Mapping[Any, Row]:
        """The rows by key."""

    def keys_of(self, rows: Sequence[Row]) -> Iterable[Any]:
        """Return the keys of rows, as `key` returns or refuses each."""


@dataclass(frozen=True, slots=True)
class RowChange:
    """A `migrate=` function that changes rows, and is called for stored rows of any class.

    write: writes the changes of the stored rows if their form stays, and what has to be in the same
        write.
    """

    function: Callable[[dict[str, Any]], Any]
    write: Callable[[Sequence[Any]], None]

    def __call__(self, fields: dict[str, Any]) -> Any:
        """Return the row of the fields of a stored one."""
        return self.function(fields)


def engine_of(thing: InDatabase) -> Engine:
    """Return the engine of a database, or of an object of it."""
    return thing._engine


def node_of(shown: Table[Any] | AnyView) -> Node:
    """Return the source of a table or the leaf of a view, in the graph."""
    node: Node = shown._node
    return node


def name_in_messages(shown: Any) -> str:
    """Return how messages name a table, a view or another object: `table 'words'`."""
    name: str = shown._called()
    return name


# Tables.


def keyed_of(table: Table[Any]) -> RowsByKey | None:
    """Return the rows of a table by key; None if it has no key, or its rows are remote."""
    keyed: RowsByKey | None = table._keyed
    return keyed


def row_store_of(table: Table[Any]) -> RowStore:
    """Return the store of a table, whose rows are those of the open transaction."""
    return table._store


def committed_pairs(table: Table[Any]) -> Iterable[Pair]:
    """Return the rows of a table as of the last commit, with their counts."""
    return table._all()


def statements_of(table: Table[Any]) -> Statements:
    """Return the statements that change a table, to run inside a write.

    Those of a mirror refuse all changes.
    """
    return table._do


def unguarded_statements(table: Table[Any]) -> Statements:
    """Return the statements of a table; those of a mirror without their refusal of changes."""
    statements: Statements = getattr(table._do, "unguarded", table._do)
    return statements


def write_many(
    table: Table[Any], statement: Callable[..., Sequence[Pair]], *arguments: Any
) -> None:
    """Write the changes of a statement over many rows, with the collector paused."""
    table._write_many(statement, *arguments)


def check_stored(table: Table[Any], what: str) -> None:
    """Raise `TableError` for `what` if the rows of a table are not stored."""
    table._check_stored(what)


def move_rows(table: Table[Any], store: RowStore, keyed: Any = None) -> None:
    """Store the rows of a table in `store`, which has them; `keyed` finds them by key."""
    table._move_to(store, keyed)


def last_frame(table: Table[Any]) -> Any:
    """Return the frame that `sync` has kept for a table, if any."""
    return table._frame


def keep_frame(table: Table[Any], frame: Any) -> None:
    """Keep a frame of a table, for the next `sync`."""
    table._frame = frame


# Relations and views.


def channel_of(view: AnyView) -> Channel:
    """Return the channel of a view: its plan, its name in messages, and its subscribers."""
    return view._channel


def contents_of(view: AnyView) -> Any:
    """Return the operator of a view's leaf, which has the rows; raises if the view is closed."""
    return view._contents


def read_context(view: AnyView) -> AbstractContextManager[None]:
    """Return the context to read a view in, after a flush if needed; raises if it is closed."""
    context: AbstractContextManager[None] = view._reading()
    return context


def check_open(view: AnyView) -> None:
    """Raise `ClosedError` if a view is closed."""
    view._check_open()


def kept_views(relation: AnyRelation) -> tuple[AnyView, ...]:
    """Return the views that a query over a relation must keep alive."""
    return relation._kept_views()


def name_sql_columns(view: AnyView, names: list[str] | None) -> None:
    """Set the names of a view's columns to those of its SQL text."""
    view._sql_columns = names


def history_of(view: AnyView) -> Any:
    """Return the history that the border keeps for a view; None if it keeps none."""
    return view._history


def keep_history(view: AnyView, history: Any) -> None:
    """Keep a history of the changes of a view."""
    view._history = history


# Subscriptions.


def call_on_close(subscription: Subscription[Any], call: Callable[[], None] | None) -> None:
    """Set the function that a subscription calls when it is closed; None for none."""
    subscription._on_close = call

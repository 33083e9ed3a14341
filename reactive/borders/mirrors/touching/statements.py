"""The rows that a statement touches, from the data that SQLAlchemy has about it.

    insert    the keys that it was given, or that the SQL database has generated
    update    the keys in its WHERE, or else the keys that a query with it returns beforehand
    delete    the keys that such a query returns, and the rows that cascades touch
    drop      the table has no rows from then on
    others    for text, the tables that its words name; for a statement inside a query, whole tables

An ORM's flush consists of such statements, and so do its bulk operations: the ORM itself is not
involved. If keys are unknown, the whole table is touched.

Cascades: rows that the SQL database changes itself because of foreign keys.

    delete from customers where id = 3      touches  orders  whose customer_id is 3, which are
                                                             deleted too (CASCADE), or SET NULL

These rows are queried before the statement runs: afterwards they cannot be found. If cascades form
a cycle, all its tables are touched as a whole.

Drivers: the state of the transaction, and where BEGIN must be sent.

                      begins by itself                 state
    sqlite3           before INSERT, UPDATE, DELETE,   in_transaction
    aiosqlite         REPLACE as the first word only   in_transaction
    psycopg, psycopg2 before every statement           info.transaction_status
    mysql-connector   before every statement           in_transaction
    asyncpg           by its adapter                   is_in_transaction()

For other drivers `in_transaction` returns None, and nothing is done.

Texts: the tables that a statement written as text may write to, by its words.

    update orders set total = 0          the tables whose names are in it
    call close_the_year()                any table: it names no known one
    truncate customers cascade           also tables that refer to a named one
    select * from orders                 none

A text without a writing word only reads. Writes of a function that it calls are invisible: declare
them by the option `mirror_touches` of the statement.

Triggers: the tables that triggers of the SQL database write to, by their text.

    create trigger t after insert on orders begin update customers set ...; end

touches `customers`, as a whole, with each statement on `orders`. A trigger that changes only the
written row touches nothing more: that row is read again in any case.

Cost:   one query for each foreign key that cascades from a table, and from those below it; one
        query for triggers when a mirror is created, only for SQLite and Postgres.
Source: SQLAlchemy, core events `before_execute`, `after_execute`, `before_cursor_execute`; PEP 249;
        `sqlite3`, "Transaction control"; libpq, PQtransactionStatus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.schema import DropTable
from sqlalchemy.sql import ClauseElement, operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList
from sqlalchemy.sql.selectable import TextualSelect

from reactive.borders.mirrors.kinds import Key, MirrorKind, chunks, key_columns, keys_condition
from reactive.borders.mirrors.touching.touched_rows import TouchedRows

OPTION = "mirror_touches"
"""The option of a statement that lists the classes or tables that it writes to."""
Values = Mapping[str, Any]
DROPS = re.compile(r"\bdrop\s+table\b", re.IGNORECASE)


class WatchedTables:
    """The tables whose statements are inspected.

    Parameters
    ----------
    kinds: the mirrored kinds.
    tables: all tables that the classes know.
    """

    def __init__(self, kinds: Sequence[MirrorKind], tables: Iterable[sa.Table]) -> None:
        self.kinds = kinds
        self.tables = list(tables)
        self.cascades = Cascades(self.tables)
        self._mirrored = {table for kind in kinds for table in kind.places}
        self._touching: dict[sa.Table, set[sa.Table]] = {}
        self._triggered: dict[sa.Table, set[sa.Table]] = {}
        self.know_triggers({})

    def know_triggers(self, written: Mapping[sa.Table, set[sa.Table]]) -> None:
        """Set the tables that triggers of a table write to."""
        below = {table: self.cascades.below(table) for table in self.tables}
        for table in self.tables:
            whole, waiting = set[sa.Table](), list(below[table])
            while waiting:
                new = {w for each in written.get(waiting.pop(), ()) for w in below[each]} - whole
                whole |= new
                waiting += new
            self._triggered[table] = whole
            self._touching[table] = below[table] | whole
        self._touching = {t: b for t, b in self._touching.items() if b & self._mirrored}

    def concerns(self, statement: Any) -> bool:
        """Return True if a statement changes rows of inspected tables."""
        table = getattr(statement, "table", None)
        return not isinstance(table, sa.Table) or table in self._touching

    def before(self, touched: TouchedRows, statement: Any, values: Sequence[Values]) -> Any:
        """Record the rows that a statement will touch. Return the statement to run in its place."""
        if not isinstance(statement, sa.Insert | sa.Update | sa.Delete):
            return statement
        table: Any = statement.table
        if not isinstance(table, sa.Table):
            inside = [each for each in visitors.iterate(table) if isinstance(each, sa.Table)]
            self._note_all(touched, inside)
        elif table in self._touching:
            touched.note_all(self._triggered[table])
            if isinstance(statement, sa.Insert):
                return self._before_insert(touched, table, statement, values)
            if isinstance(statement, sa.Update):
                self._before_update(touched, table, statement, values)
            else:
                self._before_delete(touched, table, statement, values)
        return statement

    def after(self, touched: TouchedRows, statement: Any, result: Any) -> None:
        """Record the rows that are known only after a statement has run."""
        context = getattr(result, "context", None)  # None for made-up results
        compiled = getattr(context, "compiled", None)
        inside = [each.element for each in getattr(compiled, "ctes", None) or ()]
        writers = [each for each in inside if isinstance(each, sa.Insert | sa.Update | sa.Delete)]
        self._note_all(touched, [each.table for each in writers])
        if isinstance(statement, sa.Insert) and context is not None:
            table = statement.table
            if (
                isinstance(table, sa.Table)
                and table in self._touching
                and table not in touched.whole
            ):
                _after_insert(touched, table, statement, result)

    def note_text(self, touched: TouchedRows, text: str, context: Any) -> None:
        """Record the tables that a text may write to, before the driver runs it."""
        statement = getattr(getattr(context, "compiled", None), "statement", None)
        if isinstance(statement, DropTable):
            touched.note_dropped(self._mirrored & {statement.element})
        if statement is not None and not isinstance(statement, sa.TextClause | TextualSelect):
            return
        found = tables_written(text, self.tables)
        if found is None:
            touched.everything = True
        else:
            self._note_all(touched, found)
            if DROPS.search(text):
                touched.note_dropped(self._mirrored & {*found})

    def note_named(self, touched: TouchedRows, named: Iterable[Any]) -> None:
        """Record the classes and tables that an option of a statement names."""
        for each in named:
            table = each if isinstance(each, sa.Table) else each.__table__
            self._note_all(touched, [table])

    def _note_all(self, touched: TouchedRows, tables: Iterable[Any]) -> None:
        """Record as a whole the tables that a change of `tables` may touch."""
        for table in tables:
            touched.note_all(self._touching.get(table, ()))

    def _before_insert(
        self, touched: TouchedRows, table: sa.Table, statement: sa.Insert, values: Sequence[Values]
    ) -> sa.Insert:
        """Record what an INSERT touches, if known before; return the statement to run.

        It also returns keys if they could not be known otherwise.
        """
        if any("REPLACE" in str(prefix).upper() for prefix, _ in statement._prefixes):
            self._note_all(touched, [table])
        elif statement.select is not None:
            touched.note_all([table])
        elif _wants_keys(touched, table, statement, values):
            return statement.return_defaults(*key_columns(table))
        return statement

    def _before_update(
        self, touched: TouchedRows, table: sa.Table, statement: sa.Update, values: Sequence[Values]
    ) -> None:
        """Record the keys an UPDATE matches; all rows if it has no condition or changes keys."""
        own, where = key_columns(table), statement.whereclause
        changed = _changed_columns(statement, values)
        if where is None or changed & {
            c.key for c in (*own, *self.cascades.cascading_columns(table))
        }:
            self._note_all(touched, [table])
            return
        binds = _key_binds(where, own)
        if binds is not None:
            touched.note(table, [_bound(binds, each) for each in values])
            return
        asked = sa.select(*own).where(where)
        if touched.connection.dialect.name != "sqlite":
            asked = asked.with_for_update(of=table)
        for each in values:
            touched.note(table, map(tuple, touched.connection.execute(asked, dict(each))))

    def _before_delete(
        self, touched: TouchedRows, table: sa.Table, statement: sa.Delete, values: Sequence[Values]
    ) -> None:
        """Record the keys that a DELETE matches, and the rows that its cascades will change."""
        own, where = key_columns(table), statement.whereclause
        binds = None if where is None else _key_binds(where, own)
        chosen: list[tuple[Any, Values]] = [(where, each) for each in values]
        if binds is not None:
            keys = [_bound(binds, each) for each in values]
            chosen = [(keys_condition(own, chunk), {}) for chunk in chunks(keys)]
        for condition, named in chosen:
            asked = sa.select(*own) if condition is None else sa.select(*own).where(condition)
            touched.note(table, map(tuple, touched.connection.execute(asked, dict(named))))
            self.cascades.note_deleted(touched, table, condition, named)


def _wants_keys(
    touched: TouchedRows, table: sa.Table, statement: sa.Insert, values: Sequence[Values]
) -> bool:
    """Return True if the generated keys of many rows must be requested."""
    asks_itself = statement._returning or statement._return_defaults
    if len(values) < 2 or asks_itself or statement._post_values_clause is not None:
        return False
    names = {column.key for column in table.primary_key.columns}
    is_able = touched.connection.dialect.insert_executemany_returning
    return bool(names) and is_able and not all(names <= each.keys() for each in values)


def _after_insert(touched: TouchedRows, table: sa.Table, statement: sa.Insert, result: Any) -> None:
    """Record the keys of inserted rows; the whole table if some are unknown."""
    own = key_columns(table)
    sets = _value_sets(statement, result.context)
    conflict = statement._post_values_clause
    if conflict is not None and hasattr(conflict, "update_values_to_set"):
        _after_upsert(touched, table, conflict, sets)
        return
    keys: list[Key | None] = [_known_key(own, each) for each in sets]
    if None in keys and table.primary_key.columns:
        keys = _made_keys(result)
    if not keys or None in keys:
        touched.note_all([table])
    else:
        touched.note(table, [key for key in keys if key is not None])


def _after_upsert(
    touched: TouchedRows, table: sa.Table, conflict: Any, sets: Sequence[Mapping[str, Any]]
) -> None:
    """Record the rows of an upsert by their conflict columns, which they have in any case."""
    target = [getattr(each, "key", each) for each in conflict.inferred_target_elements or ()]
    assigned = {getattr(each, "key", each) for each in conflict.update_values_to_set}
    columns = [table.columns[name] for name in target if name in table.columns]
    keys = [_known_key(columns, each) for each in sets]
    is_known = columns and len(columns) == len(target) and assigned.isdisjoint(target)
    own = key_columns(table)
    if not is_known or None in keys or assigned & {column.key for column in own}:
        touched.note_all([table])
        return
    for chunk in chunks([key for key in keys if key is not None]):
        asked = sa.select(*own).where(keys_condition(columns, chunk))
        touched.note(table, map(tuple, touched.connection.execute(asked)))


def _value_sets(statement: sa.Insert, context: Any) -> list[dict[str, Any]]:
    """Return the values given for each row, by the names of its columns."""
    many = [row for rows in statement._multi_values for row in rows]
    if not many:
        return [dict(each) for each in context.compiled_parameters]
    named: list[Any] = [dict(each).items() for each in many]
    return [{getattr(name, "key", name): value for name, value in each} for each in named]


def _known_key(columns: Iterable[sa.Column[Any]], values: Mapping[str, Any]) -> Key | None:
    """Return the key among the values of a row; None if it is missing, or an expression."""
    found = tuple([values.get(column.key) for column in columns])
    is_known = not any(each is None or isinstance(each, ClauseElement) for each in found)
    return found if is_known else None


def _made_keys(result: Any) -> list[Key | None]:
    """Return the keys that the SQL database has generated; None for a row whose key is not known.

    Return [] if the result has no keys.
    """
    try:
        rows = result.inserted_primary_key_rows
    except InvalidRequestError:
        return []
    return [None if row is None or None in row else tuple(row) for row in rows]


def _changed_columns(statement: sa.Update, values: Sequence[Values]) -> set[str]:
    """Return the names of the columns that an update assigns."""
    named = [
        *(statement._values or ()),
        *(name for name, _ in getattr(statement, "_ordered_values", None) or ()),
    ]
    given = {name for each in values for name in each}
    return {str(getattr(name, "key", name)) for name in named} | given


def _key_binds(where: Any, own: Sequence[sa.Column[Any]]) -> list[sa.BindParameter[Any]] | None:
    """Return the bind parameters that `where` equates with the key columns `own`, in their order.

    Other conjuncts are ignored. Return None unless every key column has a parameter.
    """
    is_all = isinstance(where, BooleanClauseList) and where.operator is operators.and_
    found: dict[Any, sa.BindParameter[Any]] = {}
    for part in where.clauses if is_all else [where]:
        is_equation = isinstance(part, BinaryExpression) and part.operator is operators.eq
        if is_equation and isinstance(part.right, sa.BindParameter):
            found[part.left] = part.right
    binds = [found[column] for column in own if column in found]
    return binds if len(binds) == len(own) else None


def _bound(binds: Iterable[sa.BindParameter[Any]], values: Values) -> Key:
    return tuple([values.get(bind.key, bind.effective_value) for bind in binds])


ACTS = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


class Cascades:
    """The cascading foreign keys of all known tables.

    Parameters
    ----------
    tables: all known tables.
    """

    def __init__(self, tables: Iterable[sa.Table]) -> None:
        every = list(tables)
        self._deleted = _by_referred(every, lambda key: key.ondelete)
        self._updated = _by_referred(every, lambda key: key.onupdate)

    def below(self, table: sa.Table) -> set[sa.Table]:
        """Return the tables whose rows may change when rows of a table are deleted or change keys.

        The table itself is included.
        """
        found, waiting = {table}, [table]
        while waiting:
            each = waiting.pop()
            keys = [*self._deleted.get(each, ()), *self._updated.get(each, ())]
            new = {key.table for key in keys} - found
            found |= new
            waiting += new
        return found

    def cascading_columns(self, table: sa.Table) -> set[sa.Column[Any]]:
        """Return the columns whose assignment cascades to other tables."""
        keys = self._updated.get(table, ())
        return {element.column for key in keys for element in key.elements}

    def note_deleted(
        self,
        touched: TouchedRows,
        table: sa.Table,
        chosen: Any,
        parameters: Mapping[str, Any],
    ) -> None:
        """Record the rows that will change when the chosen rows of a table are deleted.

        Parameters
        ----------
        chosen: a condition on the table, or None for all rows.
        parameters: the parameters of the condition.
        """
        self._note(touched, table, chosen, parameters, (table,))

    def _note(
        self,
        touched: TouchedRows,
        table: sa.Table,
        chosen: Any,
        parameters: Mapping[str, Any],
        above: tuple[sa.Table, ...],
    ) -> None:
        """Record rows that refer to the chosen ones, and so on down cascades of DELETE.

        A table that is among `above` already is recorded as a whole, with those below it.
        """
        for key in self._deleted.get(table, ()):
            child = key.table
            if child in above:
                touched.note_all(self.below(child))
                continue
            gone = sa.select(*[each.column for each in key.elements])
            refers = _of(key.columns).in_(gone if chosen is None else gone.where(chosen))
            asked = sa.select(*key_columns(child)).where(refers)
            touched.note(child, _selected_keys(touched.connection, asked, parameters))
            if str(key.ondelete).upper() == "CASCADE":
                self._note(touched, child, refers, parameters, (*above, child))


def _of(columns: Iterable[Any]) -> Any:
    """Return columns as one SQL expression: a single one bare, several as a tuple."""
    every = list(columns)
    return every[0] if len(every) == 1 else sa.tuple_(*every)


def _selected_keys(
    connection: sa.Connection, asked: Any, parameters: Mapping[str, Any]
) -> Iterator[Any]:
    return (tuple(row) for row in connection.execute(asked, dict(parameters)))


def _by_referred(
    tables: Iterable[sa.Table], act: Callable[[sa.ForeignKeyConstraint], str | None]
) -> dict[sa.Table, list[sa.ForeignKeyConstraint]]:
    """Return the foreign keys that cascade, as `act` says of each, by the table they refer to."""
    found: dict[sa.Table, list[sa.ForeignKeyConstraint]] = {}
    for table in tables:
        for key in table.foreign_key_constraints:
            if (act(key) or "").upper() in ACTS:
                found.setdefault(key.referred_table, []).append(key)
    return found


_SAVEPOINT = re.compile(r"\s*savepoint\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(commit|end|rollback|release|begin|start)\b", re.IGNORECASE)
_OUTSIDE = re.compile(
    r"\s*(begin|commit|end|rollback|release|pragma|vacuum|attach|detach"
    r"|create\s+(temp\w*\s+|unique\s+|virtual\s+)?(table|view|index))\b",
    re.IGNORECASE,
)
"""The statements of SQLite that need no transaction.

They begin or end one, are refused or ignored inside of one, or create tables, views and indexes.
"""


def is_savepoint(text: str) -> bool:
    """Return True if a statement begins a savepoint."""
    return _SAVEPOINT.match(text) is not None


def may_end(text: str) -> bool:
    """Return True if a statement may end its transaction, or run outside of one.

    Such a statement contains a word that writes, or a word of transactions.
    """
    words = strip_text(text)
    return bool(WRITES.search(words) or _ENDS.search(words))


def in_transaction(connection: sa.Connection) -> bool | None:
    """Return True inside a transaction of the driver, False outside, None if it does not say."""
    driver: Any = connection.connection.driver_connection
    found = getattr(driver, "in_transaction", None)
    if isinstance(found, bool):
        return found
    status = getattr(getattr(driver, "info", None), "transaction_status", None)
    if status is not None:
        return int(status) != 0
    ask = getattr(driver, "is_in_transaction", None)
    return bool(ask()) if callable(ask) else None


def is_autocommit(connection: sa.Connection) -> bool:
    """Return True if the driver commits each statement, even if SQLAlchemy does not know."""
    driver: Any = connection.connection.driver_connection
    return getattr(driver, "autocommit", None) is True


def begin_sqlite(connection: sa.Connection, cursor: Any, text: str) -> None:
    """Begin a transaction of SQLite before a statement, because its driver does not always.

    Nothing begins for another database, in autocommit mode, inside a transaction, or before a
    text that must run outside.
    """
    if connection.dialect.name != "sqlite" or _OUTSIDE.match(text):
        return
    if connection._is_autocommit_isolation():
        return
    if in_transaction(connection) is False:
        level = getattr(connection.connection.driver_connection, "isolation_level", None)
        cursor.execute(f"BEGIN {level or ''}".rstrip())


WRITES = re.compile(
    r"\b(insert|update|delete|merge|replace\s+into|truncate|copy|call|do|exec|execute|alter|drop"
    r"|create|load|import|attach|vacuum|restore)\b",
    re.IGNORECASE,
)
LOCKS = re.compile(r"\bfor\s+(no\s+key\s+)?update\b", re.IGNORECASE)
"""A locking clause, which contains a writing word but does not write."""
CASCADES = re.compile(r"\btruncate\b.*\bcascade\b", re.IGNORECASE | re.DOTALL)
LITERALS = re.compile(r"'(?:[^']|'')*'")
COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"\w+")


def tables_written(text: str, known: Collection[sa.Table]) -> set[sa.Table] | None:
    """Return the tables that a text may write to; None if it may be any.

    Parameters
    ----------
    known: the existing tables, whose names are searched.
    """
    if not WRITES.search(strip_text(text)):
        return set()
    without = COMMENTS.sub(" ", text)
    words = {word.lower() for word in WORD.findall(without)}
    found = {table for table in known if words.issuperset(WORD.findall(table.name.lower()))}
    if CASCADES.search(without):
        found = _with_referring(found, known)
    return found or None


def strip_text(text: str) -> str:
    """Return a text without comments, quoted texts, and the words that lock rows."""
    return LOCKS.sub(" ", LITERALS.sub(" ", COMMENTS.sub(" ", text)))


def _with_referring(tables: set[sa.Table], known: Collection[sa.Table]) -> set[sa.Table]:
    """Return the tables, and those whose foreign keys lead to them."""
    found, size = tables, -1
    while len(found) != size:
        size, names = len(found), {table.fullname for table in found}
        found = found | {
            table
            for table in known
            for key in table.foreign_keys
            if key.target_fullname.rpartition(".")[0] in names
        }
    return found


ASKED = {
    "sqlite": "select tbl_name, sql from sqlite_master where type = 'trigger'",
    "postgresql": (
        "select c.relname, p.prosrc from pg_trigger t join pg_class c on c.oid = t.tgrelid "
        "join pg_proc p on p.oid = t.tgfoid where not t.tgisinternal"
    ),
}


def written_by_triggers(
    connection: sa.Connection, tables: Sequence[sa.Table]
) -> dict[sa.Table, set[sa.Table]]:
    """Return the tables that triggers of a table write to, by the table."""
    asked = ASKED.get(connection.dialect.name)
    found: dict[sa.Table, set[sa.Table]] = {}
    for name, body in connection.execute(sa.text(asked)) if asked else ():
        inside = str(body).lower().partition("begin")[2] or str(body)
        for table in tables:
            if table.name.lower() == str(name).lower():
                found.setdefault(table, set()).update(tables_written(inside, tables) or ())
    return {table: written for table, written in found.items() if written}

"""Which rows a statement touches, from what SQLAlchemy knows of it.

    insert    the keys that it was given, or that the SQL database has made
    update    the keys that its WHERE names, or else those that are asked for by it beforehand
    delete    the keys that are asked for beforehand, and what goes with them (`cascades.py`)
    drop      the table has no rows from then on
    others    of text by its words (`texts.py`); of a statement inside a query the whole table

An ORM's flush is made of such statements, and so are its bulk operations: nothing is asked of the
ORM itself. Where keys cannot be known, the whole table is touched.

Source: SQLAlchemy, core events `before_execute`, `after_execute`, `before_cursor_execute`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Column, Delete, Insert, Table, TextClause, Update, select
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.schema import DropTable
from sqlalchemy.sql import ClauseElement, operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, BooleanClauseList
from sqlalchemy.sql.selectable import TextualSelect

from reactive.borders.mirrors.kinds import Key, Kind, among, chunks, key_columns
from reactive.borders.mirrors.touching.cascades import Cascades
from reactive.borders.mirrors.touching.texts import tables_written
from reactive.borders.mirrors.touching.touched import Touched

OPTION = "mirror_touches"
"""The option of a statement that says which classes or tables it writes to."""
Values = Mapping[str, Any]
DROPS = re.compile(r"\bdrop\s+table\b", re.IGNORECASE)


class Watched:
    """The tables whose statements are looked at.

    Parameters
    ----------
    kinds: what is mirrored.
    tables: all tables that the classes know of.
    """

    def __init__(self, kinds: Sequence[Kind], tables: Iterable[Table]) -> None:
        self.kinds = kinds
        self.tables = list(tables)
        self.cascades = Cascades(self.tables)
        self._mirrored = {table for kind in kinds for table in kind.places}
        self._touching: dict[Table, set[Table]] = {}
        self._triggered: dict[Table, set[Table]] = {}
        self.know_triggers({})

    def know_triggers(self, written: Mapping[Table, set[Table]]) -> None:
        """Be told which tables triggers of a table write to."""
        below = {table: self.cascades.below(table) for table in self.tables}
        for table in self.tables:
            whole, waiting = set[Table](), list(below[table])
            while waiting:
                new = {w for each in written.get(waiting.pop(), ()) for w in below[each]} - whole
                whole |= new
                waiting += new
            self._triggered[table] = whole
            self._touching[table] = below[table] | whole
        self._touching = {t: b for t, b in self._touching.items() if b & self._mirrored}

    def concerns(self, statement: Any) -> bool:
        """Whether a statement changes rows that are looked at."""
        table = getattr(statement, "table", None)
        return not isinstance(table, Table) or table in self._touching

    def before(self, touched: Touched, statement: Any, values: Sequence[Values]) -> Any:
        """Note what a statement is going to touch; gives what is to be run in its place."""
        if not isinstance(statement, Insert | Update | Delete):
            return statement
        table: Any = statement.table
        if not isinstance(table, Table):
            inside = [each for each in visitors.iterate(table) if isinstance(each, Table)]
            self._note_all(touched, inside)
        elif table in self._touching:
            touched.note_all(self._triggered[table])
            if isinstance(statement, Insert):
                return self._before_insert(touched, table, statement, values)
            if isinstance(statement, Update):
                self._before_update(touched, table, statement, values)
            else:
                self._before_delete(touched, table, statement, values)
        return statement

    def after(self, touched: Touched, statement: Any, result: Any) -> None:
        """Note what is known of a statement only when it has been run."""
        context = getattr(result, "context", None)  # of a result that was made up, none
        compiled = getattr(context, "compiled", None)
        inside = [each.element for each in getattr(compiled, "ctes", None) or ()]
        writers = [each for each in inside if isinstance(each, Insert | Update | Delete)]
        self._note_all(touched, [each.table for each in writers])
        if isinstance(statement, Insert) and context is not None:
            table = statement.table
            if isinstance(table, Table) and table in self._touching and table not in touched.whole:
                _after_insert(touched, table, statement, result)

    def note_text(self, touched: Touched, text: str, context: Any) -> None:
        """Note what a text may touch, as it is handed to the driver."""
        statement = getattr(getattr(context, "compiled", None), "statement", None)
        if isinstance(statement, DropTable):
            touched.note_dropped(self._mirrored & {statement.element})
        if statement is not None and not isinstance(statement, TextClause | TextualSelect):
            return
        found = tables_written(text, self.tables)
        if found is None:
            touched.everything = True
        else:
            self._note_all(touched, found)
            if DROPS.search(text):
                touched.note_dropped(self._mirrored & {*found})

    def note_named(self, touched: Touched, named: Iterable[Any]) -> None:
        """Note the classes and tables that an option of a statement names."""
        for each in named:
            table = each if isinstance(each, Table) else each.__table__
            self._note_all(touched, [table])

    def _note_all(self, touched: Touched, tables: Iterable[Any]) -> None:
        for table in tables:
            touched.note_all(self._touching.get(table, ()))

    def _before_insert(
        self, touched: Touched, table: Table, statement: Insert, values: Sequence[Values]
    ) -> Insert:
        if any("REPLACE" in str(prefix).upper() for prefix, _ in statement._prefixes):
            self._note_all(touched, [table])
        elif statement.select is not None:
            touched.note_all([table])
        elif _wants_keys(touched, table, statement, values):
            return statement.return_defaults(*key_columns(table))
        return statement

    def _before_update(
        self, touched: Touched, table: Table, statement: Update, values: Sequence[Values]
    ) -> None:
        own, where = key_columns(table), statement.whereclause
        changed = _changed(statement, values)
        if where is None or changed & {c.key for c in (*own, *self.cascades.referred(table))}:
            self._note_all(touched, [table])
            return
        binds = _binds(where, own)
        if binds is not None:
            touched.note(table, [_bound(binds, each) for each in values])
            return
        asked = select(*own).where(where)
        if touched.connection.dialect.name != "sqlite":
            asked = asked.with_for_update(of=table)
        for each in values:
            touched.note(table, map(tuple, touched.connection.execute(asked, dict(each))))

    def _before_delete(
        self, touched: Touched, table: Table, statement: Delete, values: Sequence[Values]
    ) -> None:
        own, where = key_columns(table), statement.whereclause
        binds = None if where is None else _binds(where, own)
        chosen: list[tuple[Any, Values]] = [(where, each) for each in values]
        if binds is not None:
            keys = [_bound(binds, each) for each in values]
            chosen = [(among(own, chunk), {}) for chunk in chunks(keys)]
        for condition, named in chosen:
            asked = select(*own) if condition is None else select(*own).where(condition)
            touched.note(table, map(tuple, touched.connection.execute(asked, dict(named))))
            self.cascades.note_deleted(touched, table, condition, named)


def _wants_keys(
    touched: Touched, table: Table, statement: Insert, values: Sequence[Values]
) -> bool:
    """Whether the keys that the SQL database makes for many rows are to be asked for."""
    asks_itself = statement._returning or statement._return_defaults
    if len(values) < 2 or asks_itself or statement._post_values_clause is not None:
        return False
    names = {column.key for column in table.primary_key.columns}
    is_able = touched.connection.dialect.insert_executemany_returning
    return bool(names) and is_able and not all(names <= each.keys() for each in values)


def _after_insert(touched: Touched, table: Table, statement: Insert, result: Any) -> None:
    own = key_columns(table)
    sets = _value_sets(statement, result.context)
    conflict = statement._post_values_clause
    if conflict is not None and hasattr(conflict, "update_values_to_set"):
        _after_upsert(touched, table, conflict, sets)
        return
    keys: list[Key | None] = [_key(own, each) for each in sets]
    if None in keys and table.primary_key.columns:
        keys = _made_keys(result)
    if not keys or None in keys:
        touched.note_all([table])
    else:
        touched.note(table, [key for key in keys if key is not None])


def _after_upsert(
    touched: Touched, table: Table, conflict: Any, sets: Sequence[Mapping[str, Any]]
) -> None:
    """Note rows by what they would have been in conflict by, which they have now in any case."""
    target = [getattr(each, "key", each) for each in conflict.inferred_target_elements or ()]
    assigned = {getattr(each, "key", each) for each in conflict.update_values_to_set}
    columns = [table.columns[name] for name in target if name in table.columns]
    keys = [_key(columns, each) for each in sets]
    is_known = columns and len(columns) == len(target) and assigned.isdisjoint(target)
    own = key_columns(table)
    if not is_known or None in keys or assigned & {column.key for column in own}:
        touched.note_all([table])
        return
    for chunk in chunks([key for key in keys if key is not None]):
        asked = select(*own).where(among(columns, chunk))
        touched.note(table, map(tuple, touched.connection.execute(asked)))


def _value_sets(statement: Insert, context: Any) -> list[dict[str, Any]]:
    """What each row was given, by the names of its columns."""
    many = [row for rows in statement._multi_values for row in rows]
    if not many:
        return [dict(each) for each in context.compiled_parameters]
    named: list[Any] = [dict(each).items() for each in many]
    return [{getattr(name, "key", name): value for name, value in each} for each in named]


def _key(columns: Iterable[Column[Any]], values: Mapping[str, Any]) -> Key | None:
    """The key in what a row was given; None if it is not there, or an expression."""
    found = tuple([values.get(column.key) for column in columns])
    is_known = not any(each is None or isinstance(each, ClauseElement) for each in found)
    return found if is_known else None


def _made_keys(result: Any) -> list[Key | None]:
    """The keys that the SQL database has made."""
    try:
        rows = result.inserted_primary_key_rows
    except InvalidRequestError:
        return []
    return [None if row is None or None in row else tuple(row) for row in rows]


def _changed(statement: Update, values: Sequence[Values]) -> set[str]:
    """The names of the columns that an update assigns."""
    named = [
        *(statement._values or ()),
        *(name for name, _ in getattr(statement, "_ordered_values", None) or ()),
    ]
    given = {name for each in values for name in each}
    return {str(getattr(name, "key", name)) for name in named} | given


def _binds(where: Any, own: Sequence[Column[Any]]) -> list[BindParameter[Any]] | None:
    """What the key is to be equal to, if a condition says that it is; and perhaps more."""
    is_all = isinstance(where, BooleanClauseList) and where.operator is operators.and_
    found: dict[Any, BindParameter[Any]] = {}
    for part in where.clauses if is_all else [where]:
        is_equation = isinstance(part, BinaryExpression) and part.operator is operators.eq
        if is_equation and isinstance(part.right, BindParameter):
            found[part.left] = part.right
    binds = [found[column] for column in own if column in found]
    return binds if len(binds) == len(own) else None


def _bound(binds: Iterable[BindParameter[Any]], values: Values) -> Key:
    return tuple([values.get(bind.key, bind.effective_value) for bind in binds])

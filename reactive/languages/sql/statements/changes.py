"""INSERT, UPDATE and DELETE: the rows of a statement, and one transaction that changes them.

insert into t select ...      the rows of the query, as they are before
update t set a = a + 1        each row with its replacement (`target.py`)
delete from t where id = 7    a row, found by its key if the condition gives one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer import plan
from optimizer.expr import has_subquery, tuple_of
from reactive.api.internal_interface import keyed_of
from reactive.engine.codegen.functions import callable_of
from reactive.languages.sql.queries.grouping import (
    evaluated_constant,
    failures_told,
    misreadings_told,
)
from reactive.languages.sql.queries.kinds import with_names
from reactive.languages.sql.statements.alter import alter
from reactive.languages.sql.statements.conflicts import (
    Conflict,
    assign_value,
    is_default,
    updated_values,
)
from reactive.languages.sql.statements.definitions import create
from reactive.languages.sql.statements.target import (
    ChangedTable,
    RowNumbers,
    found_rows,
    rows_with,
    run_plan,
)
from reactive.languages.sql.statements.views import drop_relations
from reactive.languages.sql.terms.errors import take_all
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import as_optional, construct_row, schema_of_values


def _refuse_parts(tree: Any, kind: str, parts: tuple[str, ...], around: Scope) -> None:
    """Refuse a statement that has one of the clauses `parts`."""
    for part in parts:
        if tree.args.get(part):
            raise around.error(tree, f"{part.strip('_').upper()} of {kind} is not supported")


Returning: TypeAlias = Callable[[Sequence[Any]], None]
"""Computes the rows of RETURNING of rows that a statement changes, before its commit."""


def read_returning(tree: Any, target: ChangedTable, around: Scope) -> Returning:
    """Return the function for the RETURNING of a statement, which is put into the environment.

    Raises
    ------
    PlanError: it has a query, an aggregate or a window.
    """
    clause = tree.args.get("returning")
    if not clause:
        return lambda rows: None
    _ = clause.args.get("into")
    alias = exp.TableAlias(this=exp.to_identifier(target.alias, quoted=True))
    own = exp.Table(this=exp.to_identifier(target.name, quoted=True), alias=alias)
    source, columns = exp.From(this=own), list(clause.expressions)
    query = around.query(exp.Select(expressions=[each.copy() for each in columns], from_=source))
    take_all(clause)
    if query.node != target.rows().node or any(has_subquery(v.expr) for v in query.values):
        raise around.error(clause, "RETURNING takes expressions of the columns of the table")
    schema, kind = schema_of_values(query.names, query.values)
    row = construct_row(kind, [as_optional(value) for value in query.values])
    read = callable_of(query.scope.function(row))

    def put_rows(rows: Sequence[Any]) -> None:
        with failures_told(clause, around):
            around.environment.returned[:] = [schema, [read(each) for each in rows]]

    return put_rows


# INSERT.


def insert(tree: Any, around: Scope, db: Any) -> int:
    """Run an INSERT, and return the number of inserted or changed rows."""
    _refuse_parts(tree, "INSERT", ("overwrite", "where"), around)
    outer, around = around, with_names(tree, around)
    with misreadings_told(tree, around):
        target = ChangedTable(tree.this, around)
        returning = read_returning(tree, target, outer)
        places = inserted_places(tree, target, around)
        rows = list(rows_to_insert(tree, target, places, around))
        conflict = Conflict(tree, target, around, places) if _has_conflict(tree) else None
    around.refuse_unread(tree)
    if target.numbers.given and conflict is not None:
        _refuse_renumbering(tree.args.get("conflict"), target, around)
    if conflict is None:
        returning(rows)
        return write_inserted(target, target.numbers, rows, db)
    with db.transaction():
        written = conflict.insert(rows)
        returning(written)
    conflict.note()
    return len(written)


def write_inserted(target: ChangedTable, numbers: RowNumbers, rows: list[Any], db: Any) -> int:
    """Add rows in one commit, and return their number."""
    if rows:
        target.table.add_all(rows)
    numbers.note(inserted=True)
    return len(rows)


def inserted_places(tree: Any, target: ChangedTable, around: Scope) -> list[int]:
    """Return which columns the values of an INSERT are for; refuse a column named twice."""
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else ()
    if tree.args.get("by_name"):
        if named or not isinstance(tree.expression, exp.Query):
            raise around.error(tree, "INSERT BY NAME takes the columns of a SELECT")
        places = [target.place(name, tree) for name in around.query(tree.expression).names]
    else:
        places = [target.place(c.name, c) for c in named]
        places = places or _first_places(tree, target, around)
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        name = target.schema.names[twice]
        raise around.error(tree, f"column {name!r} is named twice in INSERT")
    _check_filled(tree, target, places, around)
    return places


def _first_places(tree: Any, target: ChangedTable, around: Scope) -> list[int]:
    """Return the columns of an INSERT that names none; in Postgres, VALUES may have fewer."""
    places, source = _every_place(target, around), tree.expression
    if around.dialect.name != "postgres" or not isinstance(source, exp.Values):
        return places
    first = source.expressions[0]
    return places[: len(first.expressions) if isinstance(first, exp.Tuple) else 1]


def _every_place(target: ChangedTable, around: Scope) -> list[int]:
    """Return the columns of an INSERT that names none; computed ones have a value in Postgres."""
    every = range(len(target.schema.columns))
    is_postgres = around.dialect.name == "postgres"
    return [place for place in every if is_postgres or place not in target.computed]


def _check_filled(tree: Any, target: ChangedTable, places: list[int], around: Scope) -> None:
    """Refuse values other than DEFAULT for columns that the database fills."""
    filled = set(target.computed)
    if target.filled is not None and target.filled.is_always:
        filled.add(target.numbers.place or 0)
    for at, place in enumerate(places):
        if place not in filled:
            continue
        rows = tree.expression.expressions if isinstance(tree.expression, exp.Values) else [None]
        for row in rows:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            if at >= len(cells) or not is_default(cells[at]):
                name = target.schema.names[place]
                raise around.error(
                    tree, f"column {name!r} is generated, and is given no value", "leave it out"
                )


def _has_conflict(tree: Any) -> bool:
    return tree.args.get("conflict") is not None or bool(tree.args.get("alternative"))


def _refuse_renumbering(conflict: Any, target: ChangedTable, around: Scope) -> None:
    """Refuse DO UPDATE of the key beside rows that are numbered by the keys that are there."""
    names = [] if conflict is None else [e.this for e in conflict.expressions or ()]
    name = target.schema.names[target.numbers.place or 0]
    if any(i.name.casefold() == name.casefold() for e in names for i in e.find_all(exp.Identifier)):
        raise around.error(
            conflict,
            f"DO UPDATE of {name!r} beside rows without one is not supported",
            f"insert values of {name!r}",
        )


def defaults_of(target: ChangedTable) -> list[Any]:
    """Return the values of the columns that an INSERT does not name."""
    defaults = [target.defaults.get(column.name) for column in target.schema.columns]
    if target.numbers.place is not None:
        defaults[target.numbers.place] = None  # SQLite numbers the row, whatever DEFAULT says
    return defaults


def rows_to_insert(
    tree: Any, target: ChangedTable, places: list[int], around: Scope
) -> Iterator[Any]:
    """Yield the rows that are inserted, with defaults for the columns that are not named."""
    defaults = defaults_of(target)
    if tree.args.get("default"):
        yield target.make_row(target.numbers.number_row(defaults))
        return
    alternative = (tree.args.get("alternative") or "").upper()
    is_sqlite = around.dialect.name == "sqlite"
    for values in _values_to_insert(tree, target, places, around):
        row = list(defaults)
        for place, value in zip(places, values, strict=True):
            row[place] = value
        if is_sqlite and alternative:
            empty = [n for n in target.not_null(row) if n != target.numbers.place]
            if alternative == "REPLACE":
                for place in empty:
                    row[place] = defaults[place]
            elif alternative == "IGNORE" and empty:
                continue
        yield target.make_row(target.numbers.number_row(row))


def _values_to_insert(
    tree: Any, target: ChangedTable, places: list[int], around: Scope
) -> Iterator[Sequence[Any]]:
    """Yield the cast values of each row of INSERT, for the columns at `places`."""
    kinds = [target.schema.columns[place].type for place in places]
    source = tree.expression
    if isinstance(source, exp.Values) and source.find(exp.Query) is None:
        for row in source.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row]
            check_width(len(cells), places, row, around)
            yield [
                target.defaults.get(target.schema.columns[place].name)
                if is_default(cell)
                else evaluated_constant(cell, around, kind)
                for cell, kind, place in zip(cells, kinds, places, strict=True)
            ]
        return
    query = around.query(source)
    check_width(len(query.values), places, source, around)
    made = query.cut()
    cast_values = [
        assign_value(source, v, kind, made.scope)
        for v, kind in zip(made.values, kinds, strict=True)
    ]
    row = tuple_of(*map(as_optional, cast_values))
    if not query.sort:
        yield from run_plan(plan.Select(made.node, made.scope.function(row)), source, around)
        return
    keys = [key.function.body for key in query.sort]
    both = made.scope.function(tuple_of(row, *keys))
    yield from _sort_rows(run_plan(plan.Select(made.node, both), source, around), query.sort)


def _sort_rows(rows: list[Any], keys: Sequence[plan.SortKey]) -> Iterator[Sequence[Any]]:
    """Return the first items of rows, in the order of the keys that stand behind them."""
    for place, key in reversed(list(enumerate(keys, 1))):
        empty = [row for row in rows if row[place] is None] if key.nulls else []
        full = [row for row in rows if row[place] is not None] if key.nulls else rows
        full = sorted(full, key=itemgetter(place), reverse=key.descending)
        rows = [*empty, *full] if key.nulls == "first" else [*full, *empty]
    return (row[0] for row in rows)


def check_width(count: int, places: list[int], node: Any, around: Scope) -> None:
    """Refuse a row of INSERT with another number of values than columns."""
    if count != len(places):
        raise around.error(node, f"{count} values are inserted into {len(places)} columns")


# UPDATE and DELETE.


def update(tree: Any, around: Scope, db: Any) -> int:
    """Run an UPDATE, and return the number of changed rows."""
    _refuse_parts(tree, "UPDATE", ("order", "limit"), around)
    outer, around = around, with_names(tree, around)
    target, source = ChangedTable(tree.this, around), tree.args.get("from_")
    returning = read_returning(tree, target, outer)
    rows = rows_with(target.rows(), [] if source is None else [source.this], around)
    with misreadings_told(tree, around):
        made = updated_values(tree.expressions, target, rows.scope(around))
    found = found_rows(tree, target, rows, made, around)
    pairs = [(old, target.make_row(values)) for old, values in found]
    around.refuse_unread(tree)
    returning([new for _, new in pairs])
    return write_updated(target, target.numbers, pairs, db)


def write_updated(
    target: ChangedTable, numbers: RowNumbers, pairs: Sequence[tuple[Any, Any]], db: Any
) -> int:
    """Replace rows in one commit, and return their number."""
    keyed = keyed_of(target.table)
    moved = [p for p in pairs if keyed is not None and keyed.key(p[0]) != keyed.key(p[1])]
    if len(pairs) == 1 and not moved:  # one statement is a commit
        target.table.update(*pairs[0])
        numbers.note(inserted=False)
        return 1
    with db.transaction():
        if moved:
            target.table.remove_all([old for old, _ in pairs])
            target.table.add_all([new for _, new in pairs])
        else:
            for old, new in pairs:
                target.table.update(old, new)
    numbers.note(inserted=False)
    return len(pairs)


def delete(tree: Any, around: Scope, db: Any) -> int:
    """Run a DELETE, and return the number of removed rows."""
    is_lite = around.dialect.name == "sqlite"
    _refuse_parts(tree, "DELETE", ("order", "limit", *(("using",) if is_lite else ())), around)
    outer, around = around, with_names(tree, around)
    target = ChangedTable(tree.this, around)
    returning = read_returning(tree, target, outer)
    rows = rows_with(target.rows(), tree.args.get("using") or (), around)
    found = [old for old, _ in found_rows(tree, target, rows, tuple_of(), around)]
    around.refuse_unread(tree)
    returning(found)
    return write_deleted(target, target.numbers, found, db)


def write_deleted(target: ChangedTable, numbers: RowNumbers, found: list[Any], db: Any) -> int:
    """Remove rows in one commit, and return their number."""
    if found:
        target.table.remove_all(found)
    numbers.note(inserted=False)
    return len(found)


def truncate(tree: Any, around: Scope, db: Any) -> int:
    """Remove all rows of tables in one commit, and return their number."""
    targets = [ChangedTable(each, around).table for each in tree.expressions]
    around.refuse_unread(tree)
    count = sum(map(len, targets))
    with db.transaction():
        for table in targets:
            table.clear()
    return count


def _commented(tree: Any) -> Any:
    """Return the table of a COMMENT ON TABLE or COLUMN; comments are not kept."""
    if isinstance(tree.this, exp.Column):
        return exp.Table(this=tree.this.args.get("table"))
    return tree.this


# Statements that change a database: one transaction each.


def run(tree: Any, around: Scope, db: Any) -> int:
    """Run a statement and return the number of changed rows.

    Raises
    ------
    PlanError: the node is not a known statement, or names something unknown.
    """
    match tree:
        case exp.Create():
            return create(tree, around, db)
        case exp.Insert():
            return insert(tree, around, db)
        case exp.Update():
            return update(tree, around, db)
        case exp.Delete():
            return delete(tree, around, db)
        case exp.Alter():
            return alter(tree, around, db)
        case exp.TruncateTable():
            return truncate(tree, around, db)
        case exp.Comment():
            _ = tree.expression, tree.args.get("kind"), ChangedTable(_commented(tree), around)
            return 0
        case exp.Drop():
            return drop_relations(tree, around, db)
        case exp.Query():
            raise around.error(tree, "execute changes tables", "db.sql(...) gives a relation")
        case exp.Transaction() | exp.Commit() | exp.Rollback():
            raise around.error(tree, "a statement is a transaction", "with db.transaction(): ...")
        case _:
            word = (around.text.split() or [""])[0].rstrip(";").upper()
            use = "INSERT OR REPLACE INTO" if word == "REPLACE" else "CREATE, INSERT, UPDATE ..."
            raise around.error(tree, f"{word} is not supported", f"use {use}")

"""INSERT with ON CONFLICT, OR IGNORE and OR REPLACE: rows whose key, or UNIQUE values, are taken.

    on conflict (code) do update ...      the row that has the value of UNIQUE (code)
    on conflict do nothing                a row with the key, or with values of any UNIQUE
    insert or replace                     all of these rows go

State:  for UNIQUE columns that conflicts are looked up by, a view that groups the rows by them.
Cost:   O(1) per row; O(rows) for a statement that looks up UNIQUE columns after other changes of
        its transaction, which the view does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from optimizer.expr import TRUE, Call, Constant, Expr, Lifted, Parameter, Slot, constant, tuple_of
from reactive.api.aggregates import Collect
from reactive.api.internal_interface import engine_of, keyed_of
from reactive.engine.codegen.functions import callable_of
from reactive.errors import TableError
from reactive.languages.sql.expressions.casts import convert_for_column
from reactive.languages.sql.queries.grouping import failures_told
from reactive.languages.sql.sqlite.values import OWN_COLLATIONS, KeyBy
from reactive.languages.sql.statements.target import ChangedTable
from reactive.languages.sql.terms.scope import Scope, ScopeSource
from reactive.languages.sql.terms.types import SqlType, sql_name
from reactive.languages.sql.terms.values import TypedValue, as_optional


class Arbiter:
    """The key of a table, or one UNIQUE of it, that rows conflict by.

    columns: the folded names of its columns; None of a key that is no column.
    name: the name of the constraint.
    """

    def __init__(self, target: ChangedTable, columns: set[str] | None, name: str | None) -> None:
        self.columns, self.name = columns, name
        self._target = target

    def key_of(self, row: Any) -> Any:
        """Return the key of a row; None if nothing conflicts with the row."""
        return self._target.key_of(row)

    def find(self, key: Any) -> Any:
        """Return the row that has a key, or None."""
        return self._target.table.get(key)

    def note(self, old: Any, new: Any) -> None:
        """Note that a row was replaced; None stands for no row."""


class UniqueValues:
    """The function from a row to its values of UNIQUE columns.

    None if one is NULL, or the condition of the index leaves the row out.
    """

    def __init__(self, target: ChangedTable, constraint: Any, around: Scope) -> None:
        places = [target.place(column.name, None) for column in constraint.columns]
        every = [target.schema.columns[place] for place in places]
        by = [c.type.collation if c.type.collation in OWN_COLLATIONS else None for c in every]
        self._fields = tuple(str(column.read) for column in every)
        self._key = KeyBy(self._fields, tuple(by))
        self._test: Callable[[Any], Any] | None = None
        if constraint.of_rows is not None:
            scope = target.rows().scope(around)
            self._test = callable_of(scope.function(scope.true(constraint.of_rows.copy())))

    def __call__(self, row: Any) -> Any:
        if any(getattr(row, name) is None for name in self._fields):
            return None
        if self._test is not None and not self._test(row):
            return None
        return self._key(row)

    def has(self, row: Any) -> bool:
        """Return True if the row has values."""
        return self(row) is not None


class UniqueArbiter(Arbiter):
    """A UNIQUE constraint or index: its rows are found by a view, or in a dictionary."""

    def __init__(self, target: ChangedTable, constraint: Any, view: Any, around: Scope) -> None:
        columns = {column.name.casefold() for column in constraint.columns}
        super().__init__(target, columns, constraint.name or constraint.usual_name)
        self._values = UniqueValues(target, constraint, around)
        self._changed: dict[Any, Any] = {}
        self._found: Any = self._rows_by_key(view, around.environment.catalog)

    def key_of(self, row: Any) -> Any:
        """Return the values of the columns; None if one is NULL, or the index leaves it out."""
        return self._values(row)

    def _rows_by_key(self, view: Any, catalog: Any) -> Callable[[Any], Any]:
        """Return the function from a key to its row, before the statement."""
        table = self._target.table
        if engine_of(table).pending is not None:  # a view has the last commit
            return {self.key_of(row): row for row in table}.get
        found = catalog.unique_rows.get(id(view))
        if found is None or found[0] is not view or found[1].closed:
            groups = table.where(self._values.has).group_by(self._values)
            made = groups.aggregate(Collect(itself)).materialize()
            catalog.engine.constraints[table.plan.number].append(made)  # which hides it
            found = catalog.unique_rows[id(view)] = (view, made)
        rows_of = found[1].get

        def find_row(key: Any) -> Any:
            rows = rows_of(key)
            return None if rows is None else next(iter(rows))

        return find_row

    def find(self, key: Any) -> Any:
        """Return the row that has a key, or None."""
        return self._changed[key] if key in self._changed else self._found(key)

    def note(self, old: Any, new: Any) -> None:
        """Note that a row was replaced; None stands for no row."""
        for row, now in ((old, None), (new, new)):
            key = None if row is None else self.key_of(row)
            if key is not None:
                self._changed[key] = now


def itself(row: Any) -> Any:
    """Return the row."""
    return row


def arbiters_of(target: ChangedTable, around: Scope) -> list[Arbiter]:
    """Return what rows of a table conflict by: its key, then each UNIQUE."""
    catalog, number = around.environment.catalog, target.table.plan.number
    found = list[Arbiter]()
    if keyed_of(target.table) is not None:
        found.append(Arbiter(target, target.key_names(), f"{target.name}_pkey"))
    views = catalog.engine.constraints.get(number, [])
    for view in [*(reversed(views) if around.dialect.name == "sqlite" else views)]:
        constraint = catalog.uniques.get(id(view))
        if constraint is not None:
            found.append(UniqueArbiter(target, constraint, view, around))
    return found


class Conflict:
    """Action of INSERT where a row is in the way: replace the row, update it, or nothing.

    Raises
    ------
    PlanError: the table has no key and no UNIQUE, or DO UPDATE names something unknown.
    """

    def __init__(self, tree: Any, target: ChangedTable, around: Scope, places: list[int]) -> None:
        self._target, conflict = target, tree.args.get("conflict")
        self._table = target.table
        self._kept: Callable[[Any, Any], Any] | None = None
        dialect = around.dialect.name
        if dialect == "duckdb" and len(places) < len(target.schema.columns):
            self._kept = _keeping(target, places)
        every = arbiters_of(target, around)
        if not every:
            raise around.error(
                tree, f"table {target.name!r} has no key that rows could conflict by"
            )
        alternative = (tree.args.get("alternative") or "").upper()
        self._replaces = alternative == "REPLACE"
        if alternative not in ("", "REPLACE", "IGNORE"):
            raise around.error(tree, f"INSERT OR {alternative} is not supported")
        self._update: Callable[[Any, Any], Any] | None = None
        self.updates = conflict is not None and bool(conflict.expressions)
        self._changes_once = dialect == "postgres"
        self._keeps_first = dialect == "duckdb"
        self._numbers = target.row_numbers() if target.numbers.place is not None else None
        self._changed: set[tuple[int, Any]] = set()
        self._arbiters = every
        if conflict is not None:
            self._arbiters = _named_arbiters(conflict, every, target, around)
            if conflict.expressions:
                self._update = _conflict_update(conflict, target, around)
        is_unclear = self._replaces or (self.updates and not _names_target(conflict))
        if dialect == "duckdb" and is_unclear and len(self._arbiters) > 1:
            raise around.error(
                tree,
                f"table {target.name!r} has several keys that rows could conflict by",
                "insert ... on conflict (column, ...) do update set ...",
            )
        self._every = every
        self._is_inserted = False
        """True if the last row was inserted."""

    def insert(self, rows: list[Any]) -> list[Any]:
        """Insert rows; return the rows that were inserted or changed, as they are now.

        Raises
        ------
        TableError: in Postgres, DO UPDATE of a row that the statement has inserted or changed.
        """
        numbers, written = self._numbers, list[Any]()
        for number, row in enumerate(rows):
            greatest = None if numbers is None else numbers.greatest
            made = self._insert(row if numbers is None else self._renumbered(row, number, numbers))
            if made is not None:
                written.append(made)
            if numbers is not None and not self._is_inserted:
                numbers.take_back(greatest)
        return written

    def note(self) -> None:
        """Record the statement after its commit."""
        numbers = self._target.numbers if self._numbers is None else self._numbers
        numbers.note(inserted=not (self.updates or self._replaces))

    def _renumbered(self, row: Any, number: int, numbers: Any) -> Any:
        """Return a row with the number after those of the rows that were inserted."""
        values = list(row)
        if number in self._target.numbers.numbered:
            values[numbers.place] = None
        return self._target.make_row(numbers.number_row(values))

    def _insert(self, row: Any) -> Any:
        """Insert a row or resolve its conflict; return the row that is there, None if unchanged."""
        keys = [
            (n, key) for n, a in enumerate(self._arbiters) if (key := a.key_of(row)) is not None
        ]
        if self._changes_once and self._update is not None and not self._changed.isdisjoint(keys):
            raise TableError(
                f"cannot insert {row!r:.99}: ON CONFLICT DO UPDATE changes no row twice"
                " in one statement of postgres"
                "\n  insert each key once: select distinct on (key) ..."
            )
        if self._keeps_first and not self._changed.isdisjoint(keys):
            return None
        self._is_inserted = False
        found = (self._arbiters[n].find(key) for n, key in keys)
        olds = list(dict.fromkeys(old for old in found if old is not None))
        new = self._resolve(olds, row)
        if new is not None:
            self._changed.update(keys)
        return new

    def _resolve(self, olds: list[Any], row: Any) -> Any:
        """Write a row in the way of which some are; return what is written, or None."""
        new, gone = row, olds[:1]
        self._is_inserted = not olds or self._replaces
        if not olds:
            self._refuse_others(row, gone)
        if not olds:
            self._table.add(row)
        elif self._replaces and self._kept is not None:
            new = self._kept(olds[0], row)
            self._table.update(olds[0], new)
        elif self._replaces:
            gone = olds
            for old in olds:
                self._table.remove(old)
            self._table.add(row)
            if self._numbers is not None:
                self._numbers.forget()
        elif self._update is not None:
            new = self._update(olds[0], row)
            if new is None:
                return None
            self._refuse_others(new, gone)
            self._write_update(olds[0], new)
        else:
            return None
        for arbiter in self._every:
            for old in gone:
                arbiter.note(old, None)
            arbiter.note(None, new)
        return new

    def _refuse_others(self, row: Any, gone: list[Any]) -> None:
        """Raise `TableError` if a row would have the UNIQUE values of a row that stays."""
        for arbiter in self._every[1 if keyed_of(self._table) is not None else 0 :]:
            key = arbiter.key_of(row)
            if key is not None and arbiter.find(key) not in (None, *gone):
                columns = ", ".join(sorted(arbiter.columns or ()))
                raise TableError(
                    f"table {self._table.name!r} refuses {tuple(row)!r:.200}: "
                    f"unique ({columns}) has it twice\n  nothing has changed"
                )

    def _write_update(self, old: Any, new: Any) -> None:
        keyed = keyed_of(self._table)
        if keyed is not None and keyed.key(old) != keyed.key(new):
            self._table.remove(old)
            self._table.add(new)
        else:
            self._table.update(old, new)


def _keeping(target: ChangedTable, places: list[int]) -> Callable[[Any, Any], Any]:
    """Return the function that makes the row of INSERT OR REPLACE with some columns.

    DuckDB keeps the values of the other columns.
    """
    columns = len(target.schema.columns)
    sides = [target.schema.values(Parameter(side)) for side in (0, 1)]
    values = [as_optional(sides[place in places][place]) for place in range(columns)]
    read = callable_of(Lifted(tuple_of(*values), ("old", "new"), (), 2))
    return lambda old, new: target.make_row(read(old, new))


def _names_target(conflict: Any) -> bool:
    """Return True if ON CONFLICT names columns or a constraint."""
    return bool(conflict.args.get("conflict_keys") or conflict.args.get("constraint"))


def _named_arbiters(
    conflict: Any, every: Sequence[Arbiter], target: ChangedTable, around: Scope
) -> list[Arbiter]:
    """Return what ON CONFLICT names: the key, or a UNIQUE; everything if it names nothing."""
    _ = conflict.args["action"].name  # DO NOTHING has no assignments, DO UPDATE has
    named = set()
    for each in conflict.args.get("conflict_keys") or ():
        each.args.get("nulls_first")  # which the parser adds
        named.add(each.name.casefold())
    constraint = conflict.args.get("constraint")
    if not named and constraint is None:
        if conflict.expressions and around.dialect.name == "postgres":
            raise around.error(
                conflict, "DO UPDATE of postgres names a key", "on conflict (column, ...) do update"
            )
        return list(every)
    if constraint is not None:
        folded = constraint.name.casefold()
        found = [each for each in every if (each.name or "").casefold() == folded]
        names = sorted(each.name for each in every if each.name)
        if not found:
            told = f"{target.name!r} has no key {constraint.name!r}"
            raise around.error(conflict, told, f"it has {', '.join(names)}")
        return found
    found = [each for each in every if each.columns is None or each.columns == named]
    if not found:
        keys = " and ".join(f"({', '.join(sorted(each.columns or ()))})" for each in every)
        raise around.error(
            conflict,
            f"ON CONFLICT names {', '.join(sorted(named))}, which is not the key, nor UNIQUE",
            f"{target.name!r} has {keys}",
        )
    return found


def _conflict_update(
    conflict: Any, target: ChangedTable, around: Scope
) -> Callable[[Any, Any], Any]:
    """Return the function from old and new row to DO UPDATE's row; refuse a query in it."""
    mine = target.rows()
    new = ScopeSource(
        "excluded", tuple(zip(target.schema.names, target.schema.values(Parameter(1)), strict=True))
    )
    scope = around.over([*mine.sources, new], 2)
    if around.dialect.name != "postgres":  # where a bare name is ambiguous
        scope.merged = {name.casefold(): value for s in mine.sources for name, value in s.columns}
    where = conflict.args.get("where")
    query = next(iter(conflict.find_all(exp.Query)), None)
    if query is not None:
        raise around.error(query, "a query in DO UPDATE is not supported", "run it before")
    test = callable_of(scope.function(TRUE if where is None else scope.true(where.this)))
    values = callable_of(scope.function(updated_values(conflict.expressions, target, scope)))

    def update_row(old: Any, new: Any) -> Any:
        with failures_told(conflict, around):
            return target.make_row(values(old, new)) if test(old, new) else None

    return update_row


# The values of columns.


def assign_value(node: Any, value: TypedValue, kind: SqlType, scope: Scope) -> TypedValue:
    """Return a value as a column has it; Postgres refuses a constant that is none."""
    made = convert_for_column(value, kind, scope)
    is_known = isinstance(value.expr, Constant) and not isinstance(value.expr, Slot)
    is_unread = is_known and isinstance(made.expr, Call)
    if is_unread and scope.dialect.name == "postgres":
        raise scope.error(node, f"this constant is no {sql_name(kind)}")
    return made


def is_default(node: Any) -> bool:
    return isinstance(node, exp.Column | exp.Var) and node.name.upper() == "DEFAULT"


def updated_values(assignments: Sequence[Any], target: ChangedTable, scope: Scope) -> Expr:
    """Return the values of a row after some assignments; refuse other nodes in SET."""
    values: list[TypedValue] = list(target.schema.values(Parameter(0)))
    assigned = set[int]()
    for name, given in (pair for each in assignments for pair in _split_assignment(each, scope)):
        place = target.place(name.name, name)
        column = target.schema.columns[place]
        if place in target.computed and not is_default(given):
            raise scope.error(name, f"column {column.name!r} is generated", "leave it out")
        if place in assigned and scope.dialect.name != "sqlite":
            raise scope.error(name, f"SET assigns column {column.name!r} twice")
        assigned.add(place)
        if is_default(given):
            values[place] = TypedValue(constant(target.defaults.get(column.name)), column.type)
        else:
            values[place] = assign_value(given, scope.value(given), column.type, scope)
    return tuple_of(*map(as_optional, values))


def _split_assignment(assignment: Any, scope: Scope) -> list[tuple[Any, Any]]:
    """Return the columns of an assignment, each with the expression of its value.

    (a, b) = (1, 2)            a = 1, b = 2
    (a, b) = (select x, y)     a = (select x of the query), b = (select y of the query)
    """
    row = assignment.this if isinstance(assignment, exp.EQ) else None
    if isinstance(row, exp.Column):
        return [(row, assignment.expression)]
    names = row.expressions if isinstance(row, exp.Tuple) else [getattr(row, "this", None)]
    if not isinstance(row, exp.Tuple | exp.Paren) or any(type(n) is not exp.Column for n in names):
        raise scope.error(assignment, "SET takes `column = value`")
    given, dialect = assignment.expression, scope.dialect.name
    is_call = isinstance(given, exp.Anonymous) and given.name.lower() == "row"
    if isinstance(given, exp.Tuple) or (is_call and dialect != "sqlite"):
        cells = given.expressions
    elif isinstance(given, exp.Subquery) and dialect != "duckdb":
        cells = _columns_of_query(given, scope)
    elif isinstance(row, exp.Paren) and dialect != "postgres":
        cells = [given]
    else:
        raise scope.error(given, "SET of a row takes a row or a query", "set (a, b) = (1, 2)")
    if len(cells) != len(names):
        raise scope.error(given, f"{len(cells)} values are assigned to {len(names)} columns")
    return list(zip(names, cells, strict=True))


def _columns_of_query(given: Any, scope: Scope) -> list[Any]:
    """Return a scalar query for each column of a query; the first has the nodes of the text."""
    query = given.this
    selected = query.selects if isinstance(query, exp.Query) else []
    if not selected or any(each.is_star for each in selected):
        raise scope.error(given, "SET of a row takes a query that names its columns")
    names = [exp.to_identifier(f"c{n}", quoted=True) for n in range(len(selected))]
    made = list[Any]()
    for name, each in zip(names, [query, *(query.copy() for _ in names[1:])], strict=True):
        columns = [own.copy() for own in names]
        alias = exp.TableAlias(this=exp.to_identifier("_assigned", quoted=True), columns=columns)
        from_ = exp.From(this=exp.Subquery(this=each, alias=alias))
        column = exp.Column(this=name.copy(), table=alias.this.copy())
        made.append(exp.Subquery(this=exp.Select(expressions=[column], from_=from_)))
    return made

"""The table that a statement changes, with its columns, defaults and key.

The rows that UPDATE and DELETE change: those of WHERE, paired with those of FROM or USING.

update t set a = m.v from m where m.k = t.id      each row of t that has an m, with its values
delete from t using m where m.k = t.id            each row of t that has an m
delete from t where id = 7                        looked up by the key
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from operator import is_
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import (
    TRUE,
    Attribute,
    Constant,
    Expr,
    Operation,
    Parameter,
    conjuncts,
    tuple_of,
)
from optimizer.traverse import has_subqueries
from reactive.api.internal_interface import engine_of, keyed_of
from reactive.engine.codegen.functions import callable_of
from reactive.errors import TableError, TransactionError
from reactive.languages.sql.expressions.casts import convert_for_column
from reactive.languages.sql.queries.grouping import failures_told, freed
from reactive.languages.sql.queries.query import PlannedRows, rows_of_plan
from reactive.languages.sql.queries.sources import pair_with_item
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.sqlite.values import KeyBy
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType, has_sample, sample_of
from reactive.languages.sql.terms.values import (
    BindingColumn,
    BindingSchema,
    as_optional,
    plan_with_columns,
)

OF_NAMES: dict[str, type] = {"int": int, "float": float, "text": str, "bytes": bytes}
"""The classes of values of fields, by the kinds of their types."""


class ChangedTable:
    """A table that is changed, with its columns."""

    def __init__(self, node: Any, around: Scope) -> None:
        inner = node.this if isinstance(node, exp.Schema) else node
        around.check_schema(inner)
        catalog = around.environment.catalog
        self.table = catalog.table(inner.name)
        if self.table is None:
            names = [table.name for table in catalog.engine.tables.values()]
            raise around.error(
                node, f"there is no table {inner.name!r}{nearest(inner.name, names)}"
            )
        if catalog.stored is not None:
            catalog.stored.open_readers(self.table.name)
        self.name, self.alias = self.table.name, inner.alias_or_name
        self.schema: BindingSchema = catalog.schema_of(self.table)
        self.defaults = catalog.defaults.get(self.table.plan.number, {})
        self.lengths = catalog.lengths.get(self.table.plan.number, {})
        if catalog.known_keys is None:
            catalog.known_keys = KnownKeys()
        self._known_keys: KnownKeys = catalog.known_keys
        columns = self.schema.columns
        self._rowid = next((n for n, c in enumerate(columns) if _is_rowid(c)), None)
        declared = catalog.declared.get(self.table.plan.number)
        self.filled = None if declared is None else declared.filled
        folded = [column.name.casefold() for column in columns]
        if self.filled is not None and self.filled.numbered is not None:
            self._rowid = folded.index(self.filled.numbered)
        expressions: dict[str, Any] = {} if self.filled is None else self.filled.computed
        self._expressions = [*expressions.values()]
        self.computed = [folded.index(name) for name in expressions]
        """The places of the columns that are computed."""
        checked = [c.type.affinity is not None or c.name in self.lengths for c in columns]
        self._is_checked = any(checked)
        """True if a column has a class or a length that values must have."""
        self.numbers = self.row_numbers()
        self._around = around

    def row_numbers(self) -> RowNumbers:
        """Return the numbers for the rows of one execution of a statement."""
        return RowNumbers(self.table, self.schema, self._known_keys, self._rowid)

    def rows(self) -> PlannedRows:
        return rows_of_plan(plan_with_columns(self.table.plan, self.schema), self.alias)

    def place(self, name: str, node: Any) -> int:
        """Return the place of the column that has a name; refuse an unknown name."""
        for place, column in enumerate(self.schema.columns):
            if column.name.casefold() == name.casefold():
                return place
        raise self._around.error(
            node,
            f"table {self.name!r} has no column {name!r}{nearest(name, self.schema.names)}",
            f"it has {', '.join(self.schema.names)}",
        )

    def key_names(self) -> set[str] | None:
        """Return the folded names of the columns of the key; None if it is no column."""
        key = self.table.plan.key
        if key and isinstance(key.function, KeyBy):
            return {c.name.casefold() for c in self.schema.columns if c.read in key.function.fields}
        names = getattr(key.function, "__reduce__", lambda: ("", ()))()[1] if key else ()
        folded = {str(name).casefold() for name in names}
        by_read = {c.read: c.name.casefold() for c in self.schema.columns}
        found = {by_read.get(name, "") for name in names if isinstance(name, str)}
        return found if found and "" not in found and len(found) == len(folded) else None

    def key_of(self, row: Any) -> Any:
        """Return the key of a row of a table with a key."""
        keyed = keyed_of(self.table)
        return None if keyed is None else keyed.key(row)

    def not_null(self, values: Sequence[Any]) -> list[int]:
        """Return the NOT NULL columns without a value; numbered columns get one later."""
        pairs = list(zip(self.schema.columns, values, strict=True))
        for column, value in pairs:
            if value is not None:
                self._check_class(column, value)
        return [n for n, (column, v) in enumerate(pairs) if v is None and not column.nullable]

    def make_row(self, values: Sequence[Any]) -> Any:
        """Return the row with the given values; raise for a NULL, class or length not allowed."""
        if self.computed:
            values = self._with_computed(values)
        if self._is_checked or any(map(is_, values, repeat(None))):
            self._check_values(values)
        read = self.schema.columns[0].read
        return values[0] if read is None else self._make(values)

    def _with_computed(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of a row with the computed ones."""
        catalog, number = self._around.environment.catalog, self.table.plan.number
        read = catalog.fillers.get(number)
        if read is None:
            scope = self.rows().scope(self._around)
            nodes = zip(self.computed, self._expressions, strict=True)
            made = [
                as_optional(convert_for_column(scope.value(n), self.schema.columns[p].type, scope))
                for p, n in nodes
            ]
            read = catalog.fillers[number] = callable_of(scope.function(tuple_of(*made)))
        row = list(values)
        for place, value in zip(self.computed, read(self._make(row)), strict=True):
            row[place] = value
        return row

    def _check_values(self, values: Sequence[Any]) -> None:
        """Raise for the first value with a NULL, class or length that its column does not allow."""
        for column, value in zip(self.schema.columns, values, strict=True):
            if value is None and not column.nullable:
                raise TableError(
                    f"column {column.name!r} of table {self.name!r} is NOT NULL, and has no value"
                )
            if column.type.affinity is not None and value is not None:
                self._check_class(column, value)
            length = self.lengths.get(column.name)
            if length is not None and isinstance(value, str) and len(value) > length:
                raise TableError(
                    f"column {column.name!r} of table {self.name!r} takes {length} letters, "
                    f"and {value!r:.100} has {len(value)}"
                )

    def _check_class(self, column: BindingColumn, value: Any) -> None:
        """Check that a value is of the class that a column of SQLite has, if it has one."""
        kind = OF_NAMES.get(column.type.kind)
        if kind is not None and not isinstance(value, kind):
            raise TableError(
                f"column {column.name!r} of table {self.name!r} takes {kind.__name__}, "
                f"and {value!r:.100} is none"
            )

    @cached_property
    def _make(self) -> Callable[[Sequence[Any]], Any]:
        """The function from values to a row of the table."""
        kind = self.table.row_type
        return tuple if not hasattr(kind, "__mro__") or kind is tuple else lambda v: kind(*v)


def fits(value: Any, kind: SqlType) -> bool:
    """Return True unless a value is known to be of another class than those of a type."""
    if value is None or kind.affinity is not None or not has_sample(kind):
        return True
    wanted = type(sample_of(kind))
    return type(value) is wanted or (wanted is float and type(value) is int)


def is_temporary(name: str, catalog: Any) -> bool:
    """Return True for a TEMPORARY table or view of a database with a file."""
    if catalog.stored is None:
        return False
    view = catalog.view_texts.get(name.casefold())
    if view is not None:
        return not view.is_stored
    table = catalog.table(name)
    is_made = table is not None and table.plan.number in catalog.declared
    return is_made and not catalog.stored.has_kept(table.name)


Pairs = list[tuple[Any, Any]]
"""Rows and their replacements."""


def run_plan(node: plan.Node, tree: Any, around: Scope) -> list[Any]:
    """Return the rows of the plan of a query or statement, computed once.

    Raises
    ------
    PlanError: evaluating it fails for a row.
    TransactionError: inside a transaction, whose changes a query does not see.
    """
    engine = around.environment.engine
    if engine.mine:
        raise TransactionError(
            "a statement with a query cannot see what its transaction has changed so far\n"
            "  run it before the other changes, or in a transaction of its own"
        )
    views = tuple(dict.fromkeys(around.environment.views))
    relation = make_relation(engine, freed(node), BindingSchema(()), views)
    with failures_told(tree, around), relation.materialize(on_error="raise") as view:
        return list(view)


def rows_with(rows: PlannedRows, items: Sequence[Any], around: Scope) -> PlannedRows:
    """Return rows paired with those of the items of FROM in UPDATE, or of USING in DELETE."""
    for item in items:
        rows = pair_with_item(rows, item, around)
    return rows


def found_rows(
    tree: Any, target: ChangedTable, rows: PlannedRows, made: Expr, around: Scope
) -> Pairs:
    """Return the rows that WHERE selects, with their copies and replacements.

    Raises
    ------
    TableError: two rows of FROM give a row different replacements.
    """
    scope, where = rows.scope(around), tree.args.get("where")
    test = TRUE if where is None else scope.true(where.this)
    source = target.table.plan if rows.bindings == 1 else rows.node
    node = plan.Select(
        plan.Where(source, scope.function(test)),
        scope.function(tuple_of(Parameter(0), made)),
    )
    if rows.bindings > 1:
        selected = plan.Select(freed(node.input), node.function)
        return _once(run_plan(selected, tree, scope), target)
    if has_subqueries(node) or has_subqueries(node.input):
        selected = plan.Select(freed(node.input), node.function)
        return [(row[0], row[1]) for row in run_plan(selected, tree, scope)]
    is_wanted, make = callable_of(scope.function(test)), callable_of(scope.function(made))
    with failures_told(tree, scope):
        return [(row, make(row)) for row in _candidates(target, test) if is_wanted(row)]


def _candidates(target: ChangedTable, test: Expr) -> Any:
    """Return the row of a key that the condition equates with a constant, or all rows."""
    key = equated_key(target, test)
    if key is None:
        return list(target.table)
    row = target.table.get(key.value)
    return [] if row is None else [row]


def equated_key(target: ChangedTable, test: Expr) -> Constant | None:
    """Return the constant that a condition equates the key of the table with, or None."""
    key = target.table.plan.key
    if keyed_of(target.table) is None:
        return None
    for part in conjuncts(test):
        match part:
            case Operation("==", (Attribute(Parameter(0), name), Constant() as value)) if getattr(
                key.function, "__reduce__", lambda: ("", ())
            )()[1:2] == ((name,),):
                return value
    return None


def _once(found: Sequence[Any], target: ChangedTable) -> Pairs:
    """Return each found row once per copy in the table; raise if its new values differ."""
    made: dict[Any, Any] = {}
    for row in found:
        old, values = row[0], row[1]
        if made.setdefault(old, values) != values:
            raise TableError(
                f"cannot update {old!r:.99} of table {target.name!r}: several rows of FROM"
                " give it different values\n  join it with one row: group FROM by its key"
            )
    return [(old, values) for old, values in made.items() for _ in range(target.table.count(old))]


# The numbers that SQLite gives to rows without an INTEGER PRIMARY KEY.

GREATEST_KEY = 2**63 - 1
NO_KEY = -(2**63) - 1
"""Less than any key."""


class KnownKeys:
    """The greatest keys of tables, valid while all commits are SQL statements.

    Any other commit may have changed a table, and discards all keys.
    """

    def __init__(self) -> None:
        self._version = -1
        self._keys: dict[int, int] = {}

    def greatest_of(self, table: Any) -> int | None:
        """Return the greatest key of a table; None if it is not known."""
        engine = engine_of(table)
        if engine.version != self._version or engine.pending:
            return None
        return self._keys.get(table.plan.number)

    def note(self, table: Any, before: int, greatest: int | None) -> None:
        """Record the greatest key of a table after a statement, and the version before it."""
        version = engine_of(table).version
        is_alone = version in (before, before + 1)
        if before != self._version or not is_alone:
            self._keys.clear()
        self._version = version
        if greatest is None or not is_alone:
            self._keys.pop(table.plan.number, None)
        else:
            self._keys[table.plan.number] = greatest


def greatest_key(table: Any, read: str) -> int:
    """Return the greatest key of all rows of a table, or `NO_KEY`."""
    return max((getattr(row, read) for row in table), default=NO_KEY)


class RowNumbers:
    """Numbers of rows whose INTEGER PRIMARY KEY in SQLite is NULL: the greatest there is and one.

    `place` is that of the key, None in other tables; `given` says that a row was numbered.
    """

    def __init__(
        self, table: Any, schema: BindingSchema, known: KnownKeys, place: int | None
    ) -> None:
        self.given = False
        self.numbered = set[int]()
        """The rows, by their places among those made, that were given a number."""
        self.place = place
        self._count = 0
        self._table, self._known = table, known
        self._read = None if self.place is None else schema.columns[self.place].read
        self._greatest: int | None = None  # of the rows made so far, then of all
        self._before = engine_of(table).version
        self._known_before = known.greatest_of(table)

    def note(self, *, inserted: bool) -> None:
        """Record the statement after it has run.

        `inserted` says that rows were added, none removed, and no key changed.
        """
        greatest = None
        if inserted and not engine_of(self._table).pending:
            greatest = self._known_before
            if greatest is not None and self._greatest is not None:
                greatest = max(greatest, self._greatest)
        self._known.note(self._table, self._before, greatest)

    @property
    def greatest(self) -> int | None:
        """The greatest number of the rows made so far; None before the first."""
        return self._greatest

    def forget(self) -> None:
        """Forget the greatest number, because its row may be gone."""
        self._greatest, self._known_before, self.given = None, None, False

    def take_back(self, greatest: int | None) -> None:
        """Forget the last row, which was not inserted, by the greatest number before it."""
        known = self._known_before if self.given else None
        self._greatest = max((n for n in (greatest, known) if n is not None), default=None)

    def number_row(self, row: Sequence[Any]) -> list[Any]:
        """Return the values of a row; a key that is None gets the next number.

        The greatest key so far is noted, for the rows that follow.

        Raises
        ------
        TableError: the greatest key is the greatest integer, after which SQLite draws at random.
        """
        values = list(row)
        if self.place is None:
            return values
        if values[self.place] is None:
            values[self.place] = self._next()
            self.numbered.add(self._count)
        self._count += 1
        key = values[self.place]
        if isinstance(key, int) and (self._greatest is None or key > self._greatest):
            self._greatest = key
        return values

    def _next(self) -> int:
        """Return the number after the greatest key; refuse to go beyond `GREATEST_KEY`."""
        if not self.given:  # the table is looked at only where a key is missing
            known = self._known_before
            if known is None:
                known = self._known_before = greatest_key(self._table, str(self._read))
            mine = known if self._greatest is None else max(known, self._greatest)
            self._greatest, self.given = mine, True
        last = 0 if self._greatest in (None, NO_KEY) else self._greatest
        if last == GREATEST_KEY:
            raise TableError(
                f"cannot number a row of {self._table.name!r}: {last} is the greatest key there is"
                "\n  insert a value of the key"
            )
        return last + 1


def _is_rowid(column: BindingColumn) -> bool:
    """Return True for an INTEGER PRIMARY KEY of SQLite, the only column with a class of numbers."""
    return column.type.affinity is not None and column.type.kind == "int" and not column.nullable

"""ALTER TABLE: a table of the changed definition takes the place of the table, with its rows.

    alter table t add column b int default 1

    t(a)   rows --> values of the new columns --> t(a, b)      the rows are checked first, then
           views of SQL --> made of their texts again          the new table replaces the old one

Rows of another class need another table: `table.row_type` is a new class, and queries of Python
that hold the old table have to be made again. A view or subscription of Python over the table is
therefore an error that names it, and so is a view of SQL whose text no longer fits.

In a durable database, the rows in the file are converted in one write.

Cost:   O(rows); O(1) if rows stay as they are, as for SET DEFAULT, and O(rows) to check a new
        constraint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.expr import Parameter, constant, tuple_of
from optimizer.plans.properties import tables
from reactive.api import family
from reactive.api.internal_interface import RowChange, committed_pairs, engine_of, statements_of
from reactive.api.table import Table
from reactive.engine.codegen.functions import callable_of
from reactive.errors import TransactionError
from reactive.languages.sql.expressions.casts import convert_for_column
from reactive.languages.sql.queries.grouping import failures_told, misreadings_told
from reactive.languages.sql.queries.query import rows_of_plan
from reactive.languages.sql.statements.constraints import enforce, index, lift
from reactive.languages.sql.statements.definitions import Declared, declare
from reactive.languages.sql.statements.table_definition import (
    DefinitionTree,
    TableDefinition,
    with_values,
)
from reactive.languages.sql.statements.target import ChangedTable
from reactive.languages.sql.statements.views import read_view, set_view
from reactive.languages.sql.terms.common_types import DIALECTS
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.values import (
    NamedPlan,
    as_optional,
    plan_of_relation,
    plan_with_columns,
)
from reactive.languages.sql.text.read import parse_statements


def alter(tree: Any, around: Scope, db: Any) -> int:
    """Run ALTER TABLE, and return 0.

    Raises
    ------
    PlanError: the statement names something unknown, the table was made in Python, or a view that
        reads it is in the way.
    TableError: a row of the table does not fit the new definition.
    TransactionError: inside a transaction.
    """
    kind, catalog = str(tree.args.get("kind")).upper(), around.environment.catalog
    if kind != "TABLE":
        raise around.error(tree, f"ALTER {kind} is not supported")
    around.check_schema(tree.this)
    _ = tree.args.get("only")
    table = catalog.table(tree.this.name)
    if table is None and tree.args.get("exists"):
        return 0
    table = ChangedTable(tree.this, around).table  # or the error
    number = table.plan.number
    definition: TableDefinition | None = catalog.definitions.get(number)
    if definition is None:
        raise around.error(
            tree.this,
            f"table {table.name!r} was not made by CREATE TABLE with columns",
            "change its class, and make the table anew; a durable database keeps the rows",
        )
    if engine_of(db).pending is not None:
        raise TransactionError("ALTER TABLE is a change of its own, and in no transaction")
    folded = definition.folded()
    with_values(tree, around.constants)
    folded.apply(tree, around.error)
    changed = definition.extended(around.text, around.constants)
    change = _Alteration(table, folded, changed, around, db)
    around.refuse_unread(tree)
    change.run()
    return 0


class _Alteration:
    """The change of one table to another definition."""

    def __init__(
        self,
        table: Table[Any],
        folded: DefinitionTree,
        changed: TableDefinition,
        around: Scope,
        db: Any,
    ) -> None:
        self._table, self._folded, self._changed = table, folded, changed
        self._around, self._db = around, db
        self._catalog = around.environment.catalog
        self._engine = self._catalog.engine
        self._declared = declare(folded.create, folded.name, around)
        if folded.name.casefold() != table.name.casefold():
            self._check_name(folded.name)

    def _check_name(self, name: str) -> None:
        if self._catalog.find(name) is not None:
            raise self._around.error(None, f"there is a table or view {name!r} already")

    def run(self) -> None:
        """Check everything, then change the table."""
        with self._engine.shaping(to_write=True):
            self._catalog.is_altering = True
            try:
                (self._change_in_place if self._keeps_rows() else self._replace)()
            finally:
                self._catalog.is_altering = False
            self._catalog.statements = self._catalog.queries = None

    def _keeps_rows(self) -> bool:
        """Return True if the rows, their class and their key stay as they are."""
        before: Declared = self._catalog.declared[self._table.plan.number]
        now = self._declared
        columns = [
            [(c.name, c.type, c.nullable) for c in each.schema.columns] for each in (before, now)
        ]
        same = before.name == now.name and before.key_fields == now.key_fields
        return same and columns[0] == columns[1] and not self._folded.casts

    def _change_in_place(self) -> None:
        """Replace constraints, defaults and lengths."""
        table, number = self._table, self._table.plan.number
        of_indexes = [view for _, views in self._catalog.indexes.values() for view in views]
        earlier = [v for v in self._engine.constraints.get(number, ()) if v not in of_indexes]
        target = ChangedTable(exp.Table(this=_identifier(table.name)), self._around)
        before = self._catalog.lengths[number]
        self._catalog.lengths[number] = self._declared.lengths
        try:
            if self._declared.lengths != before:
                for row, _ in committed_pairs(table):
                    target.make_row(tuple(row))
            enforce(self._declared.constraints, table, self._around)
        except BaseException:
            self._catalog.lengths[number] = before
            raise
        lift(earlier, table, self._engine)
        self._declared.note(table)
        self._catalog.define(number, self._changed)

    # Another table.

    def _replace(self) -> None:
        """Put a table of the new definition in the place of the table."""
        self._refuse_readers()
        views, children = self._views_that_read(), self._children()
        trial = self._made()
        indexes, made = dict(self._catalog.indexes), list[Any]()
        stored = self._catalog.stored
        is_stored = stored is not None and stored.is_kept(self._table)
        try:
            with self._standing(trial):
                convert = self._conversion()
                self._fill(trial, convert)
                self._enforce(trial, children, made)
                self._check_views(views)
        except BaseException:
            self._undo(trial, made, indexes)
            raise
        if is_stored:
            self._undo(trial, made, indexes)
            made.clear()
            self._enforce(self._store_rows(convert), children, made)
        else:
            self._drop_old()
            self._catalog.define(trial.plan.number, self._changed)
        for child, _, earlier in made:
            lift(earlier, child, self._engine)
        for name in views:
            set_view(name, *self._view(name))

    def _drop_old(self) -> None:
        why = f"table {self._table.name!r} was changed by ALTER TABLE"
        family.drop(self._engine, self._table, views=True, why=why)

    def _store_rows(self, convert: Callable[[Any], Any]) -> Table[Any]:
        """Convert the rows in the file, and return the table that has taken the place."""
        catalog, table, declared = self._catalog, self._table, self._declared
        stored, earlier = catalog.stored, catalog.definitions[table.plan.number]
        old, new = f"table {table.name}", f"table {declared.name}"
        if old != new:
            return self._store_renamed(convert, old, new)
        if not stored.has_form(table.name, declared):  # else the rows and it are one write
            stored.write({new: self._changed}, "next")
        row_type = table.row_type
        try:
            change = RowChange(
                lambda fields: convert(row_type(**fields)),
                partial(stored.write_with_rows, {new: self._changed}),
            )
            made: Table[Any] = declared.make(self._engine, replaced=table, migrate=change)
        except BaseException:
            stored.write({new: earlier})
            raise
        catalog.define(made.plan.number, self._changed)
        return made

    def _store_renamed(self, convert: Callable[[Any], Any], old: str, new: str) -> Table[Any]:
        """Copy the rows in the file to a table of the new name, and delete the old table."""
        catalog, table = self._catalog, self._table
        stored, earlier = catalog.stored, catalog.definitions[table.plan.number]
        stored.write({new: self._changed}, "is_new")
        made: Table[Any] = self._declared.make(self._engine)
        try:
            with self._db.transaction():
                for row, count in committed_pairs(table):
                    made.add(convert(row), count)
            stored.write_entries({new: (self._changed, ""), old: (earlier, "is_gone")})
        except BaseException:
            family.drop(self._engine, made, views=True, why="ALTER TABLE was refused")
            stored.write({new: None})
            raise
        self._drop_old()
        catalog.define(made.plan.number, self._changed)
        return made

    def _made(self) -> Table[Any]:
        """Make the table of the new definition, in memory."""
        declared, engine = self._declared, self._engine
        number = next(engine.numbers)
        old = self._table if declared.name == self._table.name else None
        made: Table[Any] = Table(
            engine, number, declared.row_type, declared.name, declared.key, True, False, old
        )
        engine.tables[number] = made
        declared.note(made)
        return made

    @contextmanager
    def _standing(self, trial: Table[Any]) -> Iterator[None]:
        """Find the new table by the name of the old one."""
        standing = self._catalog.standing
        standing[trial.name.casefold()] = trial
        if trial.name.casefold() != self._table.name.casefold():
            standing[self._table.name.casefold()] = None
        try:
            yield
        finally:
            standing.clear()

    def _conversion(self) -> Callable[[Any], Any]:
        """Return the function from a row of the table to one of the new definition."""
        declared, around = self._declared, self._around
        number = self._table.plan.number
        before = self._catalog.schemas[number]
        own = dict(zip(map(str.casefold, before.names), before.values(Parameter(0)), strict=True))
        values = []
        for column in declared.schema.columns:
            folded = column.name.casefold()
            source = self._folded.sources.get(folded)
            cast = self._folded.casts.get(folded)
            if source is None and folded == declared.filled.numbered and len(self._table):
                raise around.error(None, f"rows that are there have no number {column.name!r}")
            if cast is not None:
                values.append(self._cast(cast, column, before))
            elif source is None:
                values.append(constant(declared.defaults.get(column.name)))
            else:
                values.append(as_optional(own[source.casefold()]))
        scope = around.over([], 1)
        read = callable_of(scope.function(tuple_of(*values)))
        target = ChangedTable(exp.Table(this=_identifier(declared.name)), around)

        def convert(row: Any) -> Any:
            with failures_told(self._folded.create, around):
                found = read(row)
            return target.make_row(found)

        return convert

    def _cast(self, cast: Any, column: Any, before: Any) -> Any:
        """Return the values of a column whose type changes."""
        rows = rows_of_plan(plan_with_columns(self._table.plan, before), self._table.name)
        scope = rows.scope(self._around)
        with misreadings_told(cast, self._around):
            return as_optional(convert_for_column(scope.value(cast), column.type, scope))

    def _fill(self, trial: Table[Any], convert: Callable[[Any], Any]) -> None:
        """Give the new table the rows of the old one."""
        once, often = list[Any](), list[tuple[Any, int]]()
        for row, count in committed_pairs(self._table):
            made = convert(row)
            (once.append(made) if count == 1 else often.append((made, count)))
        do = statements_of(trial)
        do.add_all(once, None, is_new=False)
        for row, count in often:
            do.add(row, count, is_new=False)

    def _enforce(
        self, table: Table[Any], children: Sequence[tuple[Any, Any]], made: list[Any]
    ) -> None:
        """Enforce the constraints of the table, of its indexes, and of tables that reference it.

        made: gets those tables, with their new and their earlier views.
        """
        catalog, own = self._catalog, self._table.plan.number
        enforce(self._declared.constraints, table, self._around)
        catalog.indexes = {n: of for n, of in catalog.indexes.items() if of[0] != own}
        for statement in self._folded.indexes.values():
            index(statement, self._around, is_new=False)
        for child, earlier in children:
            folded = catalog.definitions[child.plan.number].folded()
            found = declare(folded.create, child.name, self._around)
            try:
                views = enforce(found.constraints, child, self._around)
            except PlanError as error:
                raise PlanError(
                    f"table {self._table.name!r} cannot be altered: a constraint of "
                    f"{child.name!r} would not fit: {error}\n  drop that constraint first"
                ) from None
            made.append((child, views, earlier))

    def _undo(self, trial: Table[Any], made: Sequence[Any], indexes: Any) -> None:
        """Drop the table on which the change was tried."""
        for child, views, _ in made:
            lift(views, child, self._engine)
        family.drop(self._engine, trial, views=True, why="it was made to try ALTER TABLE")
        self._catalog.indexes = indexes

    # What reads the table.

    def _children(self) -> list[tuple[Table[Any], list[Any]]]:
        """Return the other tables with a constraint that reads the table, and those views."""
        engine, number = self._engine, self._table.plan.number
        read = {engine.views.get(leaf.rank) for leaf in family.readers(engine, self._table)}
        of_indexes = [view for _, views in self._catalog.indexes.values() for view in views]
        found = []
        for other, views in engine.constraints.items():
            if other != number and not read.isdisjoint(views):
                found.append((engine.tables[other], [v for v in views if v not in of_indexes]))
        return found

    def _refuse_readers(self) -> None:
        """Refuse the change while views and subscriptions of Python read the table."""
        engine = self._engine
        own = {id(view) for views in engine.constraints.values() for view in views}
        own |= {id(view) for view in self._catalog.kept.values()}
        others = [
            leaf
            for leaf in family.readers(engine, self._table)
            if id(engine.views.get(leaf.rank)) not in own
        ]
        if others:
            raise PlanError(
                f"table {self._table.name!r} cannot be altered: it is read by "
                f"{family.names_of_leaves(engine, others)}\n"
                "  close them first, and make them again over the new table"
            )

    def _views_that_read(self) -> list[str]:
        """Return the names of the views of SQL over the table, in the order they were made."""
        catalog, number = self._catalog, self._table.plan.number
        nodes = {name: plan.node for name, plan in catalog.views.items()}
        nodes |= {name: view.plan for name, view in catalog.kept.items()}
        return [
            name
            for name in catalog.view_texts
            if any(table.number == number for table in tables(nodes[name]))
        ]

    def _check_views(self, names: Sequence[str]) -> None:
        """Check that the texts of views fit the new table."""
        catalog = self._catalog
        views = dict(catalog.views)
        try:
            for name in names:
                found = self._view(name)[0]
                is_plan = isinstance(found, NamedPlan)
                catalog.views[name] = found if is_plan else plan_of_relation(found)
        finally:
            catalog.views = views

    def _view(self, name: str) -> tuple[Any, Scope]:
        """Return a view of SQL, made of its text again.

        Raises
        ------
        PlanError: the text no longer fits; the message names the view.
        """
        view = self._catalog.view_texts[name]
        around = self._around.of_text(view.text, view.values)
        (tree,) = parse_statements(view.text, DIALECTS[view.dialect], view.values)
        try:
            return read_view(tree, around), around
        except PlanError as error:
            raise PlanError(
                f"table {self._table.name!r} cannot be altered: view {name!r} would not fit: "
                f"{error}\n  drop the view first"
            ) from None


def _identifier(name: str) -> Any:
    return exp.to_identifier(name, quoted=True)

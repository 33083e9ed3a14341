"""CHECK, UNIQUE and REFERENCES: views that must stay empty.

    check (a > 0)               select * from t where not (a > 0)
    unique (a, b)               select a, b from t where a is not null and b is not null
                                group by a, b having count(*) > 1
    foreign key (a) references p (x)
                                select * from t where a is not null
                                and not exists (select 1 from p where p.x = t.a)

A row of such a view raises, so that the commit that made it fails, and nothing has changed: that
of a statement, of `table.add`, or of a transaction, whose end counts.

State:  that of the query: a count per value of UNIQUE, indexes of both sides of REFERENCES.
Cost:   O(1) per changed row of the table, and of the table that is referenced.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import TRUE, Attempt, Lifted, has_subquery
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.engine.runtime.sql_names import quote_name
from reactive.errors import TableError
from reactive.languages.sql.queries.grouping import misreadings_told
from reactive.languages.sql.relation import make_relation
from reactive.languages.sql.statements.target import ChangedTable, is_temporary
from reactive.languages.sql.terms.errors import put, take
from reactive.languages.sql.terms.scope import Scope

log = logging.getLogger("reactive")
CHECKED = exp.CheckColumnConstraint
UNIQUE = exp.UniqueColumnConstraint
OWN, OTHER = (exp.to_identifier(name, quoted=True) for name in ("own row", "other row"))
"""Aliases in the queries, for the table and for one that it references."""
KINDS = (CHECKED, UNIQUE, exp.ForeignKey)
ANONYMOUS = re.compile(r"(?is)\A(\s*create\s+(?:unique\s+)?index)\s+on\b")
"""The beginning of a CREATE INDEX without a name."""
AT_ONCE = frozenset({"NO ACTION", "RESTRICT"})
"""Actions of REFERENCES that refuse the change."""
OF_MOMENT = frozenset(
    {"NOT DEFERRABLE", "DEFERRABLE", "INITIALLY DEFERRED", "INITIALLY IMMEDIATE", "MATCH SIMPLE"}
)
"""Options of REFERENCES that say when it is looked at: here at the commit."""


@record
class Constraint:
    """A declared constraint: its node, the columns that it is about, and the name that it has."""

    node: Any
    columns: tuple[Any, ...]
    name: str | None = None
    of_rows: Any = None
    """The condition of a partial UNIQUE index."""
    usual_name: str | None = None
    """The name of a constraint without one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Raises for a row that a constraint does not allow.

    of_check: a condition of CHECK with the name of its constraint, and its test, which is computed
        again: it may have raised.
    """

    table: str
    what: str
    of_check: tuple[str, Callable[[Any], Any]] | None = None

    def __call__(self, row: Any) -> Any:
        what, error = self.what, None
        if self.of_check is not None:
            name, test = self.of_check
            try:
                test(row)
            except Exception as raised:
                what, error = f"check {name} cannot be evaluated: {raised}", raised
        raise TableError(
            f"table {self.table!r} refuses {tuple(row)!r:.200}: {what}\n  nothing has changed"
        ) from error


def take_constraints(tree: Any) -> list[Constraint]:
    """Take the constraints out of a CREATE TABLE, and return them, those of columns first."""
    of_columns, of_table, kept = list[Constraint](), list[Constraint](), list[Any]()
    for node in tree.this.expressions:
        if _is_constraint(node):
            name = node.name if isinstance(node, exp.Constraint) else None
            inner = node.expressions if isinstance(node, exp.Constraint) else [node]
            of_table += [Constraint(each, tuple(_named_columns(each)), name) for each in inner]
            continue
        kept += node.expressions if _is_named_key(node) else [node]
        if isinstance(node, exp.ColumnDef):
            of_columns += _taken_of_column(node)
    put(tree.this, "expressions", kept)
    return of_columns + of_table


def _is_constraint(node: Any) -> bool:
    """Return True for a part of CREATE TABLE that is a constraint of this module."""
    inner = node.expressions if isinstance(node, exp.Constraint) else [node]
    return bool(inner) and all(isinstance(each, KINDS) for each in inner)


def _is_named_key(node: Any) -> bool:
    """Return True for `constraint c primary key (a, b)`."""
    return isinstance(node, exp.Constraint) and all(
        isinstance(each, exp.PrimaryKey) for each in node.expressions
    )


def _taken_of_column(node: Any) -> list[Constraint]:
    """Take the constraints that stand behind a column, and return them."""
    taken, kept = [], []
    for each in node.args.get("constraints") or ():
        kind = each.args.get("kind")
        if isinstance(kind, (CHECKED, UNIQUE, exp.Reference)):
            name = each.args.get("this")
            taken.append(Constraint(kind, (node.this,), None if name is None else name.name))
        else:
            kept.append(each)
    if taken:
        put(node, "constraints", kept)
    return taken


def _named_columns(node: Any) -> list[Any]:
    """Return the columns that UNIQUE or FOREIGN KEY of a table names."""
    if isinstance(node, exp.ForeignKey):
        return list(node.expressions)
    if isinstance(node, UNIQUE) and node.this is not None:
        return [_name_of(each) for each in node.this.expressions]
    return []


def _name_of(node: Any) -> Any:
    """Return the name of a column, without its place in an order."""
    if isinstance(node, exp.Ordered):
        node.args.get("nulls_first")  # which the parser adds
        node.args.get("desc")
        node = node.this
    return node.this if isinstance(node, exp.Column) else node


def enforce(constraints: Sequence[Constraint], table: Any, around: Scope) -> list[Any]:
    """Make the views of constraints, which check the rows that are there, and return them.

    Raises
    ------
    PlanError: a constraint names something unknown, or asks for another action than a refusal.
    TableError: a row of the table is refused.
    """
    engine = around.environment.engine
    made: list[Any] = []
    try:
        for each in constraints:
            query, what = _violations(each, table, around)
            with misreadings_told(each.node, around):
                node, schema = around.query(query).rows()
            views = tuple(dict.fromkeys(around.environment.views))
            around.refuse_unread(each.node)
            name = "" if each.name is None else f" ({each.name})"
            node, test = _caught(node) if isinstance(each.node, CHECKED) else (node, None)
            shown = what.removeprefix("check ").removesuffix(" is false")
            of_check = None if test is None else (f"{shown}{name}", test)
            refusal = Refusal(table.name, f"{what}{name}", of_check)
            found: Any = make_relation(engine, node, schema, views)
            made.append(found.select(refusal).materialize(on_error="raise"))
    except BaseException:
        for view in made:
            view.close()
        raise
    catalog = around.environment.catalog
    for each, view in zip(constraints, made, strict=True):
        catalog.uniques.pop(id(view), None)
        if isinstance(each.node, UNIQUE):
            catalog.uniques[id(view)] = each
        if each.name is not None or each.usual_name is not None:
            catalog.constraint_names[id(view)] = each.name or each.usual_name
    if made:
        engine.constraints.setdefault(table.plan.number, []).extend(made)
    return made


def _caught(node: plan.Node) -> tuple[plan.Node, Callable[[Any], Any] | None]:
    """Return the rows whose condition holds or raises, and the condition as a function.

    A condition with a query stays as it is, without a function.
    """
    match node:
        case plan.Select(plan.Where(rows, Lifted() as test)) if not has_subquery(test.body):
            caught = test.with_body(Attempt(test.body, TRUE))
            return plan.Where(rows, caught), callable_of(test)
    return node, None


def lift(views: Sequence[Any], table: Any, engine: Any) -> None:
    """End constraints of a table, by their views."""
    held = engine.constraints.get(table.plan.number, [])
    for view in views:
        if view in held:
            held.remove(view)
        view.close()
        engine.catalog.constraint_names.pop(id(view), None)
        engine.catalog.uniques.pop(id(view), None)


def index(tree: Any, around: Scope, *, is_new: bool = True) -> int:
    """Run CREATE INDEX: a UNIQUE one is a constraint; others are not needed. Return 0.

    Queries make the indexes that they read.

    is_new: False if the definition of the table has the index.
    """
    named, catalog = tree.this, around.environment.catalog
    target = ChangedTable(named.args["table"], around)
    name = named.name or f"index {len(catalog.indexes) + 1}"  # Postgres needs none
    parameters = named.args.get("params")
    columns = [] if parameters is None else list(parameters.args.get("columns") or ())
    parts = [part.this if isinstance(part, exp.Ordered) else part for part in columns]
    row = around.over(list(target.rows().sources), 1)
    for part, column in zip(columns, parts, strict=True):
        _name_of(part)
        row.value(column)
    where = None if parameters is None else parameters.args.get("where")
    of_rows = None if where is None else where.this
    if of_rows is not None:
        row.true(of_rows)
    may_exist = bool(tree.args.get("exists"))
    if name.casefold() in catalog.indexes:
        if may_exist:
            return 0
        raise around.error(tree, f"there is an index {name!r} already")
    is_unique, made = tree.args.get("unique"), []
    strange = next((part for part in parts if not isinstance(part, exp.Column)), None)
    if is_unique and strange is not None:
        raise around.error(strange, "a UNIQUE index of expressions is not supported")
    around.refuse_unread(tree)
    if is_unique:
        unique = Constraint(UNIQUE(), tuple(part.this for part in parts), name, of_rows)
        made = enforce([unique], target.table, around)
    else:
        log.info("index %r of table %r is not needed: queries make their own", name, target.name)
    number = target.table.plan.number
    catalog.indexes[name.casefold()] = (number, made)
    if is_new and number in catalog.definitions:
        text = (
            around.text if named.name else ANONYMOUS.sub(rf"\1 {quote_name(name)} on", around.text)
        )
        catalog.define(number, catalog.definitions[number].extended(text, around.constants))
    return 0


def drop_index(target: Any, around: Scope) -> None:
    """Drop an index; with a UNIQUE one its constraint goes."""
    catalog = around.environment.catalog
    found = catalog.indexes.pop(target.name.casefold(), None)
    if found is None:
        raise around.error(target, f"there is no index {target.name!r}")
    number, made = found
    lift(made, catalog.engine.tables[number], catalog.engine)
    if number in catalog.definitions:
        text = f"drop index {quote_name(target.name)}"
        catalog.define(number, catalog.definitions[number].extended(text, {}))


def _violations(constraint: Constraint, table: Any, around: Scope) -> tuple[Any, str]:
    """Return the query of the rows that a constraint does not allow, and what it says of them."""
    node, columns = constraint.node, constraint.columns
    if isinstance(node, CHECKED):
        take(node)
        wrong = exp.Not(this=exp.Paren(this=node.this))
        query = exp.select(exp.Star()).from_(_source(table.name), copy=False)
        return query.where(wrong, copy=False), f"check {_text_of(node.this, around)} is false"
    strange = next((each for each in columns if not isinstance(each, exp.Identifier)), None)
    if strange is not None:
        raise around.error(strange, "a constraint of expressions is not supported")
    names = around.environment.catalog.schema_of(table).names
    folded = {name.casefold() for name in names}
    strange = next((each for each in columns if each.name.casefold() not in folded), None)
    if strange is not None:
        told = f"there is no column {strange.name!r}"
        raise around.error(strange, told, f"there are {', '.join(names)}")
    own = [exp.Column(this=each.copy(), table=OWN.copy()) for each in columns]
    shown = ", ".join(each.name for each in columns)
    present: list[Any] = [
        exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in own
    ]
    if isinstance(node, UNIQUE):
        query = exp.select(*own, copy=False).from_(_source(table.name, OWN), copy=False)
        present += [] if constraint.of_rows is None else [exp.Paren(this=constraint.of_rows)]
        query = query.where(*present, copy=False)
        return _repeated(query, node), f"unique ({shown}) has it twice"
    reference = node.args["reference"] if isinstance(node, exp.ForeignKey) else node
    if isinstance(node, exp.ForeignKey):
        _check_actions(node, [node.args.get("delete"), node.args.get("update")], around)
    _check_actions(reference, reference.args.get("options") or [], around)
    parent, keys = _referenced(reference, table.name, columns, around)
    matches = [
        exp.EQ(this=exp.Column(this=key, table=OTHER.copy()), expression=each.copy())
        for key, each in zip(keys, own, strict=True)
    ]
    there = exp.select(exp.Literal.number(1)).from_(_source(parent.name, OTHER), copy=False)
    missing = exp.Not(this=exp.Exists(this=there.where(*matches, copy=False)))
    query = exp.select(exp.Star()).from_(_source(table.name, OWN), copy=False)
    told = f"({shown}) references {parent.name!r}, which has no such row"
    return query.where(*present, missing, copy=False), told


def _source(name: str, alias: Any = None) -> Any:
    """Return a table of FROM."""
    called = None if alias is None else exp.TableAlias(this=alias.copy())
    return exp.Table(this=exp.to_identifier(name, quoted=True), alias=called)


def _repeated(query: Any, node: Any) -> Any:
    """Return a query with the rows that it has more than once."""
    take(node)
    take(node.args.get("include"))  # a node also where nothing is included
    count = exp.Count(this=exp.Star(), big_int=True)
    grouped = query.group_by(*[each.copy() for each in query.expressions], copy=False)
    return grouped.having(exp.GT(this=count, expression=exp.Literal.number(1)), copy=False)


def _referenced(
    reference: Any, table: str, columns: Sequence[Any], around: Scope
) -> tuple[Any, list[Any]]:
    """Return the table that REFERENCES names, and the columns there."""
    named = reference.this
    parent = ChangedTable(named, around)
    catalog = around.environment.catalog
    if is_temporary(parent.name, catalog) and not is_temporary(table, catalog):
        raise around.error(
            reference, f"table {table!r} cannot reference {parent.name!r}, which is temporary"
        )
    if isinstance(named, exp.Schema):
        places = [parent.place(_name_of(each).name, reference) for each in named.expressions]
        keys = [exp.to_identifier(parent.schema.names[place], quoted=True) for place in places]
    else:
        found = parent.key_names()
        if found is None or len(found) != 1:
            raise around.error(
                reference,
                f"REFERENCES names no columns, and the key of {parent.name!r} is not one column",
                f"references {parent.name} (column, ...)",
            )
        place = parent.place(next(iter(found)), reference)
        keys = [exp.to_identifier(parent.schema.names[place], quoted=True)]
    if len(keys) != len(columns):
        raise around.error(
            reference, f"{len(columns)} columns reference {len(keys)} of {parent.name!r}"
        )
    return parent, keys


def _check_actions(node: Any, options: Sequence[Any], around: Scope) -> None:
    """Refuse actions of REFERENCES that change other rows."""
    for option in options:
        words = str(option or "").upper()
        action = words.removeprefix("ON DELETE ").removeprefix("ON UPDATE ")
        if words and action not in AT_ONCE and action not in OF_MOMENT:
            raise around.error(
                node,
                f"{words} of REFERENCES is not supported",
                "leave it out: the change is refused; a statement of yours changes the other rows",
            )


def _text_of(node: Any, around: Scope) -> str:
    """Return a condition as SQL, for a message."""
    return str(node.sql(dialect=around.dialect.name))[:200]

"""CREATE TABLE with LIKE in Postgres: the statement with the columns of the other table.

    create table u (like t, c int)      create table u (a int not null, b text, c int)

Types and NOT NULL are copied; what INCLUDING names, too. References never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.statements.target import ChangedTable
from reactive.languages.sql.terms.scope import Scope

OPTIONS: dict[str, tuple[type[exp.Expr], ...]] = {
    "DEFAULTS": (exp.DefaultColumnConstraint,),
    "CONSTRAINTS": (exp.CheckColumnConstraint,),
    "INDEXES": (exp.PrimaryKeyColumnConstraint, exp.UniqueColumnConstraint, exp.PrimaryKey),
    "GENERATED": (exp.ComputedColumnConstraint,),
    "IDENTITY": (exp.GeneratedAsIdentityColumnConstraint,),
    **dict.fromkeys(("STORAGE", "COMMENTS", "STATISTICS", "COMPRESSION"), ()),
}
"""What INCLUDING and EXCLUDING name."""
SERIALS = {
    exp.DType.SERIAL: exp.DType.INT,
    exp.DType.BIGSERIAL: exp.DType.BIGINT,
    exp.DType.SMALLSERIAL: exp.DType.SMALLINT,
}


def write_out(tree: Any, around: Scope) -> str | None:
    """Return the text of a CREATE TABLE with columns in the place of LIKE; None without LIKE.

    Raises
    ------
    PlanError: the other table is unknown, or was not made by CREATE TABLE with columns.
    """
    parts = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if not any(isinstance(each, exp.LikeProperty) for each in parts):
        return None
    made: list[Any] = []
    for each in parts:
        made += _columns_like(each, around) if isinstance(each, exp.LikeProperty) else [each]
    copied = tree.copy()
    copied.this.set("expressions", [each.copy() for each in made])
    return str(copied.sql(around.dialect.name))


def _columns_like(like: Any, around: Scope) -> Iterator[Any]:
    """Yield the columns and constraints of the table that LIKE names."""
    if around.dialect.name != "postgres":
        problem = f"{like.sql().upper()} in CREATE TABLE is not supported"
        raise around.error(like, problem, "name the columns, or create table t as select ...")
    table = ChangedTable(like.this, around).table
    definition = around.environment.catalog.definitions.get(table.plan.number)
    if definition is None:
        problem = f"table {table.name!r} was not made by CREATE TABLE with columns"
        raise around.error(like, problem, "name the columns")
    kinds = _copied_kinds(like, around)
    parts = definition.folded().create.this.expressions
    keys = {
        name.name
        for part in parts
        for key in part.find_all(exp.PrimaryKey)
        for name in key.expressions
    }
    for part in parts:
        if isinstance(part, exp.ColumnDef):
            yield _column(part, kinds, like, around, is_key=part.name in keys)
            continue
        inner = part.expressions[0] if isinstance(part, exp.Constraint) else part
        if isinstance(inner, kinds):
            yield inner


def _copied_kinds(like: Any, around: Scope) -> tuple[type[exp.Expr], ...]:
    """Return the classes of constraints that are copied."""
    chosen: set[str] = set()
    for each in like.expressions:
        word, option = each.name.upper(), each.args["value"].name.upper()
        if option not in (*OPTIONS, "ALL"):
            raise around.error(
                like, f"LIKE has no {option}", f"there are {', '.join(OPTIONS)}, ALL"
            )
        named = set(OPTIONS) if option == "ALL" else {option}
        chosen = chosen | named if word == "INCLUDING" else chosen - named
    return (
        exp.NotNullColumnConstraint,
        *(kind for option in sorted(chosen) for kind in OPTIONS[option]),
    )


def _column(
    column: Any, kinds: tuple[type[exp.Expr], ...], like: Any, around: Scope, *, is_key: bool
) -> Any:
    """Return the copy of a column with the constraints that are copied."""
    made = column.copy()
    constraints = [each for each in made.constraints if isinstance(each.kind, kinds)]
    is_key |= any(
        isinstance(each.kind, exp.PrimaryKeyColumnConstraint) for each in made.constraints
    )
    serial = SERIALS.get(made.kind.this)
    if serial is not None:
        if exp.DefaultColumnConstraint in kinds:
            problem = f"the numbers of column {made.name!r} would be those of the other table"
            raise around.error(like, problem, "excluding defaults")
        made.set("kind", exp.DataType(this=serial))
    has_test = any(isinstance(each.kind, exp.NotNullColumnConstraint) for each in constraints)
    if (is_key or serial is not None) and not has_test:
        constraints.append(exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
    made.set("constraints", constraints)
    return made

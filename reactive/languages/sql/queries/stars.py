"""The columns of a SELECT, those that a star stands for among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.languages.sql.queries.column_names import name_of_column
from reactive.languages.sql.queries.rows import Rows
from reactive.languages.sql.terms.arguments import take
from reactive.languages.sql.terms.errors import nearest
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import fields_of


@record
class Column:
    """A column of a SELECT: its name, what it is, and whether somebody gave it the name."""

    name: str
    node: Any
    is_alias: bool


def columns_of(select: Any, rows: Rows, scope: Scope) -> list[Column]:
    """The columns, in order.

    Raises
    ------
    PlanError: a star stands for nothing.
    """
    return [column for node in select.expressions for column in _columns(node, rows, scope)]


def _columns(node: Any, rows: Rows, scope: Scope) -> Iterator[Column]:
    star = _star(node)
    if star is not None:
        yield from _expanded(star, node, rows, scope)
    elif isinstance(node, exp.Alias):
        yield Column(node.alias, node.this, True)
    elif isinstance(node, exp.Explode | exp.Unnest) and scope.dialect.dotted_fields:
        yield from _unnested(node, scope)
    elif isinstance(node, exp.Column):
        yield Column(node.name, node, False)
    else:
        yield Column(name_of_column(node, scope), node, False)


def _unnested(node: Any, scope: Scope) -> Iterator[Column]:
    """Yield a column for each field of a struct that is unnested; one column of what is none."""
    value = scope.value(node.this if isinstance(node, exp.Explode) else node.expressions[0])
    fields = fields_of(value.type)
    for name in fields:
        column = exp.column(name)
        column.parent = node
        scope.values[id(column)] = scope.field(value, name, node)
        yield Column(name, column, False)
    if not fields:
        yield Column(name_of_column(node, scope), node, False)


def _star(node: Any) -> Any:
    if isinstance(node, exp.Star):
        return node
    return node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else None


def _expanded(star: Any, node: Any, rows: Rows, scope: Scope) -> Iterator[Column]:
    take(star)
    table = node.table if isinstance(node, exp.Column) else ""
    left_out = {c.name.casefold() for c in star.args.get("except_") or ()}
    replaced = {a.alias.casefold(): a.this for a in star.args.get("replace") or ()}
    renamed = {a.this.name.casefold(): a.alias for a in star.args.get("rename") or ()}
    for word in ("ilike", "like"):
        if star.args.get(word) is not None:
            raise scope.error(star.args[word], f"* {word.upper()} is not supported", "name columns")
    count = 0
    first = scope.dialect.name == "postgres"
    columns = _of_table(node, rows, scope) if table else rows.columns(merged_first=first)
    for source, name, value in columns:
        count += 1
        folded = name.casefold()
        if folded in left_out:
            continue
        if folded in replaced:
            yield Column(name, replaced[folded], False)
            continue
        column = exp.column(name, source or None)
        column.parent = node
        scope.values[id(column)] = value
        yield Column(renamed.get(folded, name), column, False)
    if not count:
        names = [source.name for source in rows.sources]
        what = f"{table}.*" if table else "*"
        raise scope.error(node, f"{what} stands for no columns{nearest(table, names)}")


def _of_table(node: Any, rows: Rows, scope: Scope) -> Iterator[tuple[str, str, Any]]:
    """Yield the columns of the table that a star names, or the fields of the column."""
    named = [each for each in rows.sources if each.name.casefold() == node.table.casefold()]
    for source in named:
        for name, value in source.columns:
            yield source.name, name, value
    if not named and scope.dialect.dotted_fields:
        *above, name = node.parts[:-1]
        column = exp.Column(this=name.copy(), table=above[-1].copy() if above else None)
        found = scope.of_sources(column)
        if found is not None:
            for field in fields_of(found.type):
                yield node.table, field, scope.field(found, field, node)

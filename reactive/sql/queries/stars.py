"""The columns of a SELECT, those that a star stands for among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from optimizer.record import record
from reactive.sql.queries.rows import Rows
from reactive.sql.terms.arguments import take
from reactive.sql.terms.errors import nearest, source_of
from reactive.sql.terms.scope import Scope


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
    elif isinstance(node, exp.Column):
        yield Column(node.name, node, False)
    else:
        yield Column(source_of(scope.text, node) or node.sql(), node, False)


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
    columns = _of_table(table, rows) if table else rows.columns(merged_first=first)
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


def _of_table(table: str, rows: Rows) -> Iterator[tuple[str, str, Any]]:
    for source in rows.sources:
        if source.name.casefold() == table.casefold():
            for name, value in source.columns:
                yield source.name, name, value

"""UNNEST of DuckDB in SELECT: columns of structs, and levels of lists.

    unnest(s)                              a column for each field of a struct
    unnest(l, recursive := true)           the elements of the innermost lists
    unnest(l, max_depth := 2)              those of the second level
    unnest([{'a': 1}], recursive := true)  a column for each field of the innermost structs

Cost: as UNNEST of a flat list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp

from reactive.languages.sql.queries.ordering import SelectColumn
from reactive.languages.sql.terms.errors import put, record_arguments, take
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import SqlType, fields_of
from reactive.languages.sql.terms.values import TypedValue

ALL_LEVELS = 1_000_000


def write_levels(item: exp.Expr, select: Any, scope: Scope) -> tuple[SelectColumn, ...]:
    """Write the levels of each UNNEST in an item of a SELECT as FLATTEN.

    Return the columns of an item that unnests structs in lists; none of another item.
    """
    whole = item.this if isinstance(item, exp.Alias) else item
    found: tuple[SelectColumn, ...] = ()
    for call in list(item.find_all(exp.Explode)):
        if not call.expressions:
            continue
        levels = _levels(call, scope)
        kind = scope.value(call.this).type
        listed = 0
        while kind.kind == "array" and kind.items and listed < levels:
            kind, listed = kind.items[0], listed + 1
        is_nested = listed > 1 or (listed == 1 and kind.kind == "struct" and levels > 1)
        if is_nested and any(map(_has_other(item), select.expressions)):
            raise scope.error(call, "several levels are unnested beside no other unnest()")
        for _ in range(listed - 1):
            put(call, "this", _call("flatten", call.this))
        if call is whole and kind.kind == "struct" and levels > listed:
            leaf = call if listed else call.this
            found = tuple(_leaves(leaf, kind, levels - listed))
    return found


def _has_other(item: exp.Expr) -> Callable[[exp.Expr], bool]:
    """Return the test that another item of SELECT unnests something."""
    return lambda other: other is not item and other.find(exp.Explode) is not None


def _levels(call: Any, scope: Scope) -> int:
    """Return the number of levels that a call unnests, and take its options away."""
    levels = 1
    for each in call.expressions:
        name = each.this.name.lower() if isinstance(each, exp.PropertyEQ) else ""
        given = each.expression if name else None
        take(given)
        if name == "recursive" and isinstance(given, exp.Boolean):
            levels = ALL_LEVELS if given.this else levels
        elif name == "max_depth" and isinstance(given, exp.Literal) and given.this.isdigit():
            levels = int(given.this)
        else:
            raise scope.error(each, "unnest() takes recursive := true, or max_depth := a number")
    if levels < 1:
        raise scope.error(call, "unnest() cannot have a max_depth of 0")
    put(call, "expressions", None)
    return levels


def _call(name: str, argument: exp.Expr) -> exp.Expr:
    """Return a call of a function with one argument."""
    return exp.Anonymous(this=name, expressions=[argument])


def _leaves(node: Any, kind: SqlType, levels: int) -> Iterator[SelectColumn]:
    """Yield a column for each field of a struct, of as many levels of structs."""
    for name, inner in fields_of(kind).items():
        read = exp.Dot(this=node.copy(), expression=exp.to_identifier(name, quoted=True))
        record_arguments(read)
        if levels > 1 and inner.kind == "struct":
            yield from _leaves(read, inner, levels - 1)
        else:
            yield SelectColumn(name, read, False)


def fields_of_struct(node: Any, value: TypedValue, scope: Scope) -> Iterator[SelectColumn]:
    """Yield a column for each field of a struct."""
    for name in fields_of(value.type):
        column = exp.column(name)
        column.parent = node
        scope.values[id(column)] = scope.field(value, name, node)
        yield SelectColumn(name, column, False)

"""Dictionaries over relations: comprehensions of one value for each key, and groups of a loop.

{c.id: c.name for c in customers}       one value for each key, or `DuplicateKeyError`
d = defaultdict(list)                   pairs of a key and a value; what a key has are the
for o in orders:                        values of its pairs
    d[o.cid].append(o.total)
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.comprehensions.computed import found_by, found_or
from optimizer.comprehensions.refusals import refused
from optimizer.comprehensions.rows import Rows, as_set
from optimizer.expr import (
    NONE,
    Call,
    Expr,
    Operation,
    Outer,
    Parameter,
    constant,
    tuple_of,
)
from optimizer.plans.properties import groups

PAIR = (Parameter(0), Parameter(1))
ITEMS = "for key, values in groups.items()"


def grouped(rows: Rows, reading: Any, fold: Any = "Only") -> Rows:
    """A row for each key, with its value; with all values of a group."""
    if rows.row == PAIR and groups(rows.node) is not None:
        return rows
    key, value = (reading.function(part, rows) for part in rows.row)
    node = plan.Aggregate(rows.node, key, (reading.engine.fold(fold, value),))
    return replace(rows, kind="dict", node=node, row=PAIR, names=("key", "value"))


def keys_of(rows: Rows, reading: Any) -> Rows:
    """The different keys."""
    if rows.kind == "dict":
        found = grouped(rows, reading)
        return replace(found, kind="list", row=(found.row[0],))
    key = replace(rows, kind="list", row=(rows.row[0],))
    return replace(as_set(key, reading.origins), kind="list")


def item(rows: Rows, key: Expr, node: ast.expr, reader: Any, reading: Any) -> Expr:
    """`mapping[key]`"""
    found = _of_key(rows, key, reading)
    if rows.kind == "groups":
        return replace(found, kind="list", row=(rows.row[1],))
    values = reading.folded(found, "Collect", found.row[1])
    return Call(constant(found_by, "item"), (values, key))


def method(rows: Rows, name: str, node: ast.Call, reader: Any, reading: Any) -> Expr:
    """A method of a mapping."""
    is_groups = rows.kind == "groups"
    if name == "items" and not node.args:
        if is_groups:
            return replace(rows, kind="items")
        found = grouped(rows, reading)
        return replace(found, kind="list", row=(tuple_of(*found.row),))
    if name == "keys" and not node.args:
        return replace(keys_of(rows, reading), kind="set")
    if name == "values" and not node.args and not is_groups:
        found = grouped(rows, reading)
        return replace(found, kind="list", row=(found.row[1],))
    if name == "get" and node.args and not is_groups and not node.keywords:
        key = reader.expr(node.args[0])
        default = reader.expr(node.args[1]) if len(node.args) > 1 else NONE
        found = _of_key(rows, key, reading)
        values = reading.folded(found, "Collect", found.row[1])
        return Call(constant(found_or, "get"), (values, key, default))
    remedy = ITEMS if is_groups else "mappings have items, keys, values, get, [] and in"
    raise refused(node, reader, "is not read over relations", remedy)


def _of_key(rows: Rows, key: Expr, reading: Any) -> Rows:
    """The rows of a key."""
    one = replace(rows, row=(rows.row[0],))
    found: Rows = reading.equal_to(one, key)
    return replace(found, row=rows.row)


def bind_group(
    target: ast.expr, key: Expr, rows: Rows, reader: Any, reading: Any, inside: Any
) -> None:
    """Give the names in `for key, values in groups.items()` the key and its values."""
    if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != 2:
        raise refused(target, reader, "takes groups as one value", ITEMS)
    first, second = target.elts
    if not isinstance(second, ast.Name):
        raise refused(second, reader, "takes the values of a group apart", ITEMS)
    inside._bind(first, key)
    scope = inside.scope
    arguments = tuple(scope.adopt(e, rows.scope) for e in rows.arguments)
    given = replace(rows, scope=scope, arguments=(*arguments, key), order=None)
    test = Operation("==", (rows.row[0], Outer(len(arguments))))
    found = reading.where(replace(given, kind="list", row=(rows.row[1],)), test)
    reader.bound[second.id] = found

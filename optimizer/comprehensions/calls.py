"""Calls of built-in functions with rows, of methods of rows, and of functions that read relations.

sum(o.total for o in orders)        aggregate Sum(o.total)
any(p(o) for o in orders)           exists where p(o)
max(rows, key=f)                    the first row in the order of f
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cmp_to_key
from types import FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import is_users
from optimizer.callables.syntax import code_of_lambda
from optimizer.comprehensions import consumers, touching
from optimizer.comprehensions import rows as functions
from optimizer.comprehensions.consumers import Needed, Only, only_or, value_or
from optimizer.comprehensions.generators import RowScope, bind_target
from optimizer.comprehensions.rows import (
    OF_FUNCTIONS,
    ORDER,
    Order,
    Rows,
    as_set,
    evaluate_in_plan,
    plan_of_window,
    refusal_at,
    relation,
    select_value,
    standing_of,
)
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    Call,
    Conditional,
    Constant,
    Display,
    Expr,
    Item,
    Operation,
    Parameter,
    Subquery,
    constant,
    items_of,
    tuple_of,
    walk,
)
from optimizer.expressions.knowledge import total
from optimizer.lifting.lift import Unreadable, free_names, read_callable_as_expr, tree_of
from optimizer.lifting.readings import UNSET, part_of
from optimizer.subqueries.error_freedom import kinds, known_of

KNOWN = "sum, len, min, max, any, all, sorted, set, list and dict are"
OPERATORS: dict[str, ast.operator] = {
    "union": ast.BitOr(),
    "intersection": ast.BitAnd(),
    "difference": ast.Sub(),
    "symmetric_difference": ast.BitXor(),
}


class CalledTooEarly(PlanError):
    """A query calls another one that is not defined yet: it is read when it is used."""


def too_early(name: ast.Name, reader: Any) -> PlanError:
    """Return the error for a name without a value; `CalledTooEarly` if it is called as a query."""
    is_called = any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == name.id
        and not (call.args or call.keywords)
        for call in ast.walk(tree_of(reader.function))
    )
    if not is_called:
        return refusal_at(name, reader, "has no value yet", "define it before the query is made")
    remedy = "define it before the query is used for the first time"
    return CalledTooEarly(*refusal_at(name, reader, "has no value yet", remedy).args)


def call(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read a call that uses relations; return None if its arguments are values.

    Refuse a function that cannot be read over relations.
    """
    if isinstance(node.func, ast.Name) and node.func.id in LOOPS:
        return LOOPS[node.func.id](node, reader, reading)
    if isinstance(node.func, ast.Attribute) and touching.touches(node.func.value, reader, reading):
        owner = reading.value(node.func.value, reader)
        if isinstance(owner, Rows):
            return _method(owner, node.func.attr, node, reader, reading)
        return None
    function = touching.constant_of(node.func, reader)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if not node.args and not node.keywords:
        rows = _read_query_call(node, function, name, reader, reading)
        if rows is not None:
            return rows
    handler = HANDLERS.get(function) if _is_hashable(function) else None
    if handler is not None and node.args:
        return handler(node, reader, reading)
    if reading.engine.is_lattice(function):
        return reading.read_join(node, function, reader)  # type: ignore[no-any-return]
    called = getattr(function, "__name__", "")
    if called in OF_FUNCTIONS and function is not UNSET:
        raise refusal_at(node, reader, *OF_FUNCTIONS[called])
    if isinstance(function, FunctionType):
        if not is_users(function):
            raise refusal_at(node, reader, "is not read over relations", KNOWN)
        takes_rows = any(touching.touches(a, reader, reading) for a in node.args)
        if takes_rows or touching.reads_relations(function, reading):
            return functions.read_call(node, function, reader, reading)
    return None


def _is_hashable(function: Any) -> bool:
    return callable(function) and type(function).__hash__ is not None


def _read_query_call(
    node: ast.Call, function: Any, name: str, reader: Any, reading: Any
) -> Expr | None:
    """Return the rows of a query, or of the function that is being read, which is called without
    arguments; None for other functions.

    Refuse a name that has no value yet.
    """
    text = reading.engine.text_of(function) if function is not UNSET else None
    for entry in reading.active:
        if entry.is_of(function, name, text):
            return entry.rows()  # type: ignore[no-any-return]
    if function is UNSET and name:
        raise too_early(ast.copy_location(ast.Name(name), node), reader)
    if text is None:
        return None
    if reading.engine.is_unread(function):
        return functions.read_call(node, text, reader, reading)
    found: Rows = reading.value(node.func, reader)
    if isinstance(found.node, plan.Aggregate) and found.node.key is not None:
        return replace(found, kind="dict", row=consumers.PAIR, names=("key", "value"))
    return found


# Built-in functions.


def _rows_argument(node: ast.Call, reader: Any, reading: Any) -> Rows | None:
    """Return the rows that iteration over the only positional argument yields; None if it is not
    rows."""
    if len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
        return None
    if not touching.touches(node.args[0], reader, reading):
        return None
    found = reading.value(node.args[0], reader)
    if not isinstance(found, Rows):
        return None
    return iterate_rows(found, node, reader, reading)


def iterate_rows(rows: Rows, node: ast.expr, reader: Any, reading: Any) -> Rows:
    """Return the rows that iteration yields: of a mapping its keys; refuse bare `items()` of
    groups."""
    if rows.kind == "items":
        raise refusal_at(node, reader, "is not read over relations", consumers.ITEMS)
    return consumers.keys_of(rows, reading) if rows.kind in ("dict", "groups") else rows


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in node.keywords if k.arg == name), None)


def _read_sum(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `sum(rows)` and `sum(rows, start)` as an aggregate; None if the argument is not rows."""
    first = ast.copy_location(ast.Call(node.func, node.args[:1], []), node)
    rows = _rows_argument(first, reader, reading)
    if rows is None:
        return None
    found: Expr = reading.fold_rows(rows, "Sum", rows.value)
    start = node.args[1] if len(node.args) > 1 else _keyword(node, "start")
    if start is None:
        return found
    begun = reader.expr(start)
    if isinstance(begun, Display | Constant) and not _is_number_constant(begun):
        raise refusal_at(node, reader, ORDER, "sum adds numbers; sorted(...) has values in order")
    return Operation("+", (begun, found))


def _is_number_constant(expr: Expr) -> bool:
    return isinstance(expr, Constant) and isinstance(expr.value, int | float | complex)


def _read_len(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `len(rows)` as a count; None if the argument is not rows. A generator is refused."""
    rows = _rows_argument(node, reader, reading)
    if rows is not None and rows.kind == "iterator":
        raise refusal_at(
            node, reader, "is the length of a generator", "len([...]), or sum(1 for ...)"
        )
    if rows is None:
        return None
    return reading.fold_rows(evaluate_in_plan(rows, reading.origins), "Count", None)  # type: ignore[no-any-return]


def _read_any(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `any(rows)` as an existence test of true values; None if the argument is not rows."""
    rows = _rows_argument(node, reader, reading)
    return None if rows is None else reading.exists(reading.where(rows, rows.value))


def _read_all(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `all(...)` over rows as "no row fails the test"; None if the argument is not rows."""
    rows = _rows_argument(node, reader, reading)
    if rows is None:
        return None
    wrong = reading.where(rows, Operation("not", (rows.value,)))
    return Operation("not", (reading.exists(wrong),))


def _read_bool(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `bool(rows)` as an existence test; None if the argument is not rows."""
    rows = _rows_argument(node, reader, reading)
    return None if rows is None else reading.read_test(node.args[0], reader)


def _read_set(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `set(rows)` as the different values; None if the argument is not rows."""
    rows = _rows_argument(node, reader, reading)
    return None if rows is None else as_set(_take_window(rows, reading), reading.origins)


def _read_list(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `list(rows)`: sorted rows keep their order; None if the argument is not rows."""
    rows = _rows_argument(node, reader, reading)
    if rows is None or rows.kind == "sorted":
        return rows
    return replace(rows, kind="list")


def _take_window(rows: Rows, reading: Any) -> Rows:
    return replace(rows, node=plan_of_window(rows, reading.origins), order=None)


def _read_dict(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `dict(rows)` of key-value pairs, or of a mapping; None if the argument is not rows."""
    if len(node.args) != 1 or node.keywords:
        return None
    given = reading.value(node.args[0], reader)
    if isinstance(given, Rows) and given.kind in ("dict", "groups"):
        return given
    rows = _rows_argument(node, reader, reading)
    if rows is None:
        return None
    key, value = ast.Name("%key", ast.Store()), ast.Name("%value", ast.Store())
    with RowScope(reader, reading) as inside:
        target = ast.copy_location(ast.Tuple([key, value], ast.Store()), node)
        inside.join(replace(rows, kind="list"), target, imported=True)
        row = tuple(reader.bound[name.id] for name in (key, value))
        return inside.rows("dict", row)


def _best(name: str) -> Callable[[ast.Call, Any, Any], Expr | None]:
    """Return the handler of `min` or `max`; the handler returns None if the argument is not
    rows."""

    def best(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
        rows = _rows_argument(node, reader, reading)
        if rows is None:
            return None
        key, default = _keyword(node, "key"), _keyword(node, "default")
        otherwise = None if default is None else reader.expr(default)
        if key is not None and not _is_none_node(key):
            ordered = _sort_rows(rows, key, reader, reading, descending=name == "max")
            found = reading.collect_rows(consumers.cut(ordered, 0, 1, reading))
            if otherwise is None:
                return Call(constant(Only(name), name), (found,))
            return Call(constant(only_or, name), (found, otherwise))
        return _extreme(name, rows, otherwise, reading)

    return best


def _is_none_node(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _extreme(name: str, rows: Rows, otherwise: Expr | None, reading: Any) -> Expr:
    """Return the least or greatest value; of no rows `otherwise`, or an exception without it.

    The value is collected in a tuple of one item if it may be None itself.
    """
    fold = "Min" if name == "min" else "Max"
    declared = kinds(rows.value, known_of(rows.node))
    if declared and type(None) not in declared:
        found = reading.fold_rows(rows, fold, rows.value)
        if otherwise is None:
            return _replace_none_result(found, Call(constant(Needed(name), name), (NONE,)), reading)
        if isinstance(otherwise, Constant):
            return _replace_none_result(found, otherwise, reading)
        if total(otherwise, reading.shapes):
            return Conditional(Operation("is not", (found, NONE)), found, otherwise)
        return Call(constant(value_or, name), (found, otherwise))
    found = reading.fold_rows(rows, fold, tuple_of(rows.value))
    if otherwise is None:
        return Item(Call(constant(Needed(name), name), (found,)), constant(0))
    return Item(Call(constant(value_or, name), (found, tuple_of(otherwise))), constant(0))


def _replace_none_result(found: Subquery, otherwise: Expr, reading: Any) -> Expr:
    """Replace the result None of a sub-query by an expression that reads nothing."""
    is_there = Operation("is not", (Parameter(0), NONE))
    made = reading.function_of(Conditional(is_there, Parameter(0), otherwise), 1)
    return replace(found, query=plan.Select(found.query, made))


def _read_sorted(node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read `sorted(rows, key=, reverse=)`; None if the argument is not rows. `reverse` must be
    constant."""
    rows = _rows_argument(node, reader, reading)
    if rows is None:
        return None
    reverse, key = _keyword(node, "reverse"), _keyword(node, "key")
    descending = False if reverse is None else reading.truth(reverse, reader)
    if isinstance(descending, Constant):
        descending = bool(descending.value)
    if not isinstance(descending, bool):
        raise refusal_at(
            node, reader, "has a direction that is no constant", "reverse=True, or none"
        )
    return _sort_rows(rows, key, reader, reading, descending=descending)


def _sort_rows(
    rows: Rows, key: ast.expr | None, reader: Any, reading: Any, *, descending: bool
) -> Rows:
    """Sort rows by a key, or by their values. The sort is stable."""
    standing = standing_of(rows)
    rows = replace(_take_window(rows, reading), standing=None)
    if key is None or _is_none_node(key):
        rows = select_value(rows, reading.origins)
        return replace(rows, kind="sorted", order=Order(rows.value, descending))
    stood = () if standing is None else standing.keys
    count = 1 + len(stood)
    whole = rows.value if not stood else tuple_of(rows.value, *(e for e, *_ in stood))
    rows = select_value(replace(rows, row=(whole,)), reading.origins)
    with RowScope(reader, reading) as inside:
        inside.join(replace(rows, kind="list"), ast.Name("row", ast.Store()), imported=True)
        row = reader.bound["row"]
        value, *rest = [row] if not stood else [Item(row, constant(n)) for n in range(count)]
        by = _apply_key(key, value, inside, reader, reading)
        if any(isinstance(part, Subquery) for part in walk(by)):
            pairs = inside.rows("list", (tuple_of(value, by, *rest),))
            value, by, *rest = (Item(pairs.value, constant(place)) for place in range(1 + count))
            made = replace(pairs, row=(value,))
        else:
            made = inside.rows("list", (value,))
        more = tuple((e, *how) for e, (_, *how) in zip(rest, stood, strict=True))
        return replace(made, kind="sorted", order=Order(by, descending, more=more))


_OF_COMPARISON = type(cmp_to_key(lambda one, other: 0))
"""The class of the keys that `functools.cmp_to_key` returns."""


def _apply_key(key: ast.expr, value: Expr, inside: Any, reader: Any, reading: Any) -> Expr:
    """Return the sort key of a row, as an expression; refuse `cmp_to_key`."""
    if isinstance(key, ast.Lambda) and len(key.args.args) == 1:
        bind_target(inside, ast.Name(key.args.args[0].arg, ast.Store()), value)
        return reader.expr(key.body)  # type: ignore[no-any-return]
    function = touching.constant_of(key, reader)
    if isinstance(function, _OF_COMPARISON):
        raise refusal_at(
            key,
            reader,
            "is a function of cmp_to_key, whose keys have no hash",
            "give a function from a row to its key: key=lambda row: (row.a, -row.b)",
        )
    if isinstance(function, FunctionType) and touching.reads_relations(function, reading):
        bind_target(inside, ast.Name("%row", ast.Store()), value)
        row = ast.copy_location(ast.Name("%row", ast.Load()), key)
        called = ast.copy_location(ast.Call(key, [row], []), key)
        found: Expr = functions.read_call(called, function, reader, reading)
        return found
    named = reader.expr(key)
    if isinstance(named, Constant):
        try:
            return read_callable_as_expr(named.value, reader.origin, (value,))[0]
        except Unreadable:
            pass
    return Call(named, (value,))


# Methods, and calls that replace loops.


def _method(rows: Rows, name: str, node: ast.Call, reader: Any, reading: Any) -> Expr | None:
    """Read a method call of a mapping, of a set, or `count` of a list; refuse any other call.

    `over` of a named relation is called.
    """
    assert isinstance(node.func, ast.Attribute)
    if rows.kind in ("dict", "groups"):
        return consumers.method(rows, name, node, reader, reading)
    if rows.kind == "set" and name in OPERATORS and len(node.args) == 1:
        other = node.args[0]
        if not isinstance(other, ast.Set | ast.SetComp):
            other = ast.copy_location(
                ast.Call(ast.Name("frozenset", ast.Load()), [other], []), other
            )
            ast.fix_missing_locations(other)
        assert isinstance(node.func, ast.Attribute)
        operation = ast.BinOp(node.func.value, OPERATORS[name], other)
        return reading.value(ast.copy_location(operation, node), reader)  # type: ignore[no-any-return]
    if name == "over" and touching.constant_of(node.func.value, reader) is not UNSET:
        return _read_over(node, reader, reading)
    if name == "count" and len(node.args) == 1 and rows.kind in ("list", "sorted"):
        found = reading.equal_to(_take_window(rows, reading), reader.expr(node.args[0]))
        return reading.fold_rows(found, "Count", None)  # type: ignore[no-any-return]
    raise refusal_at(
        node, reader, "is not read over relations", "sets have | & - ^, lists have + and count"
    )


def _read_over(node: ast.Call, reader: Any, reading: Any) -> Expr:
    """Return the rows of `relation.over(...)`, which is called; refuse arguments that read rows.

    Its lambdas are the functions that Python makes of them, which can be read.
    """
    given: dict[str, Any] = {}
    swapped = _SwapLambdas(reader.function, given).visit(deepcopy(node))
    made = part_of(swapped, [*given], reader.function, reader.origin.function)
    if made is None or not free_names(node).isdisjoint(reader.bound):
        why = "reads variables of a comprehension"
        raise refusal_at(node, reader, why, "over(...) takes functions of its own rows")
    found = made.function(*given.values())
    reading.sources[id(found)] = found
    return relation(reading.engine.plan_of(found), "row")


class _SwapLambdas(ast.NodeTransformer):
    """Put names in place of lambdas, and the functions of these names into `given`."""

    def __init__(self, function: FunctionType, given: dict[str, Any]) -> None:
        closure = function.__closure__ or ()
        self._function = function
        self._cells = dict(zip(function.__code__.co_freevars, closure, strict=True))
        self._given = given

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Return the name of a lambda; the lambda itself if its code or variables are unknown."""
        code, module = code_of_lambda(node, self._function.__code__), self._function.__globals__
        if code is None or node.args.defaults or not self._cells.keys() >= set(code.co_freevars):
            return node
        cells = tuple(self._cells[name] for name in code.co_freevars)
        name = f"function_{len(self._given)}"
        self._given[name] = FunctionType(code, module, "<lambda>", None, cells or None)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _read_groups(node: ast.Call, reader: Any, reading: Any) -> Expr:
    """Read groups whose values stay lists, one per key."""
    rows = reading.value(node.args[0], reader)
    return replace(_as_mapping(rows, reading), kind="groups")


def _read_group_sets(node: ast.Call, reader: Any, reading: Any) -> Expr:
    """Read groups whose values become frozen sets, one per key."""
    found = consumers.group_rows(
        _as_mapping(reading.value(node.args[0], reader), reading), reading, "Collect"
    )
    return replace(found, row=(Parameter(0), Call(constant(frozenset), (Parameter(1),))))


def _read_group_sums(node: ast.Call, reader: Any, reading: Any) -> Expr:
    """Read groups whose values are added up, one sum per key."""
    return consumers.group_rows(
        _as_mapping(reading.value(node.args[0], reader), reading), reading, "Sum"
    )


def _as_mapping(rows: Rows, reading: Any) -> Rows:
    """Return rows of pairs as a mapping."""
    pair = rows.value
    row = items_of(pair, 2)
    if isinstance(pair, Display) and len(pair.items) == 2:
        row = pair.items
    return evaluate_in_plan(replace(rows, kind="dict", row=row), reading.origins)


HANDLERS: dict[Any, Callable[[ast.Call, Any, Any], Expr | None]] = {
    sum: _read_sum,
    math.fsum: _read_sum,
    len: _read_len,
    any: _read_any,
    all: _read_all,
    bool: _read_bool,
    set: _read_set,
    frozenset: _read_set,
    list: _read_list,
    tuple: _read_list,
    dict: _read_dict,
    min: _best("min"),
    max: _best("max"),
    sorted: _read_sorted,
}
LOOPS = {"%groups": _read_groups, "%sets": _read_group_sets, "%sums": _read_group_sums}

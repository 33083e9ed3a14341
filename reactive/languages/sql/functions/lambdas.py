"""Functions of DuckDB that take a lambda, and comprehensions of lists.

    list_transform(l, x -> x + n)       [x + n for x in l]
    list_filter(l, (x, i) -> x > i)     [x for x, i in l if x > i]
    list_reduce(l, (s, x) -> s + x, 0)

The body of a lambda is an expression of its parameters and of what it reads of the row around; a
call gets the list and these values. Positions count from 1.

Cost:   the elements of the list of each row that is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from optimizer.expr import (
    Call,
    Expr,
    Lifted,
    Outer,
    Parameter,
    Slot,
    Subquery,
    parts,
    rebuilt,
    row_names,
)
from optimizer.record import record
from reactive.engine.codegen.functions import callable_of
from reactive.languages.sql.expressions.casts import cast
from reactive.languages.sql.terms.types import ANY, BOOL, INT, SqlType, common
from reactive.languages.sql.terms.values import (
    NULL_VALUE,
    TypedValue,
    as_optional,
    callee,
    is_null,
    leaves,
    nullable_value,
    strict,
)

if TYPE_CHECKING:
    from reactive.languages.sql.terms.scope import Scope

MOST_KEPT = 1_000
"""Bodies whose callables are kept."""


@lru_cache(MOST_KEPT)
def _compiled(body: Expr, size: int) -> Callable[..., Any]:
    """Return the callable of a body with `size` parameters."""
    return callable_of(Lifted(body, row_names(size), (), size))


@record
class ListMap:
    """The elements of a list, each replaced: `size` is the number of parameters of the lambda."""

    body: Expr
    size: int
    more: int

    def __call__(self, elements: Sequence[Any], *around: Any) -> tuple[Any, ...]:
        call = _compiled(self.body, self.size + self.more)
        if self.size == 1:
            return tuple([call(element, *around) for element in elements])
        return tuple([call(each, place, *around) for place, each in enumerate(elements, 1)])


@record
class ListFilter:
    """The elements of a list for which a lambda is true."""

    body: Expr
    size: int
    more: int

    def __call__(self, elements: Sequence[Any], *around: Any) -> tuple[Any, ...]:
        call = _compiled(self.body, self.size + self.more)
        if self.size == 1:
            return tuple([element for element in elements if call(element, *around)])
        return tuple([each for place, each in enumerate(elements, 1) if call(each, place, *around)])


@record
class ListReduce:
    """The elements of a list put together from the left; the first is the start unless given."""

    body: Expr
    size: int
    more: int
    has_start: bool

    def __call__(self, elements: Sequence[Any], *around: Any) -> Any:
        call = _compiled(self.body, self.size + self.more)
        start, *around_body = around if self.has_start else (None, *around)
        found = iter(elements)
        total = start if self.has_start else next(found, None)
        if not self.has_start and not elements:
            raise ValueError("list_reduce() of an empty list without a start")
        for place, element in enumerate(found, 1 if self.has_start else 2):
            more = (place,) if self.size == 3 else ()
            total = call(total, element, *more, *around_body)
        return total


def transformed(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_TRANSFORM."""
    source, function = _arguments(node, scope, 2)
    return _mapped(scope.value(source), _parameters(function, scope, 2), function.this, node, scope)


def filtered(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_FILTER."""
    source, function = _arguments(node, scope, 2)
    return _chosen(scope.value(source), _parameters(function, scope, 2), function.this, node, scope)


def comprehension(node: Any, scope: Scope) -> TypedValue:
    """Translate `[x + 1 for x, i in l if x > i]`."""
    names = [node.args[name].name for name in ("expression", "position") if node.args.get(name)]
    value, condition = scope.value(node.args["iterator"]), node.args.get("condition")
    if condition is not None:
        value = _chosen(value, names, condition, node, scope)
    return _mapped(value, names, node.this, node, scope)


def reduced(node: Any, scope: Scope) -> TypedValue:
    """Translate LIST_REDUCE."""
    source, function, *start = _arguments(node, scope, 3)
    value = scope.value(source)
    first = scope.value(start[0]) if start else None
    kind = _element_type(value, node, scope)
    if first is not None:
        kind = common(first.type, kind) or first.type
        first = cast(first, kind, scope)
    names = _parameters(function, scope, 3)
    if len(names) < 2:
        raise scope.error(function, "the lambda of list_reduce() takes two or three parameters")
    kinds = [kind, _element_type(value, node, scope), INT]
    body = _body(names, kinds, function.this, scope, lambda inner, of: inner.value(of))
    if body.type.kind not in (kind.kind, "null"):
        raise scope.error(function, "the lambda gives another type than its first parameter has")
    expr, outside = _outside(as_optional(body), scope.bindings, len(names))
    made = ListReduce(expr, len(names), len(outside), first is not None)
    given = [] if first is None else [as_optional(first)]
    call = Call(callee(made), (value.expr, *given, *outside))
    if is_null(value):
        return NULL_VALUE
    return TypedValue(call, kind, (*leaves(value), call))


def _arguments(node: Any, scope: Scope, most: int) -> list[Any]:
    """Return the arguments of a call, of which the second is a lambda."""
    if isinstance(node, exp.Anonymous):
        found = list(node.expressions)
    else:
        found = [each for each in (node.this, node.args.get("expression")) if each is not None]
    if not 2 <= len(found) <= most or not isinstance(found[1], exp.Lambda):
        raise scope.error(node, "this function takes a list and a lambda", "x -> x + 1")
    return found


def _parameters(function: Any, scope: Scope, most: int) -> list[str]:
    """Return the names of the parameters of a lambda."""
    names = [each.name for each in function.expressions]
    if len(names) > most:
        raise scope.error(function, f"this lambda takes at most {most} parameters")
    return names


def _element_type(value: TypedValue, node: Any, scope: Scope) -> SqlType:
    """Return the type of the elements of a list."""
    if value.type.kind in ("any", "null"):
        return ANY
    if value.type.kind != "array":
        raise scope.error(node, "this function takes a list")
    return value.type.items[0]


def _mapped(value: TypedValue, names: list[str], node: Any, at: Any, scope: Scope) -> TypedValue:
    """Return the list of the values of a body for the elements of a list."""
    kinds = [_element_type(value, at, scope), INT]
    body = _body(names, kinds, node, scope, lambda inner, of: inner.value(of))
    expr, outside = _outside(as_optional(body), scope.bindings, len(names))
    kind = SqlType("array", items=(ANY if body.type.kind == "null" else body.type,))
    return _call(ListMap(expr, len(names), len(outside)), kind, value, outside)


def _chosen(value: TypedValue, names: list[str], node: Any, at: Any, scope: Scope) -> TypedValue:
    """Return the list of the elements for which a condition is true."""
    kinds = [_element_type(value, at, scope), INT]
    test = _body(names, kinds, node, scope, lambda inner, of: TypedValue(inner.true(of), BOOL))
    expr, outside = _outside(test.expr, scope.bindings, len(names))
    return _call(ListFilter(expr, len(names), len(outside)), value.type, value, outside)


def _call(function: Any, kind: SqlType, value: TypedValue, outside: list[Expr]) -> TypedValue:
    """Return the call of a function for a list, which is NULL if the list is."""
    if is_null(value):
        return NULL_VALUE
    return strict(Call(callee(function), (value.expr, *outside)), kind, value)


def _body(
    names: list[str],
    kinds: Sequence[SqlType],
    node: Any,
    scope: Scope,
    read: Callable[[Scope, Any], TypedValue],
) -> TypedValue:
    """Return the body of a lambda, whose parameters are the bindings behind those of the scope."""
    inner = scope.wider(scope.bindings + len(names))
    inner.at = scope.at
    for place, name in enumerate(names):
        parameter = nullable_value(Parameter(scope.bindings + place), kinds[place])
        for query in node.find_all(exp.Query):
            for each in _mentions(query, name):
                raise scope.error(each, "a query of the parameters of a lambda is not supported")
        for each in _mentions(node, name):
            _ = each.name  # which is read now
            inner.values[id(each)] = parameter
    return read(inner, node)


def _mentions(node: Any, name: str) -> Iterator[Any]:
    """Yield the nodes that stand for a parameter; not inside of a lambda that has it as well."""
    if isinstance(node, exp.Lambda) and name.casefold() in _names_of(node):
        return
    if isinstance(node, exp.Column):
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        if len(parts) == 1 and _is_called(parts[0], name):
            yield node
        return
    if isinstance(node, exp.Identifier):
        if _is_called(node, name) and not isinstance(node.parent, exp.Lambda):
            yield node
        return
    for key, part in list(dict.items(node.args)):
        if isinstance(node, exp.Dot) and key == "expression":
            continue
        if isinstance(node, exp.Comprehension) and key in ("expression", "position"):
            continue
        for each in part if isinstance(part, list) else [part]:
            if isinstance(each, exp.Expr):
                yield from _mentions(each, name)


def _names_of(function: Any) -> set[str]:
    """Return the folded names of the parameters of a lambda."""
    return {_text(each).casefold() for each in dict.get(function.args, "expressions") or ()}


def _is_called(node: Any, name: str) -> bool:
    return _text(node).casefold() == name.casefold()


def _text(node: Any) -> str:
    """Return the text of a name without recording that it was read."""
    return str(dict.get(node.args, "this"))


def _outside(body: Expr, bindings: int, size: int) -> tuple[Expr, list[Expr]]:
    """Return a body whose parameters are those of a lambda, then what it reads of the row around.

    The second value lists these expressions of the row.
    """
    found: dict[Expr, Expr] = {}

    def place(expr: Expr) -> Expr:
        if expr not in found:
            found[expr] = Parameter(size + len(found))
        return found[expr]

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Parameter) and expr.index >= bindings:
            return Parameter(expr.index - bindings)
        if isinstance(expr, Parameter | Outer | Slot | Subquery):
            return place(expr)
        inner = parts(expr)
        return rebuilt(expr, tuple([change(part) for part in inner])) if inner else expr

    made = change(body)
    return made, list(found)


TABLE: dict[str | type[exp.Expr], Any] = {
    exp.Transform: transformed,
    exp.ArrayFilter: filtered,
    **dict.fromkeys(("list_apply", "array_apply", "apply", "array_transform"), transformed),
    **dict.fromkeys(("list_reduce", "array_reduce", "reduce"), reduced),
}

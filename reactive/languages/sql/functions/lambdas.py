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
    Quantified,
    Slot,
    Subquery,
    parts,
    reads,
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

OF_PARAMETERS = "a query of the parameters of a lambda is not supported"
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
class ListComprehension:
    """The values of a body for the elements of a list for which a test is true.

    The values of the row around are first those of the test, `of_test`, then `more` of the body.
    """

    test: Expr
    body: Expr
    size: int
    of_test: int
    more: int

    def __call__(self, elements: Sequence[Any], *around: Any) -> tuple[Any, ...]:
        is_wanted = _compiled(self.test, self.size + self.of_test)
        call = _compiled(self.body, self.size + self.more)
        outside, own = around[: self.of_test], around[self.of_test :]
        given: list[tuple[Any, ...]] = [(element,) for element in elements]
        if self.size == 2:
            given = [(element, place) for place, element in enumerate(elements, 1)]
        return tuple([call(*each, *own) for each in given if is_wanted(*each, *outside)])


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
    if condition is None:
        return _mapped(value, names, node.this, node, scope)
    test, of_test = _test(value, names, condition, node, scope)
    body, kind, of_body = _element(value, names, node.this, node, scope)
    made = ListComprehension(test, body, len(names), len(of_test), len(of_body))
    return _call(made, kind, value, [*of_test, *of_body])


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
    expr, outside = _outside(as_optional(body), function, scope, len(names))
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
    expr, kind, outside = _element(value, names, node, at, scope)
    return _call(ListMap(expr, len(names), len(outside)), kind, value, outside)


def _element(
    value: TypedValue, names: list[str], node: Any, at: Any, scope: Scope
) -> tuple[Expr, SqlType, list[Expr]]:
    """Return a body for the elements of a list, the type of the list of its values, and `outside`.

    The latter are the values of the row around that it reads.
    """
    kinds = [_element_type(value, at, scope), INT]
    body = _body(names, kinds, node, scope, lambda inner, of: inner.value(of))
    expr, outside = _outside(as_optional(body), node, scope, len(names))
    return expr, SqlType("array", items=(ANY if body.type.kind == "null" else body.type,)), outside


def _chosen(value: TypedValue, names: list[str], node: Any, at: Any, scope: Scope) -> TypedValue:
    """Return the list of the elements for which a condition is true."""
    expr, outside = _test(value, names, node, at, scope)
    return _call(ListFilter(expr, len(names), len(outside)), value.type, value, outside)


def _test(
    value: TypedValue, names: list[str], node: Any, at: Any, scope: Scope
) -> tuple[Expr, list[Expr]]:
    """Return a condition for the elements of a list, and the values of the row around it."""
    kinds = [_element_type(value, at, scope), INT]
    test = _body(names, kinds, node, scope, lambda inner, of: TypedValue(inner.true(of), BOOL))
    return _outside(test.expr, node, scope, len(names))


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
        is_source = any(of.name and of.name.casefold() == name.casefold() for of in scope.sources)
        for query in node.find_all(exp.Query):
            for each in _mentions(query, name):
                if not _is_field(each):
                    raise scope.error(each, OF_PARAMETERS)
        for each in _mentions(node, name):
            if not _is_field(each):
                _ = each.name  # which is read now
                inner.values[id(each)] = parameter
            elif not is_source:
                inner.values[id(each)] = inner.field(parameter, each.name, each)
    return read(inner, node)


def _mentions(node: Any, name: str) -> Iterator[Any]:
    """Yield the nodes that stand for a parameter; not inside of a lambda that has it as well."""
    if isinstance(node, exp.Lambda) and name.casefold() in _names_of(node):
        return
    if isinstance(node, exp.Column):
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        if len(parts) < 3 and _is_called(parts[0], name):  # `x`, and `x.field` in a comprehension
            yield node
        return
    if isinstance(node, exp.Identifier):
        if _is_called(node, name) and not _names_parameter(node):
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


def _is_field(node: Any) -> bool:
    """Return True for `x.a`, which in a comprehension may be the field of a parameter."""
    return isinstance(node, exp.Column) and bool(node.table)


def _names_parameter(node: Any) -> bool:
    """Return True for a name before the arrow of a lambda."""
    return isinstance(node.parent, exp.Lambda) and node.arg_key == "expressions"


def _names_of(function: Any) -> set[str]:
    """Return the folded names of the parameters of a lambda."""
    return {_text(each).casefold() for each in dict.get(function.args, "expressions") or ()}


def _is_called(node: Any, name: str) -> bool:
    return _text(node).casefold() == name.casefold()


def _text(node: Any) -> str:
    """Return the text of a name without recording that it was read."""
    return str(dict.get(node.args, "this"))


def _outside(body: Expr, node: Any, scope: Scope, size: int) -> tuple[Expr, list[Expr]]:
    """Return a body whose parameters are those of a lambda, then what it reads of the row around.

    The second value lists these expressions of the row.
    """
    bindings = scope.bindings
    found: dict[Expr, Expr] = {}

    def place(expr: Expr) -> Expr:
        if expr not in found:
            found[expr] = Parameter(size + len(found))
        return found[expr]

    def change(expr: Expr) -> Expr:
        if isinstance(expr, Parameter) and expr.index >= bindings:
            return Parameter(expr.index - bindings)
        if isinstance(expr, Parameter | Outer | Slot):
            return place(expr)
        if isinstance(expr, Subquery | Quantified):
            if any(index >= bindings for index in reads(expr)):
                raise scope.error(node, OF_PARAMETERS)
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

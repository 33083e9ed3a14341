"""Expressions: the computation of a lifted callable, as a tree of immutable nodes.

    lambda s, m: s.last_name == m.last_name and m.age > limit

    And((Operation("==", (Attribute(Parameter(0), "last_name"),
                          Attribute(Parameter(1), "last_name"))),
         Operation(">", (Attribute(Parameter(1), "age"), Constant(30)))))

Expressions compare by structure. Constants compare by type and value, so that `1`, `True` and `1.0`
stay different; objects without known value compare by identity. A part that cannot be lifted is an
`Opaque` function, called with the expressions that it needs (`Apply`).

Four nodes have no syntax of their own. The optimizer makes them to keep exceptions in place:

    First(needs, then)      evaluate the needs, which may raise, and then `then`
    Guard(test, needs)      false if the needs and the test raise nothing and the test is false
    Again(test)             the test, for rows that a guard below has tested
    Attempt(of, otherwise)  the constant `otherwise` if evaluating `of` raises

Three nodes stand for queries in callables, until `optimizer.subqueries` rewrites them to joins:

    Subquery(kind, query, arguments)    the result of a plan for the values of `arguments`
    Quantified(...)                     a comparison with every row of a plan: IN, ANY, ALL
    Outer(i)                            in callables of that plan: the value of `arguments[i]`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, is_
from typing import Any, Literal, TypeAlias

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.callables.source import Place
from optimizer.record import record


@record
class Expr:
    """Base of all expressions."""


@record
class Parameter(Expr):
    """One of the bindings that the callable takes."""

    index: int


@record
class Local(Expr):
    """A variable of generated code."""

    name: str


@record
class Constant(Expr):
    """A value that was known when the relation was made; `name` is the variable that had it.

    If its query was planned by a template, `slot` is its place in the template.
    """

    value: Any = field(compare=False)
    meaning: object = field(repr=False)
    name: str | None = field(default=None, compare=False)
    slot: int | None = field(default=None, compare=False, repr=False)

    @property
    def kind(self) -> type[Any]:
        """The class of the value."""
        return type(self.value)


@dataclass(slots=True, eq=False)
class SlotValue:
    """The value of a slot, and a flag that it was read.

    It replaces the value while a query is planned for all queries of its shape. A computed one is
    the result `by` an operator of `operands`; reading it reads these.
    """

    value: Any
    is_asked: bool = False
    by: str = ""
    operands: tuple[Any, ...] = ()
    computed: dict[Any, SlotValue] = field(default_factory=dict)
    """Results computed of it, by operation: equal operations share one."""

    def ask(self) -> None:
        """Note that the value is read."""
        self.is_asked = True
        for each in self.operands:
            if isinstance(each, SlotValue):
                each.ask()

    def every(self) -> Iterator[SlotValue]:
        """Iterate over the results computed of it, and of those; shared results repeat."""
        for each in self.computed.values():
            yield each
            yield from each.every()


_HELD: Any = Constant.value


class Slot(Constant):
    """A constant that differs between queries of one shape.

    It equals slots of the same `SlotValue` only. Reading its value, but not its `kind`, is noted:
    the caller's result then holds for queries with this value.
    """

    __slots__ = ()

    def __init__(self, held: SlotValue, name: str | None = None) -> None:
        super().__init__(held, held, name)

    @property
    def held(self) -> SlotValue:
        return _HELD.__get__(self)  # type: ignore[no-any-return]

    @property
    def value(self) -> Any:
        """The value; reading it notes that the result depends on it."""
        self.held.ask()
        return self.held.value

    @property
    def kind(self) -> type[Any]:
        return type(self.held.value)


@record
class Attribute(Expr):
    """The attribute `of.name`."""

    of: Expr
    name: str


@record
class Item(Expr):
    """The item `of[key]`."""

    of: Expr
    key: Expr


@record
class Operation(Expr):
    """An operator of Python with one or two operands: `+`, `<`, `in`, `not`, ..."""

    operator: str
    operands: tuple[Expr, ...]


@record
class And(Expr):
    """The first part that is false, or else the last."""

    parts: tuple[Expr, ...]


@record
class Or(Expr):
    """The first part that is true, or else the last."""

    parts: tuple[Expr, ...]


@record
class Conditional(Expr):
    """The choice `then if test else otherwise`."""

    test: Expr
    then: Expr
    otherwise: Expr


@record
class Display(Expr):
    """A tuple, list, set, dictionary (keys and values in turn) or slice display."""

    kind: Literal["tuple", "list", "set", "dict", "slice"]
    items: tuple[Expr, ...]


@record
class Call(Expr):
    """A call of a function, class or method."""

    function: Expr
    arguments: tuple[Expr, ...]
    keywords: tuple[tuple[str, Expr], ...] = ()


@record
class Formatted(Expr):
    """A value in an f-string, with its conversion (`!r`), and its format after the colon."""

    value: Expr
    conversion: str
    spec: Expr | None


@record
class Text(Expr):
    """An f-string: constants and `Formatted` values."""

    parts: tuple[Expr, ...]


@record
class Apply(Expr):
    """A call of a callable, or a part of one, that could not be lifted; `reason` says why."""

    function: Opaque
    arguments: tuple[Expr, ...]
    reason: str = field(default="", compare=False)


@record
class First(Expr):
    """Evaluates the needs, which may raise, and then `then`."""

    needs: tuple[Expr, ...]
    then: Expr


@record
class Guard(Expr):
    """False if the test is false, without anything raising; true in all other cases."""

    test: Expr
    needs: tuple[Expr, ...] = ()


@record
class Again(Expr):
    """The test itself, which must not be pushed down again."""

    test: Expr


@record
class Attempt(Expr):
    """The expression, or a constant if evaluating it raises an `Exception`."""

    of: Expr
    otherwise: Constant


@record
class Outer(Expr):
    """In a callable of a sub-query: one of the values of the query around it, and its shape."""

    index: int
    shape: Any = field(default=None, compare=False, repr=False)


FIRST_UNIQUE = 1_000_000
"""From here on, an index of an `Outer` is unique in a process."""


@record
class Subquery(Expr):
    """The result of a query for values of the row around it.

    `query` is a plan whose callables may read `Outer(i)`, the value of `arguments[i]`; it has no
    sub-queries inside. `"exists"`: True if it has a row. `"value"`: its only binding of its only
    row; it has exactly one row for any values, like an aggregate without a key.
    """

    kind: Literal["exists", "value"]
    query: Any
    arguments: tuple[Expr, ...] = ()


@record
class Quantified(Expr):
    """A comparison of values with every row of a query, and the expression that it was made of.

    `translated` has the sub-queries that together compute the truth of the comparison. The
    arguments are the values of the row around that the query reads, and then the compared values.
    `comparison` is the comparison by definition; only the check of a translation reads it.
    """

    comparison: Any
    query: Any
    arguments: tuple[Expr, ...]
    translated: Expr


@record
class Within(Expr):
    """The rows of a query for values of the row around it, while a callable is being read.

    A finished expression has none. `rows` are `comprehensions.rows.Rows`, which read `Outer(i)`,
    the value of `arguments[i]`.
    """

    rows: Any
    arguments: tuple[Expr, ...] = ()


@record
class Lifted:
    """A callable of a plan as an expression.

    `names` are the names of the parameters as written, `origins` the callables that were
    read as the expression: their places appear in messages, and their captured variables are
    watched. `made` is a way to compute the result by calling them, if there is one.
    """

    body: Expr
    names: tuple[str, ...] = field(compare=False)
    origins: tuple[Opaque, ...] = field(compare=False, repr=False)
    parameters: int
    made: Opaque | Conjunction | Composition | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> Place | None:
        """The place where the first of the callables is written; None if it was read from none."""
        return next((origin.place for origin in self.origins), None)

    def with_body(self, body: Expr) -> Lifted:
        """Return another expression over the same parameters."""
        return self if body is self.body else replace(self, body=body, made=None)


@record
class Conjunction:
    """One test after the other, until one is false."""

    tests: tuple[Lifted, ...]


@record
class Composition:
    """`outer` of the result of `inner` for a row."""

    outer: Lifted
    inner: Lifted


Function: TypeAlias = Opaque | Lifted
"""A callable of a query, lifted or not."""

TRUE = Constant(True, meaning(True))
FALSE = Constant(False, meaning(False))
NONE = Constant(None, meaning(None))
NAN = Constant(math.nan, meaning(math.nan))
"""A key that matches nothing."""


def constant(value: Any, name: str | None = None) -> Constant:
    """Return a value as an expression."""
    if value.__class__ is SlotValue:
        return Slot(value, name)
    return Constant(value, meaning(value), name)


def tuple_of(*items: Expr) -> Display:
    """Return a tuple display."""
    return Display("tuple", items)


def all_parameters(count: int) -> tuple[Parameter, ...]:
    """Return the parameters of a callable of `count` arguments."""
    return tuple(map(Parameter, range(count)))


def items_of(tuple_: Expr, count: int) -> tuple[Expr, ...]:
    """Return the items of a tuple of `count` items."""
    return tuple(Item(tuple_, constant(place)) for place in range(count))


def one_value(row: Sequence[Expr]) -> Expr:
    """Return bindings as one value: several are a tuple."""
    return row[0] if len(row) == 1 else tuple_of(*row)


def row_names(count: int) -> tuple[str, ...]:
    """Return names for parameters without known names: row, row1, row2, ..."""
    return tuple(f"row{place or ''}" for place in range(count))


LEAVES = frozenset({Parameter, Constant, Slot, Local, Outer})
"""The most frequent expressions without parts."""


def parts(expr: Expr) -> tuple[Expr, ...]:
    """Return the parts of an expression, left to right."""
    found = _PARTS.get(expr.__class__)
    return () if found is None else found(expr)


_PARTS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Attribute: lambda e: (e.of,),
    Item: attrgetter("of", "key"),
    Operation: attrgetter("operands"),
    **dict.fromkeys((And, Or, Text), attrgetter("parts")),
    Conditional: attrgetter("test", "then", "otherwise"),
    Display: attrgetter("items"),
    Call: lambda e: (e.function, *e.arguments, *(value for _, value in e.keywords)),
    Formatted: lambda e: (e.value,) if e.spec is None else (e.value, e.spec),
    **dict.fromkeys((Apply, Subquery, Within), attrgetter("arguments")),
    Quantified: lambda e: (*e.arguments, e.translated),
    First: lambda e: (*e.needs, e.then),
    Guard: lambda e: (*e.needs, e.test),
    Again: lambda e: (e.test,),
    Attempt: lambda e: (e.of,),
}


def rebuilt(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return the expression with the parts `new`, in the order of `parts`; a leaf unchanged."""
    match expr:
        case Attribute(_, name):
            return Attribute(new[0], name)
        case Item():
            return Item(*new)
        case Operation(operator):
            return Operation(operator, new)
        case And() | Or() | Text():
            return type(expr)(new)
        case Conditional():
            return Conditional(*new)
        case Display(kind):
            return Display(kind, new)
        case Call(_, arguments, keywords):
            last = 1 + len(arguments)
            names = (name for name, _ in keywords)
            return Call(new[0], new[1:last], tuple(zip(names, new[last:], strict=True)))
        case Formatted(_, conversion, _):
            return Formatted(new[0], conversion, new[1] if len(new) > 1 else None)
        case Apply(function, _, reason):
            return Apply(function, new, reason)
        case First():
            return First(new[:-1], new[-1])
        case Guard():
            return Guard(new[-1], new[:-1])
        case Again():
            return Again(new[0])
        case Attempt(_, otherwise):
            return Attempt(new[0], otherwise)
        case Subquery() | Within():
            return replace(expr, arguments=new)
        case Quantified():
            return replace(expr, arguments=new[:-1], translated=new[-1])
        case _:
            return expr


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with every part changed, inner ones first; itself if nothing
    changes."""
    find = _PARTS.get(expr.__class__)
    if find is None:
        return change(expr)
    old = find(expr)
    new = tuple([transform(part, change) for part in old])
    return change(expr if all(map(is_, old, new)) else rebuilt(expr, new))


def substitute(expr: Expr, arguments: tuple[Expr, ...]) -> Expr:
    """Replace the parameters of an expression by the arguments; `expr` itself if it reads none."""
    if expr.__class__ is Parameter:
        return arguments[expr.index]
    find = _PARTS.get(expr.__class__)
    if find is None:
        return expr
    old = find(expr)
    new = tuple([substitute(part, arguments) for part in old])
    return expr if all(map(is_, old, new)) else rebuilt(expr, new)


def walk(expr: Expr) -> list[Expr]:
    """Return the expression and all its parts."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        expr = waiting.pop()
        found.append(expr)
        find = _PARTS.get(expr.__class__)
        if find is not None:
            waiting += find(expr)[::-1]
    return found


def is_longer(expr: Expr, most: int) -> bool:
    """Return True if an expression has more than `most` parts, each counted at every occurrence."""
    count, waiting = 0, [expr]
    while waiting and count <= most:
        count += 1
        waiting += parts(waiting.pop())
    return count > most


def has_subquery(expr: Expr) -> bool:
    """Return True if there is a sub-query in an expression."""
    return Subquery in map(type, walk(expr))


def reads(expr: Expr) -> frozenset[int]:
    """Return the parameters that an expression reads."""
    return frozenset([e.index for e in walk(expr) if e.__class__ is Parameter])


def origins(*functions: Function | None) -> tuple[Opaque, ...]:
    """Return the callables that functions were read from, each once."""
    found: dict[int, Opaque] = {}
    for function in functions:
        own = function.origins if isinstance(function, Lifted) else (function,)
        found |= {id(origin): origin for origin in own if origin is not None}
    return tuple(found.values())


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Return the parts that must all be true, in the order of evaluation."""
    if isinstance(expr, And):
        return tuple(inner for part in expr.parts for inner in conjuncts(part))
    if isinstance(expr, First):
        first, *rest = conjuncts(expr.then)
        return (First(expr.needs, first), *rest) if rest else (expr,)
    return (expr,)


def disjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Return the alternatives of a test, in the order of evaluation."""
    if not isinstance(expr, Or):
        return (expr,)
    return tuple(inner for part in expr.parts for inner in disjuncts(part))


def conjunction(tests: tuple[Expr, ...]) -> Expr:
    """Return all tests, in order, as one; true if there are none."""
    return TRUE if not tests else tests[0] if len(tests) == 1 else And(tests)

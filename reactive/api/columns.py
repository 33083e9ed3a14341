"""The callables that queries take: lambdas, functions, and expressions such as `col("amount") > 3`.

Expressions over the names of fields need no lifting:

    orders.where((col("amount") > 3) & ~col("paid"))
    orders.join(customers, on=left("customer") == right("id"))
    orders.group_by(col("town")).aggregate(total=Sum(col("price") * col("pieces")))

They are accepted wherever a query takes a callable of its rows. Names are checked when the query is
made; `&`, `|` and `~` are Python's `and`, `or` and `not`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, ClassVar, NoReturn, overload

from optimizer import plan
from optimizer.callables import reachable_objects
from optimizer.callables.captures import Capture, copy_container, defaults, freeze
from optimizer.callables.opaque import Opaque, impurity, instead_of, opaque
from optimizer.callables.source import Place, caller
from optimizer.errors import PlanError
from optimizer.expr import (
    NONE,
    And,
    Attribute,
    Call,
    Conditional,
    Expr,
    Function,
    Item,
    Local,
    Operation,
    Or,
    constant,
    transform,
    tuple_of,
)
from optimizer.expressions.text import text
from optimizer.kinds.instants import with_instants
from optimizer.lifting import callable_parameters, outer_values
from optimizer.rewriting.columns import LEFT, RIGHT, NamedValue, field_read
from reactive.engine.runtime.boundary import outermost
from reactive.engine.runtime.closeable import Hinting, Uncopyable


class Column:
    """An expression over named values; `col` and operators on columns make it.

    Comparisons and arithmetic return expressions, `==` too, so that a column is not hashable and
    has no truth value.

    >>> col("price") * 2 > 10
    col: price * 2 > 10
    """

    __slots__ = ("expr", "place")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr, place: Place) -> None:
        self.expr = expr
        """The expression, over names (`optimizer.rewriting.columns.NamedValue`)."""
        self.place = place
        """The line of code that made it."""

    def __repr__(self) -> str:
        return f"col: {text(transform(self.expr, _as_local_name), ())}"

    def __call__(self, *row: Any) -> Any:
        """Raise `PlanError`; type checkers accept columns as callables because of this method."""
        raise PlanError(
            f"{self!r} is no callable of rows\n"
            "  it stands where a relation takes a callable: where, select, join(on=), Sum, ..."
        )

    def __bool__(self) -> NoReturn:
        raise PlanError(
            f"{self!r} is neither true nor false before there are rows\n"
            "  write & for `and`, | for `or`, ~ for `not`, is_in(...) for `in`; "
            "and a < b & b < c with parentheses: (a < b) & (b < c)"
        )

    def __iter__(self) -> NoReturn:
        raise PlanError(f"{self!r} has no elements\n  unnest(...) takes it as a callable")

    def field(self, name: str) -> Column:
        """Return the attribute `name` of the value."""
        return self._with(Attribute(self.expr, name))

    def method(self, name: str, /, *arguments: Any, **named: Any) -> Column:
        """Return the result of a method of the value: `col("name").method("lower")`."""
        return self._with(_make_call(Attribute(self.expr, name), arguments, named))

    def is_in(self, values: Iterable[Any]) -> Column:
        """Return the test whether the value is in a collection, or in a column that is one."""
        of = values if isinstance(values, Column) else frozenset(values)
        return self._binary("in", of)

    def is_none(self) -> Column:
        """Return the test whether the value is None."""
        return self._with(Operation("is", (self.expr, NONE)))

    def is_not_none(self) -> Column:
        """Return the test whether the value is not None."""
        return self._with(Operation("is not", (self.expr, NONE)))

    def __getitem__(self, key: Any) -> Column:
        return self._with(Item(self.expr, expression(key)))

    def __eq__(self, other: Any) -> Column:  # type: ignore[override]
        return self._binary("==", other)

    def __ne__(self, other: Any) -> Column:  # type: ignore[override]
        return self._binary("!=", other)

    def __lt__(self, other: Any) -> Column:
        return self._binary("<", other)

    def __le__(self, other: Any) -> Column:
        return self._binary("<=", other)

    def __gt__(self, other: Any) -> Column:
        return self._binary(">", other)

    def __ge__(self, other: Any) -> Column:
        return self._binary(">=", other)

    def __add__(self, other: Any) -> Column:
        return self._binary("+", other)

    def __radd__(self, other: Any) -> Column:
        return self._reflect("+", other)

    def __sub__(self, other: Any) -> Column:
        return self._binary("-", other)

    def __rsub__(self, other: Any) -> Column:
        return self._reflect("-", other)

    def __mul__(self, other: Any) -> Column:
        return self._binary("*", other)

    def __rmul__(self, other: Any) -> Column:
        return self._reflect("*", other)

    def __truediv__(self, other: Any) -> Column:
        return self._binary("/", other)

    def __rtruediv__(self, other: Any) -> Column:
        return self._reflect("/", other)

    def __floordiv__(self, other: Any) -> Column:
        return self._binary("//", other)

    def __rfloordiv__(self, other: Any) -> Column:
        return self._reflect("//", other)

    def __mod__(self, other: Any) -> Column:
        return self._binary("%", other)

    def __rmod__(self, other: Any) -> Column:
        return self._reflect("%", other)

    def __pow__(self, other: Any) -> Column:
        return self._binary("**", other)

    def __rpow__(self, other: Any) -> Column:
        return self._reflect("**", other)

    def __neg__(self) -> Column:
        return self._with(Operation("-", (self.expr,)))

    def __invert__(self) -> Column:
        return self._with(Operation("not", (self.expr,)))

    def __and__(self, other: Any) -> Column:
        return self._with(And((*_parts(And, self.expr), *_parts(And, expression(other)))))

    def __rand__(self, other: Any) -> Column:
        return self._with(And((expression(other), *_parts(And, self.expr))))

    def __or__(self, other: Any) -> Column:
        return self._with(Or((*_parts(Or, self.expr), *_parts(Or, expression(other)))))

    def __ror__(self, other: Any) -> Column:
        return self._with(Or((expression(other), *_parts(Or, self.expr))))

    def _binary(self, operator: str, other: Any) -> Column:
        return self._with(Operation(operator, (self.expr, expression(other))))

    def _reflect(self, operator: str, other: Any) -> Column:
        return self._with(Operation(operator, (expression(other), self.expr)))

    def _with(self, expr: Expr) -> Column:
        return Column(expr, self.place)


@outermost
def col(name: str | int, of: str | int | None = None) -> Column:
    """Return an expression for a value of the row, by its name.

    Parameters
    ----------
    name: the name of a binding, or of a field that exactly one binding has; or the position of an
        item, if there is one binding. `"customer.town"` names the binding, too, as `of` does.
    of: the binding: its position, its name, that of its class in lower case, or `"left"` or
        `"right"` in `join(on=)`.

    Cost: that of a lambda that reads the same value.

    Raises
    ------
    PlanError: `name` is not a name. A name that the rows do not have is reported by the method that
        takes the column.

    >>> from dataclasses import dataclass
    >>> from reactive import Database, col
    >>> @dataclass(frozen=True)
    ... class Order:
    ...     town: str
    ...     total: float
    >>> orders = Database().table(Order, name="orders")
    >>> large = orders.where((col("total") > 10) & (col("town") == "Bonn"))
    >>> large.select(col("total") / 2)
    Relation:
    select order.total / 2
      where order.total > 10 and order.town == 'Bonn'
        table orders
    """
    if isinstance(name, str) and of is None and "." in name:
        of, _, name = name.partition(".")
    is_name = isinstance(name, str) and name.isidentifier()
    if not is_name and type(name) is not int:
        raise PlanError(
            f"col takes the name of a field or binding, not {name!r:.60}\n"
            '  col("total"), col("order.total"), col(0) for the first item of a tuple'
        )
    return _make_column(name, of)


@outermost
def left(name: str | int) -> Column:
    """Return an expression for a value of the left row in `join(on=)`; see `col`.

    >>> from reactive import left, right
    >>> left("customer") == right("id")
    col: left.customer == right.id
    """
    return col(name, LEFT)


@outermost
def right(name: str | int) -> Column:
    """Return an expression for a value of the right row in `join(on=)`; see `col`.

    >>> from dataclasses import dataclass
    >>> from reactive import Database, left, right
    >>> @dataclass(frozen=True)
    ... class Word:
    ...     text: str
    >>> words = Database().table(Word, name="words")
    >>> words.join(words, on=left("text") < right("text"))
    Relation:
    join on left.text < right.text
      table words
      table words
    """
    return col(name, RIGHT)


@outermost
def call(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Column:
    """Return an expression that calls a deterministic function with columns and constants.

    Raises
    ------
    PlanError: `function` is not callable, or may give another result for the same arguments.

    >>> from reactive import call, col
    >>> call(round, col("total"), 2)
    col: round(total, 2)
    """
    if not callable(function):
        raise PlanError(f"call takes a function, not {function!r:.60}\n  call(len, col('name'))")
    reason = impurity(function)
    if reason is not None:
        raise PlanError(
            f"call: {getattr(function, '__name__', function)} cannot be used in a query: {reason}\n"
            f"  a callable must give the same answer each time; {instead_of(reason)}"
        )
    return Column(_make_call(constant(function), arguments, named), caller())


@outermost
def when(test: Column, then: Any, otherwise: Any) -> Column:
    """Return the expression `then if test else otherwise`; only one branch is evaluated.

    >>> from reactive import col, when
    >>> when(col("paid"), 0, col("total"))
    col: 0 if paid else total
    """
    parts = (expression(test), expression(then), expression(otherwise))
    return Column(Conditional(*parts), caller())


def expression(value: Any) -> Expr:
    """Return a column, a tuple of columns, or a constant, as an expression.

    Refuses a relation, a view or a table: a query would not notice its changes.
    """
    if isinstance(value, Column):
        return value.expr
    if isinstance(value, Uncopyable):
        if isinstance(value, outer_values.OuterValue):
            return value._expr
        raise PlanError(
            f"an expression reads a {type(value).__name__}\n"
            "  a query would not notice its changes; join it instead"
        )
    if type(value) is tuple and any(isinstance(item, Column) for item in value):
        return tuple_of(*map(expression, value))
    return constant(with_instants(copy_container(value)))


def name_of(key: Column | Callable[..., Any] | str) -> str | None:
    """Return the name of the field that a key reads; None if it does anything else."""
    if not isinstance(key, Column):
        return key if isinstance(key, str) else field_read(key)
    expr = key.expr
    return expr.name if isinstance(expr, NamedValue) and isinstance(expr.name, str) else None


def _as_local_name(expr: Expr) -> Expr:
    return Local(str(expr)) if isinstance(expr, NamedValue) else expr


def _parts(kind: type[And | Or], expr: Expr) -> tuple[Expr, ...]:
    return expr.parts if isinstance(expr, kind) else (expr,)


def _make_column(name: str | int, of: str | int | None) -> Column:
    place = caller()
    return Column(NamedValue(name, of, place), place)


def _make_call(function: Expr, arguments: tuple[Any, ...], named: dict[str, Any]) -> Call:
    given = tuple((name, expression(value)) for name, value in named.items())
    return Call(function, tuple(map(expression, arguments)), given)


# Lift a user's callable; refuse one that reads tables or views whose changes go unnoticed.

READING = frozenset({"count", "items", "get", "keys", "values", "snapshot", "__contains__"})
"""Methods of tables and views that read rows. Other methods change rows, which raises when called.
"""


class Live(Uncopyable, Hinting):
    """Base of objects that change by themselves: relations and views."""

    _is_parameter: ClassVar[bool] = False
    """True for a value that a query reads by a call."""
    _has_windows: ClassVar[bool] = False
    """True for a relation whose rows have a window, which is to be read by calls."""

    def _relation_of(self, engine: Any) -> Any:
        """Return the relation that this is in queries of a database."""
        return self


def is_parameter(value: Any) -> bool:
    """Return True for a parameter: a value that may be set while views read it."""
    return isinstance(value, Live) and value._is_parameter


def plan_of_count(parameter: Any, engine: Any) -> plan.Table:
    """Return the plan of a parameter that counts rows.

    Raises
    ------
    PlanError: its values are no integers, or it is of another database.
    """
    if parameter.row_type is not int:
        raise PlanError(
            f"limit takes a parameter of int, and {parameter._called()} is of "
            f"{getattr(parameter.row_type, '__name__', parameter.row_type)}\n"
            "  make it with an int: db.parameter(10)"
        )
    if parameter._engine is not engine:
        raise PlanError(f"{parameter._called()} is of another database")
    found: plan.Table = parameter.plan
    return found


NOWHERE = (int, float, str, bytes, type(None), type, BuiltinFunctionType, Live)
"""Classes of values that hold no relation, or are a named relation themselves."""


@overload
def take_callable(function: Callable[..., Any], parameters: int, role: str) -> Opaque: ...
@overload
def take_callable(
    function: Callable[..., Any],
    parameters: int,
    role: str,
    read: Callable[[Opaque], Function] | None,
) -> Function: ...
def take_callable(
    function: Callable[..., Any],
    parameters: int,
    role: str,
    read: Callable[[Opaque], Function] | None = None,
) -> Function:
    """Return the callable as a function of the plan; `read` lifts one that names relations.

    Raises
    ------
    PlanError: as for `optimizer.callables.opaque.opaque`; or the callable names a relation or view
        where it cannot, or has one as a default, as an argument of a partial or as its owner.
    """
    if isinstance(function, Column):
        raise PlanError(
            f"{role} takes a callable, not {function!r}\n"
            "  col(...) stands where a relation's methods take a callable of its rows"
        )
    result = opaque(function, parameters, role)
    check_noticed(function, result)
    for capture in result.captures:
        if isinstance(capture.original, Live):
            if read is not None:
                return read(result)
            raise _unnoticed_error(result, capture.name, capture.original)
    return result


def check_noticed(function: Callable[..., Any], result: Opaque) -> None:
    """Refuse a callable that reads relations or views whose changes would go unnoticed.

    Raises
    ------
    PlanError: the callable has a relation as a default, as an argument of a partial or as its
        owner, or reads one from an object or a collection, or through a function in one.
    """
    is_alone = isinstance(function, FunctionType) and all(map(_leads_nowhere, result.captures))
    if is_alone and not function.__defaults__ and not function.__kwdefaults__:
        return
    for name, value in _bound_values(function, result):
        if isinstance(value, Live):
            raise _unnoticed_error(result, name, value)
    if is_alone:
        return
    for name, value in reachable_objects.find_reachable_objects(function, _is_live):
        if isinstance(value, Live):
            raise _unnoticed_error(result, name, value)
        if value.__name__ in READING:
            raise _unnoticed_error(result, name, value.__self__)


def _leads_nowhere(capture: Capture) -> bool:
    """Return True if a variable holds no relation: most callables need no further search."""
    return isinstance(capture.original, NOWHERE)


def _is_live(value: Any) -> bool:
    return isinstance(value, Live)


def check_values(fields: Mapping[str, Any]) -> None:
    """Refuse values to compare fields with that change by themselves, or are callables."""
    for name, value in fields.items():
        if isinstance(value, Live) and not isinstance(value, outer_values.OuterValue):
            raise PlanError(
                f"where: {name}= is a {type(value).__name__}\n"
                "  a query would not notice its changes; join it instead"
            )
        if isinstance(value, FunctionType) and value.__name__ == "<lambda>":
            raise PlanError(
                f"where: {name}= takes the value that the field has to equal, not a lambda\n"
                f"  where(lambda row: ... row.{name} ...) takes one"
            )


def kind_shown(thing: Any) -> str:
    """Describe an object that should be a relation, for messages."""
    return "None (does it have a return?)" if thing is None else type(thing).__name__


def _unnoticed_error(function: Opaque, name: str, value: Live) -> PlanError:
    """Return the error for a callable that reads a value whose changes a query would miss."""
    if isinstance(value, outer_values.OuterValue):
        return PlanError(
            f"{function.role}: {function} reads {name!r}, a row around the query, where it cannot\n"
            "  read it in a callable of where, select or join: what these give can be read anywhere"
        )
    return PlanError(
        f"{function.role}: {function} reads {name!r}, which is a {type(value).__name__}\n"
        "  a query would not notice its changes; join it instead"
    )


def _bound_values(function: Callable[..., Any], result: Opaque) -> Iterator[tuple[str, Any]]:
    """Yield the values bound in a callable, and in the functions that it names."""
    names = tuple(getattr(getattr(function, "__code__", None), "co_varnames", ()))
    yield from _values_not_passed(_values_of_callable(function), names[: result.parameters])
    for capture in result.captures:
        if isinstance(capture.original, FunctionType):
            always = callable_parameters.always_passed(function, capture.name, capture.original)
            yield from _values_not_passed(_values_of_callable(capture.original), always)
        elif isinstance(capture.original, MethodType | partial):
            yield from _values_of_callable(capture.original)


def _values_not_passed(
    given: Iterator[tuple[str, Any]], passed: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the values in `given`, with their parameters, except parameters that calls pass."""
    return ((name, value) for name, value in given if name not in passed)


def _values_of_callable(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values that a callable holds by name: defaults, arguments, and captures."""
    if isinstance(function, partial):
        yield from (("an argument", value) for value in function.args)
        yield from function.keywords.items()
        yield from ((capture.name, capture.original) for capture in freeze(function.func)[1])
        yield from _values_of_callable(function.func)
    elif isinstance(function, MethodType):
        yield "self", function.__self__
        yield from _values_of_callable(function.__func__)
    elif isinstance(function, FunctionType):
        yield from defaults(function).items()

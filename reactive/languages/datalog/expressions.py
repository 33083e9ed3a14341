"""Terms as expressions of a plan, without a text in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.expr import NONE, Call, Constant, Expr, Item, Lifted, Operation, constant
from optimizer.expressions.simplification import BINARY, UNARY
from reactive.engine.codegen.loop_expressions import Shallow
from reactive.languages.datalog import functors, rules
from reactive.languages.datalog.clause_rules import is_partial
from reactive.languages.datalog.functors import call_of
from reactive.languages.datalog.inference import Kind, ProgramTypes
from reactive.languages.datalog.own_functors import OwnFunctors
from reactive.languages.datalog.term_kinds import Kinds

Values = Mapping[str, Expr]
PLAIN = frozenset({"+", "-", "*"})
"""Functors that are operators of Python where numbers have no end."""


class Expressions:
    """Makes expressions of the terms of a rule."""

    def __init__(
        self,
        kinds: Kinds,
        types: ProgramTypes,
        bits: int | None,
        own: OwnFunctors,
    ) -> None:
        self.kinds = kinds
        self.types = types
        self._bits = bits
        self._own = own
        self._shallow = Shallow()

    def of(self, term: rules.Term, values: Values) -> Expr:
        """Return a term as an expression of variables that have values."""
        return self._shallow(self._convert(term, values))

    def _convert(self, term: rules.Term, values: Values) -> Expr:
        """Return a term as an expression; `values` has the expressions of its variables."""
        match term:
            case rules.Variable(name):
                return values[name]
            case rules.Number(value):
                return constant(self._number(value, self.kinds.of(term)))
            case rules.TextTerm(text):
                return constant(text)
            case rules.Nil():
                return NONE
            case rules.RecordTerm(items):
                made = self.types.record_class(self.kinds.of(term))
                return make_call(made, [self.of(item, values) for item in items])
            case rules.Branch(name, items):
                _, fields = self.types.branch(term)
                made = self.types.branch_class(name, fields)
                return make_call(made, [constant(name), *(self.of(item, values) for item in items)])
            case rules.Functor():
                return self._functor(term, values)
            case rules.Cast(of):
                return self._cast(self.of(of, values), self.kinds.of(of), self.kinds.of(term))
            case _:
                raise TypeError(f"no value: {type(term).__name__}")

    def comparison(self, goal: rules.Comparison, values: Values) -> Expr:
        """Return a test of two terms."""
        sides = (self.of(goal.left, values), self.of(goal.right, values))
        match goal.sign:
            case "=":
                return Operation("==", sides)
            case "match":
                return make_call(functors.matches, sides)
            case "!match":
                return make_call(functors.mismatches, sides)
            case "contains":
                return Operation("in", sides)
            case "!contains":
                return Operation("not in", sides)
            case sign:
                return Operation(sign, sides)

    def _number(self, value: Any, kind: Kind) -> Any:
        """Return a number that is written out, in the range of its kind."""
        if kind.family == "float":
            return float(value)
        if kind.family == "unsigned":
            return functors.unsigned(value, self._bits or functors.UNSIGNED_BITS)
        return value if self._bits is None else functors.signed(value, self._bits)

    def wrap_sum(self, value: Expr, kind: Kind) -> Expr:
        """Return a sum in the range of its kind."""
        if kind.family == "unsigned":
            return make_call(
                functors.unsigned, (value, constant(self._bits or functors.UNSIGNED_BITS))
            )
        if kind.family == "number" and self._bits is not None:
            return make_call(functors.signed, (value, constant(self._bits)))
        return value

    def _functor(self, functor: rules.Functor, values: Values) -> Expr:
        """Return a functor as an operator if it is Python's, else as a call."""
        arguments = [self.of(argument, values) for argument in functor.arguments]
        name, kind = functor.name, self.kinds.of(functor)
        is_float = kind.family == "float"
        if name.startswith("@"):
            return make_call(self._own.function(functor), arguments, name[1:])
        if name in functors.NUMBERED:
            return make_call(getattr(self._own.ordinals, name), arguments, name)
        is_free = kind.family in ("float", "symbol")
        is_plain = name in PLAIN and (is_free or (kind.family == "number" and not self._bits))
        if is_plain or (
            is_float and name == "/" and isinstance(functor.arguments[-1], rules.Number)
        ):
            return Operation(name, tuple(arguments))
        if name == "cat":
            return _concatenate_all(arguments)
        if is_partial(functor) and isinstance(functor.arguments[-1], rules.Number) and name in "/%":
            name = f"{name} number"
        return make_call(
            call_of(name, kind.family, len(arguments), self._bits), arguments, functor.name
        )

    def _cast(self, value: Expr, old: Kind, new: Kind) -> Expr:
        return value if old == new else self.wrap_sum(value, new)


def each(expressions: Expressions, functor: rules.Functor, values: Values) -> Expr:
    """Return the values of a function that has none, one or several, as a tuple."""
    arguments = [expressions.of(argument, values) for argument in functor.arguments]
    kind = expressions.kinds.of(functor).family
    found = call_of(functor.name, kind, len(arguments), expressions._bits)
    return make_call(found, arguments, functor.name)


def _concatenate_all(arguments: Sequence[Expr]) -> Expr:
    """Return the sum of the arguments, from left to right."""
    found = arguments[0]
    for argument in arguments[1:]:
        found = Operation("+", (found, argument))
    return found


def make_call(function: Any, arguments: Sequence[Expr], name: str | None = None) -> Expr:
    """Return a call of a function that is known."""
    shown = name or getattr(function, "__name__", None)
    return Call(constant(function, shown), tuple(arguments))


def item(of: Expr, place: int) -> Expr:
    """Return the item of a tuple at `place`."""
    return Item(of, constant(place))


def lift_body(body: Expr, names: Sequence[str]) -> Lifted:
    """Return a function of bindings with names."""
    return Lifted(body, tuple(names), (), len(names))


def constant_value(expr: Expr) -> Any:
    """Return the value of an expression that reads nothing.

    >>> constant_value(make_call(max, (constant(1), constant(2))))
    2
    """
    match expr:
        case Constant(value):
            return value
        case Call(function, arguments):
            return constant_value(function)(*map(constant_value, arguments))
        case Operation(operator, (left, right)):
            return BINARY[operator](constant_value(left), constant_value(right))
        case Operation(operator, (operand,)):
            return UNARY[operator](constant_value(operand))
        case _:
            raise TypeError(f"no constant: {type(expr).__name__}")

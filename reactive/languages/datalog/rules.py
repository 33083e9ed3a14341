"""Programs as they are written, and as rules of one head and one body.

Rules: clauses with one head and one body, in which each aggregate and each function that may
have no value, or several, has a variable of its own.

    a(x, count : { b(x, _) }) :- c(x / 2, x).

        a(x, n) :- c(y, x), n = count : { b(x, _) }, z in x / 2, y = z.

The parts of a program, as they are written.

    .decl path(x: number, y: number)            Declaration
    path(x, z) :- path(x, y), edge(y, z).       Clause, of Atoms
    .output path                                Directive

Equality of parts ignores their place in the text (`at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import count
from typing import Any, TypeAlias, TypeVar

from optimizer.record import record
from reactive.languages.datalog.functors import SIGNATURES
from reactive.languages.datalog.tokens import Span, wrong

# Terms.


@record
class Variable:
    """A name that stands for a value."""

    name: str
    at: Span = field(compare=False, repr=False)


@record
class Unnamed:
    """`_`: any value."""

    at: Span = field(compare=False, repr=False)


@record
class Number:
    """A number as it is written; the terms beside it determine its type."""

    value: int | float
    is_unsigned: bool
    at: Span = field(compare=False, repr=False)


@record
class TextTerm:
    """A text in quotes: a symbol."""

    value: str
    at: Span = field(compare=False, repr=False)


@record
class Nil:
    """`nil`: the record without items, of any record type."""

    at: Span = field(compare=False, repr=False)


@record
class RecordTerm:
    """A record: `[a, b]`."""

    items: tuple[Term, ...]
    at: Span = field(compare=False, repr=False)


@record
class Branch:
    """`$Add(a, b)`: a value of an algebraic data type."""

    name: str
    items: tuple[Term, ...]
    at: Span = field(compare=False, repr=False)


@record
class Functor:
    """`a + b`, `cat(a, b)`: a function of values."""

    name: str
    arguments: tuple[Term, ...]
    at: Span = field(compare=False, repr=False)


@record
class Cast:
    """A cast: `as(a, type)`."""

    of: Term
    type: str
    at: Span = field(compare=False, repr=False)


@record
class AggregateTerm:
    """`sum x : { body }`, of the assignments that satisfy one of the bodies."""

    name: str
    target: Term | None
    bodies: tuple[tuple[Literal, ...], ...]
    at: Span = field(compare=False, repr=False)


Term: TypeAlias = (
    Variable
    | Unnamed
    | Number
    | TextTerm
    | Nil
    | RecordTerm
    | Branch
    | Functor
    | Cast
    | AggregateTerm
)

# Literals.


@record
class Atom:
    """`a(x, y)`: a row of a relation."""

    name: str
    arguments: tuple[Term, ...]
    at: Span = field(compare=False, repr=False)
    name_at: Span = field(compare=False, repr=False)


@record
class Negation:
    """`!a(x, y)`: no row of a relation matches the atom."""

    atom: Atom
    at: Span = field(compare=False, repr=False)


@record
class Comparison:
    """`a < b`, `a = b`, `match(a, b)`: a test of two values."""

    sign: str
    left: Term
    right: Term
    at: Span = field(compare=False, repr=False)


@record
class Truth:
    """A constant test: `true` or `false`."""

    value: bool
    at: Span = field(compare=False, repr=False)


Literal: TypeAlias = Atom | Negation | Comparison | Truth

# Statements.


@record
class Clause:
    """The rows of `heads`, where one of the bodies holds; a fact has one empty body."""

    heads: tuple[Atom, ...]
    bodies: tuple[tuple[Literal, ...], ...]
    at: Span = field(compare=False, repr=False)


@record
class DeclaredColumn:
    """A column of a relation, record or branch, with the name of its type."""

    name: str
    type: str
    at: Span = field(compare=False, repr=False)


@record
class Declaration:
    """A declaration of a relation: `.decl path(x: number, y: number) inline`."""

    name: str
    columns: tuple[DeclaredColumn, ...]
    qualifiers: frozenset[str]
    at: Span = field(compare=False, repr=False)


@record
class TypeDefinition:
    """`.type name ...`: its supertypes or union, its record columns, or its branches."""

    name: str
    of: tuple[str, ...]
    record: tuple[DeclaredColumn, ...] | None
    branches: tuple[tuple[str, tuple[DeclaredColumn, ...]], ...]
    at: Span = field(compare=False, repr=False)


@record
class Directive:
    """`.output path`: a directive (input, output, printsize, override) about a relation."""

    word: str
    name: str
    at: Span = field(compare=False, repr=False)


@record
class ComponentUse:
    """`Graph<number>`: a component with types for its parameters."""

    name: str
    types: tuple[str, ...]
    at: Span = field(compare=False, repr=False)


@record
class Component:
    """A component: `.comp Graph<T> : Base<T> { ... }`."""

    name: str
    parameters: tuple[str, ...]
    bases: tuple[ComponentUse, ...]
    statements: tuple[Statement, ...]
    at: Span = field(compare=False, repr=False)


@record
class Init:
    """An instance of a component: `.init g = Graph<number>`."""

    name: str
    use: ComponentUse
    at: Span = field(compare=False, repr=False)


Statement: TypeAlias = Clause | Declaration | TypeDefinition | Directive | Component | Init

T = TypeVar("T", bound="Term | Literal")


def parts_of(part: Term | Literal) -> tuple[Term | Literal, ...]:
    """Return the parts of a term or literal, left to right; () of a part without parts.

    Of an aggregate these are its target and the literals of all bodies.
    """
    match part:
        case Variable() | Unnamed() | Number() | TextTerm():
            return ()
        case Functor(_, arguments) | Atom(_, arguments):
            return arguments
        case RecordTerm(items) | Branch(_, items):
            return items
        case Cast(of):
            return (of,)
        case Negation(atom):
            return (atom,)
        case Comparison(_, left, right):
            return (left, right)
        case AggregateTerm(_, target, bodies):
            own = () if target is None else (target,)
            return (*own, *(literal for body in bodies for literal in body))
        case _:
            return ()


def walk(part: Term | Literal) -> Iterator[Term | Literal]:
    """Yield a term or literal, and all parts of it, outer ones first, from left to right."""
    waiting = [part]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(parts_of(each))


def variables(*parts: Term | Literal) -> dict[str, Span]:
    """Return the variables in some parts, in their order, with their first places."""
    found: dict[str, Span] = {}
    waiting = list(reversed(parts))
    while waiting:
        each = waiting.pop()
        if isinstance(each, Variable):
            found.setdefault(each.name, each.at)
        else:
            waiting += reversed(parts_of(each))
    return found


def transform_part(part: T, change: Callable[[Term | Literal], Term | Literal]) -> T:
    """Return a copy of a part; `change` is applied to each of its parts, inner ones first."""

    def inner(each: Any) -> Any:
        return transform_part(each, change)

    made: Any = part
    match made:
        case Variable():
            pass
        case Atom(name, arguments, at, name_at):
            made = Atom(name, tuple(map(inner, arguments)), at, name_at)
        case RecordTerm(items) | Branch(_, items):
            made = replace(made, items=tuple(map(inner, items)))
        case Functor(_, arguments):
            made = replace(made, arguments=tuple(map(inner, arguments)))
        case Cast(of):
            made = replace(made, of=inner(of))
        case Negation(atom):
            made = replace(made, atom=inner(atom))
        case Comparison(_, left, right):
            made = Comparison(made.sign, inner(left), inner(right), made.at)
        case AggregateTerm(_, target, bodies):
            new = tuple(tuple(map(inner, body)) for body in bodies)
            made = replace(made, target=None if target is None else inner(target), bodies=new)
    return change(made)  # type: ignore[return-value]


def rename_variables(part: T, names: dict[str, str]) -> T:
    """Return the part with other names for some of its variables."""

    def change(each: Term | Literal) -> Term | Literal:
        if isinstance(each, Variable) and each.name in names:
            return Variable(names[each.name], each.at)
        return each

    return transform_part(part, change) if names else part


@record
class RangeTerm:
    """`x in range(a, b)`: the values of a function that has none, one or several."""

    result: Variable
    functor: Functor
    at: Span = field(compare=False, repr=False)


@record
class TotalTerm:
    """An aggregate with its result: `n = sum x : { bodies }`."""

    result: Variable
    name: str
    target: Term | None
    bodies: tuple[tuple[Goal, ...], ...]
    at: Span = field(compare=False, repr=False)


Goal: TypeAlias = Atom | Negation | Comparison | Truth | RangeTerm | TotalTerm


@record
class Rule:
    """A head, and the goals that must all hold."""

    head: Atom
    goals: tuple[Goal, ...]
    at: Span = field(compare=False, repr=False)


class Names:
    """Names of variables that the program does not use."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, like: str = "") -> str:
        """Return a new name, which says what it is like."""
        return f"{like.partition(' ')[0]} {next(self._numbers)}"


def rules_of(clause: Clause, names: Names) -> list[Rule]:
    """Return the rules that a clause stands for."""
    return [
        _Rules(names).rule(head, body, clause.at) for body in clause.bodies for head in clause.heads
    ]


class _Rules:
    """Makes rules of clauses: aggregates and partial functors become goals of their own."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def rule(self, head: Atom, body: Sequence[Literal], at: Span) -> Rule:
        """Return a rule whose aggregates and partial functors are goals of their own."""
        goals = list(self.goals(body))
        more, arguments = list[Goal](), list[Term]()
        for argument in head.arguments:
            arguments.append(self._value(argument, more))
        own = Atom(head.name, tuple(arguments), head.at, head.name_at)
        return Rule(own, (*goals, *more), at)

    def goals(self, body: Sequence[Literal]) -> Iterator[Goal]:
        """Yield the goals of a body; a goal that a literal needs precedes it."""
        for literal in body:
            goals: list[Goal] = []
            own = self._goal(literal, goals)
            yield from goals
            if own is not None:
                yield own

    def _goal(self, literal: Literal, goals: list[Goal]) -> Goal | None:
        """Return a literal as a goal, and append to `goals` the goals that it needs.

        Return None if these goals say all of it.
        """
        match literal:
            case Atom():
                return self._atom(literal, goals)
            case Negation(atom):
                return Negation(self._atom(atom, goals), literal.at)
            case Comparison("=", Variable() as result, right) if self._is_hoisted(right):
                goals.append(self._hoist(right, result, goals))
                return None
            case Comparison("=", left, Variable() as result) if self._is_hoisted(left):
                goals.append(self._hoist(left, result, goals))
                return None
            case Comparison("=", left, right):
                sides = (self._side(left, goals), self._side(right, goals))
                return Comparison("=", *sides, literal.at)
            case Comparison(sign, left, right):
                new = (self._value(left, goals), self._value(right, goals))
                return Comparison(sign, *new, literal.at)
            case _:
                return literal

    def _side(self, term: Term, goals: list[Goal]) -> Term:
        """Return a side of an equation, which may be what the other side is to look like."""
        is_pattern = isinstance(term, RecordTerm | Branch)
        return self._pattern(term, goals) if is_pattern else self._value(term, goals)

    def _atom(self, atom: Atom, goals: list[Goal]) -> Atom:
        arguments = tuple([self._pattern(argument, goals) for argument in atom.arguments])
        return Atom(atom.name, arguments, atom.at, atom.name_at)

    def _pattern(self, term: Term, goals: list[Goal]) -> Term:
        """Return an argument with variables in place of its computed parts.

        The goals that compute these are appended to `goals`.
        """
        match term:
            case Variable() | Unnamed():
                return term
            case RecordTerm(items) | Branch(_, items):
                return replace(term, items=tuple(self._pattern(item, goals) for item in items))
            case Functor() | Cast() | AggregateTerm():
                value = self._value(term, goals)
                if isinstance(value, Variable):
                    return value
                result = Variable(self._names.new(), term.at)
                goals.append(Comparison("=", result, value, term.at))
                return result
            case _:
                return term

    def _value(self, term: Term, goals: list[Goal]) -> Term:
        """Return a term with its aggregates and partial functors replaced by variables.

        Their goals are appended to `goals`. Raises for `_`, which has no value.
        """
        match term:
            case Unnamed():
                raise wrong(term.at, "'_' has no value here", "name a variable that has one")
            case RecordTerm(items) | Branch(_, items):
                return replace(term, items=tuple(self._value(item, goals) for item in items))
            case Cast(of):
                return replace(term, of=self._value(of, goals))
            case Functor() | AggregateTerm() if self._is_hoisted(term):
                result = Variable(self._names.new(), term.at)
                goals.append(self._hoist(term, result, goals))
                return result
            case Functor(_, arguments):
                new = tuple(self._value(argument, goals) for argument in arguments)
                return replace(term, arguments=new)
            case _:
                return term

    def _is_hoisted(self, term: Term) -> bool:
        """Return True for an aggregate, or a functor that may have no value or several."""
        return isinstance(term, AggregateTerm) or (
            isinstance(term, Functor) and is_partial(term) and not _divides(term)
        )

    def _hoist(self, term: Term, result: Variable, goals: list[Goal]) -> Goal:
        """Return the goal that binds `result` to a term; append the goals of its arguments."""
        if isinstance(term, AggregateTerm):
            bodies = tuple(tuple(self.goals(body)) for body in term.bodies)
            target = term.target
            if target is not None:
                more: list[Goal] = []
                target = self._value(target, more)
                bodies = tuple((*body, *more) for body in bodies)
            return TotalTerm(result, term.name, target, bodies, term.at)
        assert isinstance(term, Functor)
        new = tuple(self._value(argument, goals) for argument in term.arguments)
        return RangeTerm(result, replace(term, arguments=new), term.at)


def is_partial(functor: Functor) -> bool:
    """Return True if the functor may have no value, or several."""
    return any(signature.is_partial for signature in SIGNATURES[functor.name])


def _divides(term: Functor) -> bool:
    """Return True for a quotient by a constant that is not zero."""
    if term.name not in (
        "/",
        "%",
    ):  # others may stand here without arguments, which is refused later
        return False
    last = term.arguments[-1]
    return isinstance(last, Number) and bool(last.value)


def terms_of(goal: Goal) -> tuple[Term | Literal, ...]:
    """Return the terms of a goal itself; of an aggregate only its result, of a truth value ()."""
    match goal:
        case RangeTerm(result, functor):
            return (result, functor)
        case TotalTerm(result):
            return (result,)
        case Truth():
            return ()
        case _:
            return (goal,)


def names_in(*goals: Goal) -> dict[str, Span]:
    """Return the variables of goals, also within aggregates, with their first places."""
    found: dict[str, Span] = {}
    for goal in goals:
        for name, at in variables(*terms_of(goal)).items():
            found.setdefault(name, at)
        if isinstance(goal, TotalTerm):
            found |= {k: v for k, v in names_within(goal).items() if k not in found}
    return found


def names_within(total: TotalTerm) -> dict[str, Span]:
    """Return the variables in the target and the bodies of an aggregate."""
    own = {} if total.target is None else variables(total.target)
    return own | names_in(*(goal for body in total.bodies for goal in body))


def renamed_goal(goal: Goal, names: dict[str, str]) -> Goal:
    """Return the goal with other names for some variables, also within aggregates."""
    if not names:
        return goal
    match goal:
        case RangeTerm(result, functor, at):
            return RangeTerm(rename_variables(result, names), rename_variables(functor, names), at)
        case TotalTerm(result, name, target, bodies, at):
            new = tuple(tuple(renamed_goal(g, names) for g in body) for body in bodies)
            of = None if target is None else rename_variables(target, names)
            return TotalTerm(rename_variables(result, names), name, of, new, at)
        case _:
            return rename_variables(goal, names)

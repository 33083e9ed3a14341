"""Rules: clauses with one head and one body, in which each aggregate and each function that may
have no value, or several, has a variable of its own.

    a(x, count : { b(x, _) }) :- c(x / 2, x).

        a(x, n) :- c(y, x), n = count : { b(x, _) }, z in x / 2, y = z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import count
from typing import TypeAlias

from optimizer.record import record
from reactive.languages.datalog.functors import SIGNATURES
from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.syntax import (
    Aggregate,
    Atom,
    Branch,
    Cast,
    Clause,
    Comparison,
    Functor,
    Literal,
    Negation,
    Number,
    Record,
    Term,
    Truth,
    Unnamed,
    Variable,
    renamed,
    variables,
)


@record
class Each:
    """`x in range(a, b)`: the values of a function that has none, one or several."""

    result: Variable
    functor: Functor
    at: Span = field(compare=False, repr=False)


@record
class Total:
    """`n = sum x : { bodies }`"""

    result: Variable
    name: str
    target: Term | None
    bodies: tuple[tuple[Goal, ...], ...]
    at: Span = field(compare=False, repr=False)


Goal: TypeAlias = Atom | Negation | Comparison | Truth | Each | Total


@record
class Rule:
    """A head, and the goals that must all hold."""

    head: Atom
    goals: tuple[Goal, ...]
    at: Span = field(compare=False, repr=False)


class Names:
    """Names of variables that nobody has written."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, like: str = "") -> str:
        """A new name, which says what it is like."""
        return f"{like.partition(' ')[0]} {next(self._numbers)}"


def rules_of(clause: Clause, names: Names) -> list[Rule]:
    """The rules that a clause stands for."""
    return [
        _Rules(names).rule(head, body, clause.at) for body in clause.bodies for head in clause.heads
    ]


class _Rules:
    def __init__(self, names: Names) -> None:
        self._names = names

    def rule(self, head: Atom, body: Sequence[Literal], at: Span) -> Rule:
        goals = list(self.goals(body))
        more, arguments = list[Goal](), list[Term]()
        for argument in head.arguments:
            arguments.append(self._value(argument, more))
        return Rule(replace(head, arguments=tuple(arguments)), (*goals, *more), at)

    def goals(self, body: Sequence[Literal]) -> Iterator[Goal]:
        for literal in body:
            goals: list[Goal] = []
            own = self._goal(literal, goals)
            yield from goals
            if own is not None:
                yield own

    def _goal(self, literal: Literal, goals: list[Goal]) -> Goal | None:
        match literal:
            case Atom():
                return self._atom(literal, goals)
            case Negation(atom):
                return replace(literal, atom=self._atom(atom, goals))
            case Comparison("=", Variable() as result, right) if self._is_hoisted(right):
                goals.append(self._hoisted(right, result, goals))
                return None
            case Comparison("=", left, Variable() as result) if self._is_hoisted(left):
                goals.append(self._hoisted(left, result, goals))
                return None
            case Comparison("=", left, right):
                sides = (self._side(left, goals), self._side(right, goals))
                return replace(literal, left=sides[0], right=sides[1])
            case Comparison(_, left, right):
                new = (self._value(left, goals), self._value(right, goals))
                return replace(literal, left=new[0], right=new[1])
            case _:
                return literal

    def _side(self, term: Term, goals: list[Goal]) -> Term:
        """A side of an equation, which may be what the other side is to look like."""
        is_pattern = isinstance(term, Record | Branch)
        return self._pattern(term, goals) if is_pattern else self._value(term, goals)

    def _atom(self, atom: Atom, goals: list[Goal]) -> Atom:
        arguments = tuple(self._pattern(argument, goals) for argument in atom.arguments)
        return replace(atom, arguments=arguments)

    def _pattern(self, term: Term, goals: list[Goal]) -> Term:
        """An argument of an atom, in which what is computed is a variable."""
        match term:
            case Record(items) | Branch(_, items):
                return replace(term, items=tuple(self._pattern(item, goals) for item in items))
            case Functor() | Cast() | Aggregate():
                value = self._value(term, goals)
                if isinstance(value, Variable):
                    return value
                result = Variable(self._names.new(), term.at)
                goals.append(Comparison("=", result, value, term.at))
                return result
            case _:
                return term

    def _value(self, term: Term, goals: list[Goal]) -> Term:
        """A term that is computed."""
        match term:
            case Unnamed():
                raise wrong(term.at, "'_' has no value here", "name a variable that has one")
            case Record(items) | Branch(_, items):
                return replace(term, items=tuple(self._value(item, goals) for item in items))
            case Cast(of):
                return replace(term, of=self._value(of, goals))
            case Functor() | Aggregate() if self._is_hoisted(term):
                result = Variable(self._names.new(), term.at)
                goals.append(self._hoisted(term, result, goals))
                return result
            case Functor(_, arguments):
                new = tuple(self._value(argument, goals) for argument in arguments)
                return replace(term, arguments=new)
            case _:
                return term

    def _is_hoisted(self, term: Term) -> bool:
        return isinstance(term, Aggregate) or (
            isinstance(term, Functor) and is_partial(term) and not _divides(term)
        )

    def _hoisted(self, term: Term, result: Variable, goals: list[Goal]) -> Goal:
        if isinstance(term, Aggregate):
            bodies = tuple(tuple(self.goals(body)) for body in term.bodies)
            target = term.target
            if target is not None:
                more: list[Goal] = []
                target = self._value(target, more)
                bodies = tuple((*body, *more) for body in bodies)
            return Total(result, term.name, target, bodies, term.at)
        assert isinstance(term, Functor)
        new = tuple(self._value(argument, goals) for argument in term.arguments)
        return Each(result, replace(term, arguments=new), term.at)


def is_partial(functor: Functor) -> bool:
    """Whether it may have no value, or several."""
    return any(signature.is_partial for signature in SIGNATURES[functor.name])


def _divides(term: Functor) -> bool:
    """Whether it is a quotient by a number that is not zero."""
    if term.name not in (
        "/",
        "%",
    ):  # others may stand here without arguments, which is refused later
        return False
    last = term.arguments[-1]
    return isinstance(last, Number) and bool(last.value)


def terms_of(goal: Goal) -> tuple[Term | Literal, ...]:
    """The terms of a goal itself; of an aggregate its result alone."""
    match goal:
        case Each(result, functor):
            return (result, functor)
        case Total(result):
            return (result,)
        case Truth():
            return ()
        case _:
            return (goal,)


def names_in(*goals: Goal) -> dict[str, Span]:
    """All variables in some goals, also within aggregates, with their first places."""
    found: dict[str, Span] = {}
    for goal in goals:
        found |= {k: v for k, v in variables(*terms_of(goal)).items() if k not in found}
        if isinstance(goal, Total):
            found |= {k: v for k, v in names_within(goal).items() if k not in found}
    return found


def names_within(total: Total) -> dict[str, Span]:
    """The variables in the target and the bodies of an aggregate."""
    own = {} if total.target is None else variables(total.target)
    return own | names_in(*(goal for body in total.bodies for goal in body))


def renamed_goal(goal: Goal, names: dict[str, str]) -> Goal:
    """The goal with other names for some variables, also within aggregates."""
    if not names:
        return goal
    match goal:
        case Each(result, functor, at):
            return Each(renamed(result, names), renamed(functor, names), at)
        case Total(result, name, target, bodies, at):
            new = tuple(tuple(renamed_goal(g, names) for g in body) for body in bodies)
            of = None if target is None else renamed(target, names)
            return Total(renamed(result, names), name, of, new, at)
        case _:
            return renamed(goal, names)

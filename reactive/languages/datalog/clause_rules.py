"""Rules of a clause: each has one head and one body.

Each aggregate, and each function that may have no value, or several, gets a variable of its own:

    a(x, count : { b(x, _) }) :- c(x / 2, x).

        a(x, n) :- c(y, x), n = count : { b(x, _) }, z in x / 2, y = z.

A counter gets the variables that it counts: `autoinc()` is a function of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from reactive.languages.datalog.functors import SIGNATURES
from reactive.languages.datalog.rules import (
    AggregateTerm,
    Atom,
    Branch,
    Cast,
    Clause,
    Comparison,
    Functor,
    Goal,
    Literal,
    Names,
    Negation,
    Number,
    RangeTerm,
    RecordTerm,
    Rule,
    Term,
    TextTerm,
    TotalTerm,
    Unnamed,
    Variable,
    terms_of,
    transform_part,
    variables,
    walk,
)
from reactive.languages.datalog.tokens import Span, wrong


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
        rule = Rule(own, (*goals, *more), at)
        return self._with_counters(rule) if self._names.may_count(at.text) else rule

    def _with_counters(self, rule: Rule) -> Rule:
        """Return the rule with what its counters count: the variables of its atoms, all named."""
        parts = [part for goal in rule.goals for each in terms_of(goal) for part in walk(each)]
        if not any(_is_counter(part) for part in (*parts, *walk(rule.head))):
            return rule
        goals = [self._named(goal) if isinstance(goal, Atom) else goal for goal in rule.goals]
        bound = [goal for goal in goals if isinstance(goal, Atom)]
        names = variables(*bound)
        ranges = [g.result for g in goals if isinstance(g, RangeTerm) and not _counts(g.functor)]
        names |= {each.name: each.at for each in ranges}

        def change(part: Term | Literal) -> Term | Literal:
            if not (isinstance(part, Functor) and part.name == "autoinc"):
                return part
            counted = (Variable(name, part.at) for name in names)
            return replace(part, arguments=(TextTerm(self._names.new(), part.at), *counted))

        return Rule(
            transform_part(rule.head, change), tuple(_changed(g, change) for g in goals), rule.at
        )

    def _named(self, atom: Atom) -> Atom:
        """Return the atom with a variable for each `_`."""

        def change(part: Term | Literal) -> Term | Literal:
            return Variable(self._names.new(), part.at) if isinstance(part, Unnamed) else part

        return transform_part(atom, change)

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
            case Comparison("=", Unnamed(), other) | Comparison("=", other, Unnamed()) if (
                not isinstance(other, Unnamed)
            ):
                named = Variable(self._names.new(), literal.at)
                return self._goal(Comparison("=", named, other, literal.at), goals)
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


def _is_counter(part: Term | Literal) -> bool:
    return isinstance(part, Functor) and part.name == "autoinc"


def _counts(term: Term) -> bool:
    return any(map(_is_counter, walk(term)))


def computes(rule: Rule) -> bool:
    """Return True if a rule may derive values that no relation has: without a bound for ever."""
    made = [*rule.head.arguments]
    for goal in rule.goals:
        if isinstance(goal, RangeTerm):
            made.append(goal.functor)
        elif isinstance(goal, Comparison) and goal.sign == "=":
            made += (goal.left, goal.right)
    parts = (part for term in made for part in walk(term))
    return any(isinstance(part, Functor | RecordTerm | Branch) for part in parts)


def counters_in(rule: Rule) -> Iterator[Functor]:
    """Yield the counters of a rule."""
    for part in (rule.head, *(each for goal in rule.goals for each in terms_of(goal))):
        yield from (each for each in walk(part) if _is_counter(each))  # type: ignore[misc]


def _changed(goal: Goal, change: Callable[[Term | Literal], Term | Literal]) -> Goal:
    """Return a goal with other terms; an aggregate is unchanged."""
    match goal:
        case RangeTerm(result, functor, at):
            return RangeTerm(result, transform_part(functor, change), at)
        case TotalTerm():
            return goal
        case _:
            return transform_part(goal, change)


def is_partial(functor: Functor) -> bool:
    """Return True if the functor may have no value, or several."""
    if functor.name.startswith("@"):
        return False
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

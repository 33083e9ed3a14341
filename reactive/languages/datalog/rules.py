"""Programs as they are written, and as rules of one head and one body.

The parts of a program, as they are written.

    .decl path(x: number, y: number)            Declaration
    path(x, z) :- path(x, y), edge(y, z).       Clause, of Atoms
    .output path                                Directive

Equality of parts ignores their place in the text (`at`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from itertools import count
from typing import Any, TypeAlias, TypeVar

from optimizer.record import record
from reactive.languages.datalog.tokens import Span

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
    is_subsumptive: bool = False
    """True if its rows are those that another row of the relation dominates."""


@record
class DeclaredColumn:
    """A column of a relation, record or branch, with the name of its type."""

    name: str
    type: str
    at: Span = field(compare=False, repr=False)
    is_joined: bool = False
    """True if its values of one key are joined, as `of: Sign<>`."""


@record
class Declaration:
    """A declaration of a relation: `.decl path(x: number, y: number) inline`."""

    name: str
    columns: tuple[DeclaredColumn, ...]
    qualifiers: frozenset[str]
    at: Span = field(compare=False, repr=False)
    choices: tuple[tuple[str, ...], ...] = ()
    """The columns of each choice domain."""


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
    """`.output path(IO=stdout)`: a directive (input, output, ...) about a relation."""

    word: str
    name: str
    at: Span = field(compare=False, repr=False)
    options: tuple[tuple[str, str], ...] = ()


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


@record
class FunctorDeclaration:
    """A functor of the user: `.functor f(x: number): symbol`, with the names of its types."""

    name: str
    arguments: tuple[str, ...]
    result: str
    at: Span = field(compare=False, repr=False)


@record
class LatticeDeclaration:
    """A lattice: `.lattice Sign<> { Bottom -> $Bottom(), Lub -> @lub(_, _) }`.

    `lub` and `glb` are functors; `glb` is empty if it is not given.
    """

    name: str
    bottom: Term | None
    lub: str
    glb: str
    at: Span = field(compare=False, repr=False)


Statement: TypeAlias = (
    Clause
    | Declaration
    | TypeDefinition
    | Directive
    | Component
    | Init
    | FunctorDeclaration
    | LatticeDeclaration
)

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
        self._counting: dict[str, bool] = {}

    def may_count(self, text: str) -> bool:
        """Return True if the text of a program has the word of counters."""
        if text not in self._counting:
            self._counting[text] = "autoinc" in text
        return self._counting[text]

    def new(self, like: str = "") -> str:
        """Return a new name, which says what it is like."""
        return f"{like.partition(' ')[0]} {next(self._numbers)}"


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

"""The parts of a program, as they are written.

    .decl path(x: number, y: number)            Declaration
    path(x, z) :- path(x, y), edge(y, z).       Clause, of Atoms
    .output path                                Directive

They compare by what they say; where they stand (`at`) is beside that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, TypeAlias, TypeVar

from optimizer.record import record
from reactive.languages.datalog.places import Span

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
    """A number as it is written; which type it is of depends on where it stands."""

    value: int | float
    is_unsigned: bool
    at: Span = field(compare=False, repr=False)


@record
class Text:
    """A symbol that is written out."""

    value: str
    at: Span = field(compare=False, repr=False)


@record
class Nil:
    """The record that is none."""

    at: Span = field(compare=False, repr=False)


@record
class Record:
    """`[a, b]`"""

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
    """`as(a, type)`"""

    of: Term
    type: str
    at: Span = field(compare=False, repr=False)


@record
class Aggregate:
    """`sum x : { body }`, of the assignments that satisfy one of the bodies."""

    name: str
    target: Term | None
    bodies: tuple[tuple[Literal, ...], ...]
    at: Span = field(compare=False, repr=False)


Term: TypeAlias = (
    Variable | Unnamed | Number | Text | Nil | Record | Branch | Functor | Cast | Aggregate
)

# Literals.


@record
class Atom:
    """A row of a relation."""

    name: str
    arguments: tuple[Term, ...]
    at: Span = field(compare=False, repr=False)
    name_at: Span = field(compare=False, repr=False)


@record
class Negation:
    """No such row."""

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
    """`true` or `false`"""

    value: bool
    at: Span = field(compare=False, repr=False)


Literal: TypeAlias = Atom | Negation | Comparison | Truth

# Statements.


@record
class Clause:
    """The rows of `heads`, where one of the bodies holds; without any, a fact."""

    heads: tuple[Atom, ...]
    bodies: tuple[tuple[Literal, ...], ...]
    at: Span = field(compare=False, repr=False)


@record
class Column:
    """A column of a relation, record or branch, with the name of its type."""

    name: str
    type: str
    at: Span = field(compare=False, repr=False)


@record
class Declaration:
    """`.decl path(x: number, y: number) inline`"""

    name: str
    columns: tuple[Column, ...]
    qualifiers: frozenset[str]
    at: Span = field(compare=False, repr=False)


@record
class Definition:
    """`.type name ...`: the types of which it is a subtype or the union; or the columns of a
    record; or the branches of an algebraic data type."""

    name: str
    of: tuple[str, ...]
    record: tuple[Column, ...] | None
    branches: tuple[tuple[str, tuple[Column, ...]], ...]
    at: Span = field(compare=False, repr=False)


@record
class Directive:
    """`.output path`: something about a relation."""

    word: str
    name: str
    at: Span = field(compare=False, repr=False)


@record
class Use:
    """`Graph<number>`: a component with types for its parameters."""

    name: str
    types: tuple[str, ...]
    at: Span = field(compare=False, repr=False)


@record
class Component:
    """`.comp Graph<T> : Base<T> { ... }`"""

    name: str
    parameters: tuple[str, ...]
    bases: tuple[Use, ...]
    statements: tuple[Statement, ...]
    at: Span = field(compare=False, repr=False)


@record
class Init:
    """`.init g = Graph<number>`"""

    name: str
    use: Use
    at: Span = field(compare=False, repr=False)


Statement: TypeAlias = Clause | Declaration | Definition | Directive | Component | Init

T = TypeVar("T", bound="Term | Literal")


def inside(part: Term | Literal) -> tuple[Term | Literal, ...]:
    """The parts of a term or literal, left to right; of an aggregate all literals too."""
    match part:
        case Record(items) | Branch(_, items):
            return items
        case Functor(_, arguments) | Atom(_, arguments):
            return arguments
        case Cast(of):
            return (of,)
        case Negation(atom):
            return (atom,)
        case Comparison(_, left, right):
            return (left, right)
        case Aggregate(_, target, bodies):
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
        waiting += reversed(inside(each))


def variables(*parts: Term | Literal) -> dict[str, Span]:
    """The variables in some parts, in the order in which they stand, with their first places."""
    found: dict[str, Span] = {}
    for part in parts:
        for each in walk(part):
            if isinstance(each, Variable):
                found.setdefault(each.name, each.at)
    return found


def changed(part: T, change: Callable[[Term | Literal], Term | Literal]) -> T:
    """The same with its parts changed, inner ones first."""

    def inner(each: Any) -> Any:
        return changed(each, change)

    made: Any = part
    match made:
        case Record(items) | Branch(_, items):
            made = replace(made, items=tuple(map(inner, items)))
        case Functor(_, arguments) | Atom(_, arguments):
            made = replace(made, arguments=tuple(map(inner, arguments)))
        case Cast(of):
            made = replace(made, of=inner(of))
        case Negation(atom):
            made = replace(made, atom=inner(atom))
        case Comparison(_, left, right):
            made = replace(made, left=inner(left), right=inner(right))
        case Aggregate(_, target, bodies):
            new = tuple(tuple(map(inner, body)) for body in bodies)
            made = replace(made, target=None if target is None else inner(target), bodies=new)
    return change(made)  # type: ignore[return-value]


def renamed(part: T, names: dict[str, str]) -> T:
    """The same with other names for some of its variables."""

    def change(each: Term | Literal) -> Term | Literal:
        if isinstance(each, Variable) and each.name in names:
            return Variable(names[each.name], each.at)
        return each

    return changed(part, change) if names else part

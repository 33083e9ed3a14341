"""Lattices of a program: columns whose values of one key are joined.

    .functor lub(a: Sign, b: Sign): Sign
    .lattice Sign<> { Bottom -> $Bottom(), Lub -> @lub(_, _), Glb -> @glb(_, _) }
    .decl sign(variable: symbol, of: Sign<>)

A relation with such a column has one row for each value of its other columns, with the least upper
bound of all values that are derived; a row with the bottom is no row. The bottom is the only row of
a relation of its own:

    .decl Sign.bottom(value: Sign)        Sign.bottom($Bottom()).

A variable that several such columns of a body bind is the greatest lower bound of their values:

    both(x, s) :- left(x, s), right(x, s).
    both(x, s) :- left(x, s.1), right(x, s.2), s = @glb(s.1, s.2), s != $Bottom().
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from optimizer.record import record
from reactive.api.lattices import Lattice
from reactive.languages.datalog import rules
from reactive.languages.datalog.tokens import Span, suggest_name, wrong

BOTTOM = ".bottom"
"""The end of the name of the relation with the bottom of a lattice."""


@record
class JoinedColumn:
    """The column whose values of one key are joined, and the functor that joins them."""

    key: tuple[int, ...]
    value: int
    functor: rules.Functor
    bottom: str
    """The relation with the bottom; empty if the lattice has none."""

    def lattice(self, join: Callable[[Any, Any], Any], bottom: Any) -> Lattice[Any]:
        """Return the lattice of the values."""
        return Lattice(join, itemgetter(self.value), bottom=bottom)

    def by(self) -> Callable[[Any], Any]:
        """Return the function of the key of a row."""
        return itemgetter(*self.key) if self.key else _no_key


def _no_key(row: Any) -> Any:
    return ()


Lattices = Mapping[str, rules.LatticeDeclaration]


def lattices_of(statements: Sequence[rules.Statement]) -> Lattices:
    """Return the lattices of a program by their types; refuses two of one type."""
    found: dict[str, rules.LatticeDeclaration] = {}
    for each in statements:
        if isinstance(each, rules.LatticeDeclaration):
            if each.name in found:
                raise wrong(each.at, f"there is a lattice {each.name!r} already")
            found[each.name] = each
    return found


def joined_column(declared: rules.Declaration, lattices: Lattices) -> JoinedColumn | None:
    """Return the column of a lattice; None if a relation has none.

    Raises
    ------
    PlanError: the type has no lattice, or there are several such columns.
    """
    places = [place for place, each in enumerate(declared.columns) if each.is_joined]
    if not places:
        return None
    if len(places) > 1:
        what = f"relation {declared.name!r} has several columns of lattices"
        raise wrong(declared.at, what, "give it one: of records, joined field by field")
    if declared.choices or "eqrel" in declared.qualifiers:
        other = "a choice domain" if declared.choices else "eqrel"
        what = f"relation {declared.name!r} has a column of a lattice and {other}"
        raise wrong(declared.at, what)
    (value,) = places
    column = declared.columns[value]
    if column.type not in lattices:
        hint = (
            suggest_name(column.type, lattices) or f"declare it: .lattice {column.type}<> {{...}}"
        )
        raise wrong(column.at, f"type {column.type!r} has no lattice", hint)
    of = lattices[column.type]
    key = tuple(place for place in range(len(declared.columns)) if place != value)
    functor = rules.Functor(f"@{of.lub}", (), of.at)
    return JoinedColumn(key, value, functor, "" if of.bottom is None else of.name + BOTTOM)


def with_bottoms(statements: Sequence[rules.Statement]) -> list[rules.Statement]:
    """Return the statements with a relation for each bottom, and with greatest lower bounds."""
    lattices = lattices_of(statements)
    if not lattices:
        return [*statements]
    declared = [each for each in statements if isinstance(each, rules.Declaration)]
    joined = {each.name: joined_column(each, lattices) for each in declared}
    types = {
        each.name: each.columns[column.value].type
        for each in declared
        if (column := joined[each.name]) is not None
    }
    found: list[rules.Statement] = []
    for each in statements:
        if isinstance(each, rules.LatticeDeclaration):
            found += _bottom(each)
        elif isinstance(each, rules.Clause):
            if each.is_subsumptive and joined.get(each.heads[0].name) is not None:
                what = f"relation {each.heads[0].name!r} has a column of a lattice"
                raise wrong(each.at, what, "it has one row of each key, which no other dominates")
            bodies = tuple(_with_bounds(body, joined, types, lattices) for body in each.bodies)
            found.append(replace(each, bodies=bodies))
        else:
            found.append(each)
    return found


def _bottom(of: rules.LatticeDeclaration) -> list[rules.Statement]:
    """Return the relation of a bottom, and its fact."""
    if of.bottom is None:
        return []
    name = of.name + BOTTOM
    column = rules.DeclaredColumn("value", of.name, of.at)
    fact = rules.Clause((rules.Atom(name, (of.bottom,), of.at, of.at),), ((),), of.at)
    return [rules.Declaration(name, (column,), frozenset(), of.at), fact]


Joined = Mapping[str, JoinedColumn | None]


def _with_bounds(
    body: tuple[rules.Literal, ...], joined: Joined, types: Mapping[str, str], lattices: Lattices
) -> tuple[rules.Literal, ...]:
    """Return a body in which each variable is bound by one column of a lattice at most."""
    seen: dict[str, list[rules.Variable]] = {}
    kinds: dict[str, str] = {}
    made: list[rules.Literal] = []
    for literal in body:
        column = joined.get(literal.name) if isinstance(literal, rules.Atom) else None
        if isinstance(literal, rules.Atom) and column is not None:
            if len(literal.arguments) != len(column.key) + 1:
                return body  # which is refused when its atoms are checked
            read = literal.arguments[column.value]
            if isinstance(read, rules.Variable):
                some = seen.setdefault(read.name, [])
                some.append(rules.Variable(f"{read.name} {len(some) + 1}", read.at))
                kinds[read.name] = types[literal.name]
                literal = _replaced(literal, column.value, some[-1])
            elif not isinstance(read, rules.Unnamed):
                what = "a column of a lattice is read by a variable"
                raise wrong(read.at, what, "compare it: the value may be larger than it is now")
        made.append(literal)
    if all(len(some) < 2 for some in seen.values()):
        return body
    for name, some in seen.items():
        made += _bound(rules.Variable(name, some[0].at), some, lattices[kinds[name]])
    return tuple(made)


def _replaced(atom: rules.Atom, place: int, variable: rules.Variable) -> rules.Atom:
    """Return an atom with another variable at a place."""
    arguments = (*atom.arguments[:place], variable, *atom.arguments[place + 1 :])
    return replace(atom, arguments=arguments)


def _bound(
    variable: rules.Variable, some: Sequence[rules.Variable], of: rules.LatticeDeclaration
) -> list[rules.Literal]:
    """Return the tests that a variable is the greatest lower bound of others, not the bottom."""
    at: Span = variable.at
    if len(some) == 1:
        return [rules.Comparison("=", variable, some[0], at)]
    if not of.glb:
        what = f"variable {variable.name!r} is bound by several columns of a lattice without Glb"
        raise wrong(some[1].at, what, "name them differently, or declare Glb")
    value: rules.Term = some[0]
    for each in some[1:]:
        value = rules.Functor(f"@{of.glb}", (value, each), at)
    made: list[rules.Literal] = [rules.Comparison("=", variable, value, at)]
    if of.bottom is not None:
        made.append(rules.Comparison("!=", variable, of.bottom, at))
    return made

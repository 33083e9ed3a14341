"""Write out relations that are `inline`: what their rules say in the place of each atom of them.

    twice(x, y) :- y = 2 * x.        .decl twice(x: number, y: number) inline
    a(y) :- b(x), twice(x, y).       ->       a(y) :- b(x), x = x', y = y', y' = 2 * x'.

Such a relation may be infinite by itself. Where it is negated or aggregated it is computed like any
other, and its variables have to be bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reactive.languages.datalog.places import wrong
from reactive.languages.datalog.rules import Names
from reactive.languages.datalog.syntax import (
    Atom,
    Clause,
    Comparison,
    Literal,
    Unnamed,
    renamed,
    variables,
)

Bodies = tuple[tuple[Literal, ...], ...]
MOST = 4096
"""Bodies of one clause."""


def inlined(clauses: Sequence[Clause], inline: frozenset[str], names: Names) -> list[Clause]:
    """The clauses in which atoms of some relations are written out."""
    if not inline:
        return list(clauses)
    own = {name: [(h, c) for c in clauses for h in c.heads if h.name == name] for name in inline}
    writer = _Writer(own, names)
    return [replace(clause, bodies=writer.bodies(clause.bodies)) for clause in clauses]


class _Writer:
    def __init__(self, own: Mapping[str, list[tuple[Atom, Clause]]], names: Names) -> None:
        self._own = own
        self._names = names

    def bodies(self, bodies: Bodies, inside: tuple[str, ...] = ()) -> Bodies:
        found: list[tuple[Literal, ...]] = []
        for body in bodies:
            found += self._body(body, inside)
        return tuple(found)

    def _body(
        self, body: tuple[Literal, ...], inside: tuple[str, ...]
    ) -> list[tuple[Literal, ...]]:
        found: list[tuple[Literal, ...]] = [()]
        for literal in body:
            ways = self._ways(literal, inside)
            found = [(*before, *way) for before in found for way in ways]
            if len(found) > MOST:
                raise wrong(literal.at, f"{len(found)} alternatives, of relations that are inline")
        return found

    def _ways(self, literal: Literal, inside: tuple[str, ...]) -> Bodies:
        if not isinstance(literal, Atom) or literal.name not in self._own:
            return ((literal,),)
        if literal.name in inside:
            what = f"relation {literal.name!r} is inline, and depends on itself"
            raise wrong(literal.at, what, "leave out inline")
        found: list[tuple[Literal, ...]] = []
        for head, clause in self._own[literal.name]:
            for body in clause.bodies:
                own = variables(head, *body)
                new = {name: self._names.new(name) for name in own}
                equations = tuple(
                    Comparison("=", argument, renamed(of, new), argument.at)
                    for argument, of in zip(literal.arguments, head.arguments, strict=True)
                    if not isinstance(argument, Unnamed)
                )
                goals = (*equations, *(renamed(each, new) for each in body))
                found += self._body(goals, (*inside, literal.name))
        return tuple(found)

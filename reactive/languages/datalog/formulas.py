"""Read the body of a clause: literals, with `,` for and, `;` for or, `!` for not.

What is read is brought into alternatives at once: each a list of literals that must all hold.

    a(x), (b(x) ; !c(x))        a(x), b(x)    or    a(x), !c(x)
"""

from __future__ import annotations

from itertools import chain, product
from math import prod

from optimizer.errors import PlanError
from reactive.languages.datalog.cursor import Cursor
from reactive.languages.datalog.functors import REFUSED, TESTS, WORDS
from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.syntax import Atom, Comparison, Literal, Negation, Truth
from reactive.languages.datalog.terms import Terms

Bodies = tuple[tuple[Literal, ...], ...]
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
OPPOSITE = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    **{name: f"!{name}" for name in TESTS},
    **{f"!{name}": name for name in TESTS},
}
NO_RELATIONS = WORDS | REFUSED.keys()
"""Names that are those of functions, also where a literal begins."""
MOST = 10_000
"""Alternatives of one body."""


class TooMany(PlanError):
    """Error about a body that is understood, and is too large: nothing else is tried."""


class Formulas:
    """Reads bodies and their literals."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._terms = Terms(cursor, self.bodies, self.atom)

    def bodies(self) -> Bodies:
        """The alternatives of a body."""
        start = self._cursor.token.at
        found = tuple(chain.from_iterable(self._cursor.several(self._all, ";")))
        self._check_number(len(found), start)
        return found

    def _all(self) -> Bodies:
        """Of parts that must all hold: an alternative for each choice of one of each part."""
        start = self._cursor.token.at
        parts = self._cursor.several(self._part)
        self._check_number(prod(map(len, parts)), start)
        return tuple(tuple(chain.from_iterable(choice)) for choice in product(*parts))

    def _check_number(self, count: int, start: Span) -> None:
        if count > MOST:
            error = wrong(
                self._cursor.since(start),
                f"{count} alternatives are more than {MOST}",
                "write a relation for parts of it",
            )
            raise TooMany(str(error))

    def _part(self) -> Bodies:
        cursor = self._cursor
        if cursor.take("!"):
            start = cursor.token.at
            bodies = self._part()
            self._check_number(prod(map(len, bodies)), start)
            return _negated(bodies)
        if cursor.sees("("):
            found = cursor.attempt(self._bracketed)
            if found is not None:
                return found
        return ((self._literal(),),)

    def _bracketed(self) -> Bodies | None:
        cursor = self._cursor
        cursor.need("(")
        found = self.bodies()
        cursor.need(")")
        is_term = cursor.sees(*SIGNS, "+", "-", "*", "/", "%", "^")
        return None if is_term else found

    def _literal(self) -> Literal:
        cursor, token = self._cursor, self._cursor.token
        if token.kind == "name":
            if token.text in ("true", "false") and not cursor.follows("("):
                return Truth(cursor.read().text == "true", token.at)
            if token.text in TESTS and cursor.follows("("):
                return self._test()
            if token.text not in NO_RELATIONS and (cursor.follows("(") or cursor.is_dotted()):
                return self.atom()
        left = self._terms.term()
        if not cursor.sees(*SIGNS):
            raise wrong(
                cursor.token.at,
                f"a comparison is missing before {cursor.token}",
                f"{left.at.words()} by itself is no condition",
            )
        sign = cursor.read().text
        right = self._terms.term()
        return Comparison(sign, left, right, left.at.to(right.at))

    def _test(self) -> Literal:
        name = self._cursor.read()
        arguments = self._cursor.within("(", self._terms.term, ")")
        at = self._cursor.since(name.at)
        if len(arguments) != 2:
            raise wrong(at, f"{name.text} takes 2 arguments, not {len(arguments)}")
        left, right = arguments
        return Comparison(name.text, left, right, at)

    def relation(self) -> str:
        """The name of a relation, which may be one of a component."""
        cursor = self._cursor
        name = cursor.name("the name of a relation")
        while cursor.sees(".") and cursor.touches():
            cursor.read()
            name = f"{name}.{cursor.name('the name of a relation')}"
        return name

    def atom(self) -> Atom:
        """A row of a relation."""
        start = self._cursor.token.at
        name = self.relation()
        name_at: Span = self._cursor.since(start)
        if not self._cursor.sees("("):
            raise wrong(self._cursor.token.at, f"'(' is missing after the relation {name!r}")
        arguments = tuple(self._cursor.within("(", self._terms.term, ")"))
        return Atom(name, arguments, self._cursor.since(start), name_at)


def _negated(bodies: Bodies) -> Bodies:
    """The alternatives of not any of some: of each, one literal that does not hold."""
    opposites = [tuple((_opposite(literal),) for literal in body) for body in bodies]
    return tuple(tuple(chain.from_iterable(choice)) for choice in product(*opposites))


def _opposite(literal: Literal) -> Literal:
    match literal:
        case Atom():
            return Negation(literal, literal.at)
        case Negation(atom):
            return atom
        case Truth(value):
            return Truth(not value, literal.at)
        case Comparison(sign, left, right):
            return Comparison(OPPOSITE[sign], left, right, literal.at)

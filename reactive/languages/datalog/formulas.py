"""Parser of terms and of bodies of clauses.

Read terms: variables, constants, records, functors with their precedence, aggregates.

lor  <  lxor  <  land  <  bor  <  bxor  <  band  <  shifts  <  + -  <  * / %  <  ^  <  - bnot lnot

Read the body of a clause: literals, with `,` for and, `;` for or, `!` for not.

The parser returns alternatives, each a list of literals that must all hold.

    a(x), (b(x) ; !c(x))        a(x), b(x)    or    a(x), !c(x)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, product
from math import prod
from typing import Any

from optimizer.errors import PlanError
from reactive.languages.datalog import rules
from reactive.languages.datalog.functors import MATHEMATICAL, SIGNATURES, TESTS, WORDS
from reactive.languages.datalog.tokens import (
    Cursor,
    Span,
    Token,
    suggest_name,
    unescape_text,
    wrong,
)

Bodies = tuple[tuple[rules.Literal, ...], ...]


LEVELS: tuple[tuple[str, ...], ...] = (
    *(("lor",), ("lxor",), ("land",), ("bor",), ("bxor",), ("band",)),
    *(("bshl", "bshr", "bshru"), ("+", "-"), ("*", "/", "%")),
)
PRECEDENCE = {name: level for level, names in enumerate(LEVELS) for name in names}
AGGREGATES = ("count", "sum", "mean", "min", "max")
COUNTERS = frozenset({"__ITERATION__", "recursive_iteration_cnt"})
"""Names of the number of the round of a recursion."""


class Terms:
    """Parser of terms; `body` parses the braces of an aggregate, `atom` one body without braces."""

    def __init__(
        self, cursor: Cursor, body: Callable[[], Bodies], atom: Callable[[], rules.Literal]
    ) -> None:
        self._cursor = cursor
        self._body = body
        self._atom = atom

    def term(self, level: int = 0) -> rules.Term:
        """Read a term; its functors outside brackets bind at least as tightly as `level`."""
        found = self._power()
        while (own := self._level()) >= level:
            name = self._cursor.read().text
            right = self.term(own + 1)
            found = rules.Functor(name, (found, right), found.at.to(right.at))
        return found

    def _level(self) -> int:
        """Return the level of the operator that the next token is; -1 if it is none."""
        token = self._cursor.token
        return PRECEDENCE.get(token.text, -1) if token.kind != "text" else -1

    def _power(self) -> rules.Term:
        """Read a term with `^`, which groups from the right."""
        found = self._read_signed()
        if self._cursor.take("^"):
            right = self._power()
            return rules.Functor("^", (found, right), found.at.to(right.at))
        return found

    def _read_signed(self) -> rules.Term:
        """Read a term with signs before it; the minus of a number becomes part of it."""
        cursor = self._cursor
        if not cursor.sees("-", "bnot", "lnot"):
            return self._simple()
        sign = cursor.read()
        of = self._power() if sign.text == "-" else self._read_signed()
        at = sign.at.to(of.at)
        if sign.text == "-" and isinstance(of, rules.Number):
            return rules.Number(-of.value, of.is_unsigned, at)
        return rules.Functor(sign.text, (of,), at)

    def _simple(self) -> rules.Term:
        """Read a term without operators around it; raises if there is none."""
        cursor, token = self._cursor, self._cursor.token
        match token.kind:
            case "number":
                return self._number()
            case "float":
                return rules.Number(float(cursor.read().text), False, token.at)
            case "text":
                return rules.TextTerm(unescape_text(cursor.read().text, token.at), token.at)
            case "name":
                return self._read_named()
        if cursor.take("("):
            found = self.term()
            cursor.need(")")
            return found
        if cursor.sees("["):
            return rules.RecordTerm(
                tuple(cursor.read_list("[", self.term, "]")), cursor.since(token.at)
            )
        if cursor.take("$"):
            return self._branch(token.at)
        if cursor.take("@"):
            name = f"@{cursor.name('the name of a functor')}"
            arguments = tuple(cursor.read_list("(", self.term, ")"))
            return rules.Functor(name, arguments, cursor.since(token.at))
        raise wrong(token.at, f"a term is missing before {token}")

    def _number(self) -> rules.Term:
        """Read an integer: decimal, hexadecimal or binary, unsigned if `u` follows."""
        token = self._cursor.read()
        digits = token.text.rstrip("u")
        if "." in digits:
            return rules.Number(_address(digits, token.at), False, token.at)
        try:
            value = int(digits, 0 if digits[:2].lower() in ("0x", "0b") else 10)
        except ValueError:
            raise wrong(token.at, f"{token.text:.40} is no number") from None
        return rules.Number(value, token.text.endswith("u"), token.at)

    def _read_named(self) -> rules.Term:
        """Read what a name begins: a variable, `_`, `nil`, an aggregate, a functor or a cast."""
        cursor, token = self._cursor, self._cursor.read()
        name = token.text
        if name == "_":
            return rules.Unnamed(token.at)
        if name == "nil":
            return rules.Nil(token.at)
        if name in AGGREGATES and (found := self._aggregate(name, token.at)) is not None:
            return found
        if name in COUNTERS:
            raise _counts_rounds(token)
        if not cursor.sees("("):
            return rules.Variable(name, token.at)
        if name == "as":
            return self._cast(token.at)
        if name not in SIGNATURES:
            raise wrong(token.at, f"there is no functor {name!r}", suggest_name(name, WORDS))
        arguments = tuple(cursor.read_list("(", self.term, ")"))
        if name == "autoinc" and arguments:
            raise wrong(token.at, "autoinc takes no arguments")
        return rules.Functor(name, arguments, cursor.since(token.at))

    def _cast(self, start: Span) -> rules.Term:
        """Read the rest of `as(value, type)`."""
        cursor = self._cursor
        cursor.need("(")
        of = self.term()
        cursor.need(",", "as(value, type)")
        name = cursor.name("a type")
        cursor.need(")")
        return rules.Cast(of, name, cursor.since(start))

    def _branch(self, start: Span) -> rules.Term:
        """Read the rest of a branch of a data type: its name, and items if it has any."""
        name = self._cursor.name("the name of a branch")
        has_items = self._cursor.sees("(")
        items = self._cursor.read_list("(", self.term, ")") if has_items else []
        return rules.Branch(name, tuple(items), self._cursor.since(start))

    def _aggregate(self, name: str, start: Span) -> rules.Term | None:
        """Read the rest of an aggregate, or of `max(a, b)`; None if the name is a variable."""
        cursor = self._cursor
        if name == "count":
            if cursor.token.kind in ("name", "number", "text"):
                raise wrong(cursor.token.at, "count takes no value", "write count : { ... }")
            return self._with_body(name, None, start) if cursor.sees(":") else None
        if name in SIGNATURES and cursor.sees("("):
            functor = cursor.attempt(self._several_arguments)
            if functor is not None:
                return rules.Functor(name, functor, cursor.since(start))
        if cursor.sees(":"):
            raise wrong(cursor.token.at, f"{name} needs a value", f"write {name} x : {{ ... }}")
        target: Any = cursor.attempt(self._target)
        if target is None and cursor.token.kind in ("name", "number", "text"):
            target = self.term()  # raises, and the message says why
        return None if target is None else self._with_body(name, target, start)

    def _several_arguments(self) -> tuple[rules.Term, ...] | None:
        """Read arguments in brackets; None if there is only one, as around a term."""
        found = self._cursor.read_list("(", self.term, ")")
        return tuple(found) if len(found) > 1 else None

    def _target(self) -> rules.Term | None:
        """Read the target of an aggregate; None if no `:` follows."""
        found = self.term()
        return found if self._cursor.sees(":") else None

    def _with_body(self, name: str, target: rules.Term | None, start: Span) -> rules.Term:
        """Read the rest of an aggregate: one atom, or bodies in braces."""
        cursor = self._cursor
        cursor.need(":")
        if cursor.take("{"):
            bodies = self._body()
            cursor.need("}")
        else:
            bodies = ((self._atom(),),)
        return rules.AggregateTerm(name, target, bodies, cursor.since(start))


def _counts_rounds(token: Token) -> Exception:
    """Return the error of a term that counts the rounds of a recursion."""
    what = f"{token.text} is not supported: rounds depend on the order of evaluation"
    return wrong(token.at, what, "give the relation a column that counts: a(x, n + 1) :- a(y, n)")


def _address(text: str, at: Span) -> int:
    """Return the number of an internet address of four bytes; raises for a larger part.

    >>> _address("1.0.0.2", Span("", 0, 0))
    16777218
    """
    found = 0
    for part in map(int, text.split(".")):
        if part > 255:
            raise wrong(at, f"{part} is no byte of an address")
        found = 256 * found + part
    return found


SIGNS = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = ("+", "-", "*", "/", "%", "^")
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
NO_RELATIONS = WORDS.difference(MATHEMATICAL)
"""Names of functions, which cannot begin a literal."""
MOST = 10_000
"""Alternatives of one body."""


class BodyTooLarge(PlanError):
    """Error for a body with too many alternatives; the parser tries no other reading."""


class Formulas:
    """Reads bodies and their literals."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._terms = Terms(cursor, self.bodies, self.atom)

    def one_term(self) -> rules.Term:
        """Read a term."""
        return self._terms.term()

    def bodies(self) -> Bodies:
        """Return the alternatives of a body."""
        start = self._cursor.token.at
        found = tuple(chain.from_iterable(self._cursor.several(self._all, ";")))
        self._check_number(len(found), start)
        return found

    def _all(self) -> Bodies:
        """Return the conjunction of parts: one alternative per choice of their alternatives."""
        start = self._cursor.token.at
        parts = self._cursor.several(self._part)
        self._check_number(prod(map(len, parts)), start)
        return tuple(tuple(chain.from_iterable(choice)) for choice in product(*parts))

    def _check_number(self, count: int, start: Span) -> None:
        """Raise `BodyTooLarge` if a body has too many alternatives."""
        if count > MOST:
            error = wrong(
                self._cursor.since(start),
                f"{count} alternatives are more than {MOST}",
                "write a relation for parts of it",
            )
            raise BodyTooLarge(str(error))

    def _part(self) -> Bodies:
        """Read a literal, a negated part, or bodies in brackets."""
        cursor = self._cursor
        if cursor.take("!"):
            start = cursor.token.at
            bodies = self._part()
            self._check_number(prod(map(len, bodies)), start)
            return _negate_bodies(bodies)
        if cursor.sees("("):
            found = cursor.attempt(self._read_bracketed)
            if found is not None:
                return found
        return ((self._literal(),),)

    def _read_bracketed(self) -> Bodies | None:
        """Read bodies in brackets; None if the brackets turn out to be around a term."""
        cursor = self._cursor
        cursor.need("(")
        found = self.bodies()
        cursor.need(")")
        is_term = cursor.sees(*SIGNS, *OPERATORS)
        return None if is_term else found

    def _literal(self) -> rules.Literal:
        """Read an atom, a truth, a test or a comparison."""
        cursor, token = self._cursor, self._cursor.token
        if token.kind == "name":
            if token.text == "recursive_iteration_cnt" and cursor.follows("("):
                raise _counts_rounds(token)
            if token.text in ("true", "false") and not cursor.follows("("):
                return rules.Truth(cursor.read().text == "true", token.at)
            if token.text in TESTS and cursor.follows("("):
                return self._test()
            if token.text not in NO_RELATIONS and (cursor.follows("(") or cursor.is_dotted()):
                is_either = token.text in MATHEMATICAL
                found = cursor.attempt(self._atom_alone) if is_either else self.atom()
                if found is not None:
                    return found
        left = self._terms.term()
        if not cursor.sees(*SIGNS):
            raise wrong(
                cursor.token.at,
                f"a comparison is missing before {cursor.token}",
                f"{left.at.words()} by itself is no condition",
            )
        sign = cursor.read().text
        right = self._terms.term()
        return rules.Comparison(sign, left, right, left.at.to(right.at))

    def _atom_alone(self) -> rules.Atom | None:
        """Read an atom; None if it turns out to be a functor of a comparison."""
        found = self.atom()
        return None if self._cursor.sees(*SIGNS, *OPERATORS) else found

    def _test(self) -> rules.Literal:
        """Read a test of two arguments, such as `match(a, b)`; refuses another number."""
        name = self._cursor.read()
        arguments = self._cursor.read_list("(", self._terms.term, ")")
        at = self._cursor.since(name.at)
        if len(arguments) != 2:
            raise wrong(at, f"{name.text} takes 2 arguments, not {len(arguments)}")
        left, right = arguments
        return rules.Comparison(name.text, left, right, at)

    def relation(self) -> str:
        """Read the name of a relation, which may be dotted: one of a component."""
        cursor = self._cursor
        name = cursor.name("the name of a relation")
        while cursor.sees(".") and cursor.touches():
            cursor.read()
            name = f"{name}.{cursor.name('the name of a relation')}"
        return name

    def atom(self) -> rules.Atom:
        """Read an atom: the name of a relation, and its arguments."""
        start = self._cursor.token.at
        name = self.relation()
        name_at: Span = self._cursor.since(start)
        if not self._cursor.sees("("):
            raise wrong(self._cursor.token.at, f"'(' is missing after the relation {name!r}")
        arguments = tuple(self._cursor.read_list("(", self._terms.term, ")"))
        return rules.Atom(name, arguments, self._cursor.since(start), name_at)


def _negate_bodies(bodies: Bodies) -> Bodies:
    """Return the bodies in which none of `bodies` holds: each negates a literal of every body."""
    opposites = [tuple((_opposite(literal),) for literal in body) for body in bodies]
    return tuple(tuple(chain.from_iterable(choice)) for choice in product(*opposites))


def _opposite(literal: rules.Literal) -> rules.Literal:
    """Return the negation of a literal."""
    match literal:
        case rules.Atom():
            return rules.Negation(literal, literal.at)
        case rules.Negation(atom):
            return atom
        case rules.Truth(value):
            return rules.Truth(not value, literal.at)
        case rules.Comparison(sign, left, right):
            return rules.Comparison(OPPOSITE[sign], left, right, literal.at)

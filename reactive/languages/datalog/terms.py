"""Read terms: variables, constants, records, functors with their precedence, aggregates.

lor  <  lxor  <  land  <  bor  <  bxor  <  band  <  shifts  <  + -  <  * / %  <  ^  <  - bnot lnot
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive.languages.datalog.cursor import Cursor
from reactive.languages.datalog.functors import REFUSED, SIGNATURES, WORDS
from reactive.languages.datalog.places import Span, near, wrong
from reactive.languages.datalog.syntax import (
    Aggregate,
    Branch,
    Cast,
    Functor,
    Literal,
    Nil,
    Number,
    Record,
    Term,
    Text,
    Unnamed,
    Variable,
)
from reactive.languages.datalog.tokens import unescaped

Bodies = tuple[tuple[Literal, ...], ...]
LEVELS: tuple[tuple[str, ...], ...] = (
    *(("lor",), ("lxor",), ("land",), ("bor",), ("bxor",), ("band",)),
    *(("bshl", "bshr", "bshru"), ("+", "-"), ("*", "/", "%")),
)
AGGREGATES = ("count", "sum", "mean", "min", "max")


class Terms:
    """Reads terms; `body` reads what is in the braces of an aggregate, `atom` one without them."""

    def __init__(
        self, cursor: Cursor, body: Callable[[], Bodies], atom: Callable[[], Literal]
    ) -> None:
        self._cursor = cursor
        self._body = body
        self._atom = atom

    def term(self, level: int = 0) -> Term:
        """A term, whose functors outside brackets are of a level or above."""
        if level == len(LEVELS):
            return self._power()
        found = self.term(level + 1)
        while self._cursor.sees(*LEVELS[level]):
            name = self._cursor.read().text
            right = self.term(level + 1)
            found = Functor(name, (found, right), found.at.to(right.at))
        return found

    def _power(self) -> Term:
        found = self._prefixed()
        if self._cursor.take("^"):
            right = self._power()
            return Functor("^", (found, right), found.at.to(right.at))
        return found

    def _prefixed(self) -> Term:
        cursor = self._cursor
        if not cursor.sees("-", "bnot", "lnot"):
            return self._simple()
        sign = cursor.read()
        of = self._power() if sign.text == "-" else self._prefixed()
        at = sign.at.to(of.at)
        if sign.text == "-" and isinstance(of, Number):
            return Number(-of.value, of.is_unsigned, at)
        return Functor(sign.text, (of,), at)

    def _simple(self) -> Term:
        cursor, token = self._cursor, self._cursor.token
        match token.kind:
            case "number":
                return self._number()
            case "float":
                return Number(float(cursor.read().text), False, token.at)
            case "text":
                return Text(unescaped(cursor.read().text, token.at), token.at)
            case "name":
                return self._named()
        if cursor.take("("):
            found = self.term()
            cursor.need(")")
            return found
        if cursor.sees("["):
            return Record(tuple(cursor.within("[", self.term, "]")), cursor.since(token.at))
        if cursor.take("$"):
            return self._branch(token.at)
        if cursor.sees("@"):
            raise wrong(token.at, "functors of the user are not supported")
        raise wrong(token.at, f"a term is missing before {token}")

    def _number(self) -> Term:
        token = self._cursor.read()
        digits = token.text.rstrip("u")
        try:
            value = int(digits, 0 if digits[:2].lower() in ("0x", "0b") else 10)
        except ValueError:
            raise wrong(token.at, f"{token.text:.40} is no number") from None
        return Number(value, token.text.endswith("u"), token.at)

    def _named(self) -> Term:
        cursor, token = self._cursor, self._cursor.read()
        name = token.text
        if name == "_":
            return Unnamed(token.at)
        if name == "nil":
            return Nil(token.at)
        if name in AGGREGATES and (found := self._aggregate(name, token.at)) is not None:
            return found
        if not cursor.sees("("):
            return Variable(name, token.at)
        if name in REFUSED:
            raise wrong(token.at, f"{name}() is not supported", REFUSED[name])
        if name == "as":
            return self._cast(token.at)
        if name not in SIGNATURES:
            raise wrong(token.at, f"there is no functor {name!r}", near(name, WORDS))
        arguments = tuple(cursor.within("(", self.term, ")"))
        return Functor(name, arguments, cursor.since(token.at))

    def _cast(self, start: Span) -> Term:
        cursor = self._cursor
        cursor.need("(")
        of = self.term()
        cursor.need(",", "as(value, type)")
        name = cursor.name("a type")
        cursor.need(")")
        return Cast(of, name, cursor.since(start))

    def _branch(self, start: Span) -> Term:
        name = self._cursor.name("the name of a branch")
        has_items = self._cursor.sees("(")
        items = self._cursor.within("(", self.term, ")") if has_items else []
        return Branch(name, tuple(items), self._cursor.since(start))

    def _aggregate(self, name: str, start: Span) -> Term | None:
        """An aggregate, if it is one: `max(a, b)` is a functor, and `count` may be a variable."""
        cursor = self._cursor
        if name == "count":
            if cursor.token.kind in ("name", "number", "text"):
                raise wrong(cursor.token.at, "count takes no value", "write count : { ... }")
            return self._with_body(name, None, start) if cursor.sees(":") else None
        if name in SIGNATURES and cursor.sees("("):
            functor = cursor.attempt(self._several_arguments)
            if functor is not None:
                return Functor(name, functor, cursor.since(start))
        if cursor.sees(":"):
            raise wrong(cursor.token.at, f"{name} needs a value", f"write {name} x : {{ ... }}")
        target: Any = cursor.attempt(self._target)
        if target is None and cursor.token.kind in ("name", "number", "text"):
            target = self.term()  # which raises, and says what is wrong with it
        return None if target is None else self._with_body(name, target, start)

    def _several_arguments(self) -> tuple[Term, ...] | None:
        found = self._cursor.within("(", self.term, ")")
        return tuple(found) if len(found) > 1 else None

    def _target(self) -> Term | None:
        found = self.term()
        return found if self._cursor.sees(":") else None

    def _with_body(self, name: str, target: Term | None, start: Span) -> Term:
        cursor = self._cursor
        cursor.need(":")
        if cursor.take("{"):
            bodies = self._body()
            cursor.need("}")
        else:
            bodies = ((self._atom(),),)
        return Aggregate(name, target, bodies, cursor.since(start))

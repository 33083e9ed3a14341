"""A place in the tokens of a text, from which parsers read on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from optimizer.errors import PlanError
from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.tokens import Token, tokens

T = TypeVar("T")


class Cursor:
    """The tokens that are still to be read.

    >>> cursor = Cursor("a, b")
    >>> cursor.several(lambda: cursor.name("a name"))
    ['a', 'b']
    """

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._position = 0

    @property
    def token(self) -> Token:
        """The next one, which is not read."""
        return self._tokens[self._position]

    @property
    def last(self) -> Span:
        """Where the last one that was read stands."""
        return self._tokens[max(0, self._position - 1)].at

    def since(self, start: Span) -> Span:
        """From a place to the last token that was read."""
        return start.to(self.last)

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of some signs or names."""
        return self.token.text in texts and self.token.kind != "text"

    def follows(self, text: str, ahead: int = 1) -> bool:
        """Whether a token after the next one is a sign."""
        place = min(self._position + ahead, len(self._tokens) - 1)
        return self._tokens[place].text == text and self._tokens[place].kind == "sign"

    def is_dotted(self) -> bool:
        """Whether the next tokens are a name, a point and a name, without spaces."""
        some = self._tokens[self._position : self._position + 3]
        kinds = [token.kind for token in some]
        is_name = kinds == ["name", "sign", "name"] and some[1].text == "."
        return is_name and all(a.at.end == b.at.start for a, b in pairwise(some))

    def touches(self) -> bool:
        """Whether there is no space between the next token and its neighbours."""
        before, here, after = self._tokens[self._position - 1 : self._position + 2]
        return before.at.end == here.at.start and here.at.end == after.at.start

    def read(self) -> Token:
        """The next token, which is read."""
        token = self.token
        self._position += token.kind != "end"
        return token

    def take(self, *texts: str) -> bool:
        """Read the next token if it is one of some."""
        found = self.sees(*texts)
        if found:
            self.read()
        return found

    def need(self, text: str, why: str = "") -> Span:
        """Read a sign or name that must be there."""
        if not self.sees(text):
            what = f"{text!r} is missing before {self.token}"
            raise wrong(self.token.at, what, why)
        return self.read().at

    def name(self, what: str) -> str:
        """Read a name that must be there."""
        if self.token.kind != "name":
            raise wrong(self.token.at, f"{what} is missing before {self.token}")
        return self.read().text

    def several(self, one: Callable[[], T], sign: str = ",") -> list[T]:
        """Read one or more, with a sign between them."""
        found = [one()]
        while self.take(sign):
            found.append(one())
        return found

    def within(self, opening: str, one: Callable[[], T], closing: str) -> list[T]:
        """Read none or more between brackets."""
        start = self.need(opening)
        if self.take(closing):
            return []
        found = self.several(one)
        if not self.sees(closing):
            what = f"{closing!r} is missing before {self.token}"
            raise wrong(self.token.at, what, f"for the {opening!r} in line {start.line}")
        self.read()
        return found

    def attempt(self, one: Callable[[], T | None]) -> T | None:
        """What is read, or None, and nothing read, if it is something else."""
        position = self._position
        try:
            found = one()
        except PlanError as error:
            if type(error) is not PlanError:
                raise
            found = None
        if found is None:
            self._position = position
        return found

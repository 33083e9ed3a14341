"""Tokens of the text of a program, their places, and a cursor over them.

Cut the text of a program into tokens: names, numbers, texts, signs, and directives.

A directive is one token, such as `.decl`, so that the point that ends a clause is another.

Where something stands in the text of a program, and errors that show it.

PlanError: line 3, column 15: there is no relation 'pth'
  path(x, z) :- pth(x, y), edge(y, z).
                ^^^
  did you mean 'path'?
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from itertools import pairwise
from typing import Literal, TypeVar

from optimizer.errors import PlanError
from optimizer.record import record

Kind = Literal["name", "number", "float", "text", "sign", "directive", "macro", "mark", "end"]
DIRECTIVES = (
    *("decl", "type", "input", "output", "printsize", "comp", "init", "override", "functor"),
    *("pragma", "plan", "limitsize", "include", "once", "number_type", "symbol_type", "lattice"),
    "debug_delta",
)

_PATTERN = rf"""
    (?P<space>\s+ | \\\n | //[^\n]* | /\*.*?\*/)
  | (?P<float>\d+\.\d+(?!\d*\.\d)(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+)
  | (?P<number>\d+(?:\.\d+){{3}} | (?:0[xX][0-9a-fA-F]+ | 0[bB][01]+ | \d+)u?)
  | (?P<name>[A-Za-z_?][\w?]*)
  | (?P<text>"(?:\\.|[^"\\\n])*")
  | (?P<directive>\.(?:{"|".join(DIRECTIVES)})\b)
  | (?P<sign>:-|<:|!=|<=|>=|<-|[-+*/%^(){{}}\[\],.:;=<>!|$@])
"""
_TOKEN = re.compile(_PATTERN + r"| (?P<macro>\#(?:\\\n|[^\n])*)", re.VERBOSE | re.DOTALL)
_MACRO_TOKEN = re.compile(_PATTERN + r"| (?P<mark>\#\#?)", re.VERBOSE | re.DOTALL)


@record
class Token:
    """A token of a text: its kind, its characters, and their place."""

    kind: Kind
    text: str
    at: Span

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)


def tokens(text: str, name: str = "") -> list[Token]:
    """Return all tokens, and one for the end; `name` is the file that errors show.

    >>> [token.text for token in tokens("a(x) :- b(x, 1.5). // all")]
    ['a', '(', 'x', ')', ':-', 'b', '(', 'x', ',', '1.5', ')', '.', '']
    """
    end = Token("end", "", Span(text, len(text), len(text), name))
    found = list(_scan_tokens(text, name))
    return [*(_without_annotations(found) if "@" in text else found), end]


def _without_annotations(found: list[Token]) -> Iterator[Token]:
    """Yield the tokens outside of annotations: `@[...]` and `@![...]`, which mean nothing here."""
    place = 0
    while place < len(found):
        opening = place + 1 + (found[place].text == "@" and _text_at(found, place + 1) == "!")
        if found[place].text != "@" or _text_at(found, opening) != "[":
            yield found[place]
            place += 1
            continue
        depth, place = 1, opening + 1
        while depth and place < len(found):
            kind, text = found[place].kind, found[place].text
            depth += (kind == "sign") * ((text in ("[", "(", "{")) - (text in ("]", ")", "}")))
            place += 1
        if depth:
            raise wrong(found[opening - 1].at, "this annotation does not end", "close it with ]")


def _text_at(found: list[Token], place: int) -> str:
    return found[place].text if place < len(found) else ""


def macro_tokens(at: Span) -> list[Token]:
    """Return the tokens of a part of a line of the preprocessor; `#` and `##` are signs in it.

    >>> [token.text for token in macro_tokens(Span("a(x) id_##x", 0, 11))]
    ['a', '(', 'x', ')', 'id_', '##', 'x']
    """
    found = _scan_tokens(at.text, at.file, at.start, at.end, _MACRO_TOKEN)
    return [replace(each, kind="sign") if each.kind == "mark" else each for each in found]


def _scan_tokens(
    text: str,
    name: str,
    start: int = 0,
    end: int | None = None,
    pattern: re.Pattern[str] = _TOKEN,
) -> Iterator[Token]:
    """Yield the tokens of a text without spaces and comments; raises at unknown text."""
    position, end = start, len(text) if end is None else end
    while position < end:
        match = pattern.match(text, position, end)
        if match is None:
            raise _unknown(text, position, name)
        kind, position = match.lastgroup, match.end()
        if kind == "macro" and text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip():
            raise _unknown(text, match.start(), name)
        if kind != "space":
            at = Span(text, match.start(), match.end(), name)
            yield Token(kind, match.group(), at)  # type: ignore[arg-type]


def _unknown(text: str, position: int, name: str) -> Exception:
    """Return the error for text that is no token, with a remedy for frequent causes."""
    at = Span(text, position, position + 1, name)
    match text[position]:
        case '"':
            return wrong(at, "this text does not end on its line", 'close it with "')
        case "/" if text.startswith("/*", position):
            return wrong(at, "this comment does not end", "close it with */")
        case "#":
            return wrong(at, "'#' begins a line of the preprocessor", "put it at the beginning")
        case character:
            return wrong(at, f"{character!r} is no part of the language")


def unescape_text(text: str, at: Span) -> str:
    r"""Return the value of a text in quotes; raises for an unknown escape.

    >>> unescape_text(r'"a\tb"', Span("", 0, 0))
    'a\tb'
    """

    def meant(found: re.Match[str]) -> str:
        if found.group(1) not in _ESCAPES:
            raise wrong(at, f"unknown escape {found.group()!r}", suggest_name("", (), ""))
        return _ESCAPES[found.group(1)]

    return re.sub(r"\\(.)", meant, text[1:-1])


_ESCAPES = {
    **dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)),
    **{sign: sign for sign in "\"\\'"},
}


# A cursor over the tokens of a text, which parsers advance.

T = TypeVar("T")


class Cursor:
    """The tokens that are still to be read.

    >>> cursor = Cursor("a, b")
    >>> cursor.several(lambda: cursor.name("a name"))
    ['a', 'b']
    """

    def __init__(self, text: str | list[Token]) -> None:
        self._tokens = tokens(text) if isinstance(text, str) else text
        self._position = 0

    @property
    def token(self) -> Token:
        """The next one, which is not read."""
        return self._tokens[self._position]

    @property
    def last(self) -> Span:
        """Return the place of the last token that was read."""
        return self._tokens[max(0, self._position - 1)].at

    def since(self, start: Span) -> Span:
        """Return the span from a place to the last token that was read."""
        return start.to(self.last)

    def sees(self, *texts: str) -> bool:
        """Return True if the next token is one of some signs or names."""
        token = self._tokens[self._position]
        return token.text in texts and token.kind != "text"

    def follows(self, text: str, ahead: int = 1) -> bool:
        """Return True if a token after the next one is a sign."""
        place = min(self._position + ahead, len(self._tokens) - 1)
        return self._tokens[place].text == text and self._tokens[place].kind == "sign"

    def is_dotted(self) -> bool:
        """Return True if the next tokens are a name, a point and a name, without spaces."""
        some = self._tokens[self._position : self._position + 3]
        kinds = [token.kind for token in some]
        is_name = kinds == ["name", "sign", "name"] and some[1].text == "."
        return is_name and all(a.at.end == b.at.start for a, b in pairwise(some))

    def touches(self) -> bool:
        """Return True if there is no space between the next token and its neighbours."""
        before, here, after = self._tokens[self._position - 1 : self._position + 2]
        return before.at.end == here.at.start and here.at.end == after.at.start

    def read(self) -> Token:
        """Return the next token, which is read."""
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
        """Read a sign or name, and return its place; raises if another token is there."""
        if not self.sees(text):
            what = f"{text!r} is missing before {self.token}"
            raise wrong(self.token.at, what, why)
        return self.read().at

    def name(self, what: str) -> str:
        """Read a name, and return it; raises if another token is there."""
        if self.token.kind != "name":
            raise wrong(self.token.at, f"{what} is missing before {self.token}")
        return self.read().text

    def several(self, one: Callable[[], T], sign: str = ",") -> list[T]:
        """Read one or more, with a sign between them."""
        found = [one()]
        while self.take(sign):
            found.append(one())
        return found

    def read_list(self, opening: str, one: Callable[[], T], closing: str) -> list[T]:
        """Read a list in brackets, which may be empty; raises if the bracket stays open."""
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
        """Return the parsed part; None, with nothing consumed, if the text is something else."""
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


BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[()\[\]{}]', re.DOTALL)
"""A bracket; or a text or comment, whose brackets do not count."""
WIDEST = 100
"""Characters of a line that an error shows."""


@record
class Span:
    """Some characters of a text, from `start` to `end`."""

    text: str = field(repr=False)
    start: int
    end: int
    file: str = ""
    """The path of the file, if the text is one."""

    def to(self, other: Span) -> Span:
        """Return the span from the beginning of this one to the end of another."""
        if other.text is not self.text:
            return self
        return Span(self.text, self.start, max(self.end, other.end), self.file)

    @property
    def line(self) -> int:
        """The number of the line, from 1 on."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The number of the column, from 1 on."""
        return self.start - self.text.rfind("\n", 0, self.start)

    def words(self) -> str:
        """Return the characters themselves."""
        return self.text[self.start : self.end]


def wrong(at: Span, what: str, remedy: str = "") -> PlanError:
    """Return the error for a place in a text, with its line, what is wrong, and a remedy.

    >>> print(wrong(Span("a(x) :- b(y).", 8, 9), "there is no relation 'b'", "declare it"))
    line 1, column 9: there is no relation 'b'
      a(x) :- b(y).
              ^
      declare it
    """
    first = at.start - at.column + 1
    line = at.text[first:].partition("\n")[0].replace("\t", " ").rstrip()
    begin = max(len(line) - len(line.lstrip()), at.column - WIDEST)
    width = max(1, min(at.end, first + len(line), at.start + WIDEST) - at.start)
    file = f"{at.file}, " if at.file else ""
    shown = [
        f"{file}line {at.line}, column {at.column}: {what}",
        f"  {line[begin : begin + 2 * WIDEST]}",
        f"  {' ' * (at.column - 1 - begin)}{'^' * width}",
        f"  {remedy}" if remedy else "",
    ]
    return PlanError("\n".join(part for part in shown if part))


def too_deep(text: str) -> PlanError:
    """Return the error for a text that is nested too deeply, at its deepest place."""
    depth, most, place = 0, 0, 0
    for found in BRACKET.finditer(text):
        depth += 1 if found[0] in "([{" else -1 if found[0] in ")]}" else 0
        if depth > most:
            most, place = depth, found.start()
    remedy = "about 1,000 levels, or 10,000 terms of one operator, can be read; write it in parts"
    return wrong(Span(text, place, place + 1), "the program is nested too deeply", remedy)


def suggest_name(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a suggestion of the closest known name; else `otherwise` and all known names.

    >>> suggest_name("pth", ["path", "edge"]), suggest_name("x", ["path", "edge"], "there are")
    ("did you mean 'path'?", 'there are path, edge')
    """
    from difflib import get_close_matches  # takes longer than most modules here

    every = list(dict.fromkeys(known))
    found = get_close_matches(name, [each for each in every if each != name], n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    return f"{otherwise} {', '.join(every)}" if otherwise and every else ""

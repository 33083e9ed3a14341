"""Cut the text of a program into tokens: names, numbers, texts, signs, and directives.

A directive is one token, such as `.decl`, so that the point that ends a clause is another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from optimizer.record import record
from reactive.languages.datalog.places import Span, near, wrong

Kind = Literal["name", "number", "float", "text", "sign", "directive", "end"]
DIRECTIVES = (
    *("decl", "type", "input", "output", "printsize", "comp", "init", "override", "functor"),
    *("pragma", "plan", "limitsize", "include", "once", "number_type", "symbol_type", "lattice"),
)

_TOKEN = re.compile(
    rf"""
    (?P<space>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+)
  | (?P<number>(?:0[xX][0-9a-fA-F]+ | 0[bB][01]+ | \d+)u?)
  | (?P<name>[A-Za-z_?][\w?]*)
  | (?P<text>"(?:\\.|[^"\\\n])*")
  | (?P<directive>\.(?:{"|".join(DIRECTIVES)})\b)
  | (?P<sign>:-|<:|!=|<=|>=|<-|[-+*/%^(){{}}\[\],.:;=<>!|$@])
    """,
    re.VERBOSE | re.DOTALL,
)


@record
class Token:
    """Some characters that belong together."""

    kind: Kind
    text: str
    at: Span

    def __str__(self) -> str:
        return "the end of the text" if self.kind == "end" else repr(self.text)


def tokens(text: str) -> list[Token]:
    """All tokens, and one for the end.

    >>> [token.text for token in tokens("a(x) :- b(x, 1.5). // all")]
    ['a', '(', 'x', ')', ':-', 'b', '(', 'x', ',', '1.5', ')', '.', '']
    """
    return [*_found(text), Token("end", "", Span(text, len(text), len(text)))]


def _found(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unknown(text, position)
        kind, position = match.lastgroup, match.end()
        if kind != "space":
            yield Token(kind, match.group(), Span(text, match.start(), match.end()))  # type: ignore[arg-type]


def _unknown(text: str, position: int) -> Exception:
    at = Span(text, position, position + 1)
    match text[position]:
        case '"':
            return wrong(at, "this text does not end on its line", 'close it with "')
        case "/" if text.startswith("/*", position):
            return wrong(at, "this comment does not end", "close it with */")
        case "#":
            return wrong(
                at,
                "a line of the C preprocessor",
                "run the preprocessor first, and give what it makes",
            )
        case character:
            return wrong(at, f"{character!r} is no part of the language")


def unescaped(text: str, at: Span) -> str:
    r"""What a text in quotes stands for.

    >>> unescaped(r'"a\tb"', Span("", 0, 0))
    'a\tb'
    """

    def meant(found: re.Match[str]) -> str:
        if found.group(1) not in _ESCAPES:
            raise wrong(at, f"unknown escape {found.group()!r}", near("", (), ""))
        return _ESCAPES[found.group(1)]

    return re.sub(r"\\(.)", meant, text[1:-1])


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'"}

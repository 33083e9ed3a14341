"""One edit of a parser: what it did, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from examples.parser.grammar import Grammar
from examples.parser.parser import Parser
from examples.parser.rows import Edge
from examples.parser.scratch import parse
from examples.parser.text import Text
from reactive import Delta


@dataclass(frozen=True, slots=True)
class Step:
    """One commit: the deleted and inserted edges, the work, and the state after it.

    `touched` is the number of rows that operators touched to find edges.
    """

    title: str
    removed: frozenset[Edge]
    added: frozenset[Edge]
    edges: int
    accepted: bool
    seconds: float
    touched: int


class NotVerifiedError(Exception):
    """The parser has other edges than a parse from scratch."""


def do(parser: Parser, title: str, edit: Callable[[], object]) -> Step:
    """Make an edit."""
    deltas: list[Delta[Edge]] = []
    with parser.edges.subscribe(deltas.append):
        start = perf_counter()
        edit()
        seconds = perf_counter() - start
    return Step(
        title,
        frozenset(edge for delta in deltas for edge in delta.removed),
        frozenset(edge for delta in deltas for edge in delta.added),
        len(parser.edges),
        parser.is_accepted,
        seconds,
        parser.work(),
    )


def verify(parser: Parser, text: Text, grammar: Grammar) -> float:
    """Parse the text from scratch; gives the seconds that this took.

    Raises
    ------
    NotVerifiedError: the edges are not those of the parser.
    """
    start = perf_counter()
    expected = parse(grammar, text.tokens())
    seconds = perf_counter() - start
    different = expected ^ set(parser.edges)
    if different:
        shown = ", ".join(map(str, sorted(different)[:5]))
        raise NotVerifiedError(f"{len(different)} edges differ from a parse from scratch: {shown}")
    return seconds

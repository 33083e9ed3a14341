"""Parsers of words, and their results, by the numbers of words."""

from __future__ import annotations

from collections.abc import Iterable

from examples.parser.grammar import Grammar
from examples.parser.parser import Parser
from examples.parser.rows import Edge
from examples.parser.text import Text

from .oracles import Span


def made(grammar: Grammar, words: Iterable[str]) -> tuple[Parser, Text]:
    """A parser of these words."""
    text = Text(words)
    return Parser(grammar, text.tokens()), text


def phrases(parser: Parser, text: Text) -> dict[Span, Edge]:
    """The passive edges, by span and category."""
    places = text.places()
    return {(places[e.start], places[e.end], e.category): e for e in parser.edges if not e.needs}

"""A parser that is edited, beside the words and the grammar that it should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from examples.parser.grammar import Grammar
from examples.parser.scratch import parse

from .oracles import enumerated, recognised
from .parsing import made, phrases

MOST_WORDS = 7


class Edited:
    """Edit a parser, and compare it with the oracles."""

    def __init__(self, grammar: Grammar, words: Sequence[str]) -> None:
        self.grammar = grammar
        self.parser, self.text = made(grammar, words)

    def edit(self, what: str, *of: Any) -> None:
        """One commit; nothing, if it does not apply."""
        tables = self.parser.tables
        match what:
            case "rule":
                rules = _switched(tables.rules, self.grammar.rules, of[0])
                self.grammar = replace(self.grammar, rules=rules)
            case "terminal":
                terminals = _switched(tables.terminals, self.grammar.terminals, of[0])
                self.grammar = replace(self.grammar, terminals=terminals)
            case _:
                self._edit_word(what, *of)

    def _edit_word(self, what: str, at: int, word: str) -> None:
        length = len(self.text.words)
        if what == "insert" and length < MOST_WORDS:
            self.parser.apply(self.text.insert(at % (length + 1), word))
        elif what == "remove" and length:
            self.parser.apply(self.text.remove(at % length))
        elif what == "replace" and length:
            self.parser.apply(self.text.replace(at % length, word))

    def check_edges(self) -> None:
        """Check that phrases equal those of the recogniser, and all edges a parse from scratch."""
        words = self.text.words
        expected = recognised(self.grammar, words)
        assert set(phrases(self.parser, self.text)) == expected
        assert set(self.parser.edges) == parse(self.grammar, self.text.tokens())
        assert self.parser.is_accepted == ((0, len(words), self.grammar.start) in expected)

    def check_trees(self) -> None:
        """Check that the trees of every phrase equal an enumeration, each once."""
        for span, edge in phrases(self.parser, self.text).items():
            found = list(self.parser.trees_of(edge))
            expected = set(enumerated(self.grammar, self.text.words, span))
            assert set(found) == expected, span
            assert len(found) == len(expected), span


def _switched(table: Any, rows: tuple[Any, ...], row: Any) -> tuple[Any, ...]:
    """Insert a row, or delete it if present; return the rows after that."""
    if row in rows:
        table.remove(row)
        return tuple(other for other in rows if other != row)
    table.add(row)
    return (*rows, row)

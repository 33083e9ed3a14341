"""A parser that stays: tables to edit, and views that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from examples.parser.chart import accepted, all_edges, derivations
from examples.parser.grammar import Grammar
from examples.parser.rows import Edge, Token
from examples.parser.tables import Tables
from examples.parser.text import Change
from examples.parser.trees import Tree, trees
from reactive import Collect, Database


class Parser:
    """The tables of a sentence and a grammar, and what can be found in the sentence.

    >>> from examples.parser.grammars.figure import GRAMMAR, SENTENCE
    >>> from examples.parser.text import Text
    >>> parser = Parser(GRAMMAR)
    >>> text = Text(SENTENCE.split())
    >>> parser.tables.sentence.add_all(text.tokens())
    >>> parser.is_accepted, len(parser.edges)
    (True, 39)
    >>> parser.apply(text.remove(3))
    >>> parser.is_accepted
    False
    """

    def __init__(self, grammar: Grammar, sentence: Iterable[Token] = ()) -> None:
        self.db = Database()
        self.tables = Tables(self.db)
        with self.db.transaction():
            self.tables.rules.add_all(grammar.rules)
            self.tables.terminals.add_all(grammar.terminals)
            self.tables.operators.add_all(grammar.operators)
            self.tables.sentence.add_all(sentence)
        edges = all_edges(self.tables)
        self.edges = edges.materialize("edges")
        self.accepted = accepted(self.tables, edges, grammar.start).materialize("accepted")
        self.ways = (
            derivations(self.tables, edges)
            .group_by(lambda d: d.made)
            .aggregate(Collect(lambda d: d))
            .materialize("ways")
        )
        self._touched = 0
        self.work()

    @property
    def is_accepted(self) -> bool:
        """True if the whole sentence is one phrase of the grammar's start category."""
        return len(self.accepted) > 0

    def work(self) -> int:
        """Return the number of rows that operators touched to find edges, since the last call."""
        before, self._touched = self._touched, self.edges.stats().touched
        return self._touched - before

    def apply(self, change: Change) -> None:
        """Edit the sentence, in one transaction."""
        with self.transaction():
            self.tables.sentence.remove_all(change.removed)
            self.tables.sentence.add_all(change.added)

    def transaction(self) -> AbstractContextManager[Any]:
        """Several edits of the tables as one."""
        return self.db.transaction()

    def trees(self) -> Iterator[Tree]:
        """Return the parse trees of the sentence."""
        return (tree for edge in self.accepted for tree in self.trees_of(edge))

    def trees_of(self, edge: Edge) -> Iterator[Tree]:
        """Return the parse trees of a phrase."""
        return trees(edge, self.ways.__getitem__)

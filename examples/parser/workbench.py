"""A long program and its parser, edited word by word, with every time that was measured."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter

from examples.parser.edits import Edit, edits
from examples.parser.grammars.statements import GRAMMAR
from examples.parser.parser import Parser
from examples.parser.programs import program
from examples.parser.rows import Edge, Operator
from examples.parser.steps import Step, do, verify
from examples.parser.text import Text


@dataclass(frozen=True, slots=True)
class Options:
    """The length of the program, the number of edits and of shown ones, and when to verify."""

    tokens: int
    edits: int
    shown: int
    seed: int
    verify: bool


class Workbench:
    """A program and its parser. Each comparison leaves the time of a parse from scratch.

    The garbage collector ignores the objects that exist after loading, because they stay.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.grammar = GRAMMAR
        self.text = Text(program(options.tokens, options.seed))
        start = perf_counter()
        self.parser = Parser(GRAMMAR, self.text.tokens())
        self.loading = perf_counter() - start
        gc.freeze()
        self.scratch: list[float] = []
        self.verify()

    def edits(self) -> Iterator[Edit]:
        """Edits for the text as it is."""
        return islice(edits(self.text, self.grammar, self.options.seed), self.options.edits)

    def edit(self, edit: Edit) -> Step:
        """Edit a word."""
        change = edit.apply(self.text)
        step = do(self.parser, str(edit), lambda: self.parser.apply(change))
        if self.options.verify:
            self.verify()
        return step

    def edit_operators(self, title: str, new: dict[Operator, Operator]) -> Step:
        """Put operators in the place of others, in one transaction."""
        table = self.parser.tables.operators

        def put() -> None:
            with self.parser.transaction():
                for old, other in new.items():
                    table.update(old, other)

        step = do(self.parser, title, put)
        operators = tuple(new.get(operator, operator) for operator in self.grammar.operators)
        self.grammar = replace(self.grammar, operators=operators)
        self.verify()
        return step

    def verify(self) -> None:
        """Compare with a parse from scratch.

        Raises
        ------
        NotVerifiedError: the edges differ.
        """
        self.scratch.append(verify(self.parser, self.text, self.grammar))

    def phrase(self, at: int, categories: Collection[str], longest: int) -> Edge | None:
        """The longest phrase of some categories, up to a length, that has the word at a place."""
        places = self.text.places()
        spans = (
            (places[edge.end] - places[edge.start], edge)
            for edge in self.parser.edges
            if edge.category in categories and not edge.needs
            if places[edge.start] <= at < places[edge.end]
        )
        return max((span for span in spans if span[0] <= longest), default=(0, None))[1]

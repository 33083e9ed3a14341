"""The sentence and the grammar of the paper, with edits of the words and of the grammar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.text import Text as Line

from examples.parser import show
from examples.parser.grammar import rule
from examples.parser.grammars.figure import GRAMMAR, SENTENCE
from examples.parser.parser import Parser
from examples.parser.rows import Edge
from examples.parser.steps import Step, do
from examples.parser.text import Text
from examples.parser.trees import Tree

LONG = rule("AdjP -> Adj AdjP")
CYCLE = rule("NP -> X"), rule("X -> NP")


class Figure:
    """A parser of the sentence, and the edits of it."""

    def __init__(self) -> None:
        self.parser = Parser(GRAMMAR)
        self.text = Text(SENTENCE.split())

    def steps(self) -> Iterator[Step]:
        """Yield all edits; each is applied when it is requested."""
        parser, text, rules = self.parser, self.text, self.parser.tables.rules
        edits: tuple[tuple[str, Callable[[], object]], ...] = (
            (f"the sentence: {SENTENCE}", self._restore),
            ("'ideas' is added at 5", lambda: parser.apply(text.insert(5, "ideas"))),
            ("'sleep' at 3 becomes 'green'", lambda: parser.apply(text.replace(3, "green"))),
            ("'colorless' at 0 is removed", lambda: parser.apply(text.remove(0))),
            ("the first sentence again, in one transaction", self._restore),
            (f"the rule {LONG} is removed", lambda: rules.remove(LONG)),
            ("the rule is back", lambda: rules.add(LONG)),
            ("a cycle is added: NP -> X, X -> NP", lambda: rules.add_all(CYCLE)),
            ("the cycle is removed", lambda: rules.remove_all(CYCLE)),
        )
        return (do(parser, title, edit) for title, edit in edits)

    def _restore(self) -> None:
        self.parser.tables.sentence.replace_all(Text(SENTENCE.split()).tokens())


def run(out: Console) -> None:
    """Show every edit."""
    figure = Figure()
    out.rule("The grammar and the sentence of the paper")
    edges: frozenset[Edge] = frozenset()
    trees: list[Tree] = []
    for number, step in enumerate(figure.steps(), 1):
        before = _found(edges, trees, step.removed, show.GONE)
        edges, trees = frozenset(figure.parser.edges), list(figure.parser.trees())
        after = _found(edges, trees, step.added, show.CAME)
        out.print(show.titled(number, step.title))
        out.print(show.side_by_side(before, after), _line(step, edges), "")


def _found(
    edges: Iterable[Edge], trees: list[Tree], marked: frozenset[Edge], style: str
) -> RenderableType:
    return Group(show.chart(edges, marked, style), "", show.forest(trees))


def _line(step: Step, edges: frozenset[Edge]) -> Line:
    passive = sum(not edge.needs for edge in edges)
    counts = f"   {passive} passive, {len(edges) - passive} active"
    return show.verdict(step).append(counts)

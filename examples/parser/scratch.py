"""Chart parser with an agenda: it parses a text once, from scratch, to the edges of the live one.

It uses no queries. Each edge is taken once, and makes edges with earlier ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from examples.parser.grammar import Grammar
from examples.parser.rows import ANY, Edge, Operator, Token


def parse(grammar: Grammar, sentence: Iterable[Token]) -> set[Edge]:
    """All edges of a sentence."""
    return _Chart(grammar, list(sentence)).run()


class _Chart:
    def __init__(self, grammar: Grammar, sentence: list[Token]) -> None:
        self.rules: defaultdict[str, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
        for head, (first, *rest) in grammar.rules:
            self.rules[first].append((head, tuple(rest)))
        self.infixes: defaultdict[tuple[int, str], list[tuple[int, Operator]]] = defaultdict(list)
        self.waiting: defaultdict[tuple[int, str], list[Edge]] = defaultdict(list)
        self.phrases: defaultdict[tuple[int, str], list[Edge]] = defaultdict(list)
        self.edges: set[Edge] = set()
        self.agenda: list[Edge] = []
        self._read(grammar, sentence)

    def run(self) -> set[Edge]:
        """Take edges from the agenda until there are none."""
        while self.agenda:
            edge = self.agenda.pop()
            if edge.needs:
                self._grow(edge)
            else:
                self._use(edge)
        return self.edges

    def _read(self, grammar: Grammar, sentence: list[Token]) -> None:
        kinds: defaultdict[str, list[str]] = defaultdict(list)
        operators: defaultdict[str, list[Operator]] = defaultdict(list)
        for word, category in grammar.terminals:
            kinds[word].append(category)
        for operator in grammar.operators:
            operators[operator.word].append(operator)
        for start, end, word in sentence:
            for category in kinds[word]:
                self._put(Edge(start, end, category))
            for o in operators[word]:
                if o.side == "prefix":
                    self._put(Edge(start, end, o.category, (o.category,), o.level, o.right))
                else:
                    self.infixes[start, o.category].append((end, o))

    def _put(self, edge: Edge) -> None:
        if edge not in self.edges:
            self.edges.add(edge)
            self.agenda.append(edge)

    def _grow(self, edge: Edge) -> None:
        """Continue an active edge with the phrases that are there."""
        place = edge.end, edge.needs[0]
        self.waiting[place].append(edge)
        for part in self.phrases[place]:
            self._combine(edge, part)

    def _use(self, part: Edge) -> None:
        """Begin rules and operators with a phrase, and continue the edges that wait for it."""
        start, end, category, _, level, _ = part
        self.phrases[start, category].append(part)
        for head, rest in self.rules[category]:
            self._put(Edge(start, end, head, rest))
        for after, o in self.infixes[end, category]:
            if level >= o.left:
                self._put(Edge(start, after, category, (category,), o.level, o.right))
        for edge in self.waiting[start, category]:
            self._combine(edge, part)

    def _combine(self, edge: Edge, part: Edge) -> None:
        if part.level >= edge.least:
            self._put(Edge(edge.start, part.end, edge.category, edge.needs[1:], edge.level, ANY))

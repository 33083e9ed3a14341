"""Expected results of the parser, computed without it: recognition by CYK, and plain enumeration.

Nothing here looks at edges, gaps or the engine. Words are numbered from 0; a span is the number of
its first word and of the one after its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from examples.parser.grammar import Grammar
from examples.parser.rows import Rule
from examples.parser.trees import Tree

Span = tuple[int, int, str]
Pair = tuple[str, str, str]


def recognised(grammar: Grammar, words: Sequence[str]) -> set[Span]:
    """All phrases, by Cocke, Younger and Kasami: spans from short to long, two parts at a time."""
    units, pairs = _binary(grammar.rules)
    table: dict[tuple[int, int], set[str]] = {}
    for at, word in enumerate(words):
        kinds = {category for known, category in grammar.terminals if known == word}
        table[at, at + 1] = _closed(kinds, units)
    for length in range(2, len(words) + 1):
        for start in range(len(words) - length + 1):
            end = start + length
            made = {
                head
                for middle in range(start + 1, end)
                for head, left, right in pairs
                if left in table[start, middle] and right in table[middle, end]
            }
            table[start, end] = _closed(made, units)
    own = _categories(grammar)
    return {(*span, name) for span, names in table.items() for name in names & own}


def enumerated(grammar: Grammar, words: Sequence[str], span: Span) -> Iterator[Tree]:
    """Yield all trees of a phrase, from the top down, except those with a phrase inside itself."""
    return _trees(grammar, words, span, frozenset())


def _trees(
    grammar: Grammar, words: Sequence[str], span: Span, above: frozenset[Span]
) -> Iterator[Tree]:
    if span in above:
        return
    start, end, category = span
    if end == start + 1 and (words[start], category) in grammar.terminals:
        yield Tree(category, (words[start],))
    for head, body in grammar.rules:
        if head == category:
            for parts in _rows(grammar, words, (start, end), body, above | {span}):
                yield Tree(category, parts)


def _rows(
    grammar: Grammar,
    words: Sequence[str],
    place: tuple[int, int],
    body: tuple[str, ...],
    above: frozenset[Span],
) -> Iterator[tuple[Tree, ...]]:
    """Yield sequences of trees for the categories of a body."""
    start, end = place
    if not body:
        if start == end:
            yield ()
        return
    for middle in range(start + 1, end - len(body) + 2):
        for first in _trees(grammar, words, (start, middle, body[0]), above):
            for rest in _rows(grammar, words, (middle, end), body[1:], above):
                yield (first, *rest)


def _binary(rules: Iterable[Rule]) -> tuple[set[tuple[str, str]], set[Pair]]:
    """Rules with one and with two parts; longer ones become several, with names of their own."""
    names, units, pairs = count(), set(), set()
    for head, body in rules:
        left = body[0]
        if len(body) == 1:
            units.add((head, left))
        for at, right in enumerate(body[1:], 2):
            made = head if at == len(body) else f"#{next(names)}"
            pairs.add((made, left, right))
            left = made
    return units, pairs


def _closed(names: set[str], units: set[tuple[str, str]]) -> set[str]:
    found = set(names)
    while more := {head for head, part in units if part in found} - found:
        found |= more
    return found


def _categories(grammar: Grammar) -> set[str]:
    heads = {head for head, _ in grammar.rules}
    return heads | {category for _, category in grammar.terminals}

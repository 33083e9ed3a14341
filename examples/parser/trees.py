"""Parse trees, read from the derivations that the parser keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from examples.parser.rows import Derivation, Edge, Operator, Rule, Token

Ways = Callable[[Edge], Iterable[Derivation]]
Parts = tuple["Tree | str", ...]


class Tree(NamedTuple):
    """A phrase: its category, and its parts, which are trees and words."""

    category: str
    parts: Parts

    def __str__(self) -> str:
        return f"({self.category} {' '.join(map(str, self.parts))})"


def trees(edge: Edge, ways: Ways) -> Iterator[Tree]:
    """Yield all trees of a phrase, except those with a phrase as a part of itself.

    Parameters
    ----------
    edge: a passive edge.
    ways: gives the derivations of an edge.
    """
    return (Tree(edge.category, parts) for parts in _parts(edge, ways, frozenset()))


def _parts(edge: Edge, ways: Ways, above: frozenset[Edge]) -> Iterator[Parts]:
    """Yield the parts of an edge, in all ways; `above` are the phrases that these are parts of."""
    if not edge.needs:
        if edge in above:
            return
        above |= {edge}
    for way in ways(edge):
        match way:
            case Derivation(by=Token(word=word)):
                yield (word,)
            case Derivation(by=Operator(word=word), left=None):
                yield (word,)
            case Derivation(by=Operator(word=word), left=Edge() as operand):
                yield from ((tree, word) for tree in _trees(operand, ways, above))
            case Derivation(by=Rule(), left=Edge() as part):
                yield from ((tree,) for tree in _trees(part, ways, above))
            case Derivation(left=Edge() as before, right=Edge() as part):
                for parts in _parts(before, ways, above):
                    yield from ((*parts, tree) for tree in _trees(part, ways, above))


def _trees(edge: Edge, ways: Ways, above: frozenset[Edge]) -> Iterator[Tree]:
    return (Tree(edge.category, parts) for parts in _parts(edge, ways, above))

"""The rows of the parser: the parts of a text and a grammar, and the phrases of the text.

Words are between *gaps*: a word begins at one gap and ends at the next. Gaps are names, not
numbers: adjacent words share a gap, so that no other word changes when a word is inserted.
"""

from __future__ import annotations

from typing import NamedTuple

ANY, TIGHT = 0, 1000
"""The least level, and the level of phrases without an operator."""


class Token(NamedTuple):
    """A word of the sentence, from gap to gap."""

    start: int
    end: int
    word: str


class Terminal(NamedTuple):
    """A word may be of this category. A word may have several."""

    word: str
    category: str


class Rule(NamedTuple):
    """`head -> body`. The body has at least one category."""

    head: str
    body: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.head} -> {' '.join(self.body)}"


class Operator(NamedTuple):
    """A word that makes an expression of one or two others of its category.

    Parameters
    ----------
    level: how tightly it binds; more is tighter.
    side: which of two equal ones goes first, "left" or "right"; "none" if they cannot stand side
        by side; "prefix" for an operator before its one operand.
    """

    category: str
    word: str
    level: int
    side: str

    @property
    def left(self) -> int:
        """The least level of its left operand."""
        return self.level if self.side == "left" else self.level + 1

    @property
    def right(self) -> int:
        """The least level of its right operand."""
        return self.level if self.side in ("right", "prefix") else self.level + 1


class Infix(NamedTuple):
    """An operator where it stands."""

    token: Token
    operator: Operator


class Edge(NamedTuple):
    """Something found between two gaps.

    A *passive* edge is a whole phrase of its category. An *active* one is the first part of one,
    and tells which categories are still needed after it.

    Parameters
    ----------
    level: how tightly a phrase is bound: the level of its loosest operator outside brackets.
    least: how tightly the next part of an active edge must be bound.

    Without operators every edge has the same two levels.
    """

    start: int
    end: int
    category: str
    needs: tuple[str, ...] = ()
    level: int = TIGHT
    least: int = ANY


class Derivation(NamedTuple):
    """One derivation of an edge.

    | by | left | right | the edge is |
    |---|---|---|---|
    | a token | | | a word of a category |
    | a prefix operator | | | active: the operator, without its operand |
    | a rule | passive | | the first part of the rule |
    | an operator | passive | | active: left operand and operator, without the right one |
    | None | active | passive | the active edge with one more part |
    """

    made: Edge
    by: Token | Rule | Operator | None
    left: Edge | None = None
    right: Edge | None = None

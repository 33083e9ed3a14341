"""Places of a query that may name a field instead of a callable."""

from __future__ import annotations

from random import Random

from tests.random_queries.nodes import Fold, Node
from tests.random_queries.rows import BY_NAME, COUNTED
from tests.random_queries.texts import Texts
from tests.random_queries.values import POOLS

KNOWN = ("where", "equals", "distinct", "semi_join", "anti_join")
"""Operators that leave rows unchanged."""
AS = ("O", "O", "S", "A", "M")
COLUMNS = {"G": ("one", "two"), "O": ("one", "two")} | dict.fromkeys("SAM", ("a", "b"))
OFTEN = 0.25
"""Probability that a field is named, if possible."""


def named_fields(node: Node) -> list[str]:
    """Return the fields that exactly one binding has, if the class of each binding is certain."""
    if not _is_certain(node) or ("G" in node.kinds and len(node.kinds) > 1):
        return []  # the key of a group may be called as a field of another binding
    found = [name for kind in node.kinds for name in BY_NAME.get(str(kind)[0], ())]
    unsure = {n for kind in node.kinds if "?" in str(kind) for n in BY_NAME.get(str(kind)[0], ())}
    return [name for name in found if found.count(name) == 1 and name not in unsure]


def _is_certain(node: Node) -> bool:
    if node.op in KNOWN:
        return _is_certain(node.inputs[0])
    if node.op == "join":
        return all(map(_is_certain, node.inputs))
    return node.op == "table" or (node.op == "group" and node.more[0].column is not None)


class Naming:
    """Draw named fields."""

    def __init__(self, random: Random, mode: str, texts: Texts) -> None:
        self._random = random
        self._mode = mode
        self._texts = texts

    def _chance(self) -> bool:
        return self._random.random() < OFTEN

    def field(self, node: Node, *, counted: bool = False) -> str | None:
        """The name of a field, as a callable of a node; often none."""
        found = [name for name in named_fields(node) if name in COUNTED or not counted]
        if not found or not self._chance():
            return None
        return self._texts.name(repr(self._random.choice(found)))

    def condition(self, left: Node, right: Node) -> dict[str, str] | None:
        """Draw the condition that fields of both sides are equal."""
        mine, others = named_fields(left), named_fields(right)
        if not mine or not others or len(right.kinds) > 1 or not self._chance():
            return None
        if "G" in (*left.kinds, *right.kinds):
            return None
        one, other = self._random.choice(mine), self._random.choice(others)
        if self._random.random() < 0.5:
            names = map(self._texts.name, (repr(one), repr(other)))
            return dict(zip(("left_key", "right_key"), names, strict=True))
        both = sum(name in mine and name in others for name in (one, other))
        if one == other:
            return {"on": self._texts.name(repr(one))}
        return None if both == 2 else {"on": self._texts.name(repr((one, other)))}

    def equals(self, node: Node) -> Node | None:
        """Draw a filter for rows with a field equal to a value."""
        found = named_fields(node)
        values = [place for place, value in enumerate(POOLS[self._mode]) if value == value]
        if not found or not self._chance():
            return None
        more = self._random.choice(found), self._random.choice(values)
        return Node("equals", (node,), node.kinds, more=more)

    def columns(
        self, node: Node, folds: tuple[Fold, ...], *, is_grouped: bool
    ) -> tuple[str, tuple[Fold, ...]]:
        """The kind of the named rows of two aggregates, and these; often no kind.

        None if a key may be called as one of the columns is.
        """
        if len(folds) != 2 or "G" in node.kinds or "O" in node.kinds or not self._chance():
            return "", folds
        kind = "G" if is_grouped else self._random.choice(AS)
        pairs = zip(folds, COLUMNS[kind], strict=True)
        return kind, tuple(fold._replace(column=column) for fold, column in pairs)

"""What a fixpoint is made of: its relations, and the delta rules from rows to rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from reactive.engine.collections.zset import Pair
from reactive.engine.operators.fixpoint.delta_rules import BaseRule, BinaryRule, Negating, UnaryRule
from reactive.engine.operators.fixpoint.recursive_index import RecursiveIndex
from reactive.engine.operators.fixpoint.recursive_relation import RecursiveRelation
from reactive.engine.operators.index_by import IndexBy

AllRows = Callable[[], Sequence[Pair]]
"""All rows of an input."""
Fed = tuple[BaseRule | BinaryRule | Negating, int]
"""A delta rule that reads an input, and its port."""


@dataclass(slots=True)
class Circuit:
    """Relations, delta rules, and what these read."""

    relations: list[RecursiveRelation]
    names: tuple[str, ...]
    max_rounds: int | None
    recursive_indexes: list[RecursiveIndex] = field(default_factory=list)
    fed: list[Fed] = field(default_factory=list)
    left: list[tuple[UnaryRule | BinaryRule | Negating, int]] = field(default_factory=list)
    """Ways that a relation leads into, on the left if they have two sides, and its number."""
    indexes: dict[int, IndexBy] = field(default_factory=dict)
    """The inputs that are indexes, by port."""
    right: list[tuple[BinaryRule, int]] = field(default_factory=list)
    """Ways that a relation leads into on the right."""
    all_rows: dict[int, AllRows] = field(default_factory=dict)
    """What finds all rows of the inputs that base rules read, by port."""

    begins_anew: bool = False
    """Whether all rows of its inputs are at hand."""

    def wiring(self) -> Hashable:
        """Which delta rule leads from which relation to which."""
        delta_rules = (self.fed, self.left, self.right)
        return tuple(tuple((rule.head, source) for rule, source in some) for some in delta_rules)

"""Random recursions: their rows are pairs of existing values, so that they terminate."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.random_queries.nodes import Fold, Node, level
from tests.random_queries.texts import Texts, parameters

if TYPE_CHECKING:
    from tests.random_queries.plans import Plans

ONE = {"x": "P"}
BOTH = {"x": "P", "y": "P"}


class Recursions:
    """Draw fixpoints and iterations; `exact` if the values are all numbers of one kind."""

    def __init__(self, random: Random, plans: Plans, texts: Texts, *, exact: bool) -> None:
        self._random = random
        self._plans = plans
        self._texts = texts
        self._exact = exact

    def fixpoint(self, depth: int) -> Node:
        """One relation that is defined by itself, or one of two that are by each other."""
        if self._exact and self._plans.chance(0.4):
            return self._lattice() if self._plans.chance(0.3) else self._best()
        if self._plans.chance(0.15):
            return self._from_one_place()
        first = self._plans.pair(self._plans.relation(min(depth - 1, 2)), plain=True)
        bases = [first, self._plans.pair(self._plans.relation(0), plain=True)]
        of, count = level(), self._random.choice((1, 1, 1, 2))
        relations = [Node("recursive", (), ("P",), more=(of, place)) for place in range(count)]
        bodies = tuple(self._body(relations, bases, place) for place in range(count))
        return Node("fixpoint", bodies, ("P",), more=(of, self._random.randrange(count)))

    def _from_one_place(self) -> Node:
        """All ways that begin at one place."""
        of, base = level(), self._plans.pair(self._plans.relation(0), plain=True)
        rows = Node("recursive", (), ("P",), more=(of, 0))
        on = self._texts.callable(BOTH, "x[1] == y[0]")
        pairs = Node("join", (rows, base), ("P", "P"), {"on": on})
        row = self._texts.callable(BOTH, "(x[0], y[1])")
        body = Node("union", (base, Node("select", (pairs,), ("P",), {"of": row})), ("P",))
        ways = Node("fixpoint", (body,), ("P",), more=(of, 0))
        test = self._texts.callable(ONE, "x[0] == POOL[0]")
        return Node("where", (ways,), ("P",), {"of": test})

    def _body(self, relations: list[Node], bases: list[Node], place: int) -> Node:
        parts = [self._step(relations, bases) for _ in range(self._random.choice((1, 1, 2)))]
        if place == 0 or self._plans.chance(0.4):
            parts.insert(self._random.randrange(len(parts) + 1), self._random.choice(bases))
        body = parts[0]
        for part in parts[1:]:
            op = self._random.choice(("union", "union", "union_all"))
            body = Node(op, (body, part), ("P",))
        return body

    def _step(self, relations: list[Node], bases: list[Node]) -> Node:
        """Draw the rows that follow from the rows of a recursive relation."""
        made = self._one_step(self._random.choice(relations), relations, bases)
        if self._plans.chance(0.3):
            made = self._plans.where(0, made)
        return Node("distinct", (made,), ("P",)) if self._plans.chance(0.1) else made

    def _one_step(self, node: Node, relations: list[Node], bases: list[Node]) -> Node:
        other = self._random.choice((*bases, *bases, *relations))
        base, texts = self._random.choice(bases), self._texts
        match self._random.randrange(9):
            case 0 | 1 | 2 | 3:
                sides = [node, other]
                self._random.shuffle(sides)
                more = f" and {texts.condition(BOTH)}" if self._plans.chance(0.3) else ""
                on = texts.callable(BOTH, f"{self._equal()}{more}", inverted=True)
                pairs = Node("join", tuple(sides), ("P", "P"), {"on": on})
                row = f"({texts.field(BOTH)}, {texts.field(BOTH)})"
                return Node("select", (pairs,), ("P",), {"of": texts.callable(BOTH, row)})
            case 4:
                row = f"({texts.field(ONE)}, {texts.field(ONE)})"
                return Node("select", (node,), ("P",), {"of": texts.callable(ONE, row)})
            case 5:
                left, right = self._random.choice(((node, other), (base, node)))
                on = texts.callable(BOTH, self._equal())
                return self._turned(Node("semi_join", (left, right), ("P",), {"on": on}))
            case 6:
                on = texts.callable(BOTH, self._equal())
                return self._turned(Node("anti_join", (node, base), ("P",), {"on": on}))
            case 7:
                op = self._random.choice(("intersection", "difference"))
                return Node(op, (self._turned(node), base), ("P",))
        if self._plans.chance(0.6):
            return self._grouped(node, other)
        many = texts.callable(ONE, "[(x[1], x[0]), (x[1], x[1])]")
        return Node("select_many", (node,), ("P",), {"of": many})

    def _grouped(self, node: Node, other: Node) -> Node:
        """The keys of groups of matches that pass a monotone test."""
        texts = self._texts
        sides = [node, other]
        self._random.shuffle(sides)
        on = texts.callable(BOTH, self._equal())
        pairs = Node("join", tuple(sides), ("P", "P"), {"on": on})
        name = self._random.choice(("Count", "CountDistinct", "Max"))
        value = None if name == "Count" else texts.callable(BOTH, f"small({texts.field(BOTH)})")
        key = texts.callable(BOTH, texts.field(BOTH))
        groups = Node("group", (pairs,), ("V", "V"), {"key": key}, (Fold(name, value),))
        sign, limit = self._random.choice((">", ">=")), self._random.randrange(1, 4)
        test = texts.declared_monotone(("x", "y"), f"y {sign} {limit}")
        passing = Node("where", (groups,), ("V", "V"), {"of": test})
        keys = Node("select", (passing,), ("V",), {"of": texts.plain_lambda(("x", "y"), "x")})
        return Node("select", (keys,), ("P",), {"of": texts.callable({"x": "V"}, "(x, x)")})

    def _equal(self) -> str:
        return f"{self._texts.field(ONE)} == {self._texts.field({'y': 'P'})}"

    def _turned(self, node: Node) -> Node:
        return Node("select", (node,), ("P",), {"of": self._texts.callable(ONE, "(x[1], x[0])")})

    def _best(self) -> Node:
        """The least or greatest way to each place, of lengths that are bounded."""
        texts, of, table = self._texts, level(), self._plans.table()
        start, kind = self._plans.relation(1), table.kinds[0]
        names, both = parameters(start.kinds), {"x": "P", "y": kind}
        first = f"(small({texts.field(names)}), small({texts.field(names)}))"
        base = Node("select", (start,), ("P",), {"of": texts.callable(names, first)})
        fields = texts.fields("y", kind)
        far, near = fields[min(1, len(fields) - 1)], fields[0]
        length, largest = f"small({self._random.choice(fields)})", self._plans.chance(0.4)
        worth = f"max(x[1] - {length}, -9)" if largest else f"min(x[1] + {length}, 9)"
        rows = Node("recursive", (), ("P",), more=(of, 0))
        on = texts.callable(both, f"x[0] == small({near})")
        pairs = Node("join", (rows, table), ("P", kind), {"on": on})
        row = texts.callable(both, f"(small({far}), {worth})")
        body = Node("union", (base, Node("select", (pairs,), ("P",), {"of": row})), ("P",))
        moves, texts.moves = texts.moves, False  # which is refused in these two
        calls = {"value": texts.callable(ONE, "x[1]"), "by": texts.callable(ONE, "x[0]")}
        texts.moves = moves
        return Node("best", (body,), ("P",), calls, (of, largest))

    def _lattice(self) -> Node:
        """The small numbers that lead to each one: sets that grow along the rows of a table."""
        texts, of, table = self._texts, level(), self._plans.table()
        start = self._plans.pair(self._plans.relation(1), plain=True)
        first = texts.plain_lambda(("x",), "(small(x[0]), frozenset((small(x[1]),)))")
        base = Node("select", (start,), ("P",), {"of": first})
        edges = self._plans.pair(table, plain=True)
        rows = Node("recursive", (), ("P",), more=(of, 0))
        on = texts.callable(BOTH, "x[0] == small(y[0])")
        pairs = Node("join", (rows, edges), ("P", "P"), {"on": on})
        more = self._random.choice(("", " | frozenset((small(y[0]),))"))
        row = texts.plain_lambda(("x", "y"), f"(small(y[1]), x[1]{more})")
        body = Node("union", (base, Node("select", (pairs,), ("P",), {"of": row})), ("P",))
        calls = {
            "value": texts.plain_lambda(("x",), "x[1]"),
            "by": texts.plain_lambda(("x",), "x[0]"),
        }
        sets = Node("lattice", (body,), ("P",), calls, (of,))
        shown = texts.callable(ONE, "(x[0], len(x[1]))")
        return Node("select", (sets,), ("P",), {"of": shown})

    def iterate(self, depth: int) -> Node:
        """A step that is made a few times, with whatever operators."""
        start = self._plans.pair(self._plans.relation(min(depth - 1, 2)), plain=True)
        other = self._plans.pair(self._plans.relation(0), plain=True)
        of = level()
        rows = Node("recursive", (), ("P",), more=(of, 0))
        body = self._round(rows, other)
        return Node("iterate", (start, body), ("P",), more=(of, self._random.randrange(4)))

    def _round(self, rows: Node, other: Node) -> Node:
        texts = self._texts
        match self._random.randrange(6):
            case 0:
                key, value = texts.callable(ONE, "x[0]"), texts.callable(ONE, "small(x[1])")
                groups = Node("group", (rows,), ("V", "V"), {"key": key}, (Fold("Max", value),))
                turned = texts.callable({"x": "V", "y": "V"}, "(y, x)")
                return Node("select", (groups,), ("P",), {"of": turned})
            case 1:
                return Node("difference_all", (other, rows), ("P",))
            case 2:
                on = texts.callable(BOTH, "x[1] == y[0]")
                pairs = Node("join", (rows, other), ("P", "P"), {"on": on})
                row = texts.callable(BOTH, "(x[0], y[1])")
                ends = Node("select", (pairs,), ("P",), {"of": row})
                return Node("distinct", (ends,), ("P",))
            case 3:
                on = texts.callable(BOTH, "x[0] == y[1]")
                return Node("anti_join", (other, rows), ("P",), {"on": on})
            case 4:
                return Node("union", (self._plans.where(0, rows), other), ("P",))
        return self._plans.pair(rows)

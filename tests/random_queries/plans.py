"""Random trees of operators over some tables; several trees share parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.random_queries.histories import Held
from tests.random_queries.naming import Naming
from tests.random_queries.nodes import NAMES, REDUCERS, Fold, Key, Node, level
from tests.random_queries.over_time import OverTime
from tests.random_queries.recursions import Recursions
from tests.random_queries.rows import Kind
from tests.random_queries.texts import PARAMETERS, Names, Texts, of_sides, parameters

SETS = (
    *("union", "union_all", "difference", "difference_all"),
    *("intersection", "intersection_all"),
)
FOLDS = (
    *("Count", "Sum", "Sum", "Avg", "Min", "Max", "CountDistinct", "Collect"),
    *("Own", "Monoid", "Product"),
)
OPERATORS = {
    "where": 5,
    "select": 4,
    "extend": 2,
    "bind": 2,
    "join": 6,
    "literal": 1,
    "product": 1,
    "circle": 1,
    "existing": 1,
    "unnest": 1,
    "select_many": 1,
    "distinct": 2,
    "outer": 2,
    "asof": 1,
    "half": 3,
    "sets": 3,
    "of_itself": 1,
    "group": 3,
    "having": 2,
    "trivial": 1,
    "reduce": 1,
    "top": 2,
    "each": 2,
    "aggregate": 1,
    "limit": 1,
    "fixpoint": 2,
    "iterate": 1,
}
RECURSIVE = ("fixpoint", "iterate")


@dataclass(frozen=True)
class Switches:
    """Options of drawing: sizes, recursions, callables that raise, orders, sums of joins.

    With `joins_only` a plan is an aggregate of several joins; with `pairs` its rows are pairs.
    """

    sizes: tuple[int, ...] = (2, 3, 3, 4, 4, 5, 6)
    recursion: bool = True
    raising: bool = False
    orders: bool = True
    joins_only: bool = False
    pairs: bool = False


ALL = Switches()


class Plans:
    """Draw plans; `texts` collects the callables that they call."""

    def __init__(
        self,
        random: Random,
        mode: str,
        tables: tuple[Kind, ...],
        texts: Texts,
        switches: Switches = ALL,
        held: Sequence[Held] = (),
    ) -> None:
        self._switches = switches
        self._operators = {
            name: often
            for name, often in OPERATORS.items()
            if switches.recursion or name not in RECURSIVE
        }
        self._over_time = OverTime(random, self, texts, mode, held)
        if texts.moves:
            self._operators |= self._over_time.operators
        self._random = random
        self._mode = mode
        self._tables = tables
        self._recursions = Recursions(random, self, texts, exact=mode in ("ints", "huge"))
        self._naming = Naming(random, mode, texts)
        self.texts = texts
        self.pool: list[Node] = []
        """Plans that others may be parts of."""

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def final(self) -> Node:
        """A plan for a view; only this may be in order without a limit."""
        if self._switches.joins_only:
            return self.joined_sums()
        node = self.relation(self._random.choice(self._switches.sizes))
        if self._switches.pairs:
            return self.pair(node, plain=True)
        is_exact = self._mode not in ("mixed", "decimals", "fractions")
        if not (self._switches.orders and self.chance(0.2) and is_exact):
            return node
        limit = (self._random.randrange(1, 5), self._random.choice((0, 0, 1, 2)))
        return self.ordered(node, limit if self.chance(0.5) else (None, 0))

    def finals(self, count: int) -> list[Node]:
        """Draw plans for views; some of them are parts of later ones."""
        found: list[Node] = []
        for _ in range(count):
            found.append(self.final())
            self.pool += [node for node in found[-1:] if node.op != "order"]
        return found

    def readers(self) -> list[Node]:
        """Many readers, each of the rows with one value of the same field."""
        base = self.table() if self.chance(0.6) else self.relation(1)
        while len(base.kinds) > 1:
            base = self.pair(base)
        names = parameters(base.kinds)
        field = self.texts.field(names)
        return [self._reader(base, names, field) for _ in range(self._random.choice((4, 6, 18)))]

    def _reader(self, base: Node, names: Names, field: str) -> Node:
        place = self._random.randrange(4)
        more = f" and {self.texts.simple(names)}" if self.chance(0.25) else ""
        equal = f"{field} == c" if self.chance(0.6) else f"c == {field}"
        name = f"r{len(self.texts.lines)}"
        line = f"{name} = (lambda c: lambda x: {equal}{more})(POOL[{place}])"
        self.texts.lines.append(line)
        node = Node("where", (base,), base.kinds, {"of": name})
        match self._random.randrange(10):
            case 0:
                return self.group(0, node)
            case 1:
                return self.aggregate(0, node)
            case 2:
                return self._joined("join", node, self.table())
            case 3:
                return Node("distinct", (node,), node.kinds)
            case 4 | 5:
                return self.pair(node)
        return node

    def relation(self, depth: int) -> Node:
        if self.pool and self.chance(0.15):
            return self._random.choice(self.pool)
        if depth <= 0:
            return self.table()
        made = self._random.choices([*self._operators], [*self._operators.values()])[0]
        node: Node = getattr(self, made)(depth)
        if len(node.kinds) > 3 or (len(node.kinds) > 1 and self.chance(0.2)):
            node = self.pair(node)
        if self.chance(0.2):
            node = self.where(0, node)
        if self.chance(0.25):
            self.pool.append(node)
        return node

    def table(self) -> Node:
        place = self._random.randrange(len(self._tables))
        return Node("table", (), (self._tables[place],), more=place)

    def where(self, depth: int, node: Node | None = None) -> Node:
        node = node or self.relation(depth - 1)
        named = self._naming.equals(node)
        if named is not None:
            return named
        names = parameters(node.kinds)
        test = self.texts.callable(names, self.texts.condition(names, 2), inverted=True)
        return Node("where", (node,), node.kinds, {"of": test})

    def select(self, depth: int) -> Node:
        node = self.relation(depth - 1)
        names, texts = parameters(node.kinds), self.texts
        match self._random.randrange(8):
            case 0:
                body = f"D({texts.value(names)}, {texts.value(names)}, {texts.number(names)})"
                return self._mapped(node, body, "D")
            case 1:
                letter = self._random.choice("SAM")
                return self._mapped(
                    node, f"{letter}(a={texts.value(names)}, b={texts.value(names)})", letter
                )
            case 2:
                place = self._random.randrange(len(node.kinds))
                return self._mapped(node, NAMES[place], node.kinds[place])
            case 3:
                return self._mapped(node, texts.value(names), "V")
        return self.pair(node)

    def extend(self, depth: int) -> Node:
        """One binding more, or two."""
        node = self.relation(depth - 1)
        calls = self._columns(node, self._random.choice((1, 1, 2)))
        return Node("extend", (node,), (*node.kinds, *["V"] * len(calls)), calls)

    def bind(self, depth: int) -> Node:
        """Replace the bindings; one of the old ones may be kept."""
        node = self.relation(depth - 1)
        names = parameters(node.kinds)
        calls = self._columns(node, self._random.choice((1, 2, 2)))
        if not self.chance(0.5):
            return Node("bind", (node,), ("V",) * len(calls), calls)
        place = self._random.randrange(len(node.kinds))
        calls = {"kept": self.texts.callable(names, NAMES[place]), **calls}
        return Node("bind", (node,), (node.kinds[place], *["V"] * (len(calls) - 1)), calls)

    def _columns(self, node: Node, count: int) -> dict[str, str]:
        names = parameters(node.kinds)
        texts = [self.texts.callable(names, self.texts.value(names)) for _ in range(count)]
        return {f"column{place}": text for place, text in enumerate(texts)}

    def literal(self, depth: int) -> Node:
        """Join rows with rows that are written in the query."""
        places = tuple(
            self._random.randrange(4) for _ in range(self._random.choice((0, 1, 1, 2, 3)))
        )
        rows = Node("values", (), ("V",), more=places)
        if self.chance(0.5):
            return self._joined("join", self.relation(depth - 1), rows)
        return self._joined("join", rows, self.relation(depth - 1))

    def pair(self, node: Node, *, plain: bool = False) -> Node:
        """Pairs of values of the rows; if `plain`, of values that are there already."""
        names, texts = parameters(node.kinds), self.texts
        plainly = f"({texts.field(names)}, {texts.field(names)})"
        return self._mapped(node, plainly if plain else texts.pair(names), "P")

    def numbers(self, node: Node) -> Node:
        """Pairs of numbers, which have an order."""
        names = parameters(node.kinds)
        body = f"(small({self.texts.field(names)}), n({self.texts.field(names)}))"
        return self._mapped(node, body, "P")

    def _mapped(self, node: Node, body: str, kind: Kind) -> Node:
        of = self.texts.callable(parameters(node.kinds), body)
        return Node("select", (node,), (kind,), {"of": of})

    def _elements(self, names: Names) -> str:
        texts = self.texts
        some, number = texts.value(names), f"small({texts.field(names)})"
        forms = (f"[{some}, {texts.value(names)}]", f"range({number})", f"({some},) * {number}")
        return self._random.choice((*forms, f"{{{texts.field(names)}, 1}}"))

    def unnest(self, depth: int) -> Node:
        node = self.relation(depth - 1)
        of = self.texts.callable(parameters(node.kinds), self._elements(parameters(node.kinds)))
        return Node("unnest", (node,), (*node.kinds, "V"), {"of": of})

    def select_many(self, depth: int) -> Node:
        node = self.relation(depth - 1)
        of = self.texts.callable(parameters(node.kinds), self._elements(parameters(node.kinds)))
        return Node("select_many", (node,), ("V",), {"of": of})

    def distinct(self, depth: int) -> Node:
        node = self.relation(depth - 1)
        return Node("distinct", (node,), node.kinds)

    def _sides(self, depth: int) -> tuple[Node, Node]:
        left = self.relation(depth - 1)
        if len(left.kinds) > 3:
            left = self.pair(left)
        if self.chance(0.12):
            return left, left
        return left, self.relation(self._random.choice((0, 0, 1, depth - 1)))

    def _joined(self, op: str, left: Node, right: Node, more: Any = None) -> Node:
        kinds = (*left.kinds, right.row) if op == "join" else left.kinds
        return Node(op, (left, right), kinds, self._condition(left, right), more)

    def _condition(self, left: Node, right: Node) -> dict[str, str]:
        named = self._naming.condition(left, right)
        if named is not None:
            return named
        mine, others = of_sides(left, right)
        chance, calls = self._random.random(), {}
        if chance < 0.8:
            on = self.texts.match(mine, others)
            calls["on"] = self.texts.callable({**mine, **others}, on, inverted=True)
        if chance > 0.7:
            calls["left_key"] = self.texts.callable(mine, self.texts.key(mine))
            calls["right_key"] = self.texts.callable(others, self.texts.key(others))
        return calls

    def join(self, depth: int) -> Node:
        return self._joined("join", *self._sides(depth))

    def product(self, depth: int) -> Node:
        """Join all pairs; a condition above filters them."""
        return self._product(*self._sides(depth))

    def _product(self, left: Node, right: Node) -> Node:
        mine, others = of_sides(left, right)
        node = Node("join", (left, right), (*left.kinds, right.row))
        test = self.texts.callable({**mine, **others}, self.texts.match(mine, others))
        return Node("where", (node,), node.kinds, {"of": test})

    def circle(self, depth: int) -> Node:
        """Three inputs that meet in a circle, or in a path with a condition on its ends."""
        a, b, c = (self.pair(self.relation(0), plain=True) for _ in range(3))
        a, b, c = self._random.choice(((a, b, c), (a, a, a), (a, a, b), (a, b, a)))
        ends = self._random.choice(("x[0] == z[1]",) * 4 + ("n(x[0]) < n(z[1])",))
        first = self.texts.callable({"x": "P", "y": "P"}, "x[1] == y[0]")
        both = Node("join", (a, b), ("P", "P"), {"on": first})
        second = self.texts.callable(dict.fromkeys("xyz", "P"), f"y[1] == z[0] and {ends}")
        node = Node("join", (both, c), ("P", "P", "P"), {"on": second})
        return self.aggregate(0, node) if self.chance(0.4) else node

    def existing(self, depth: int) -> Node:
        """Keep the left side of a join, with equal rows merged."""
        left, right = self._sides(depth)
        node = self._joined("join", left, right)
        row = f"({self.texts.field(parameters(left.kinds))}, 1)"
        of = self.texts.callable(parameters(node.kinds), row)
        return Node("distinct", (Node("select", (node,), ("P",), {"of": of}),), ("P",))

    def joined_sums(self) -> Node:
        """Aggregates of two to four tables that are joined, in all ways there are."""
        node = self.table()
        for _ in range(self._random.choice((1, 2, 2, 3))):
            sides = node, self.table()
            node = self._product(*sides) if self.chance(0.3) else self._joined("join", *sides)
            node = self.where(0, node) if self.chance(0.2) else node
        return self.group(0, node) if self.chance(0.7) else self.aggregate(0, node)

    def outer(self, depth: int) -> Node:
        left, right = self._sides(depth)
        if any(isinstance(kind, tuple) for kind in left.kinds):
            left = self.pair(left)
        if isinstance(right.row, tuple):
            right = self.pair(right)
        side = self._random.choice(("left", "left", "right", "full"))
        mine = left.kinds if side == "left" else tuple(map(_optional, left.kinds))
        other = right.row if side == "right" else _optional(right.row)
        return Node("outer", (left, right), (*mine, other), self._condition(left, right), side)

    def asof(self, depth: int) -> Node:
        """Each row with the nearest one of its key; times are few, so that many are equal."""
        left, right = self._sides(depth)
        mine, others = of_sides(left, right)
        one, other = self.texts.field(mine), self.texts.field(others)
        calls = {
            "at": self.texts.callable(mine, f"small({one})"),
            "of": self.texts.callable(others, f"small({other})"),
        }
        if self.chance(0.7):
            calls["left_key"] = self.texts.callable(mine, f"small({self.texts.field(mine)})")
            calls["right_key"] = self.texts.callable(others, f"small({self.texts.field(others)})")
        direction = self._random.choice(("backward", "forward", "nearest"))
        keeps = self.chance(0.5) and not isinstance(right.row, tuple)
        more = (direction, self._random.choice((None, None, 0, 1)), self.chance(0.7), keeps)
        kind = _optional(right.row) if keeps else right.row
        return Node("asof", (left, right), (*left.kinds, kind), calls, more)

    def half(self, depth: int) -> Node:
        return self._joined(self._random.choice(("semi_join", "anti_join")), *self._sides(depth))

    def sets(self, depth: int) -> Node:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        if left.kinds != right.kinds:
            left, right = self.pair(left, plain=True), self.pair(right, plain=True)
        return Node(self._random.choice(SETS), (left, right), left.kinds)

    def of_itself(self, depth: int) -> Node:
        """A set operation of parts of the same rows."""
        node = self.relation(depth - 1)
        left, right = (self.where(0, node) if self.chance(0.7) else node for _ in range(2))
        return Node(self._random.choice(SETS), (left, right), node.kinds)

    def _folds(self, node: Node) -> tuple[Fold, ...]:
        return tuple(self._fold(node) for _ in range(self._random.choice((1, 1, 2, 2, 3))))

    def _fold(self, node: Node) -> Fold:
        name, texts, names = self._random.choice(FOLDS), self.texts, parameters(node.kinds)
        if name not in ("Count", "Product"):
            field = self._naming.field(node, counted=name not in ("Collect", "CountDistinct"))
            if field is not None:
                return Fold(name, field)
        if name in ("Sum", "Avg") and self._mode in (
            "decimals",
            "fractions",
            "mixed",
            "nan",
            "nested",
        ):
            name = self._random.choice((name, "Max"))
        if name == "Count":
            return Fold(name, None)
        if name in ("Own", "Monoid"):
            return Fold(name, texts.callable(names, f"small({texts.field(names)})"))
        if name == "Product":
            body = f"small({texts.field(names)}) * small({texts.field(names)})"
            return Fold("Sum", texts.callable(names, body))
        if name == "Collect":
            return Fold(name, texts.callable(names, texts.value(names)))
        if name == "CountDistinct":
            skip = self.chance(0.3)
            return Fold(name, texts.callable(names, texts.value(names)), skip)
        skip = self.chance(0.3)
        return Fold(
            name, texts.callable(names, texts.maybe(names) if skip else texts.number(names)), skip
        )

    def group(self, depth: int, node: Node | None = None, key: str | None = None) -> Node:
        node = node or self.relation(depth - 1)
        names = parameters(node.kinds)
        kind, folds = self._naming.columns(node, self._folds(node), is_grouped=True)
        key = key or self._naming.field(node)
        key = key or self.texts.callable(names, self.texts.value(names))
        kinds = (kind,) if kind else ("V",) * (1 + len(folds))
        return Node("group", (node,), kinds, {"key": key}, folds)

    def reduce(self, depth: int) -> Node:
        """The rows of a function of groups, or of an operator of one's own."""
        node = self.relation(depth - 1)
        if self.chance(0.4):
            return self._through(node)
        names = parameters(node.kinds)
        key = self.texts.callable(names, self.texts.value(names))
        name = self._random.choice([*REDUCERS])
        made = node.row if name == "rows" else "V"
        return Node("reduce", (node,), ("V", made), {"key": key}, name)

    def _through(self, node: Node) -> Node:
        """The numbers of rows: of one input, two, or of groups."""
        names = parameters(node.kinds)
        match self._random.randrange(3):
            case 0:
                key = self.texts.callable(names, self.texts.value(names))
                return Node("through", (node,), ("V", "V"), {"key": key})
            case 1:
                left, right = self.pair(node, plain=True), self.pair(self.relation(0), plain=True)
                return Node("through", (left, right), ("V",))
        return Node("through", (node,), ("V",))

    def top(self, depth: int) -> Node:
        """The first rows of groups of pairs of numbers, as below a limit."""
        node = self.numbers(self.relation(depth - 1))
        names = parameters(node.kinds)
        value = self.texts.value(names)
        key = self.texts.callable(names, value)
        keys = tuple(self.key(names) for _ in range(self._random.choice((1, 1, 2))))
        how = self._random.choice(("top", "top", "first", "last"))
        count = self._random.choice((0, 1, 2, 3)) if how == "top" else 1
        made = Node("top", (node,), node.kinds, {"key": key}, (keys, count, how))
        if self.chance(0.7):
            return made
        of = self.texts.callable(names, f"{value} == {self._random.randrange(3)}")
        return Node("where", (made,), made.kinds, {"of": of})

    def each(self, depth: int) -> Node:
        """Some steps on the rows of each group."""
        source, here = self.relation(depth - 1), (level(), 0)
        names = parameters(source.kinds)
        key = self.texts.callable(names, self.texts.value(names))
        group = body = Node("recursive", (), source.kinds, more=here)
        for _ in range(self._random.choice((1, 2, 2, 3))):
            body = self._step(body, group)
            body = self.pair(body) if len(body.kinds) > 2 else body
        return Node("each", (source, body), ("V", *body.kinds), {"key": key}, here)

    def _step(self, node: Node, group: Node) -> Node:
        """Draw one step on a part of a group.

        Rows of other groups, too, would be present without their group, where a callable that
        raises is not evaluated; hence no others if callables raise.
        """
        others = group if self.texts.raises else self.table()
        match self._random.randrange(9):
            case 0:
                return self.where(0, node)
            case 1:
                return self.group(0, node)
            case 2 | 3:
                return self.aggregate(0, node)
            case 4:
                return self.pair(node)
            case 5:
                return self._joined(self._random.choice(("semi_join", "anti_join")), node, others)
            case 6:
                return self._joined("join", node, self._random.choice((others, group)))
            case 7:
                numbers = self.numbers(node)
                return self.ordered(numbers, (self._random.randrange(1, 3), 0), moves=False)
        other = self.where(0, node)
        return Node(self._random.choice(SETS), (node, other), node.kinds)

    def having(self, depth: int) -> Node:
        """Filter groups, or the keys of their results."""
        if self.chance(0.4):
            return self.where(0, self.group(depth))
        made = self.group(depth) if self.chance(0.3) else self.reduce(depth)
        if made.kinds[0] == "G" or not made.calls:
            return self.where(0, made)
        test = self.texts.simple({"x": "V"})
        if self.chance(0.5) and not self.texts.raises:
            test = "x == POOL[0]"
        of = self.texts.callable(parameters(made.kinds), test)
        return Node("where", (made,), made.kinds, {"of": of})

    def trivial(self, depth: int) -> Node:
        """Everything or nothing of a relation."""
        node = self.relation(depth - 1)
        test = self._random.choice(("1 < 2", "2 < 1"))
        of = self.texts.callable(parameters(node.kinds), test)
        return Node("where", (node,), node.kinds, {"of": of})

    def aggregate(self, depth: int, node: Node | None = None) -> Node:
        node = node or self.relation(depth - 1)
        kind, folds = self._naming.columns(node, self._folds(node), is_grouped=False)
        return Node("group", (node,), (kind,) if kind else ("V",) * len(folds), {}, folds)

    def limit(self, depth: int) -> Node:
        limit = self._random.randrange(1, 5), self._random.choice((0, 0, 1, 2))
        return self.ordered(self.numbers(self.relation(depth - 1)), limit)

    def ordered(self, node: Node, limit: tuple[int | None, int], *, moves: bool = True) -> Node:
        """Rows in order; below a limit they are pairs of numbers, or which ones pass is open."""
        if (limit[0] is not None and node.op != "select") or limit[0] is not None:
            node = self.numbers(node)
        names = parameters(node.kinds)
        keys = tuple(self.key(names) for _ in range(self._random.choice((1, 1, 2))))
        count: Any = limit[0]
        if moves and self.texts.moves and count is not None and self.chance(0.4):
            count = self._random.choice(PARAMETERS)
        return Node("order", (node,), node.kinds, {}, (keys, count, limit[1]))

    def key(self, names: Names) -> Key:
        texts, nulls = self.texts, self._random.choice((None, None, "first", "last"))
        body = self._random.choice(
            (texts.number(names), f"small({texts.field(names)})", "0", texts.number(names))
        )
        if nulls:
            body = texts.maybe(names)
        return Key(texts.callable(names, body), self.chance(0.5), nulls)

    def fixpoint(self, depth: int) -> Node:
        return self._recursions.fixpoint(depth)

    def iterate(self, depth: int) -> Node:
        return self._recursions.iterate(depth)

    def windowed(self, depth: int) -> Node:
        return self._over_time.windowed(depth)

    def over(self, depth: int) -> Node:
        return self._over_time.over(depth)

    def asof_events(self, depth: int) -> Node:
        return self._over_time.asof_events(depth)

    def lookup(self, depth: int) -> Node:
        return self._over_time.lookup(depth)

    def until(self, depth: int) -> Node:
        return self._over_time.until(depth)


def _optional(kind: Kind) -> Kind:
    assert isinstance(kind, str)
    return kind if kind.endswith("?") else f"{kind}?"

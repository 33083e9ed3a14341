"""Random queries over time: windows, frames, as-of joins, look-ups of events, loops that end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.random_queries.histories import Held
from tests.random_queries.nodes import Key, Node, level
from tests.random_queries.texts import Names, Texts, of_sides, parameters

if TYPE_CHECKING:
    from tests.random_queries.plans import Plans

UNORDERED = ("mixed", "decimals", "fractions")
"""Modes in which equal rows may look different, so that their order is open."""
TIED = ("ints", "huge", "floats", "texts")
"""Modes whose values are in one order."""
ONE = {"x": "P"}
OPERATORS = {"windowed": 5, "over": 5, "asof_events": 2, "until": 1}
PLACES = ("rank", "dense_rank", "row_number", "percent_rank", "cume_dist", "ntile")
OTHERS = ("lag", "lead")
SCANS = {"scan": ", lambda s, v: 0 if v is None or v > 3 else min(s + 1, 3), 0"}
"""Functions of all values up to the row, which take a step: so many in a row are small."""
VALUES = ("first", "last", "nth")
FOLDS = ("sum", "avg", "min", "max", "count", "quantile", "count rows")


class Call(NamedTuple):
    """A function of the window of a row; `frame` is a kind of frame and its two ends."""

    name: str
    number: Any = None
    frame: tuple[str, Any, Any] | None = None
    skip_none: bool = False

    @property
    def reads_values(self) -> bool:
        return self.name not in (*PLACES, "count rows")

    def written(self, value: str) -> str:
        """The call as text."""
        given = [value + SCANS.get(self.name, "")] if self.reads_values else []
        given += [] if self.number is None else [repr(self.number)]
        given += ["skip_none=True"] if self.skip_none else []
        if self.frame is not None:
            kind, *ends = self.frame
            given.append(f"{kind}=({', '.join(map(_distance, ends))})")
        return f"o.{self.name.split()[0]}({', '.join(given)})"


def _distance(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"timedelta(seconds={value.total_seconds()})"
    return repr(value)


class OverTime:
    """Draw the queries that read moments; `held` are the tables."""

    def __init__(
        self, random: Random, plans: Plans, texts: Texts, mode: str, held: Sequence[Held]
    ) -> None:
        self._random = random
        self._plans = plans
        self._texts = texts
        self._mode = mode
        self._events = [place for place, table in enumerate(held) if table.kind == "E"]
        self._streams = [p for p, table in enumerate(held) if table.lateness is not None]

    @property
    def operators(self) -> dict[str, int]:
        return {**OPERATORS, "lookup": 4} if self._streams else OPERATORS

    def _pick(self, some: Sequence[Any]) -> Any:
        return self._random.choice(some)

    def _table(self, places: Sequence[int]) -> Node:
        return Node("table", (), ("E",), more=self._pick(places))

    def _of_events(self, depth: int) -> Node:
        """Draw rows with an event among their bindings."""
        if depth > 1 and self._plans.chance(0.5):
            found = self._plans.relation(depth - 1)
            if "E" in found.kinds and len(found.kinds) < 3:
                return found
        node = self._table(self._events)
        return self._plans.where(0, node) if self._plans.chance(0.3) else node

    def _moment(self, names: Names) -> str:
        """Draw a moment of an event, mostly the one that the stream has."""
        x = self._pick([name for name, kind in names.items() if kind == "E"])
        return f"{x}.at" if self._plans.chance(0.8) else f"{x}.due"

    def windowed(self, depth: int) -> Node:
        """Rows with their windows, and often groups of these."""
        made = self._window(self._of_events(depth), sessions=True)
        if self._streams and self._plans.chance(0.2):
            mark = Node("watermark", (), ("V",), more=self._pick(self._streams))
            names: Names = {**parameters(made.kinds), "v": "V"}
            of = next(name for name, kind in names.items() if kind == "F")
            on = self._texts.callable(names, f"{of}.end <= v")
            made = Node("join", (made, mark), (*made.kinds, "V"), {"on": on})
        if self._plans.chance(0.7):
            names = parameters(made.kinds)
            of = next(name for name, kind in names.items() if kind == "F")
            parts = (of, f"{of}.start", f"{of}.end", f"({self._texts.field(names)}, {of})")
            key = self._texts.callable(names, self._pick(parts))
            return self._plans.group(0, made, key)
        return made

    def _window(self, node: Node, *, sessions: bool) -> Node:
        names = parameters(node.kinds)
        calls = {"at": self._texts.callable(names, self._moment(names))}
        kind, *more = self._pick((("tumbling", 2), ("tumbling", 5), ("hopping", 4, 2)))
        if sessions and self._plans.chance(0.4):
            kind, more = "session", [self._pick((1, 2, 3))]
            if self._plans.chance(0.7):
                calls["by"] = self._texts.callable(names, f"small({self._texts.field(names)})")
        return Node("window", (node,), (*node.kinds, "F"), calls, (kind, *more))

    def over(self, depth: int) -> Node:
        """A value of each row, beside a function of its window."""
        if self._mode in UNORDERED:
            return self.windowed(depth)
        node = self._of_events(depth)
        if node.kinds != ("E",) or self._mode not in TIED:
            node = self._plans.numbers(node)
        names, texts = parameters(node.kinds), self._texts
        keys, distances = self._order(names)
        call = self._call(len(keys), distances)
        small = f"small({texts.field(names)})"
        value = small if call.name in ("sum", "avg", "quantile") else texts.number(names)
        if self._plans.chance(0.3):
            value = f"({small} if {texts.simple(names)} else None)"
        row = texts.field(names)
        given = ", ".join(names)
        calls = {
            "row": texts.plain(f"lambda {given}: {row}"),
            "value": texts.plain(f"lambda {given}: {value}"),
            "select": texts.plain(f"lambda {given}, o: ({row}, {call.written(value)})"),
        }
        if self._plans.chance(0.6):
            calls["by"] = texts.callable(names, texts.field(names))
        return Node("over", (node,), ("P",), calls, (keys, call))

    def _order(self, names: Names) -> tuple[tuple[Key, ...], Sequence[Any]]:
        """Draw the keys of an order, and distances if there is one key that has them."""
        chance, texts = self._random.random(), self._texts
        if chance < 0.1:
            return (), ()
        if chance < 0.5:
            is_moment = "E" in names.values()
            body = f"{next(iter(names))}.at" if is_moment else f"small({texts.field(names)})"
            unit = timedelta(minutes=1) if is_moment else 1
            distances = [unit * number for number in (-3, -1, 0, 1, 2)]
            return (Key(texts.callable(names, body), self._plans.chance(0.4)),), distances
        return tuple(self._plans.key(names) for _ in range(self._pick((1, 1, 2)))), ()

    def _call(self, count: int, distances: Sequence[Any]) -> Call:
        if not count:
            name = self._pick(FOLDS)
            return Call(name, 0.25 if name == "quantile" else None)
        name = self._pick((*PLACES, *OTHERS, *OTHERS, *VALUES, *FOLDS, *FOLDS, *SCANS))
        numbers = {"ntile": (1, 2, 3), "nth": (1, 2, -1, -2), "quantile": (0.5, 0.25)}
        numbers |= dict.fromkeys(OTHERS, (1, 1, 2))
        number = self._pick(numbers[name]) if name in numbers else None
        skip = name in (*OTHERS, *VALUES) and self._plans.chance(0.3)
        frame = None
        if name not in (*PLACES, *OTHERS, *SCANS) and self._plans.chance(0.6):
            frame = self._frame("rows", (-2, -1, 0, 1, 2))
            if distances and self._plans.chance(0.7):
                frame = self._frame("range", distances)
        return Call(name, number, frame, skip)

    def _frame(self, kind: str, distances: Sequence[Any]) -> tuple[str, Any, Any]:
        start, end = sorted(self._random.choices(distances, k=2))
        some = self._random.random()
        return kind, None if some < 0.2 else start, None if some > 0.8 else end

    def asof_events(self, depth: int) -> Node:
        """Each row with the nearest event of its key."""
        left, right = self._of_events(depth), self._table(self._events)
        if self._plans.chance(0.3):
            right = self._plans.where(0, right)
        mine, others = of_sides(left, right)
        calls = {
            "at": self._texts.callable(mine, self._moment(mine)),
            "of": self._texts.callable(others, self._moment(others)),
        }
        if self._plans.chance(0.7):
            calls |= self._equal(mine, others)
        direction = self._pick(("backward", "forward", "nearest"))
        tolerance = self._pick((None, timedelta(), timedelta(minutes=2)))
        keeps = self._plans.chance(0.5)
        more = (direction, tolerance, self._plans.chance(0.7), keeps)
        return Node("asof", (left, right), (*left.kinds, "E?" if keeps else "E"), calls, more)

    def _equal(self, mine: Names, others: Names) -> dict[str, str]:
        texts = self._texts
        return {
            "left_key": texts.callable(mine, f"small({texts.field(mine)})"),
            "right_key": texts.callable(others, f"small({texts.field(others)})"),
        }

    def lookup(self, depth: int) -> Node:
        """Events, each with the rows that a relation had when it came."""
        texts = self._texts
        node = self._stands_still(depth)
        right = self._plans.relation(self._pick((0, 0, 1, max(depth - 1, 0))))
        mine, others = of_sides(node, right)
        keeps = self._plans.chance(0.4) and isinstance(right.row, str)
        kind: Any = f"{str(right.row).rstrip('?')}?" if keeps else right.row
        texts.moves = False
        calls = self._equal(mine, others)
        texts.moves = True
        return Node("lookup", (node, right), (*node.kinds, kind), calls, keeps)

    def _stands_still(self, depth: int) -> Node:
        """Draw events one by one: no clock and no parameter changes a row that came."""
        plans, texts = self._plans, self._texts
        node = self._table(self._streams)
        if depth > 1 and plans.chance(0.2):
            node = self.lookup(depth - 1)
        texts.moves = False
        for _ in range(self._pick((0, 0, 1, 2))):
            names = parameters(node.kinds)
            match self._random.randrange(4):
                case 0:
                    node = plans.where(0, node)
                case 1:
                    column = texts.callable(names, texts.value(names))
                    node = Node("extend", (node,), (*node.kinds, "V"), {"column0": column})
                case 2 if "E" in node.kinds:
                    node = self._window(node, sessions=False)
                case 3:
                    node = plans.pair(node)
            node = plans.pair(node) if len(node.kinds) > 2 else node
        texts.moves = True
        return node

    def until(self, depth: int) -> Node:
        """Count upwards until a condition on the rows holds, or all are at the end."""
        texts, here = self._texts, (level(), 0)
        start = self._plans.numbers(self._plans.relation(min(depth - 1, 2)))
        rows = Node("recursive", (), ("P",), more=here)
        step = texts.callable(ONE, "(x[0], min(small(x[1]) + 1, 3))")
        body = Node("select", (rows,), ("P",), {"of": step})
        test = self._pick((f"small(x[1]) > {self._random.randrange(4)}", "x[0] < p0()"))
        form = self._pick(("any({} for x in r)", "all({} for x in r)"))
        calls = {"until": texts.plain(f"lambda r: {form.format(test)}")}
        return Node("until", (start, body), ("P",), calls, (here[0],))

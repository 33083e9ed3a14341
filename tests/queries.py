"""Random queries as text, over two of the tables of `random_rows`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.conditions import PARAMETERS, Conditions
from tests.random_rows import ROWS, TABLES, Change, Kind

SETS = ("union", "union_all", "difference", "difference_all", "intersection", "intersection_all")
Case = tuple[str, list[list[Change]]]


@dataclass(frozen=True)
class Rel:
    """The text of a query, and the kinds of its bindings."""

    text: str
    kinds: tuple[Kind, ...]

    @property
    def row(self) -> Kind:
        return self.kinds[0] if len(self.kinds) == 1 else self.kinds


class Generator:
    """Makes up a query; `choose(n)` is a number below n."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._some = Conditions(choose)
        self.tables = [self._some.one_of(*TABLES), self._some.one_of(*TABLES)]

    def relation(self, depth: int) -> Rel:
        """A query of at most so many levels."""
        if depth <= 0:
            name = self._some.one_of(*self.tables)
            return Rel(name, (TABLES[name],))
        step = self._some.one_of(
            *(self.where, self.where, self.select, self.distinct, self.join, self.join),
            *(self.product, self.outer, self.outer, self.half, self.half, self.half),
            *(
                self.sets,
                self.sets,
                self.grouped,
                self.reduced,
                self.topped,
                self.unnest,
                self.existing,
                self.of_itself,
            ),
            *(self.trivial,) * (depth > 1),
        )
        made: Rel = step(depth)
        if self._some.chance(2):
            return Rel(f"{made.text}.where({self.predicate(made.kinds)})", made.kinds)
        return made

    def where(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        return Rel(f"{r.text}.where({self.predicate(r.kinds)})", r.kinds)

    def trivial(self, depth: int) -> Rel:
        """Everything or nothing of a relation."""
        r = self.relation(depth - 1)
        names = ", ".join(PARAMETERS[: len(r.kinds)])
        return Rel(
            f"{r.text}.where(lambda {names}: {self._some.one_of('1 < 2', '2 < 1')})", r.kinds
        )

    def predicate(self, kinds: tuple[Kind, ...]) -> str:
        pairs = len(kinds) > 1 and self._some.chance(4)
        return self._some.callable(kinds, lambda names: self._some.condition(names, pairs))

    def select(self, depth: int) -> Rel:
        return self.selected(self.relation(depth - 1))

    def selected(self, r: Rel, kind: str | None = None) -> Rel:
        kind = self._some.one_of("P", "P", "T", "V", "same") if kind is None else kind
        if kind == "same":
            text = self._some.callable(r.kinds, lambda names: next(iter(names)))
            return Rel(f"{r.text}.select({text})", (r.kinds[0],))
        make = {"P": "({}, {})", "T": "T({}, {})", "V": "{}"}[kind]
        text = self._some.callable(
            r.kinds, lambda names: make.format(self._some.plain(names), self._some.plain(names))
        )
        return Rel(f"{r.text}.select({text})", (kind,))

    def distinct(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        return Rel(f"{r.text}.distinct()", r.kinds)

    def matching(self, left: Rel, right: Rel) -> str:
        kinds = (*left.kinds, right.row)
        on = f"on={self._some.callable(kinds, lambda names: self._some.condition(names, True))}"
        if self._some.chance(6):
            return on
        keys = (
            f"left_key={self._some.callable(left.kinds, self._some.plain)}, "
            f"right_key={self._some.callable((right.row,), self._some.plain)}"
        )
        return keys if self._some.chance(4) else f"{on}, {keys}"

    def sides(self, depth: int) -> tuple[Rel, Rel]:
        left = self.relation(depth - 1)
        right = self.relation(self._some.one_of(0, 0, 0, 1, 2) if depth > 1 else 0)
        return (left, right) if len(left.kinds) < 4 else (self.relation(0), right)

    def join(self, depth: int) -> Rel:
        left, right = self.sides(depth)
        text = f"{left.text}.join({right.text}, {self.matching(left, right)})"
        return self.above(Rel(text, (*left.kinds, right.row)))

    def product(self, depth: int) -> Rel:
        left, right = self.sides(depth)
        return self.above(Rel(f"{left.text}.join({right.text})", (*left.kinds, right.row)))

    def outer(self, depth: int) -> Rel:
        left, right = self.sides(depth)
        kind = self._some.one_of("left", "left", "right", "full")
        text = f"{left.text}.{kind}_join({right.text}, {self.matching(left, right)})"
        r = Rel(text, (*left.kinds, right.row))
        if self._some.chance(3):
            name = PARAMETERS[self._some.choose(len(r.kinds))]
            names = ", ".join(PARAMETERS[: len(r.kinds)])
            more = self._some.condition(dict(zip(PARAMETERS, r.kinds, strict=False)))
            return Rel(f"{text}.where(lambda {names}: {name} is not None and {more})", r.kinds)
        return self.above(r)

    def above(self, r: Rel) -> Rel:
        """The join, often with a condition on its pairs."""
        if self._some.chance(4):
            r = Rel(f"{r.text}.where({self.predicate(r.kinds)})", r.kinds)
        return self.selected(r) if self._some.chance(3) or len(r.kinds) > 3 else r

    def half(self, depth: int) -> Rel:
        left, right = self.sides(depth)
        kind = self._some.one_of("semi", "anti")
        text = f"{left.text}.{kind}_join({right.text}, {self.matching(left, right)})"
        return Rel(text, left.kinds)

    def sets(self, depth: int) -> Rel:
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        if left.kinds != right.kinds:
            kind = self._some.one_of("P", "T")
            left, right = self.selected(left, kind), self.selected(right, kind)
        return Rel(f"{left.text}.{self._some.one_of(*SETS)}({right.text})", left.kinds)

    def of_itself(self, depth: int) -> Rel:
        """A set operation of selections of the same relation."""
        r = self.relation(depth - 1)
        left = f"r.where({self.predicate(r.kinds)})" if self._some.chance(6) else "r"
        right = f"r.where({self.predicate(r.kinds)})" if self._some.chance(6) else "r"
        if self._some.chance(2):
            left += f".where({self.predicate(r.kinds)})"
        return Rel(f"(lambda r: {left}.{self._some.one_of(*SETS)}({right}))({r.text})", r.kinds)

    def grouped(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        value = self._some.callable(r.kinds, self._some.plain)
        fold = self._some.one_of("Count()", f"CountDistinct({value})", f"Collect({value})")
        if self._some.chance(self._some.raising):
            name = PARAMETERS[0]
            field = self._some.field(name, r.kinds[0])  # the fold itself refuses nothing
            rest = PARAMETERS[: len(r.kinds)]
            fold = f"Sum(lambda {', '.join(rest)}: 1 / {field})"
        key = self._some.callable(r.kinds, self._some.plain)
        made = Rel(f"{r.text}.group_by({key}).aggregate({fold})", ("V", "V"))
        if self._some.chance(4):
            test = self._some.condition({"x": "V"})
            made = Rel(f"{made.text}.where(lambda x, y: {test})", made.kinds)
        if self._some.chance(1):
            made = Rel(f"{r.text}.aggregate({fold})", ("V",))
        return made

    def reduced(self, depth: int) -> Rel:
        """Groups of which a callable that raises nothing makes rows."""
        r = self.relation(depth - 1)
        key = self._some.callable(r.kinds, self._some.plain)
        make = self._some.one_of("[len(rows)]", "[k] * len(rows)", "[]", "(1 for _ in rows)")
        call = self._some.one_of(f"lambda k, rows: {make}", f"Hidden(lambda k, rows: {make})")
        made = Rel(f"{r.text}.group_by({key}).reduce({call})", ("V", "V"))
        if self._some.chance(4):
            test = self._some.condition({"x": "V"})
            made = Rel(f"{made.text}.where(lambda x, y: {test})", made.kinds)
        return made

    def topped(self, depth: int) -> Rel:
        """The first rows of each group, in an order that tells all apart; or all of them."""
        r = self.relation(depth - 1)
        names = ", ".join(PARAMETERS[: len(r.kinds)])
        key = self._some.plain(dict(zip(PARAMETERS, r.kinds, strict=False)))
        count, by = self._some.one_of(
            (1, f"rank(({names},))"), (2, f"rank(({names},))"), (1000, "0")
        )
        groups = f"{r.text}.group_by(lambda {names}: {key})"
        made = Rel(f"{groups}.top({count}, lambda {names}: {by})", r.kinds)
        if self._some.chance(4):
            test = f"{key} == 1" if self._some.chance(6) else f"not {key}"
            made = Rel(f"{made.text}.where(lambda {names}: {test})", made.kinds)
        return made

    def unnest(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        fan = self._some.callable(
            r.kinds, lambda names: f"[{self._some.plain(names)}, {self._some.plain(names)}]"
        )
        if self._some.chance(4) or len(r.kinds) > 3:
            return Rel(f"{r.text}.select_many({fan})", ("V",))
        return Rel(f"{r.text}.unnest({fan})", (*r.kinds, "V"))

    def existing(self, depth: int) -> Rel:
        """What is left of a join after distinct, often of one side only."""
        left, right = self.sides(depth)
        text = f"{left.text}.join({right.text}, {self.matching(left, right)})"
        names = dict(zip(PARAMETERS, left.kinds, strict=False))
        row = self._some.one_of(
            f"({self._some.plain(names)}, {self._some.plain(names)})", self._some.plain(names)
        )
        kind = "P" if row.startswith("(") and row.count(",") else "V"
        all_names = ", ".join(PARAMETERS[: len(left.kinds) + 1])
        return Rel(f"{text}.select(lambda {all_names}: {row}).distinct()", (kind,))


@st.composite
def cases(draw: Any, depth: int = 3) -> Case:
    """The text of a query, and a history of the tables that it is about."""
    generator = Generator(lambda n: int(draw(st.integers(0, n - 1))))
    text = generator.relation(draw(st.integers(1, depth))).text
    counts = st.sampled_from([1, 1, 1, 2, -1])
    changes: st.SearchStrategy[Change] = st.one_of(
        [
            st.tuples(st.just(name), ROWS[TABLES[name]], counts)  # type: ignore[index]
            for name in generator.tables
        ]
    )
    commits = st.lists(changes, min_size=1, max_size=4)
    return text, draw(st.lists(commits, min_size=3, max_size=9))

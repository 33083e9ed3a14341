"""Random queries as text, with predicates that raise on some rows, or that nobody can read.

A binding has a kind: "T" for a row of a frozen dataclass, whose fields are known to be there, "O"
for an object of a class of which nothing is known, "P" for a tuple that may be too short, "V" for
any other value, and a tuple of kinds for a row of several bindings that is one binding of a join.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from reactive import Collect, Count, CountDistinct, Database, Sum, Table

Kind: TypeAlias = "str | tuple[Kind, ...]"
NAN = math.nan


@dataclass(frozen=True, slots=True)
class T:
    """A row whose fields can be read without raising."""

    a: Any
    b: Any


class O:  # noqa: E742
    """A row of which nothing is known; a field of it may have no hash."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, O) and (self.a, self.b) == (other.a, other.b)

    def __hash__(self) -> int:
        return hash(self.a)

    def __repr__(self) -> str:
        return f"O({self.a!r}, {self.b!r})"


class Hidden:
    """A callable that cannot be read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *row: Any) -> Any:
        return self.function(*row)


def n(value: Any) -> Any:
    return 0 if value is None else value


def odd(value: Any) -> Any:
    if value is None:
        raise LookupError("nothing is neither odd nor even")
    for digit in (value,):
        return digit % 2 == 1
    return None


NAMES: dict[str, Any] = {
    "T": T,
    "O": O,
    "Hidden": Hidden,
    "n": n,
    "odd": odd,
    "nan": NAN,
    "Count": Count,
    "CountDistinct": CountDistinct,
    "Collect": Collect,
    "Sum": Sum,
}
TABLES: dict[str, Kind] = {"t": "T", "u": "T", "k": "T", "p": "P", "o": "O"}
SETS = ("union", "union_all", "difference", "difference_all", "intersection", "intersection_all")
PARAMETERS = ("x", "y", "z", "w", "v")


def tables(db: Database) -> dict[str, Table[Any]]:
    """Two multisets and a keyed table of records, one of tuples and one of objects."""
    return {
        "t": db.table(T, name="t"),
        "u": db.table(T, name="u"),
        "k": db.table(T, name="k", key=lambda r: r.a),
        "p": db.table(tuple, name="p"),
        "o": db.table(O, name="o"),
    }


@dataclass(frozen=True)
class Rel:
    """The text of a query, and the kinds of its bindings."""

    text: str
    kinds: tuple[Kind, ...]

    @property
    def row(self) -> Kind:
        return self.kinds[0] if len(self.kinds) == 1 else self.kinds


class Generator:
    """Makes up a query; `choose(n)` is a number below n.

    `raising` says how often, out of eight, a test may raise.
    """

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose
        self._fields = ("a", "a", "b")
        self._any = True
        self.raising = self.one_of(0, 2, 3, 4)
        self.tables = [self.one_of(*TABLES), self.one_of(*TABLES)]

    def chance(self, of_eight: int) -> bool:
        return self._choose(8) < of_eight

    def one_of(self, *choices: Any) -> Any:
        return choices[self._choose(len(choices))]

    # Expressions over bindings.

    def field(self, name: str, kind: Kind) -> str:
        """Some value in a binding."""
        if isinstance(kind, tuple):
            place = self._choose(len(kind))
            return self.field(f"{name}[{place}]", kind[place])
        if kind == "V":
            return name
        if kind == "P":
            return f"{name}[{self.one_of(0, 0, 1)}]"
        return f"{name}.{self.one_of(*self._fields)}" if kind == "T" or self._any else f"{name}.a"

    def value(self, kinds: dict[str, Kind]) -> str:
        """An expression of one of these bindings."""
        name = self.one_of(*kinds)
        field = self.field(name, kinds[name])
        if self.chance(self.raising // 2):
            return str(self.one_of(f"({field} + 1)", f"(1 / {field})", f"odd({field})"))
        if self.chance(6):
            return field
        return str(self.one_of(f"n({field})", f"({field}, 1)", f"({field} is None)"))

    def test(self, kinds: dict[str, Kind]) -> str:
        """A condition on one of these bindings."""
        name = self.one_of(*kinds)
        field = self.field(name, kinds[name])
        number = self.one_of(0, 1)
        if self.chance(self.raising):
            return str(
                self.one_of(
                    *(f"{field} > {number}", f"1 / {field} > 0", f"1 / {field} > 0"),
                    *(f"odd({field})", f"{number} <= {field} < 2", f"{field} + 1"),
                    f"({field} != 0 or {name}.missing)",
                )
            )
        return str(
            self.one_of(
                *(f"{field} == {number}", f"{field} != {number}", f"{field} != {number}"),
                *(f"{field} is not None", f"{field} is not None", f"n({field}) > 0"),
                *(f"not {field} == 2", f"{field} in (0, 1, None)", f"{name} is not None"),
                *(f"{field} == {self.field(name, kinds[name])}", f"{field}", "1 < 2"),
            )
        )

    def pair_test(self, left: dict[str, Kind], right: dict[str, Kind]) -> str:
        """A condition on both sides."""
        a, b = self.value(left), self.value(right)
        if self.chance(5):
            return f"{a} == {b}" if self.chance(5) else f"{b} == {a}"
        if self.chance(self.raising):
            return str(self.one_of(f"{a} < {b}", f"{a} + {b} > 1", f"[{a}] < [{b}]"))
        return str(
            self.one_of(
                f"{a} != {b}", f"({a} == 1 or {b} == 1)", f"[{a}] == [{b}]", f"n({a}) == {b}"
            )
        )

    def condition(self, kinds: dict[str, Kind], pairs: bool = False) -> str:
        """Some tests, all or some of which must hold; with `pairs` the last binding is a side."""
        tests = [self._part(kinds, pairs) for _ in range(self.one_of(1, 1, 2, 3))]
        if not pairs and self.chance(1):
            return f"({' or '.join(tests)})"
        return " and ".join(tests)

    def _part(self, kinds: dict[str, Kind], pairs: bool) -> str:
        if pairs and self.chance(5):
            *names, last = kinds
            return self.pair_test({x: kinds[x] for x in names}, {last: kinds[last]})
        return self.test(kinds)

    def callable(self, kinds: tuple[Kind, ...], body: Callable[[dict[str, Kind]], str]) -> str:
        """A lambda of bindings of these kinds; now and then it cannot be read."""
        names = dict(zip(PARAMETERS, kinds, strict=False))
        text = f"lambda {', '.join(names)}: {body(names)}"
        return f"Hidden({text})" if self._choose(16) == 15 else text

    # Relations.

    def relation(self, depth: int) -> Rel:
        """A query of at most so many levels."""
        if depth <= 0:
            name = self.one_of(*self.tables)
            return Rel(name, (TABLES[name],))
        step = self.one_of(
            *(self.where, self.where, self.select, self.distinct, self.join, self.join),
            *(self.product, self.outer, self.outer, self.half, self.half, self.half),
            *(self.sets, self.sets, self.grouped, self.unnest, self.existing, self.of_itself),
            *(self.trivial,) * (depth > 1),
        )
        made: Rel = step(depth)
        if self.chance(2):
            return Rel(f"{made.text}.where({self.predicate(made.kinds)})", made.kinds)
        return made

    def where(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        return Rel(f"{r.text}.where({self.predicate(r.kinds)})", r.kinds)

    def trivial(self, depth: int) -> Rel:
        """Everything or nothing of a relation."""
        r = self.relation(depth - 1)
        names = ", ".join(PARAMETERS[: len(r.kinds)])
        return Rel(f"{r.text}.where(lambda {names}: {self.one_of('1 < 2', '2 < 1')})", r.kinds)

    def predicate(self, kinds: tuple[Kind, ...]) -> str:
        pairs = len(kinds) > 1 and self.chance(4)
        return self.callable(kinds, lambda names: self.condition(names, pairs))

    def select(self, depth: int) -> Rel:
        return self.selected(self.relation(depth - 1))

    def selected(self, r: Rel, kind: str | None = None) -> Rel:
        kind = self.one_of("P", "P", "T", "V", "same") if kind is None else kind
        if kind == "same":
            text = self.callable(r.kinds, lambda names: next(iter(names)))
            return Rel(f"{r.text}.select({text})", (r.kinds[0],))
        make = {"P": "({}, {})", "T": "T({}, {})", "V": "{}"}[kind]
        text = self.callable(
            r.kinds, lambda names: make.format(self.plain(names), self.plain(names))
        )
        return Rel(f"{r.text}.select({text})", (kind,))

    def plain(self, names: dict[str, Kind]) -> str:
        """A value that can be in a row: of objects, the field that has a hash."""
        self._any = False
        try:
            return self.value(names)
        finally:
            self._any = True

    def distinct(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        return Rel(f"{r.text}.distinct()", r.kinds)

    def matching(self, left: Rel, right: Rel) -> str:
        kinds = (*left.kinds, right.row)
        on = f"on={self.callable(kinds, lambda names: self.condition(names, True))}"
        if self.chance(6):
            return on
        keys = (
            f"left_key={self.callable(left.kinds, self.plain)}, "
            f"right_key={self.callable((right.row,), self.plain)}"
        )
        return keys if self.chance(4) else f"{on}, {keys}"

    def sides(self, depth: int) -> tuple[Rel, Rel]:
        left = self.relation(depth - 1)
        right = self.relation(self.one_of(0, 0, 0, 1, 2) if depth > 1 else 0)
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
        kind = self.one_of("left", "left", "right", "full")
        text = f"{left.text}.{kind}_join({right.text}, {self.matching(left, right)})"
        r = Rel(text, (*left.kinds, right.row))
        if self.chance(3):
            name = PARAMETERS[self._choose(len(r.kinds))]
            names = ", ".join(PARAMETERS[: len(r.kinds)])
            more = self.condition(dict(zip(PARAMETERS, r.kinds, strict=False)))
            return Rel(f"{text}.where(lambda {names}: {name} is not None and {more})", r.kinds)
        return self.above(r)

    def above(self, r: Rel) -> Rel:
        """The join, often with a condition on its pairs."""
        if self.chance(4):
            r = Rel(f"{r.text}.where({self.predicate(r.kinds)})", r.kinds)
        return self.selected(r) if self.chance(3) or len(r.kinds) > 3 else r

    def half(self, depth: int) -> Rel:
        left, right = self.sides(depth)
        kind = self.one_of("semi", "anti")
        text = f"{left.text}.{kind}_join({right.text}, {self.matching(left, right)})"
        return Rel(text, left.kinds)

    def sets(self, depth: int) -> Rel:
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        if left.kinds != right.kinds:
            kind = self.one_of("P", "T")
            left, right = self.selected(left, kind), self.selected(right, kind)
        return Rel(f"{left.text}.{self.one_of(*SETS)}({right.text})", left.kinds)

    def of_itself(self, depth: int) -> Rel:
        """A set operation of selections of the same relation."""
        r = self.relation(depth - 1)
        left = f"r.where({self.predicate(r.kinds)})" if self.chance(6) else "r"
        right = f"r.where({self.predicate(r.kinds)})" if self.chance(6) else "r"
        if self.chance(2):
            left += f".where({self.predicate(r.kinds)})"
        return Rel(f"(lambda r: {left}.{self.one_of(*SETS)}({right}))({r.text})", r.kinds)

    def grouped(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        value = self.callable(r.kinds, self.plain)
        fold = self.one_of("Count()", f"CountDistinct({value})", f"Collect({value})")
        if self.chance(self.raising):
            name = PARAMETERS[0]
            field = self.field(name, r.kinds[0])  # the fold itself refuses nothing
            rest = PARAMETERS[: len(r.kinds)]
            fold = f"Sum(lambda {', '.join(rest)}: 1 / {field})"
        key = self.callable(r.kinds, self.plain)
        made = Rel(f"{r.text}.group_by({key}).aggregate({fold})", ("V", "V"))
        if self.chance(4):
            test = self.condition({"x": "V"})
            made = Rel(f"{made.text}.where(lambda x, y: {test})", made.kinds)
        if self.chance(1):
            made = Rel(f"{r.text}.aggregate({fold})", ("V",))
        return made

    def unnest(self, depth: int) -> Rel:
        r = self.relation(depth - 1)
        fan = self.callable(r.kinds, lambda names: f"[{self.plain(names)}, {self.plain(names)}]")
        if self.chance(4) or len(r.kinds) > 3:
            return Rel(f"{r.text}.select_many({fan})", ("V",))
        return Rel(f"{r.text}.unnest({fan})", (*r.kinds, "V"))

    def existing(self, depth: int) -> Rel:
        """What is left of a join after distinct, often of one side only."""
        left, right = self.sides(depth)
        text = f"{left.text}.join({right.text}, {self.matching(left, right)})"
        names = dict(zip(PARAMETERS, left.kinds, strict=False))
        row = self.one_of(f"({self.plain(names)}, {self.plain(names)})", self.plain(names))
        kind = "P" if row.startswith("(") and row.count(",") else "V"
        all_names = ", ".join(PARAMETERS[: len(left.kinds) + 1])
        return Rel(f"{text}.select(lambda {all_names}: {row}).distinct()", (kind,))


VALUES = st.sampled_from([0, 1, 1, 2, 0, None, NAN])
LISTS = VALUES | st.just([1])
ROWS = {
    "T": st.builds(T, VALUES, VALUES),
    "P": st.tuples(VALUES, VALUES) | st.tuples(VALUES, VALUES) | st.tuples(VALUES),
    "O": st.builds(O, VALUES, LISTS),
}
Change = tuple[str, Any, int]
"""A table, a row, and how many of it come; if negative, some row of the table goes."""
Case = tuple[str, list[list[Change]]]


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


def apply(own: dict[str, Table[Any]], change: Change) -> None:
    """One change of the tables of a database; the same in every database that equals it."""
    name, row, count = change
    table = own[name]
    if name == "k":
        key = row.a
        if key != key:
            return  # a table refuses NaN as a key
        if count > 0:
            table.upsert(row)
        elif key in table:
            table.delete(key)
    elif count > 0:
        table.add(row, count)
    else:
        held = sorted(table.items(), key=repr)
        if held:
            table.remove(held[sum(map(ord, repr(row))) % len(held)][0])

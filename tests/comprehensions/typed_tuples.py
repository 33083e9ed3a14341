"""Sub-queries over plain tuples of two to five typed places, and the results of Python.

The key, the value and the tested field stand in every place, since the engine also reads a key and
a row that it has combined itself by `row[0]` and `row[1]`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

from reactive import Bag, Count, CountDistinct, Database, Max, Min
from tests.written import evaluated

FORMS = (
    "len({{{v} for {row} in rows if {k} == w}})",
    "len([{v} for {row} in rows if {k} == w])",
    "len({{({v}, {k}) for {row} in rows if {k} == w and {x} != 'b'}})",
    "sum({size} for {row} in rows if {k} == w)",
    "sum({each} for each in {{{v} for {row} in rows if {k} == w}})",
    "sum(({v}, {x}) == ({x}, w) for {row} in rows if {k} == w)",
    "max({{{v} for {row} in rows if {k} == w}}, default={least})",
    "min([{v} for {row} in rows if w == {k}], default={least})",
    "max((({v}, {x}) for {row} in rows if {k} == w), default=None)",
    "bool([{v} for {row} in rows if {k} == w])",
    "any([{x} == {v} for {row} in rows if {k} == w])",
    "not any({k} == w for {row} in rows if {v} == {x})",
    "any({v} < {x} for {row} in rows if {k} == w)",
    "all({v} <= {x} for {row} in rows if {k} == w)",
    "w in {{{v} for {row} in rows if {k} < w}}",
    "w not in [{v} for {row} in rows if {k} == {x}]",
    "(w, 'b') in [({k}, {v}) for {row} in rows]",
    "len({{{v} for {row} in rows if {k} == w}} | {{{x} for {row} in rows if {k} == w}})",
    "len({{{v} for {row} in rows if {k} == w}} & {{{x} for {row} in rows if {k} <= w}})",
    "len({{{v} for {row} in rows if {k} == w}} - {{{x} for {row} in rows if {v} == w}})",
    "frozenset({{{v} for {row} in rows if {k} == w}})",
    "tuple(sorted({{{v} for {row} in rows if {k} == w}}))",
    "tuple(sorted([{v} for {row} in rows if {k} == w]))",
    "sum(1 for {row} in rows if {k} == w and any({v} == {ov} for {other} in rows if {ok} == {x}))",
)
"""Values for a word `w`, of the rows whose place `k` has it."""

CHAINS: tuple[Callable[[Any, int, int], Any], ...] = (
    lambda of, v, x: of.select(_item(v)).distinct(),
    lambda of, v, x: of.where(_other(x)).select(_items(v, x)).distinct(),
    lambda of, v, x: of.select(_item(v)).union(of.select(_item(x))),
    lambda of, v, x: of.select(_item(v)).difference(of.select(_item(x))),
    lambda of, v, x: of.select(_item(v)).intersection(of.select(_item(x))),
    lambda of, v, x: of.select(_item(v)),
    lambda of, v, x: of,
    lambda of, v, x: of.distinct(),
    lambda of, v, x: of.select(_item(v)).aggregate(Count()),
    lambda of, v, x: of.select(_item(v)).distinct().aggregate(Count()),
    lambda of, v, x: of.order_by(lambda t: repr(t)).limit(2),
    lambda of, v, x: of.where(_other(x)).distinct().order_by(lambda t: repr(t)).limit(1),
    lambda of, v, x: of.order_by(_items(v, x)).limit(2).select(_items(v, x)),
    lambda of, v, x: of.select(_item(v)).distinct().order_by(lambda value: value).limit(2),
    lambda of, v, x: of.select(_item(v)).aggregate(Max(lambda value: value)),
    lambda of, v, x: of.select(_items(x, v)).distinct().aggregate(Min(lambda pair: pair)),
    lambda of, v, x: of.aggregate(CountDistinct(_items(v, x))),
    lambda of, v, x: of.select(_items(v, x)).difference(of.select(_items(x, v))),
)
"""Relations of the rows of a group; `_expected` has the rows of each."""
ORDERING = range(12, 16)
"""Chains whose values have to compare."""


def _item(place: int) -> Any:
    return evaluated(f"lambda t: t[{place}]", {})


def _items(one: int, other: int) -> Any:
    return evaluated(f"lambda t: (t[{one}], t[{other}])", {})


def _other(place: int) -> Any:
    return evaluated(f"lambda t: t[{place}] != 'b'", {})


KINDS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (str, ("a", "b", "c")),
    (int, (0, 1, 2)),
    (float, (0.5, 1.0, 2.5)),
    (bool, (False, True)),
    (date, (date(2024, 1, 31), date(2024, 2, 29), date(1970, 1, 1))),
    (str | None, ("a", None, "c")),
    (int | None, (0, 1, None)),
    (bytes, (b"", b"a", b"bc")),
    (tuple[int, ...], ((), (1,), (1, 2))),
    (Decimal, (Decimal("0.5"), Decimal(1), Decimal(-2))),
)
"""Types of places, and values of each."""
NUMBERS = (int, float, bool)
"""Types whose values compare with each other."""
SIZED = (str, bytes, tuple[int, ...])
NAMES = {"datetime": datetime, "Decimal": Decimal}
"""Names that the texts of values have."""
COMPARING = ("min(", "max(", " < ", "<=", "sorted(")
"""Parts of forms whose values have to compare."""


class Case:
    """A table of tuples, the words around, and where key, value and the third are.

    With `typed`, each place has a type of its own, and words are values of the key's.
    """

    def __init__(self, random: Random, *, typed: bool = False) -> None:
        self.random = random
        self.width = random.randint(2, 5)
        self.db = Database(optimize=random.random() < 0.8)
        some = random.choice(((random.choice(KINDS),), KINDS[1:4], KINDS)) if typed else KINDS[:1]
        self.kinds = [random.choice(some) for _ in range(self.width)]
        kind: Any = tuple[tuple(each for each, _ in self.kinds)]  # type: ignore[misc]
        self.k, self.v, self.x = (random.randrange(self.width) for _ in range(3))
        self.rows: Any = self.db.table(kind, name="rows")
        self.who: Any = self.db.table(self.kinds[self.k][0], name="who")

    def row(self) -> tuple[Any, ...]:
        return tuple(self.random.choice(values) for _, values in self.kinds)

    def takes(self, form: str) -> bool:
        """Return True if the values of the places support the operations of a form."""
        return self.orders or not any(part in form for part in COMPARING)

    @property
    def orders(self) -> bool:
        """Return True if the values of the three places compare."""
        types = {self.kinds[place][0] for place in (self.k, self.v, self.x)}
        is_one = len(types) == 1 or types <= {*NUMBERS}
        return is_one and not types & {str | None, int | None}

    def change(self) -> None:
        """Insert rows and words, or delete some that are there."""
        random = self.random
        with self.db.transaction():
            for _ in range(random.randint(1, 4)):
                held = list(self.rows)
                if held and random.random() < 0.35:
                    self.rows.remove(random.choice(held))
                else:
                    self.rows.add(self.row())
            if random.random() < 0.6:
                self.who.add(random.choice(self.kinds[self.k][1]))

    def text(self, form: str) -> str:
        """The form with places, as names of an unpacked row or as items of it."""
        names = self.random.random() < 0.5
        row, other = (self._row(name, names) for name in "to")
        places = {
            name: f"t{at}" if names else f"t[{at}]"
            for name, at in zip("kvx", (self.k, self.v, self.x), strict=True)
        }
        more = {
            f"o{name}": f"o{at}" if names else f"o[{at}]"
            for name, at in zip("kv", (self.k, self.v), strict=True)
        }
        type_, values = self.kinds[self.v]
        one, each = (
            f"len({name})" if type_ in SIZED else f"({name} == {values[0]!r})"
            for name in (places["v"], "each")
        )
        values_ = {"size": one, "each": each, "least": repr(values[0])}
        return form.format(row=row, other=other, **places, **more, **values_)

    def _row(self, name: str, names: bool) -> str:
        return ", ".join(f"{name}{at}" for at in range(self.width)) if names else name


def play_comprehension(seed: int, *, typed: bool = False) -> None:
    """Compare a view of a comprehension with its text over lists, after every commit."""
    case = Case(Random(seed), typed=typed)
    case.change()
    value = case.text(case.random.choice([form for form in FORMS if case.takes(form)]))
    text = case.random.choice((f"[(w, {value}) for w in who]", f"{{(w, {value}) for w in who}}"))
    names = {"db": case.db, "rows": case.rows, "who": case.who, **NAMES}
    view = evaluated(f"db.query(lambda: {text})", names).materialize()
    for _ in range(4):
        expected = evaluated(text, {"rows": list(case.rows), "who": list(case.who), **NAMES})
        assert Bag(view) == Bag(expected), (seed, text, list(case.rows), list(case.who))
        view.verify()
        case.change()


def _expected(number: int, rows: list[tuple[Any, ...]], v: int, x: int) -> list[Any]:
    """Return the expected result of chain `number` over the rows of one group."""
    values = [row[v] for row in rows]
    others = [row[x] for row in rows]
    pairs = [(row[v], row[x]) for row in rows]
    orders = number in ORDERING
    made: Mapping[int, Any] = {
        0: set(values),
        1: {(row[v], row[x]) for row in rows if row[x] != "b"},
        2: set(values) | set(others),
        3: set(values) - set(others),
        4: set(values) & set(others),
        5: values,
        6: rows,
        7: set(rows),
        8: [len(values)],
        9: [len(set(values))],
        10: sorted(rows, key=repr)[:2],
        11: sorted({row for row in rows if row[x] != "b"}, key=repr)[:1],
        12: sorted(pairs)[:2] if orders else [],
        13: sorted(set(values))[:2] if orders else [],
        14: [max(values, default=None)] if orders else [],
        15: [min(((b, a) for a, b in pairs), default=None)] if orders else [],
        16: [len(set(pairs))],
        17: set(pairs) - {(b, a) for a, b in pairs},
    }
    return list(made[number])


def play_group(seed: int, *, typed: bool = False) -> None:
    """Compare `each`, `rows` and `nest` with plain Python, after every commit."""
    case = Case(Random(seed), typed=typed)
    case.change()
    number = case.random.choice([n for n in range(len(CHAINS)) if case.orders or n not in ORDERING])
    chain, k, v, x = CHAINS[number], case.k, case.v, case.x
    groups = case.rows.group_by(_item(k))
    each = groups.each(lambda g: chain(g, v, x)).materialize()
    rows = groups.rows(lambda g: chain(g, v, x)).materialize()
    link = evaluated(f"lambda w: lambda t: t[{k}] == w", {})
    nest = case.who.nest(inner=lambda w: chain(case.rows.where(link(w)), v, x)).materialize()
    for _ in range(4):
        held: dict[Any, list[Any]] = {}
        for row in case.rows:
            held.setdefault(row[k], []).append(row)
        given = {key: _expected(number, each_, v, x) for key, each_ in held.items()}
        where = (seed, case.width, k, v, x, number, list(case.rows))
        flat = Bag((key, row) for key, made in given.items() for row in made)
        assert Bag(each) == flat, where
        assert Bag((row[0], Bag(row[1])) for row in rows) == Bag(
            (key, Bag(made)) for key, made in given.items()
        ), where
        wanted = Bag((w, Bag(_expected(number, held.get(w, []), v, x))) for w in case.who)
        assert Bag((row[0], Bag(row[1])) for row in nest) == wanted, where
        for view in (each, rows, nest):
            view.verify()
        case.change()

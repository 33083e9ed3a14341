"""Random histories of objects that change, compared with the objects after every commit.

The oracle is a comprehension over the objects that should be in the tables. A refused or undone
change must leave objects and tables as they were; an unseen change must be found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from reactive import Count, Database, Sum, TableError, of
from tests.borders.objects.kinds import KINDS, Checked, behind

BAD = 13.0
"""A total that makes a callable raise."""
CUSTOMERS = ("ann", "bob", None)
TOTALS = (1.0, 7, 11.5, float("nan"), 40.0)
NAMES = ("id", "total", "customer", "note")


class Refused(Exception):
    """Raised by callables of queries, and in transactions."""


def fussy(total: float) -> float:
    if total == BAD:
        raise Refused
    return total


class History:
    """Two tables of objects of one kind, and views over them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.kind = self.random.choice(KINDS)
        self.db = Database(strict=self.random.random() < 0.3)
        self.orders = self.db.table(self.kind, name="orders", key="id")
        self.others = self.db.table(self.kind, name="others")
        self.views: dict[str, Any] = {}
        self.here: list[Any] = []
        """The objects that `orders` has."""
        self.there: list[Any] = []
        """The objects that `others` has."""
        self.outside: dict[tuple[int, str], str] = {}
        """Attributes that objects outside the tables had when a transaction began."""
        self.every = [self.made(number) for number in range(8)]
        self.see("large")

    def made(self, number: int) -> Any:
        r = self.random
        return self.kind(id=number, total=r.choice(TOTALS), customer=r.choice(CUSTOMERS))

    def see(self, name: str) -> None:
        """Materialize one more view."""
        orders, others = self.orders, self.others
        makes: dict[str, Callable[[], Any]] = {
            "large": lambda: orders.where(lambda o: o.total > 10).select(lambda o: o.id),
            "sums": lambda: orders.group_by(lambda o: o.customer).aggregate(
                Count(), Sum(lambda o: o.id)
            ),
            "rows": lambda: orders.where(lambda o: o.is_large),
            "taxes": lambda: others.select(lambda o: (o.id, o.with_tax())),
            "pairs": lambda: orders.join(
                others, left_key=lambda o: o.customer, right_key=lambda o: o.customer
            ).select(lambda a, b: (a.id, b.id, b.note)),
            "notes": lambda: orders.select(lambda o: o.note),
            "both": lambda: orders.intersection(others).select(lambda o: o.id),
            "fussy": lambda: orders.select(lambda o: fussy(o.total)),
        }
        if name not in self.views and (name != "fussy" or self.are_good()):
            self.views[name] = makes[name]().materialize()

    def are_good(self) -> bool:
        return all(o.total != BAD for o in self.here)

    def check(self) -> None:
        """Compare everything that is shown with the objects."""
        here, there = self.here, self.there
        wanted: dict[str, Callable[[], Any]] = {
            "large": lambda: [o.id for o in here if o.total > 10],
            "taxes": lambda: [(o.id, o.with_tax()) for o in there],
            "pairs": lambda: [
                (a.id, b.id, b.note) for a in here for b in there if a.customer == b.customer
            ],
            "notes": lambda: [o.note for o in here],
            "both": lambda: [o.id for o in here if any(o is p for p in there)],
            "fussy": lambda: [o.total for o in here],
        }
        for name, view in self.views.items():
            if name in wanted:
                found, expected = Counter(map(shown, view)), Counter(map(shown, wanted[name]()))
                assert found == expected, (name, found, expected)
        if "sums" in self.views:
            groups: dict[Any, list[int]] = {}
            for o in here:
                groups.setdefault(o.customer, []).append(o.id)
            sums = {key: (len(ids), sum(ids)) for key, ids in groups.items()}
            assert dict(self.views["sums"]) == sums, (dict(self.views["sums"]), sums)
        if "rows" in self.views:
            rows = {id(of(row)): row for row in self.views["rows"]}
            assert rows.keys() == {id(o) for o in here if o.is_large}
            assert all(values(row) == values(of(row)) for row in rows.values())
        if self.random.random() < 0.3:  # reading updates fields that no query reads
            self.check_tables()
        assert self.db.check_silent() == []

    def check_tables(self) -> None:
        for table, objects in ((self.orders, self.here), (self.others, self.there)):
            rows = {id(of(row)): row for row in table}
            assert rows.keys() == {id(o) for o in objects}, (table, rows, objects)
            for o in objects:
                assert values(rows[id(o)]) == values(o), (rows[id(o)], o)
        assert {o.id for o in self.here} == set(self.orders._keyed.by_key)

    # What happens.

    def step(self) -> None:
        r = self.random
        act = r.choice(
            (*[self.assign] * 4, *[self.together] * 2, self.rolled_back, self.move, self.unseen)
            + ((self.look,) if len(self.views) < 8 else ())
        )
        act()
        self.check()

    def look(self) -> None:
        names = ("sums", "rows", "taxes", "pairs", "notes", "both", "fussy")
        name = self.random.choice(names)
        if self.views and self.random.random() < 0.2:
            del self.views[self.random.choice([*self.views])]
        self.see(name)

    def assign(self) -> None:
        """Assign something, alone; it may be refused."""
        o, name, value = self.drawn()
        before = values(o)
        try:
            setattr(o, name, value)
        except (TableError, Refused):
            wrong = values(o)
            assert wrong == before, (wrong, before)
            assert self.would_be_refused(o, name, value), (o, name, value)
        else:
            assert not self.is_refused(), (o, name, value)

    def drawn(self) -> tuple[Any, str, Any]:
        r = self.random
        name = r.choice(NAMES)
        draws: dict[str, Callable[[], Any]] = {
            "id": lambda: r.randrange(12),
            "total": lambda: r.choice((*TOTALS, BAD)),
            "customer": lambda: r.choice(CUSTOMERS),
            "note": lambda: r.choice(("", "x", "y")),
        }
        value = draws[name]()
        return r.choice(self.every), name, value

    def would_be_refused(self, o: Any, name: str, value: Any) -> bool:
        others = [other for other in self.here if other is not o]
        if name == "id":
            return any(other.id == value for other in others) and is_in(o, self.here)
        return name == "total" and value == BAD and "fussy" in self.views and is_in(o, self.here)

    def is_refused(self) -> bool:
        """Return True if the objects are in a state that no commit may leave."""
        ids = [o.id for o in self.here]
        return len(ids) > len(set(ids)) or ("fussy" in self.views and not self.are_good())

    def move(self) -> None:
        """Add, remove or replace objects, alone."""
        here, there = [*self.here], [*self.there]
        try:
            self.moved()
        except (TableError, Refused):
            self.here, self.there = here, there

    def moved(self) -> None:
        r, o = self.random, self.random.choice(self.every)
        acts = ("add", "add", "remove", "upsert", "other", "all", "fresh", "by key", "update")
        match r.choice(acts):
            case "add":
                self.here = [*self.here, o]
                self.orders.add(o)
            case "remove":
                self.here = [p for p in self.here if p is not o]
                self.orders.remove(o)
            case "upsert":
                self.here = [p for p in self.here if p.id != o.id and p is not o] + [o]
                self.orders.upsert(o)
            case "other":
                if is_in(o, self.there):
                    self.there = [p for p in self.there if p is not o]
                    self.others.discard(o)
                else:
                    self.there = [*self.there, o]
                    self.others.add(o)
            case "all":
                self.there = r.sample(self.every, 3)
                self.others.replace_all(self.there)
            case "fresh":
                new = self.made(r.randrange(12))
                self.every[r.randrange(len(self.every))] = new
                self.here = [*self.here, new]
                self.orders.add_all([new])
            case "by key":
                self.here = [p for p in self.here if p.id != o.id]
                self.orders.delete(o.id)
            case "update" if is_in(o, self.here):
                new = r.choice(self.every)
                self.here = [p for p in self.here if p is not o and p is not new] + [new]
                self.orders.update(o, new)

    def together(self, *, fails: bool = False) -> None:
        """Several changes in one transaction, which may be refused at its end."""
        before = (self.here, self.there, [*self.every])
        found: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.outside = {}
        version = self.db.version
        refused: bool | None = None
        try:
            with self.db.transaction():
                for _ in range(self.random.randrange(1, 6)):
                    self.change_within(found)
                    if self.random.random() < 0.2:
                        self.check_tables_within()
                refused = self.is_refused()
                if fails:
                    raise Refused
        except (TableError, Refused):
            assert fails or refused is not False, "refused without a reason"
            self.here, self.there, self.every = before
            for o, old in found.values():
                for name, value in old.items():
                    # it is tracked from its insertion on, or still is from an earlier one
                    may_be = {repr(value), self.outside.get((id(o), name), repr(value))}
                    assert repr(getattr(o, name)) in may_be, (o, name, may_be)
        else:
            assert not refused
            assert self.db.version <= version + 1

    def change_within(self, found: dict[int, tuple[Any, dict[str, Any]]]) -> None:
        if self.random.random() < 0.3:
            here, there = [*self.here], [*self.there]
            try:
                self.moved()
            except TableError:
                self.here, self.there = here, there
            return
        o, name, value = self.drawn()
        if is_in(o, self.here) or is_in(o, self.there):
            found.setdefault(id(o), (o, {}))[1].setdefault(name, getattr(o, name))
        else:
            self.outside.setdefault((id(o), name), repr(getattr(o, name)))
        setattr(o, name, value)

    def check_tables_within(self) -> None:
        if not self.has_twice():
            self.check_tables()

    def has_twice(self) -> bool:
        ids = [o.id for o in self.here]
        return len(ids) > len(set(ids))

    def rolled_back(self) -> None:
        self.together(fails=True)

    def unseen(self) -> None:
        """Change an attribute unseen; the change must be found and reported."""
        o, name, value = self.drawn()
        tables = [is_in(o, self.here), is_in(o, self.there)]
        old = getattr(o, name)
        if self.kind is Checked and name == "total":
            value = float(value)
        if name == "id" or value == BAD or repr(value) == repr(old):
            return
        list(self.orders), list(self.others)  # rows show all assigned values, also unread ones
        behind(o, name, value)
        found = self.db.check_silent()
        wanted = [("orders", "others")[place] for place in (0, 1) if tables[place]]
        assert [(s.object is o, s.attributes) for s in found] == [(True, (name,))] * len(wanted)
        assert [s.table for s in found] == wanted
        if any(tables):
            self.db.touch(o)


def shown(row: Any) -> str:
    return repr(float(row)) if isinstance(row, int | float) else repr(row)


def is_in(o: Any, objects: list[Any]) -> bool:
    return any(o is each for each in objects)


def values(o: Any) -> list[str]:
    return [repr(getattr(o, name)) for name in NAMES]


def play(seed: int, steps: int = 40) -> None:
    history = History(seed)
    for _ in range(steps):
        history.step()
    history.check_tables()
    for view in history.views.values():
        view.verify()

"""Random histories of objects that dictionaries of several objects share.

The oracle is a comprehension over the objects, after every commit. A transaction that fails
restores the objects that were in tables at its beginning, even if they were removed, moved and
changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from reactive import Database, tracked
from tests.borders.objects.histories import Refused, is_in
from tests.borders.objects.inner_histories import Line

KEYS = "abcde"
WORDS = ("tea", "rum", "gin")


@tracked
class Holder:
    id: int
    stock: dict[str, Any]
    best: Any = None


def shown(value: Any) -> str:
    if isinstance(value, Line):
        return f"{value.what} {value.price}"
    if hasattr(value, "items"):
        return str([(key, shown(item)) for key, item in value.items()])
    return str(value) if isinstance(value, str | None) else str(list(map(shown, value)))


class SharedHistory:
    def __init__(self, seed: int) -> None:
        self.random = r = Random(seed)
        self.db = Database()
        self.table = self.db.table(Holder, key="id")
        self.lines = [Line("tea", 0), Line("rum", 1)]
        self.objects = [Holder(number, self.stock()) for number in range(3)]
        self.here = self.objects[:2]
        self.table.add_all(self.here)
        every = self.queries()
        self.views = [
            (make().materialize(), wanted) for make, wanted in r.sample(every, r.randrange(1, 4))
        ]

    def queries(self) -> list[tuple[Callable[[], Any], Callable[[], list[Any]]]]:
        t = self.table
        return [
            (
                lambda: t.unnest(lambda o: o.stock.items()).select(
                    lambda o, x: (o.id, x[0], shown(x[1]))
                ),
                lambda: [(o.id, key, shown(x)) for o in self.here for key, x in o.stock.items()],
            ),
            (
                lambda: t.unnest(lambda o: o.stock.items()).select(
                    lambda o, x: (x[0], shown(x[1]))
                ),
                lambda: [(key, shown(x)) for o in self.here for key, x in o.stock.items()],
            ),
            (
                lambda: t.unnest(lambda o: o.stock.values()).select(lambda o, x: shown(x)),
                lambda: [shown(x) for o in self.here for x in o.stock.values()],
            ),
            (
                lambda: t.select(lambda o: (o.id, shown(o.stock))),
                lambda: [(o.id, shown(o.stock)) for o in self.here],
            ),
            (
                lambda: t.select(lambda o: shown(o.best)),
                lambda: [shown(o.best) for o in self.here],
            ),
        ]

    def stock(self) -> dict[str, Any]:
        r = self.random
        return {key: r.choice(self.lines) for key in r.sample(KEYS, 2)}

    def value(self) -> Any:
        line = self.random.choice(self.lines)
        return self.random.choice((line, line, line, line, [line], {"k": line}, "none"))

    def edit(self) -> None:
        r = self.random
        o, line = r.choice(self.objects), r.choice(self.lines)
        stock = o.stock
        acts: list[Any] = [
            lambda: stock.__setitem__(r.choice(KEYS), self.value()),
            lambda: stock.__setitem__(r.choice(KEYS), line),
            lambda: stock.pop(r.choice(KEYS), None),
            lambda: stock and stock.popitem(),
            lambda: stock.update(self.stock()),
            lambda: stock.setdefault(r.choice(KEYS), line),
            lambda: stock.clear() if r.random() < 0.3 else None,
            lambda: setattr(o, "stock", self.stock()),
            lambda: setattr(o, "stock", r.choice(self.objects).stock),
            lambda: setattr(o, "best", self.value()),
            *[lambda: setattr(line, "price", r.randrange(9))] * 2,
            lambda: setattr(line, "what", r.choice(WORDS)),
            lambda: self.move(o),
            lambda: list(self.table),
        ]
        r.choice(acts)()

    def move(self, o: Holder) -> None:
        if is_in(o, self.here):
            self.table.remove(o)
            self.here = [each for each in self.here if each is not o]
        else:
            self.table.add(o)
            self.here = [*self.here, o]

    def step(self) -> None:
        if self.random.random() < 0.4:
            self.edit()
        else:
            self.together(fails=self.random.random() < 0.5)
        for view, wanted in self.views:
            assert Counter(view) == Counter(wanted()), (list(view), wanted())
        assert self.db.check_silent() == []

    def together(self, *, fails: bool) -> None:
        here, before = self.here, self.held()
        try:
            with self.db.transaction():
                for _ in range(self.random.randrange(1, 7)):
                    self.edit()
                if fails:
                    raise Refused
        except Refused:
            self.here = here
            assert self.held() == before, (self.held(), before)

    def held(self) -> list[str]:
        return [shown([o.stock, o.best]) for o in self.here]


def play(seed: int, steps: int = 40) -> None:
    history = SharedHistory(seed)
    for _ in range(steps):
        history.step()
    rows = {row.id: row for row in history.table}
    for o in history.here:
        assert shown([rows[o.id].stock, rows[o.id].best]) == shown([o.stock, o.best])
    for view, _ in history.views:
        view.verify()

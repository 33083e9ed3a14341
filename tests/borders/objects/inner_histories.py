"""Random histories of objects with lists, dictionaries and sets inside, and objects in these.

The oracle is a comprehension over the objects, after every commit. It covers undone changes, and
unseen changes that are reported later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from reactive import Database, of, tracked
from tests.borders.objects.histories import Refused, is_in


@tracked
class Line:
    what: str
    price: int = 1


@tracked
class Order:
    id: int
    lines: list[Any]
    stock: dict[str, Any]
    tags: set[int]


WORDS = ("tea", "rum", "gin")
BAD = "bad"


def fussy(word: str) -> str:
    if word == BAD:
        raise Refused
    return word


class InnerHistory:
    def __init__(self, seed: int) -> None:
        self.random = r = Random(seed)
        self.db = Database()
        self.orders = self.db.table(Order, key="id")
        self.lines = [Line(word, place) for place, word in enumerate(WORDS)]
        self.objects = [Order(n, r.choices(WORDS, k=r.randrange(4)), {}, {n}) for n in range(4)]
        self.here = self.objects[:3]
        self.orders.add_all(self.here)
        o = self.orders
        makes: list[Callable[[], Any]] = [
            lambda: o.unnest(lambda o: o.lines).select(lambda o, x: (o.id, shown(x))),
            lambda: o.select(lambda o: (o.id, len(o.lines), tuple(map(shown, o.lines)))),
            lambda: o.unnest(lambda o: o.stock.items()).select(lambda o, x: (x[0], shown(x[1]))),
            lambda: o.where(lambda o: 2 in o.tags).select(lambda o: o.id),
            lambda: o.unnest(lambda o: o.lines).select(lambda o, x: fussy(shown(x))),
        ]
        self.kept = sorted(r.sample(range(5), r.randrange(1, 5)))
        self.views = [makes[place]().materialize() for place in self.kept]

    def check(self) -> None:
        here = self.here
        every: list[list[Any]] = [
            [(o.id, shown(x)) for o in here for x in o.lines],
            [(o.id, len(o.lines), tuple(map(shown, o.lines))) for o in here],
            [(key, shown(x)) for o in here for key, x in o.stock.items()],
            [o.id for o in here if 2 in o.tags],
            [shown(x) for o in here for x in o.lines],
        ]
        for place, view in zip(self.kept, self.views, strict=True):
            assert Counter(view) == Counter(every[place]), (place, list(view), every[place])
        assert self.db.check_silent() == []

    def check_rows(self) -> None:
        rows = {row.id: row for row in self.orders}
        assert rows.keys() == {o.id for o in self.here}
        for o in self.here:
            assert shown(rows[o.id]) == shown(o)
            assert of(rows[o.id]) is o

    def step(self) -> None:
        act = self.random.choice((self.alone, self.alone, self.together, self.fails, self.unseen))
        act()
        self.check()
        if self.random.random() < 0.2:
            self.check_rows()

    def alone(self) -> None:
        before = self.held()
        try:
            self.edit()
        except Refused:
            assert self.held() == before

    def together(self, *, fails: bool = False) -> None:
        before, here = self.held(), [*self.here]
        version = self.db.version
        try:
            with self.db.transaction():
                for _ in range(self.random.randrange(1, 6)):
                    self.edit()
                    if self.random.random() < 0.1:
                        self.check_rows()
                if fails:
                    raise Refused
        except Refused:
            self.here = here
            assert self.held() == before
        else:
            assert not fails
            assert self.db.version <= version + 1

    def fails(self) -> None:
        self.together(fails=True)

    def held(self) -> list[Any]:
        return [shown(o) for o in self.here]

    def value(self) -> Any:
        r = self.random
        return r.choice((*WORDS, *WORDS, *self.lines, BAD) if r.random() < 0.5 else WORDS)

    def edit(self) -> None:
        """Change something inside of an object that is there, or the object."""
        r = self.random
        o = r.choice(self.here)
        lines, stock, tags = o.lines, o.stock, o.tags
        acts: list[Any] = [
            lambda: lines.append(self.value()),
            lambda: lines.insert(r.randrange(4), self.value()),
            lambda: lines and lines.pop(r.randrange(len(lines))),
            lambda: lines.extend([self.value(), [self.value()]]),
            lambda: lines.__setitem__(slice(r.randrange(3), 3), [self.value()]),
            lambda: lines.reverse(),
            lambda: lines.clear(),
            lambda: next((x for x in lines if isinstance(x, list)), [0]).append(self.value()),
            lambda: setattr(o, "lines", [self.value()]),
            lambda: setattr(o, "lines", r.choice(self.here).lines),
            lambda: stock.__setitem__(r.choice(WORDS), self.value()),
            lambda: stock.pop(r.choice(WORDS), None),
            lambda: stock.setdefault(r.choice(WORDS), [self.value()]),
            lambda: stock.update({"tea": r.choice(self.lines)}),
            lambda: tags.add(r.randrange(4)),
            lambda: tags.discard(r.randrange(4)),
            lambda: tags.symmetric_difference_update({1, 2}),
            lambda: setattr(r.choice(self.lines), "price", r.randrange(9)),
            lambda: setattr(r.choice(self.lines), "what", r.choice(WORDS)),
        ]
        r.choice(acts)()

    def unseen(self) -> None:
        r = self.random
        list(self.orders)  # rows show all assigned values
        o = r.choice(self.here)
        match r.randrange(4):
            case 0:
                list.append(o.lines, "gin")
                name = "lines"
            case 1:
                dict.__setitem__(o.stock, "new", r.random())
                name = "stock"
            case 2:
                set.symmetric_difference_update(o.tags, {3})
                name = "tags"
            case _:
                vars(o)["lines"] = ["tea", r.random()]
                name = "lines"
        found = self.db.check_silent()
        assert any(s.object is o and s.attributes == (name,) for s in found), found
        for each in self.here:
            if each is o or any(s.object is each for s in found):
                self.db.touch(each)
        assert is_in(o, self.here)
        if name == "stock":
            del o.stock["new"]


def shown(value: Any) -> Any:
    """Return the items of a value, object or row; only sets are sorted."""
    if isinstance(value, Line):
        return f"{value.what} {value.price}"
    if isinstance(value, Order):
        return (value.id, *map(shown, (value.lines, value.stock, value.tags)))
    if hasattr(value, "items"):
        return str([(key, shown(item)) for key, item in value.items()])
    if isinstance(value, str | int | float):
        return value
    parts = list(map(shown, value))
    is_set = isinstance(value, set) or type(value).__name__ == "FrozenSet"
    return str(sorted(parts) if is_set else parts)


def play(seed: int, steps: int = 30) -> None:
    history = InnerHistory(seed)
    for _ in range(steps):
        history.step()
    history.check_rows()
    for view in history.views:
        view.verify()

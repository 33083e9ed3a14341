"""The rows of a plan, by the definition of each operator over lists, without the library.

Every callable is evaluated on every row, or pair, that the plan as written evaluates it on: an
error here is an error in the library, and there are no others.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any

from reactive.engine.collections.sorted_copies import value_key
from tests.random_queries import moments
from tests.random_queries.folds import folded
from tests.random_queries.nodes import REDUCERS, Key, Node, every
from tests.random_queries.orders import Keyed, in_order
from tests.random_queries.rows import BY_NAME, A, Kind, M, S, bag, frozen, once

NAMED: Mapping[str, Callable[..., Any]] = {
    "G": namedtuple("G", "key one two"),
    "O": namedtuple("O", "one two"),
    "S": lambda a, b: S(a=a, b=b),
    "A": lambda a, b: A(a=a, b=b),
    "M": lambda a, b: M(a=a, b=b),
}
"""Constructors of the named rows of an aggregate."""
NOTHING: Mapping[Any, Any] = {}
MOST_ROWS = 700
MOST_PAIRS = 60_000
MOST_ROUNDS = 300
Rows = Sequence[Any]
Inside = Mapping[tuple[int, int], Rows]
"""The rows of recursive relations in this round."""


class TooLarge(Exception):
    """Raised for a result that would take too long; the history continues without it."""


class Oracle:
    """Evaluate plans over some tables; each plan once.

    `marks` are the watermarks of streams by their places. `pairs` are the rows of look-ups by the
    numbers of their nodes: all that were found as the events came. Without them, look-ups are of
    the rows of `relations`: the tables then hold only the events of one commit.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        tables: Sequence[Rows],
        *,
        marks: Mapping[int, Any] = NOTHING,
        pairs: Mapping[int, Rows] | None = None,
        relations: Oracle | None = None,
    ) -> None:
        self._names = names
        self._tables = tables
        self._marks = marks
        self._pairs = pairs
        self._relations = relations or self
        self._found: dict[int, Rows] = {}

    def rows(self, node: Node, inside: Inside | None = None) -> Rows:
        found = self._found.get(node.number)
        if found is None:
            found = getattr(self, f"_{node.op}")(node, inside or {})
            if len(found) > MOST_ROWS:
                raise TooLarge
            if not node.free:
                self._found[node.number] = found
        return found

    def keyed(self, node: Node) -> list[Keyed]:
        """The keys of an order, as callables of a row."""
        return [(self._call(key.of, node), key) for key in node.more[0]]

    def _call(self, name: str, node: Node) -> Callable[[Any], Any]:
        """A callable, of a row of the only input, or of the left one."""
        function, kinds = self._names[name], node.inputs[0].kinds
        if isinstance(function, str):
            return self._field(function, kinds)
        return function if len(kinds) == 1 else lambda row: function(*row)

    def _field(self, name: str, kinds: tuple[Kind, ...]) -> Callable[[Any], Any]:
        """The field of a row; of the only one of its bindings that has it."""
        if len(kinds) == 1:
            return attrgetter(name)
        (place,) = (i for i, kind in enumerate(kinds) if name in BY_NAME.get(str(kind), ()))
        return lambda row: getattr(row[place], name)

    def _of_right(self, name: str) -> Callable[[Any], Any]:
        function = self._names[name]
        return attrgetter(function) if isinstance(function, str) else function

    def _of_both(self, name: str, node: Node) -> Callable[..., Any]:
        """Return a condition of two rows; the left one may have several bindings."""
        on = self._names[name]
        if callable(on):
            return on  # type: ignore[no-any-return]
        one, other = (on, on) if isinstance(on, str) else on
        kinds = node.inputs[0].kinds
        left, right = self._field(one, kinds), attrgetter(other)
        if len(kinds) == 1:
            return lambda a, b: left(a) == right(b)
        return lambda *rows: left(rows[:-1]) == right(rows[-1])

    def _input(self, node: Node, inside: Inside) -> Rows:
        return self.rows(node.inputs[0], inside)

    def _both(self, node: Node, inside: Inside) -> tuple[Rows, Rows]:
        return self.rows(node.inputs[0], inside), self.rows(node.inputs[1], inside)

    def _table(self, node: Node, inside: Inside) -> Rows:
        return self._tables[node.more]

    def _watermark(self, node: Node, inside: Inside) -> Rows:
        return [self._marks[node.more]] if node.more in self._marks else []

    def _window(self, node: Node, inside: Inside) -> Rows:
        rows, at = self._input(node, inside), self._call(node.calls["at"], node)
        kind, *minutes = node.more
        if kind == "session":
            by = self._call(node.calls["by"], node) if "by" in node.calls else _nothing
            pairs = moments.sessions(rows, at, by, timedelta(minutes=minutes[0]))
            return [_beside(node, row, window) for row, window in pairs]
        timed = [(row, moment) for row in rows if (moment := at(row)) is not None]
        return [
            _beside(node, row, window)
            for row, moment in timed
            for window in moments.windows(kind, minutes, moment)
        ]

    def _over(self, node: Node, inside: Inside) -> Rows:
        rows, (_, call) = self._input(node, inside), node.more
        by = self._call(node.calls["by"], node) if "by" in node.calls else _nothing
        row_of, value = (self._call(node.calls[part], node) for part in ("row", "value"))
        value = value if call.reads_values else _nothing
        return [
            (row_of(row), answer)
            for row, answer in moments.over(rows, by, self.keyed(node), call, value)
        ]

    def _lookup(self, node: Node, inside: Inside) -> Rows:
        if self._pairs is not None:
            return self._pairs.get(node.number, [])
        left, right = self._input(node, inside), self._relations.rows(node.inputs[1])
        mine = self._call(node.calls["left_key"], node)
        other = self._of_right(node.calls["right_key"])
        found = []
        for row in left:
            partners = [each for each in right if other(each) == mine(row)]
            partners = partners or [None] * node.more
            found += [_beside(node, row, each) for each in partners]
        return found

    def _until(self, node: Node, inside: Inside) -> Rows:
        start, body = node.inputs
        rows, until = self.rows(start, inside), self._names[node.calls["until"]]
        while not until(rows):
            then = self.rows(body, {**inside, (node.more[0], 0): rows})
            if bag(then) == bag(rows):
                break
            rows = then
        return rows

    def _recursive(self, node: Node, inside: Inside) -> Rows:
        return inside[node.more]

    def _where(self, node: Node, inside: Inside) -> Rows:
        test = self._call(node.calls["of"], node)
        return [row for row in self._input(node, inside) if test(row)]

    def _equals(self, node: Node, inside: Inside) -> Rows:
        name, place = node.more
        of, value = self._field(name, node.kinds), self._names["POOL"][place]
        return [row for row in self._input(node, inside) if of(row) == value]

    def _select(self, node: Node, inside: Inside) -> Rows:
        return [*map(self._call(node.calls["of"], node), self._input(node, inside))]

    def _extend(self, node: Node, inside: Inside) -> Rows:
        calls = [self._call(name, node) for name in node.calls.values()]
        alone = len(node.inputs[0].kinds) == 1
        return [
            (*((row,) if alone else row), *(call(row) for call in calls))
            for row in self._input(node, inside)
        ]

    def _bind(self, node: Node, inside: Inside) -> Rows:
        calls = [self._call(name, node) for name in node.calls.values()]
        return [_alone([call(row) for call in calls]) for row in self._input(node, inside)]

    def _values(self, node: Node, inside: Inside) -> Rows:
        return [self._names["POOL"][place] for place in node.more]

    def _select_many(self, node: Node, inside: Inside) -> Rows:
        of = self._call(node.calls["of"], node)
        return [element for row in self._input(node, inside) for element in of(row)]

    def _unnest(self, node: Node, inside: Inside) -> Rows:
        of = self._call(node.calls["of"], node)
        rows = self._input(node, inside)
        return [_beside(node, row, element) for row in rows for element in of(row)]

    def _distinct(self, node: Node, inside: Inside) -> Rows:
        return once(self._input(node, inside))

    def _union(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        return once([*left, *right])

    def _union_all(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        return [*left, *right]

    def _difference(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        taken = bag(right)
        return [row for row in once(left) if frozen(row) not in taken]

    def _intersection(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        taken = bag(right)
        return [row for row in once(left) if frozen(row) in taken]

    def _difference_all(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        taken = bag(right)
        return [row for row in left if not _takes(taken, row)]

    def _intersection_all(self, node: Node, inside: Inside) -> Rows:
        left, right = self._both(node, inside)
        taken = bag(right)
        return [row for row in left if _takes(taken, row)]

    def _matches(self, node: Node, inside: Inside) -> tuple[Rows, Rows, list[tuple[int, int]]]:
        """Return the rows of both sides, and the places of the matching rows."""
        left, right = self._both(node, inside)
        if len(left) * len(right) > MOST_PAIRS:
            raise TooLarge
        pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
        calls, count = node.calls, len(node.inputs[0].kinds)
        if "left_key" in calls:
            mine = [*map(self._call(calls["left_key"], node), left)]
            others = [*map(self._of_right(calls["right_key"]), right)]
            pairs = [(i, j) for i, j in pairs if mine[i] == others[j]]
        if "on" in calls:
            on = self._of_both(calls["on"], node)
            bound = [(row,) if count == 1 else row for row in left]
            pairs = [(i, j) for i, j in pairs if on(*bound[i], right[j])]
        return left, right, pairs

    def _join(self, node: Node, inside: Inside) -> Rows:
        left, right, pairs = self._matches(node, inside)
        return [_beside(node, left[i], right[j]) for i, j in pairs]

    def _outer(self, node: Node, inside: Inside) -> Rows:
        left, right, pairs = self._matches(node, inside)
        found = [_beside(node, left[i], right[j]) for i, j in pairs]
        if node.more != "right":
            alone = set(range(len(left))) - {i for i, _ in pairs}
            found += [_beside(node, left[i], None) for i in sorted(alone)]
        if node.more != "left":
            nothing = (None,) * len(node.inputs[0].kinds)
            alone = set(range(len(right))) - {j for _, j in pairs}
            found += [(*nothing, right[j]) for j in sorted(alone)]
        return found

    def _asof(self, node: Node, inside: Inside) -> Rows:
        left, right, pairs = self._matches(node, inside)
        mine = [*map(self._call(node.calls["at"], node), left)]
        others = [*map(self._of_right(node.calls["of"]), right)]
        direction, tolerance, allow_equal, keeps = node.more
        near: dict[int, list[tuple[Any, bool, int]]] = {}
        for i, j in pairs:
            if mine[i] is None or others[j] is None:
                continue
            late, is_after = abs(others[j] - mine[i]), others[j] > mine[i]
            is_wrong = direction == ("backward" if is_after else "forward") and late
            if is_wrong or (not late and not allow_equal):
                continue
            if tolerance is None or late <= tolerance:
                near.setdefault(i, []).append((late, is_after, j))
        found = []
        for i, row in enumerate(left):
            places = sorted(near.get(i, ()), key=lambda p: (p[:2], value_key(right[p[2]])))
            if places or keeps:
                found.append(_beside(node, row, right[places[0][2]] if places else None))
        return found

    def _semi_join(self, node: Node, inside: Inside) -> Rows:
        left, _, pairs = self._matches(node, inside)
        return [left[i] for i in sorted({i for i, _ in pairs})]

    def _anti_join(self, node: Node, inside: Inside) -> Rows:
        left, _, pairs = self._matches(node, inside)
        return [left[i] for i in sorted(set(range(len(left))) - {i for i, _ in pairs})]

    def _group(self, node: Node, inside: Inside) -> Rows:
        rows = self._input(node, inside)
        made = NAMED.get(str(node.row)) if node.more[0].column else None
        if "key" not in node.calls:
            folds = self._folds(node, rows)
            return [_alone(folds) if made is None else made(*folds)]
        groups = self._groups(node, rows)
        found = [(key, *self._folds(node, members)) for key, members in groups]
        return found if made is None else [made(*row) for row in found]

    def _groups(self, node: Node, rows: Rows) -> Collection[tuple[Any, list[Any]]]:
        groups: dict[Any, tuple[Any, list[Any]]] = {}
        key_of = self._call(node.calls["key"], node)
        for row in rows:
            key = key_of(row)
            groups.setdefault(frozen(key), (key, []))[1].append(row)
        return groups.values()

    def _reduce(self, node: Node, inside: Inside) -> Rows:
        groups = self._groups(node, self._input(node, inside))
        make = REDUCERS[node.more]
        return [(key, row) for key, members in groups for row in make(key, members)]

    def _through(self, node: Node, inside: Inside) -> Rows:
        """The number of each row; of two inputs, the product of its numbers in both."""
        if "key" in node.calls:
            groups = self._groups(node, self._input(node, inside))
            return [(key, n) for key, members in groups for n in bag(members).values()]
        first, *others = (bag(self.rows(each, inside)) for each in node.inputs)
        for other in others:
            first = Counter({row: n * other[row] for row, n in first.items() if other[row]})
        return [*first.values()]

    def _each(self, node: Node, inside: Inside) -> Rows:
        groups = self._groups(node, self._input(node, inside))
        body = node.inputs[1]
        return [
            (key, row) if len(body.kinds) == 1 else (key, *row)
            for key, members in groups
            for row in self.rows(body, {**inside, node.more: members})
        ]

    def _top(self, node: Node, inside: Inside) -> Rows:
        groups = self._groups(node, self._input(node, inside))
        keys, count, how = node.more
        if how == "last":
            flip = {"first": "last", "last": "first", None: None}
            keys = tuple(Key(k.of, not k.descending, flip[k.nulls]) for k in keys)
        keyed = [(self._call(key.of, node), key) for key in keys]
        return [row for _, members in groups for row in in_order(members, keyed)[:count]]

    def _folds(self, node: Node, rows: Rows) -> list[Any]:
        found = []
        for name, of, skip_none, _ in node.more:
            values = [] if of is None else [*map(self._call(of, node), rows)]
            if skip_none:
                values = [value for value in values if value is not None]
            found.append(folded(name, values, len(rows)))
        return found

    def _order(self, node: Node, inside: Inside) -> Rows:
        rows = in_order(self._input(node, inside), self.keyed(node), are_ordered=_is_ordered(node))
        _, limit, offset = node.more
        if isinstance(limit, str):
            limit = self._names[limit]()
        return rows[offset:] if limit is None else rows[offset : offset + limit]

    def _fixpoint(self, node: Node, inside: Inside) -> Rows:
        level, which = node.more
        needed = _needed(node)
        now: list[Rows] = [[] for _ in node.inputs]
        for _ in range(MOST_ROUNDS):
            here = {**inside, **{(level, place): rows for place, rows in enumerate(now)}}
            bodies = enumerate(node.inputs)
            then = [once(self.rows(b, here)) if i in needed else [] for i, b in bodies]
            if [*map(bag, then)] == [*map(bag, now)]:
                found: Rows = now[which]
                return found
            now = [*then]
        raise TooLarge

    def _best(self, node: Node, inside: Inside) -> Rows:
        level, largest = node.more
        value, by = self._names[node.calls["value"]], self._names[node.calls["by"]]
        now: list[Any] = []
        for _ in range(MOST_ROUNDS):
            best: dict[Any, Any] = {}
            for row in self.rows(node.inputs[0], {**inside, (level, 0): now}):
                sign, known = -1 if largest else 1, best.setdefault(by(row), row)
                if sign * value(row) < sign * value(known):
                    best[by(row)] = row
            if bag(best.values()) == bag(now):
                return now
            now = [*best.values()]
        raise TooLarge

    def _lattice(self, node: Node, inside: Inside) -> Rows:
        """Join the sets of each key until no set grows."""
        (of,), now = node.more, dict[Any, frozenset[Any]]()
        for _ in range(MOST_ROUNDS):
            then: dict[Any, frozenset[Any]] = {}
            for key, value in self.rows(node.inputs[0], {**inside, (of, 0): [*now.items()]}):
                then[key] = then.get(key, frozenset()) | value
            if then == now:
                return [*now.items()]
            now = then
        raise TooLarge

    def _iterate(self, node: Node, inside: Inside) -> Rows:
        start, body = node.inputs
        level, times = node.more
        rows = self.rows(start, inside)
        for _ in range(times):
            rows = self.rows(body, {**inside, (level, 0): rows})
        return rows


def _needed(node: Node) -> set[int]:
    """Return the relations of a fixpoint that the selected relation depends on."""
    level, which = node.more
    needed, found = set[int](), {which}
    while found:
        needed |= found
        read = (each for place in found for each in every(node.inputs[place]))
        found = {e.more[1] for e in read if e.op == "recursive" and e.more[0] == level} - needed
    return needed


def _nothing(row: Any) -> None:
    return None


def _beside(node: Node, left: Any, right: Any) -> Any:
    """A row with one binding more."""
    return (left, right) if len(node.inputs[0].kinds) == 1 else (*left, right)


def _alone(row: list[Any]) -> Any:
    return tuple(row) if len(row) > 1 else row[0]


def _takes(taken: Counter[Any], row: Any) -> bool:
    """Remove one copy of a row; return False if there is none."""
    is_there = taken[frozen(row)] > 0
    taken[frozen(row)] -= is_there
    return is_there


KEEPS_ORDER = ("where", "select", "extend", "bind", "distinct", "semi_join", "anti_join")
"""Operations on an ordered relation whose result is one, too."""


def _is_ordered(node: Node) -> bool:
    """Return True if the input of a node is in an order, in which peers stay."""
    below = node.inputs[0]
    while below.op in KEEPS_ORDER:
        below = below.inputs[0]
    return below.op == "order"

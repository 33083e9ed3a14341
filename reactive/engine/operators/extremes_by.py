"""Extremes by: integrate an input as sums by key, with the least and greatest values of its rows.

    customer 7:   3 orders, sum 60, greatest 30      an order of 40 arrives
        +  (1, 40, greatest 40, +1)                  the change of the sums, and the new extreme
        +  (0,  0, greatest 30, -1)                  the extreme that it had

It replaces `SumsBy` below a group of `Min` or `Max`. The group holds one value per key: a key whose
rows move to another group moves one value, however many rows it has. The last item of a change says
how often its extremes count: 1, -1, or 0 if they stay. That of stored sums is 1.

Values are restricted to classes whose order is total and agrees with equality; any other value
becomes a `BailOut`, and the database returns to the plan of rows.

State:  the sums; the values of each key, sorted (`collections/values.py`), or the only value.
Cost:   O(|dL| log values of a key).
Source: [dbsp] section 4.2; eager aggregation: Yan, Larson, 1995; F-IVM, rings beyond sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optimizer import plan
from reactive.engine.collections.exact import RunningSum, add_sums, copy_sum, scale_sum, state_bytes
from reactive.engine.collections.index import NOTHING
from reactive.engine.collections.values import ORDERED, OrderedValues
from reactive.engine.collections.zset import canonical
from reactive.engine.operators.join import Change, JoinSides, Sums, SumsBy
from reactive.engine.operators.operator import BailOut, DetachedState

NUMBERED = ORDERED | {type(None)}
"""Classes with a total order, and None, which compares with no other value."""
Value = tuple[Any, int, Any, int]
"""A key, the place of an expression, a value of it, and how often that is added."""


class ExtremesBy(SumsBy):
    """Maintain sums and extremes by key; `loop` returns the change of the sums, and the values.

    Parameters
    ----------
    ends: the place of the expression of each extreme, and the name of its aggregate.
    others: those of `SumsBy`.
    """

    __slots__ = ("_before", "_ends", "_log", "_values", "_width")

    def __init__(
        self,
        loop: Callable[..., Any],
        width: int,
        owner: plan.Node,
        source: str,
        ends: Sequence[tuple[int, str]],
        *,
        by_group: bool,
        sides: JoinSides | None = None,
    ) -> None:
        super().__init__(loop, width, owner, source, by_group=by_group, sides=sides)
        self._width = width
        self._ends = ends
        self._values: list[dict[Any, Any]] = [{} for _ in {place for place, _ in ends}]
        self._log: list[Value] = []
        self._before: dict[Any, Sums | None] = {}
        self.step = self._step_values

    def _step_values(self, *deltas: Sequence[Any]) -> Sequence[Change]:
        """Apply deltas; return the changes of sums and extremes. Exceptions become `BailOut`."""
        for delta in deltas:
            self.touched += len(delta)
        if self._before:
            self.commit()
        try:
            given = deltas if self._look_ups is None else self._look_ups(*deltas)
            changed, valued = self._loop(*given)
            self._begin()
            try:
                out = self._take_values(changed, valued)
            except Exception:
                self._take_back()
                self._is_whole = True
                raise
        except Exception as error:
            raise BailOut(self._owner, self) from error
        self._is_whole = True
        return out

    def _take_values(self, changed: dict[Any, Sums], valued: Sequence[Value]) -> list[Change]:
        """Add values, then the changes of sums; return the changes by key."""
        values, log = self._values, self._log
        for key, place, value, weight in valued:
            if value.__class__ is not int:
                value = _ordered(value)
            held = values[place].get(key)
            if weight > 0 and held.__class__ is OrderedValues:
                held.add(value, weight)
            else:
                _add_to(values[place], key, value, weight)
            log.append((key, place, value, weight))
        out: list[Change] = []
        before, by_group, sums = self._before, self.by_group, self.sums
        for key, change in changed.items():
            old = before[key] = self._stored(key) if by_group else sums.get(key)
            if old is None:
                new = (*change, *self._extremes(key), 1) if any(change) else None
                if new is not None:
                    out.append((key, new))
            else:
                new = self._merge_into(key, old, change, out)
            if by_group or new is None:
                self._store(key, new)
            else:
                sums[key] = new
        return out

    def _merge_into(self, key: Any, old: Sums, change: Sums, out: list[Change]) -> Sums | None:
        """Return the new sums of a key, None without rows; append the changes to `out`."""
        size = self._width + 1
        had = old[size:-1]
        sums = (old[0] + change[0],) if size == 1 else tuple(map(_add, old, change))
        if not (sums[0] or any(sums)):
            out.append((key, (*change, *had, -1)))
            return None
        ends = self._extremes(key)
        if ends == had:
            out.append((key, (*change, *had, 0)))
            return (*sums, *had, 1)
        out.append((key, (*change, *ends, 1)))
        out.append((key, (*[0] * size, *had, -1)))
        return (*sums, *ends, 1)

    def _stored(self, key: tuple[Any, Any]) -> Sums | None:
        """Return the sums of a key and a part of the group."""
        groups = self.sums.get(key[0])
        return None if groups is None else groups.get(key[1])

    def _store(self, key: Any, new: Sums | None) -> None:
        """Store the sums of a key; None deletes them."""
        of, name = self.sums, key
        if self.by_group:
            of, name = self.sums.setdefault(key[0], {}), key[1]
        if new is None:
            of.pop(name, None)
        else:
            of[name] = new
        if self.by_group and not of:
            del self.sums[key[0]]

    def _extremes(self, key: Any) -> tuple[Any, ...]:
        """Return the extremes of a key; None for one without values."""
        found = []
        for place, name in self._ends:
            values = self._values[place].get(key)
            if values.__class__ is OrderedValues:
                values = values.least() if name == "Min" else values.greatest()
            found.append(values)
        return tuple(found)

    def undo(self) -> None:
        if self._is_whole:  # otherwise the state is undefined, and the next step raises
            self._take_back()

    def _take_back(self) -> None:
        """Restore the sums and values as before the step."""
        for key, place, value, weight in reversed(self._log):
            _add_to(self._values[place], key, value, -weight)
        for key, old in self._before.items():
            self._store(key, old)
        self.commit()

    def commit(self) -> None:
        if self._before:
            self._log, self._before = [], {}

    def detach_state(self) -> DetachedState:
        """Empty the sums and the values."""
        detached, values = super().detach_state(), self._values
        self._values = [{} for _ in values]

        def restore() -> None:
            detached.restore()
            self._values, self._log, self._before = values, [], {}

        return DetachedState(restore)

    def negate(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that undo `changes`."""
        size = self._width + 1
        return [
            (key, (*(scale_sum(s, -1) for s in sums[:size]), *sums[size:-1], -sums[-1]))
            for key, sums in changes
        ]

    def state(self) -> None:
        """Return None: the sorted values are computed again."""

    def find_before(
        self, changes: Sequence[Change], asked: Iterable[Any]
    ) -> Callable[[Any, Any], Any]:
        """Return a look-up in the sums as they were before this commit."""
        before, sums = self._before, self.sums
        if not self.by_group:
            return lambda key, default: (
                sums.get(key, default)
                if key not in before
                else default
                if before[key] is None
                else before[key]
            )
        had: dict[Any, Any] = {}
        for (key, part), old in before.items():
            groups = had.setdefault(key, dict(sums.get(key, {})))
            groups.pop(part, None)
            if old is not None:
                groups[part] = old
        return lambda key, default: (had[key] or default) if key in had else sums.get(key, default)

    def footprint(self) -> tuple[int, int]:
        """Return the number of stored sums, and the bytes of sums and values."""
        rows, size = super().footprint()
        for values in self._values:
            size += state_bytes(values)
            size += sum(state_bytes(v) for v in values.values() if v.__class__ is OrderedValues)
        return rows, size


def _ordered(value: Any) -> Any:
    """Return the canonical value; raise for a class without a total order."""
    value = canonical(value)
    parts = value if value.__class__ is tuple else (value,)
    if not NUMBERED.issuperset(map(type, parts)):
        raise TypeError(f"{value!r} may have no total order")
    return value


def _add(total: RunningSum, more: RunningSum) -> RunningSum:
    if total.__class__ is int and more.__class__ is int:
        return total + more
    return add_sums(copy_sum(total), more)


def _add_to(values: dict[Any, Any], key: Any, value: Any, weight: int) -> None:
    """Add to the weight of a value of a key; the only value of a key is stored itself."""
    held = values.get(key, NOTHING)
    if held.__class__ is OrderedValues:
        held.add(value, weight)
        if weight < 0 and not len(held) and not held.negative:
            del values[key]
    elif held is NOTHING and weight == 1:
        values[key] = value
    elif weight == -1 and held == value:
        del values[key]
    else:
        made = OrderedValues(in_order=True)
        if held is not NOTHING:
            made.add(held, 1)
        made.add(value, weight)
        values[key] = made

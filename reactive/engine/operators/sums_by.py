"""Sums by: integrate an input as sums by key, where a join needs to know no more of its rows.

    step:   state  :=  state + d        d: key -> (weight, sum of each value) of what changes

It is to a join what `IndexBy` is: it steps before it, and hands on its change by key. A side that
has a part of the group keeps sums by key and by that part.

Whatever raises here might not have raised in the plan without factors, which asks rows with a
partner only. So it is `BailOut`, and the database goes back to that plan.

State:  a tuple per key, or a dictionary of those.
Cost:   O(|dL|).
Source: [slender] recursive IVM; F-IVM, views of relations grouped by their join keys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from optimizer import plan
from reactive.engine.codegen.functions import Values, build
from reactive.engine.collections.running_sum import RunningSum, bytes_of, copied, plus, times
from reactive.engine.operators.in_line import InLine
from reactive.engine.operators.operator import BailOut
from reactive.engine.operators.operator_state import SUMS, Inputs, State

Sums = tuple[RunningSum, ...]
"""How many rows, then the sum of each value."""
Change = tuple[Any, Sums]
"""A key, or a key and a part of the group, and what it changes by."""


class Kept(dict[Any, Any]):
    """Sums by key, which stay in the oldest generation of the garbage collector.

    Of a plain dictionary of tuples of numbers the collector finds that it leads to nothing, and no
    longer tracks it. The next tuple makes it track it again, among the youngest objects: then
    all of it is looked at by the next collection, which takes as long as thousands of changes.
    """

    __slots__ = ()


class SumsBy:
    """Keeps sums; `loop` makes of deltas what changes, by key.

    Parameters
    ----------
    width: how many values are summed.
    by_group: whether keys have a part of the group beside them.
    one: the loop that takes a single row in, if there is one.
    at_once: what makes the same of some deltas as `loop`, and None of others.
    look_ups: of a join below, how its loop finds partners.
    """

    __slots__ = (
        *("_at_once", "_is_whole", "_last", "_look_ups", "_loop", "_merge", "_one", "_owner"),
        *("by_group", "source", "step", "sums", "touched"),
    )

    def __init__(
        self,
        loop: Callable[..., dict[Any, Sums]],
        width: int,
        owner: plan.Node,
        source: str,
        *,
        by_group: bool,
        look_ups: Callable[..., Any] | None = None,
        one: Callable[..., Sequence[Change]] | None = None,
        at_once: Callable[[Sequence[Any]], dict[Any, Sums] | None] | None = None,
    ) -> None:
        self._loop = loop
        self._look_ups = look_ups
        self._owner = owner
        self._one = one
        self._at_once = at_once
        self._merge = _merging(width, by_group)
        self._is_whole = True
        self._last: Sequence[Change] = ()
        self.by_group = by_group
        self.source = source
        self.sums: dict[Any, Any] = Kept()
        self.step: Callable[..., Sequence[Change]] = (
            self._step if look_ups is None else self._step_pairs
        )
        self.touched = 0

    def _step(self, delta: Sequence[Any]) -> Sequence[Change]:
        self._last = ()
        self.touched += len(delta)
        try:
            if len(delta) == 1 and self._one is not None:
                return self._take_one(delta)
            changed = None if self._at_once is None else self._at_once(delta)
            if changed is None:
                changed = self._loop(delta)
            out = [change for change in changed.items() if change[1][0] or any(change[1])]
            self._take(out)
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out

    def in_line(self) -> InLine | None:
        """The same of a single row, if there is a loop for it."""
        if self._one is None:
            return None
        return InLine(_IN_LINE, _FINALIZE, {"own": self, "one": self._one, "sums": self.sums})

    def bail_out(self, error: Exception) -> None:
        """The loop for a single row has raised, and changed nothing."""
        self._is_whole = True
        raise BailOut(self._owner, self) from error

    def _take_one(self, delta: Sequence[Any]) -> Sequence[Change]:
        self._begin()
        assert self._one is not None
        try:
            out = self._one(self.sums, delta)
        except Exception:  # nothing has changed
            self._is_whole = True
            raise
        self._last, self._is_whole = out, True
        return out

    def _step_pairs(self, *deltas: Sequence[Any]) -> Sequence[Change]:
        self._last = ()
        self.touched += sum(map(len, deltas))
        try:
            assert self._look_ups is not None
            changed = self._loop(*self._look_ups(*deltas))
            out = [change for change in changed.items() if change[1][0] or any(change[1])]
            self._take(out)
        except Exception as error:
            raise BailOut(self._owner, self) from error
        return out

    def undo(self) -> None:
        if self._is_whole:  # otherwise nobody knows what was taken in, and the next step says so
            self._take(negated(self._last))
        self._last = ()

    def commit(self) -> None:
        self._last = ()

    def _take(self, changes: Sequence[Change]) -> None:
        self._begin()
        self._last = changes
        self._merge(self.sums, changes)
        self._is_whole = True

    def _begin(self) -> None:
        """Begin to take changes in; until it is done, nobody knows what is in."""
        if not self._is_whole:
            raise RuntimeError("interrupted while it took changes in")
        self._is_whole = False

    def contents(self) -> Sequence[Change]:
        if not self.by_group:
            return list(self.sums.items())
        return [((key, group), s) for key, of in self.sums.items() for group, s in of.items()]

    def state(self) -> State | None:
        """The sums by key; None while one of them is kept in a form of its own."""
        changes = self.contents()
        keys, sums = (list(map(itemgetter(place), changes)) for place in (0, 1))
        is_plain = {*map(type, chain.from_iterable(sums))} <= SUMS
        return {"keys": keys, "sums": sums} if is_plain else None

    def restore(self, state: State, inputs: Inputs) -> None:
        """Hold the sums that another one has told."""
        self._merge(self.sums, list(zip(state["keys"], state["sums"], strict=True)))

    def before(self, changes: Sequence[Change], asked: Iterable[Any]) -> Callable[[Any, Any], Any]:
        """A look-up of keys in the sums as they were before changes that they have taken in."""
        keys = set(asked)
        if self.by_group:
            changes = [change for change in changes if change[0][0] in keys]
            touched = {key for (key, _), _ in changes}
        else:
            changes = [change for change in changes if change[0] in keys]
            touched = {key for key, _ in changes}
        if not changes:
            return self.sums.get
        had: dict[Any, Any] = {}
        for key in touched & self.sums.keys():
            now = self.sums[key]
            had[key] = dict(now) if self.by_group else now  # merging makes new tuples
        self._merge(had, negated(changes))
        sums = self.sums
        return lambda key, default: (had if key in touched else sums).get(key, default)

    def footprint(self) -> tuple[int, int]:
        size = sys.getsizeof(self.sums)
        rows = 0
        for kept in self.sums.values():
            of: Iterable[Sums] = kept.values() if self.by_group else (kept,)
            size += sys.getsizeof(kept) if self.by_group else 0
            for sums in of:
                rows += 1
                size += sys.getsizeof(sums) + sum(map(bytes_of, sums[1:]))
        return rows, size


_IN_LINE = """\
if len({given}) == 1 and own_{n}._is_whole:
    own_{n}.touched += 1
    own_{n}._is_whole = False
    try: {out} = one_{n}(sums_{n}, {given})
    except Exception as error: own_{n}.bail_out(error)
    own_{n}._last, own_{n}._is_whole = {out}, True
else: {out} = step_{n}({given})"""
_FINALIZE = "own_{n}._last = ()"


def negated(changes: Sequence[Change]) -> list[Change]:
    """What takes changes back."""
    return [(key, tuple([times(part, -1) for part in sums])) for key, sums in changes]


@lru_cache(maxsize=64)
def _merging(width: int, by_group: bool) -> Callable[[dict[Any, Any], Sequence[Change]], None]:
    """Adds changes to sums of so many values, and drops what comes to nothing."""
    mine, more = (["count", *(f"{n}{i}" for i in range(width))] for n in ("sum", "add"))
    more[0] = "weight"
    lines = ["def merge(sums, changes):", "    get = sums.get"]
    if by_group:
        lines += [
            "    for (key, group), new in changes:",
            "        groups = get(key)",
            "        if groups is None: groups = sums[key] = {}",
            "        old = groups.get(group)",
        ]
    else:
        lines += ["    for key, new in changes:", "        old = get(key)"]
    slot, of = ("groups[group]", "groups") if by_group else ("sums[key]", "sums")
    lines += [
        "        if old is None:",
        f"            {slot} = new",
        "            continue",
        f"        {', '.join(mine)}, = old",
        f"        {', '.join(more)}, = new",
        "        count += weight",
    ]
    for a, b in zip(mine[1:], more[1:], strict=True):
        lines.append(f"        if {a}.__class__ is int and {b}.__class__ is int: {a} += {b}")
        lines.append(f"        else: {a} = plus(copied({a}), {b})")
    key = "group" if by_group else "key"
    lines += [
        f"        if {' or '.join(mine)}: {slot} = ({', '.join(mine)},)",
        "        else:",
        f"            del {of}[{key}]",
    ]
    lines += ["            if not groups: del sums[key]"] * by_group
    values = Values()
    values.by_name |= {"plus": plus, "copied": copied}
    return build("merge", "\n".join([*lines, ""]), values)

"""Containers that are tracked behave as plain ones, tell each change once, and take it back."""

from __future__ import annotations

import copy
import heapq
import json
import pickle
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from reactive.borders.objects.containers.container import Container
from reactive.borders.objects.containers.tracked_set import is_same, is_silent, leaf, snapshot, wrap
from tests.borders.objects.containers.play import (
    Holder,
    Refused,
    at,
    drawn_edit,
    drawn_path,
    drawn_value,
    in_order,
    outcome,
    plain,
    thawed,
)
from tests.budget import seeds
from tests.thresholds import LOWEST, SHIPPED, thresholds


def held(value: Any) -> tuple[Any, Holder]:
    """A container that is tracked, and the object that has it."""
    holder = Holder()
    holder.held["a"] = wrap(value, holder, "a")
    return holder.held["a"], holder


def play(seed: int, steps: int) -> None:
    """Make edits, refused edits and failing transactions; check the containers after each."""
    random = Random(seed)
    first: Any = random.choice(([], {}, set(), [drawn_value(random) for _ in range(90)]))
    value, holder = held(plain(first))
    twin = plain(first)
    kept: list[tuple[Any, Any]] = []
    before = plain(twin)
    for _ in range(steps):
        path = drawn_path(random, twin)
        edit = drawn_edit(random, at(twin, path))
        now = plain(twin)
        expected = outcome(edit, at(twin, path))
        if isinstance(expected, tuple):
            twin = plain(now)  # a list may be left partly sorted
        holder.refuses = random.random() < 0.1
        try:
            assert outcome(edit, at(value, path)) == expected
        except Refused:
            twin = now
        holder.refuses = False
        if in_order(twin) != in_order(now):
            assert holder.marked == {"a"}
        check(value, twin)
        if random.random() < 0.5:
            found = snapshot(value, leaf)
            check_snapshot(found, value, twin)
            kept.append((found, plain(twin)))
            holder.marked.clear()
        if random.random() < 0.2:
            if random.random() < 0.5:
                holder.roll_back()
                twin = plain(before)
                check(value, twin)
            holder.undos.clear()
            before = plain(twin)
    for found, was in kept:
        assert in_order(thawed(found)) == in_order(was)


def check(value: Any, twin: Any) -> None:
    assert in_order(value) == in_order(twin) and value == twin
    assert type(pickle.loads(pickle.dumps(value))) is type(twin)
    for each in inside(value):
        assert isinstance(each, Container)


def inside(value: Any) -> Iterator[Any]:
    """All containers in one."""
    if isinstance(value, list | dict | set):
        yield value
        for each in value.values() if isinstance(value, dict) else value:
            yield from inside(each)


def check_snapshot(found: Any, value: Any, twin: Any) -> None:
    assert in_order(thawed(found)) == in_order(twin)
    assert found == twin and snapshot(value, leaf) is found
    assert is_same(value.anew(leaf), found) and hash(value.anew(leaf)) == hash(found)
    assert not is_silent(value, leaf)


@pytest.mark.parametrize("settings", [SHIPPED, LOWEST])
def test_they_are_as_the_plain_ones_after_any_edits(settings: Any) -> None:
    with thresholds(settings):
        for seed in seeds(48):
            play(seed, 60)


READS: dict[Any, str] = {
    list: "copy count index",
    dict: "copy get items keys values fromkeys",
    set: "copy difference intersection isdisjoint issubset issuperset symmetric_difference union",
}
CHANGES: dict[Any, str] = {
    list: "append clear extend insert pop remove reverse sort __setitem__ __delitem__ __iadd__ "
    "__imul__ __init__",
    dict: "clear pop popitem setdefault update __setitem__ __delitem__ __ior__ __init__",
    set: "add clear difference_update discard intersection_update pop remove "
    "symmetric_difference_update update __iand__ __ior__ __isub__ __ixor__ __init__",
}
HARMLESS = {
    *(f"__{name}__" for name in ("add", "mul", "rmul", "contains", "iter", "len", "reversed")),
    *(f"__{name}__" for name in ("or", "ror", "and", "rand", "sub", "rsub", "xor", "rxor")),
    *("__getitem__", "__class_getitem__", *dir(object)),
}


@pytest.mark.parametrize("kind", [list, dict, set])
def test_every_method_is_known_and_those_that_change_it_tell(kind: type) -> None:
    """A method that a new version of Python adds must be classified here."""
    changes = set(CHANGES[kind].split())
    assert set(dir(kind)) <= {*READS[kind].split(), *changes, *HARMLESS}
    value, _ = held(kind())
    assert changes <= set(vars(type(value)))


@pytest.mark.parametrize("kind", [list, dict, set])
def test_what_they_give_is_plain(kind: Any) -> None:
    value, _ = held({1: 2} if kind is dict else kind([1, 2]))
    for made in (value.copy(), copy.copy(value), copy.deepcopy(value), value.__class__(value)):
        assert made == value
    assert type(value.copy()) is type(copy.copy(value)) is type(copy.deepcopy(value)) is kind
    assert isinstance(value, kind) and repr(value) == repr(kind(value))
    if kind is not set:
        assert json.dumps(value) == json.dumps(kind(value))
    if kind is dict:
        assert type(value.fromkeys("ab")) is type(value | {}) is type({} | value) is dict
    elif kind is list:
        assert type(value + []) is type(value[:]) is type(value * 2) is list  # noqa: RUF005
    else:
        assert type(value | {3}) is type({3} - value) is type(value.union([4])) is set


def test_one_call_tells_once_and_what_changes_nothing_tells_nobody() -> None:
    value, holder = held([3, 1, 2])
    value.extend([4, 5])
    value[1:3] = [7, 8, 9]
    value.sort()
    assert holder.calls == 3
    holder.marked.clear()
    value.extend([])
    value.sort()
    value[0] = value[0]
    value += []
    assert holder.marked == set()


def test_it_tells_nobody_when_it_was_taken_out_and_again_when_it_is_back() -> None:
    value, holder = held([[1], {2: []}])
    inner, deep = value[0], value[1][2]
    del value[0]
    value[1 - 1].pop(2)
    holder.marked.clear()
    inner.append(2)
    deep.append(3)
    assert holder.marked == set()
    value.append(inner)
    assert value[-1] is inner
    snapshot(value, leaf)
    holder.marked.clear()
    inner.append(3)
    assert holder.marked == {"a"} and thawed(snapshot(value, leaf)) == [{}, [1, 2, 3]]
    holder.held["a"] = None
    holder.marked.clear()
    inner.append(4)
    value.append(4)
    assert holder.marked == set()


def test_one_that_is_in_several_places_is_in_all_of_them() -> None:
    value, holder = held([[1]])
    value.extend([value[0], 0])
    other = Holder()
    other.held["b"] = wrap(value[0], other, "b")
    assert other.held["b"] is value[0]
    snapshot(value, leaf)
    value[0].append(2)
    assert holder.marked == {"a"} and other.marked == {"b"}
    assert thawed(snapshot(value, leaf)) == [[1, 2], [1, 2], 0]
    value.pop(0)
    value[0].append(3)
    assert thawed(snapshot(value, leaf)) == [[1, 2, 3], 0]


@pytest.mark.parametrize("put", [lambda v: v.append(v), lambda v: v[1]["b"].append(v[1])])
def test_it_cannot_hold_itself(put: Any) -> None:
    value, _ = held([0, {"b": []}])
    with pytest.raises(ValueError, match="cannot hold itself"):
        put(value)
    assert value == [0, {"b": []}]


def test_an_iterable_that_raises_changes_nothing() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise KeyError

    value, _ = held([0])
    with pytest.raises(KeyError):
        value.extend(numbers())
    with pytest.raises(KeyError):
        value[:] = numbers()
    with pytest.raises(KeyError):
        value.sort(key=lambda number: [][number] if number else {}[number])
    assert value == [0]


def test_iteration_while_it_changes_is_that_of_python() -> None:
    value, _ = held([1, 2])
    seen = []
    for number in value:
        seen.append(number)
        if number < 9:
            value.append(number + 7)
    assert seen == [1, 2, 8, 9, 15]
    tags, _ = held({1: 1})
    with pytest.raises(RuntimeError, match="changed size"):
        for key in tags:
            tags[key + 1] = 1


def test_what_changes_it_silently_is_found_and_then_forgotten() -> None:
    cases: list[tuple[Any, Any]] = [
        ([1], lambda v: list.append(v, 2)),
        ([1, [2]], lambda v: list.append(v[1], 2)),
        ({1: {2}}, lambda v: set.add(v[1], 3)),
        ({1: 2}, lambda v: dict.__setitem__(v, 1, 2.0)),
        ({1}, lambda v: set.clear(v)),
        ([5, 7], lambda v: heapq.heappush(v, 1)),
    ]
    for value, edit in cases:
        made, _ = held(value)
        snapshot(made, leaf)
        edit(made)
        assert is_silent(made, leaf)
        made.forget()
        assert not is_silent(made, leaf) and thawed(snapshot(made, leaf)) == made


def test_what_was_not_told_does_not_harm_what_is_told_after() -> None:
    value, _ = held([1, 2, 3])
    snapshot(value, leaf)
    list.append(value, 4)
    value.append(5)
    assert thawed(snapshot(value, leaf)) == [1, 2, 3, 4, 5]
    list.clear(value)
    value.append(1)
    assert thawed(snapshot(value, leaf)) == [1]


def test_a_key_that_is_put_back_is_where_it_was() -> None:
    value, holder = held(dict.fromkeys(range(200), 0))
    snapshot(value, leaf)
    random = Random(2)
    for _ in range(30):
        keys = list(value)
        for key in random.sample(range(220), 40):
            if key in value:
                del value[key]
            else:
                value[key] = 1
        holder.roll_back()
        assert list(value) == keys
        if random.random() < 0.5:
            snapshot(value, leaf)

"""A bag against `Counter`: every change, hashes that meet, dictionaries that are split early."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactive
from reactive import Bag
from reactive.engine.collections import bag as bags
from reactive.engine.collections import weight_tree
from reactive.engine.collections.group_values import GroupValues
from tests.thresholds import thresholds

EARLY = {
    "reactive.engine.collections.weight_tree.LARGEST": 2,
    "reactive.engine.collections.weight_tree.FEWEST": 1,
}
FLAT = {**EARLY, "reactive.engine.collections.weight_tree.DEEPEST": 4}


class Alike:
    """Values that share few hashes."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number % 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.number == other.number

    def __repr__(self) -> str:
        return f"Alike({self.number})"


VALUES = [*map(Alike, range(20)), *range(40), *(64 * n for n in range(40)), "a", None, (1, "b")]
NAN = float("nan")
CHANGES = st.lists(st.tuples(st.sampled_from(VALUES), st.integers(-2, 2)), max_size=12)


@pytest.fixture(params=[{}, EARLY, FLAT], ids=["as shipped", "split early", "not split deeply"])
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    with thresholds(request.param):
        yield


def check(bag: Bag[Any], expected: Counter[Any]) -> None:
    """All that a bag says, and that it is split as far as its values ask for."""
    again = Bag(expected)
    assert dict(bag.items()) == expected and len(bag.items()) == len(expected)
    assert len(bag) == expected.total() and bool(bag) == bool(expected)
    assert bag == again and again == bag and hash(bag) == hash(again)
    assert Counter(bag) == expected and list(bag) == list(bag) == bag.to_python()
    assert all(bag.count(v) == expected[v] and (v in bag) == (v in expected) for v in VALUES)
    are_split(bags._split_of(bag))
    assert again.difference(bag) == {} == bag.difference(again)


def are_split(tree: weight_tree.Tree, shift: int = 0) -> None:
    now: Any = import_module(
        "reactive.engine.collections.weight_tree"
    )  # the value itself, not its stand-in
    if isinstance(tree, dict):
        assert now.is_small(len(tree)) or shift >= now.DEEPEST
        return
    assert tree[-1] == sum(map(weight_tree.tree_size, tree[:-1])) > now.FEWEST
    for place, child in enumerate(tree[:-1]):
        are_split(child, shift + now.BITS)
        marks = [hash((v, now.SALT)) >> shift for v, _ in weight_tree.weighted_values(child)]
        assert all(mark & (now.WIDTH - 1) == place for mark in marks)


@pytest.mark.long
@pytest.mark.usefixtures("sizes")
@settings(max_examples=40, deadline=None)
@given(st.lists(CHANGES, max_size=12))
def test_every_change_is_that_of_a_counter(history: list[list[tuple[Any, int]]]) -> None:
    bag, expected = Bag[Any](), Counter[Any]()
    for changes in history:
        net = Counter[Any]()
        for value, weight in changes:
            net[value] += weight
        before, was = bag, Counter(expected)
        after = {value: expected[value] + weight for value, weight in net.items()}
        if min(after.values(), default=0) < 0:
            with pytest.raises(ValueError, match="cannot take"):
                bag.plus(net)
            net = Counter({value: weight for value, weight in net.items() if after[value] >= 0})
        bag = bag.plus(net)
        expected = Counter({v: n for v in expected | net if (n := expected[v] + net[v])})
        check(bag, expected)
        check(before, was)
        assert bag.difference(before) == {v: n for v, n in net.items() if n}
        assert (bag == before) == (expected == was)


@pytest.mark.usefixtures("sizes")
@settings(max_examples=40, deadline=None)
@given(st.lists(CHANGES, max_size=12), st.booleans())
def test_what_is_collected_hides_values_until_they_are_paid_for(
    history: list[list[tuple[Any, int]]], is_hashed: bool
) -> None:
    values, weights = GroupValues(), Counter[Any]()
    for changes in history:
        for value, weight in changes:
            values.add(value, weight)
            weights[value] += weight
        if is_hashed:
            hash(values.bag())
        check(values.bag(), +weights)
        assert (values.negative or {}) == {v: n for v, n in weights.items() if n < 0}
        assert len(values) == len(+weights)


@pytest.mark.usefixtures("sizes")
def test_a_large_bag_shrinks_to_nothing_and_keeps_what_it_shares() -> None:
    numbers = range(0, 6_400, 64)
    bag = Bag(numbers)
    order = list(bag)
    half = bag.plus(dict.fromkeys(numbers[::2], -1))
    assert order == list(bag) and half == Bag(numbers[1::2]) and half != bag
    assert half.plus(dict.fromkeys(numbers[1::2], -1)) == Bag()
    back = half.plus(dict.fromkeys(numbers[::2], 1))
    assert back == bag and hash(back) == hash(bag)
    assert bag.difference(half) == dict.fromkeys(numbers[::2], 1)


def test_a_change_copies_as_much_in_a_large_bag_as_in_a_small_one() -> None:
    """Copies may differ by one node for each factor of 16."""

    def copied(size: int) -> int:
        bag = Bag(range(size)).plus({-1: 1})
        return len(nodes(bag.plus({-2: 1})._tree) - nodes(bag._tree))

    assert copied(100_000) <= copied(1_000) + 4


def test_a_comparison_passes_over_what_two_share(monkeypatch: pytest.MonkeyPatch) -> None:
    bag = Bag(range(20_000)).plus({-1: 1})
    other = bag.plus({-2: 1, 5: 1})
    looked_at: list[object] = []
    module: Any = import_module(
        "reactive.engine.collections.weight_tree"
    )  # the value itself, not its stand-in
    compare = module._add_differences

    def counted(*each: Any) -> None:
        looked_at.append(each)
        compare(*each)

    monkeypatch.setattr(module, "_add_differences", counted)
    assert other.difference(bag) == {-2: 1, 5: 1}
    assert len(looked_at) <= 1 + 2 * 16 * 4


def nodes(tree: weight_tree.Tree) -> set[int]:
    below = [] if isinstance(tree, dict) else map(nodes, tree[:-1])
    return {id(tree)}.union(*below)


def test_equal_values_are_one_and_nan_is_equal_to_itself() -> None:
    bag = Bag([1, 1.0, True, NAN, float("nan"), (NAN,), (float("nan"),)])
    assert repr(bag) == "Bag({1: 3, nan: 2, (nan,): 2})"
    assert bag.count(float("nan")) == 2 and (float("nan"),) in bag and hash(bag) == hash(Bag(bag))
    assert Bag({float("nan"): 1, float("inf") - float("inf"): 2}) == Bag({NAN: 3})
    assert repr(bag.plus({True: 1}).plus({1.0: -4})) == "Bag({nan: 2, (nan,): 2})"


def test_what_a_bag_refuses() -> None:
    bag: Any = Bag("ab")
    with pytest.raises(TypeError, match="order_by"):
        bag[0]
    with pytest.raises(ValueError, match="cannot have 'a' -1 times"):
        Bag({"a": -1})
    with pytest.raises(ValueError, match="take 'a' away 3 times: it is there 1 times"):
        bag.plus({"a": -3})
    with pytest.raises(TypeError, match="unhashable"):
        bag.plus({(): 1, ([],): 1})
    assert Bag({"a": 0}) == Bag() and bag != "ab" and bag != Counter("ab")


def test_a_bag_in_a_bag_is_a_value() -> None:
    inner = Bag(range(100))
    outer = Bag([inner, Bag("a")])
    assert inner.plus({1: 1}).plus({1: -1}) in outer and inner.plus({1: 1}) not in outer


def test_a_copy_is_equal_and_hashes_anew_in_another_process() -> None:
    bag = Bag(map(str, range(200))).plus({"a": 2})
    assert copy.copy(bag) is bag
    for made in (pickle.loads(pickle.dumps(bag)), copy.deepcopy(bag)):
        assert made == bag and hash(made) == hash(bag)
    asked = "import pickle, sys; b = pickle.load(sys.stdin.buffer); from reactive import Bag; "
    asked += "assert hash(b) == hash(Bag(list(b))) and b.count('a') == 2 and len(b) == 202"
    subprocess.run([sys.executable, "-c", asked], input=pickle.dumps(bag), check=True)


def test_multiset_is_another_name_of_it() -> None:
    assert reactive.Multiset is Bag

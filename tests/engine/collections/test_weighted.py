"""Z-sets against `Counter`: they are a group, and changes of views add up to these."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Database, ZSet
from tests.thresholds import thresholds

WEIGHTS = st.dictionaries(st.integers(0, 30) | st.none(), st.integers(-2, 2), max_size=12)


def of(counts: dict[Any, int]) -> dict[Any, int]:
    return {row: weight for row, weight in counts.items() if weight}


@settings(max_examples=40, deadline=None)
@given(WEIGHTS, WEIGHTS, st.integers(-2, 2), st.booleans())
def test_z_sets_are_a_group(a: dict[Any, int], b: dict[Any, int], n: int, early: bool) -> None:
    with thresholds({"reactive.engine.collections.weight_tree.LARGEST": 1} if early else {}):
        one, other = ZSet(a), ZSet(b)
        total = Counter(a)
        for row, weight in b.items():
            total[row] += weight
        added = one + other
        assert dict(added.items()) == of(total) and len(added) == len(of(total))
        assert added == other + one == ZSet(total) and hash(added) == hash(ZSet(total))
        assert added - other == one and one - one == ZSet() == one + one.negate()
        assert dict((n * one).items()) == of({row: n * w for row, w in a.items()})
        assert n * one == one * n and -one == one.negate() == one * -1
        assert set(one) == set(of(a)) and all(one[row] == w for row, w in a.items())
        assert all((row in one) == bool(weight) for row, weight in a.items())
        assert dict(one.distinct().items()) == {row: 1 for row, w in a.items() if w > 0}
        assert one.is_positive == all(w >= 0 for w in a.values())
        assert one.is_set == all(w in (0, 1) for w in a.values())
        assert pickle.loads(pickle.dumps(added)) == added


def test_a_z_set_is_made_of_rows_too_and_adds_to_its_like_only() -> None:
    nan = float("nan")
    assert ZSet(["a", "b", "a", nan, float("nan")]) == ZSet({"a": 2, "b": 1, nan: 2})
    assert repr(ZSet("a")) == "ZSet({'a': 1})" and ZSet("a") != {"a": 1}
    one: Any = ZSet("a")
    for add in ("__add__", "__sub__", "__mul__"):
        assert getattr(one, add)(1.5) is NotImplemented


def test_the_changes_of_a_view_are_what_it_has_less_what_it_had() -> None:
    db = Database()
    words = db.table(str)
    view = words.select(len).materialize()
    told: list[ZSet[int]] = []
    subscription = view.subscribe(lambda delta: told.append(delta.zset))
    before = view.zset()
    words.add_all(["to", "be", "not"])
    with db.transaction():
        words.remove("be")
        words.add("or not")
    assert told == [ZSet([2, 2, 3]), ZSet({2: -1, 6: 1})]
    assert before + told[0] + told[1] == view.zset() == ZSet([2, 3, 6])
    assert view.zset().is_set and not told[1].is_positive
    subscription.close()

"""Long tuples read as tuples, whatever they are made of; rows of a bag in an order are sorted."""

from __future__ import annotations

import copy
import pickle
from random import Random
from typing import Any

import pytest

from reactive import Bag, Database, Edit
from reactive.api.nesting import InSequence
from reactive.engine.collections.group_values import ArrangedValues, arrange_bag
from reactive.engine.collections.long_tuple import LongTuple, sequence_differences
from reactive.engine.collections.order_tree import TreeLeaf, TreeNode


def check_shape(tree: Any, depth: int = 0) -> set[int]:
    """The depths of the leaves; a node knows its size and its first leaf."""
    if isinstance(tree, TreeLeaf):
        assert len(tree.rows) == len(tree.keys) == tree.size <= 64
        return {depth}
    assert (
        isinstance(tree, TreeNode)
        and 1 <= len(tree.trees) <= 64
        and tree.first is tree.trees[0].first
    )
    assert tree.size == sum(each.size for each in tree.trees)
    return set.union(*(check_shape(each, depth + 1) for each in tree.trees))


def test_it_reads_as_a_tuple() -> None:
    for size in (0, 5, 64, 65, 500, 5000):
        rows = tuple(n * 7 % 100 for n in range(size))
        made = LongTuple(rows)
        assert made == LongTuple(rows) and tuple(reversed(made)) == rows[::-1]
        assert (made == rows, rows == made, rows in {made}, made in {rows}) == (size <= 64,) * 4
        assert made != (*rows, 1) and made != LongTuple((*rows, 1)) and made != list(rows)
        places = [slice(3, 70), slice(-60, None), slice(None, None, -3), slice(60, 50), slice(0, 0)]
        assert all(made[place] == rows[place] for place in places)
        assert [made[n] for n in range(-size, size)] == [rows[n] for n in range(-size, size)]
        assert (made.count(7), 7 in made, 101 in made) == (rows.count(7), 7 in rows, False)
        same = (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made))
        assert {made, *same} == {made} and repr(made) == f"LongTuple({rows!r})"
        assert size > 64 or hash(made) == hash(rows)
        assert made + rows == rows + made == rows * 2
        with pytest.raises(IndexError):
            made[size]
    assert LongTuple(range(99)).index(70) == 70


@pytest.mark.long
@pytest.mark.parametrize("descending", [False, True])
def test_an_order_that_is_kept_is_the_order_from_scratch(descending: bool) -> None:
    random = Random(3)
    order = InSequence(((descending, None),))
    bag: Bag[Any] = Bag([((n % 50,), n) for n in range(300)])
    for step in range(300):
        changes: dict[Any, int] = {}
        grow = 1 if (step // 75) % 2 else -1
        for _ in range(random.choice((1, 1, 1, 30, 70))):
            number = random.randrange(400)
            value = ((number % 50,), number)
            weight = random.choice((grow, grow, -grow, 2))
            if bag.count(value) + changes.get(value, 0) + weight >= 0:
                changes[value] = changes.get(value, 0) + weight
        before = arrange_bag(bag, order)
        bag = bag.plus(changes)
        if random.random() < 0.1:
            continue
        rows = arrange_bag(bag, order)
        expected = arrange_bag(Bag(dict(bag.items())), order)
        assert rows == expected and hash(rows) == hash(expected) and rows is arrange_bag(bag, order)
        assert isinstance(rows, tuple) == (len(rows) <= 64)
        copied = list(before)
        for start, gone, _, _ in reversed(sequence_differences(before, rows)):
            assert copied[start : start + len(gone)] == gone
            del copied[start : start + len(gone)]
        for _, _, start, came in sequence_differences(before, rows):
            copied[start:start] = came
        assert tuple(copied) == tuple(rows)
        if isinstance(bag._order, ArrangedValues):
            assert len(check_shape(bag._order.tree)) == 1


def test_parts_are_as_large_as_the_change() -> None:
    order = InSequence(((False, None),))
    for size in (1000, 50_000):
        bag: Bag[Any] = Bag([((n,), n) for n in range(size)])
        before = arrange_bag(bag, order)
        for number in range(10):
            value = size // 10 * number + 0.5
            bag = bag.plus({((value,), value): 1})
            after = arrange_bag(bag, order)
            parts = sequence_differences(before, after)
            assert [(part[1], part[3]) for part in parts] == [([], [value])]
            before = after


def test_an_ordered_level_of_many_rows_changes_by_one_edit() -> None:
    db = Database()
    keys, rows = db.table(int, name="keys", key=lambda k: k), db.table(tuple[int, int], name="rows")
    view = keys.nest(
        rows=lambda k: rows.where(lambda r: r[0] == k).order_by(lambda r: r[1])
    ).materialize()
    keys.add(1)
    rows.add_all([(1, n) for n in range(0, 400, 2)])
    told: list[Any] = []
    with (
        view.subscribe(lambda delta: told.append(delta.edits)),
        view.subscribe(lambda delta: told.append(delta.edits), path=(1, "rows")),
    ):
        rows.add((1, 7))
    inner = Edit(4, (1, 7), 1, path=(1, "rows"))
    assert told == [(inner,), (Edit(4, (1, 7), 1),)]
    assert tuple(view[1].rows) == tuple(sorted(rows)) and view.to_python()[0]["rows"][4] == [1, 7]
    view.verify()
    with pytest.raises(ZeroDivisionError), db.transaction():
        rows.add((1, 9))
        raise ZeroDivisionError
    assert tuple(view[1].rows) == tuple(sorted(rows))
    rows.remove_all([(1, n) for n in range(0, 390, 2)])
    assert isinstance(view[1].rows, tuple) and view[1].rows == tuple(sorted(rows))
    view.verify()

"""Keys are sorted by counting them where few differ, to what `sorted` gives."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.collections.sorted_keys import sorted_keys
from tests.counted_calls import calls_of

ALIKE = [st.sampled_from([0, 1, -1, True, 2**70, 0.5, 1.0, Decimal(1)]), st.sampled_from("abc")]


@given(st.one_of(*[st.lists(each, max_size=30) for each in ALIKE]))
def test_keys_come_as_sorted_gives_them(keys: list[Any]) -> None:
    found = sorted_keys(keys)
    assert list(map(repr, found)) == list(map(repr, sorted(keys)))  # 1 and True are told apart


def test_a_key_of_another_class_among_many_is_seen() -> None:
    keys: list[Any] = [n % 7 for n in range(5_000)]
    keys[1_001] = True
    assert list(map(repr, sorted_keys(keys))) == list(map(repr, sorted(keys)))
    keys[1_001] = "a"
    with pytest.raises(TypeError, match="not supported"):
        sorted_keys(keys)


def test_equal_keys_are_one_object() -> None:
    keys = [f"key {n % 3}" for n in range(3_000)]
    assert len(set(map(id, keys))) > len(set(map(id, sorted_keys(keys)))) == 3


class Row:
    """Found by identity, as it has no other hash; it counts how often that is asked for."""

    hashed = 0

    def __init__(self, key: int) -> None:
        self.key = key

    def __hash__(self) -> int:
        Row.hashed += 1
        return id(self)


@pytest.mark.parametrize("descending", [True, False])
def test_a_load_of_an_order_that_nobody_is_told_of_hashes_rows_for_the_table_alone(
    descending: bool,
) -> None:
    random = Random(1)
    rows = [Row(random.randrange(9)) for _ in range(500)]
    for told in (False, True):
        table = Database().table(Row, identity=True)
        view = table.order_by(lambda row: row.key, descending=descending).materialize()
        subscription = view.subscribe(lambda delta: delta.items()) if told else None
        Row.hashed = 0
        table.add_all(rows)
        assert Row.hashed == 500 * (1 + 2 * told)
        assert list(view) == sorted(rows, key=lambda row: row.key, reverse=descending)
        if subscription is not None:
            subscription.close()


def test_a_load_calls_the_key_of_each_row_and_little_else() -> None:
    table: Any = Database().table(tuple)
    view = table.order_by(lambda row: row[1]).materialize()
    rows = [(n, n % 5) for n in range(10_000)]
    assert calls_of(lambda: table.add_all(rows)) < 1.3 * len(rows) + 9_000
    assert len(view) == len(rows)

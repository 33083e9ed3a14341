"""Rows are sorted in groups of equal keys, with the result of `sorted`."""

from __future__ import annotations

from operator import itemgetter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database
from reactive.engine.collections.order import LAST
from reactive.engine.collections.ranked import RankedIndex
from reactive.engine.collections.sorting import grouped_rows
from tests.counted_calls import calls_of
from tests.thresholds import LOWEST, thresholds

NUMBERS = st.sampled_from([0, 1, -1, True, 2**70, 0.5, 1.0, -0.0, LAST])
TEXTS = st.sampled_from("abc")
PARTS = [st.tuples(NUMBERS, TEXTS), st.tuples(st.none(), NUMBERS), st.lists(NUMBERS).map(tuple)]
ALIKE = [NUMBERS, TEXTS, *PARTS, st.tuples(st.tuples(NUMBERS), TEXTS)]
TIES = st.sampled_from([(1, "b"), (1, "a"), (0.5, "a"), None])


@given(st.one_of(*[st.lists(each, max_size=40) for each in ALIKE]))
def test_rows_stand_as_sorted_has_them(keys: list[Any]) -> None:
    keys = [*keys, *keys, *keys, *keys]  # so that they are few
    rows = list(enumerate(keys))
    found = grouped_rows(keys, rows)
    if found is not None:
        expected = sorted(rows, key=itemgetter(1))
        assert [row for some in found.values() for row in some] == expected
    assert (found is not None) == (
        LAST not in _parts(keys) and tuple not in map(type, _parts(keys))
    )


def _parts(keys: list[Any]) -> list[Any]:
    return [part for key in keys for part in (key if type(key) is tuple else [key])]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("settings", [{}, LOWEST])
@given(st.lists(st.tuples(st.sampled_from([1, 2.5, -3]), TIES), max_size=60))
def test_a_load_ends_as_inserting_row_by_row_does(
    settings: dict[str, int], descending: bool, pairs: list[tuple[Any, Any]]
) -> None:
    pairs = [*pairs, *pairs, *pairs, *pairs]
    with thresholds(settings):
        loaded, inserted = RankedIndex(descending=descending), RankedIndex(descending=descending)
        told = loaded.load([key for key, _ in pairs], [row for _, row in pairs])
        for key, row in pairs:
            inserted.insert(key, row)
        assert told == list(loaded) == list(inserted)
        for key, row in pairs:
            at = loaded.place_of(key, row)
            assert at is not None
            loaded.delete(at)
            loaded.tidy(at[0])
        assert len(loaded) == 0


def test_a_key_of_another_class_among_many_is_seen() -> None:
    keys: list[Any] = [n % 7 for n in range(50_000)]
    assert grouped_rows(keys, keys) is not None
    keys[1_001] = None
    assert grouped_rows(keys, keys) is None
    keys[1_001] = "a"
    with pytest.raises(TypeError, match="not supported"):
        grouped_rows(keys, keys)


def test_keys_of_which_most_differ_are_left_to_sorting() -> None:
    keys = list(range(50_000))
    assert grouped_rows(keys, keys) is None


class Row:
    """A row that is found by identity, as it has no other hash; it counts calls of `__hash__`."""

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
        assert Row.hashed == 500 * (1 + told)
        assert list(view) == sorted(rows, key=lambda row: row.key, reverse=descending)
        if subscription is not None:
            subscription.close()


def test_a_load_calls_the_key_of_each_row_and_little_else() -> None:
    table: Any = Database().table(tuple)
    view = table.order_by(lambda row: row[1]).materialize()
    rows = [(n, n % 5) for n in range(10_000)]
    assert calls_of(lambda: table.add_all(rows)) < 1.3 * len(rows) + 9_000
    assert len(view) == len(rows)

"""Random texts, as queries and over shuffled lists; a command plays more: see `__init__`."""

from __future__ import annotations

from random import Random

import pytest

from reactive.api.family import find_difference
from tests.comprehensions.play import Difference, expect_raise, function_of, play, play_many
from tests.comprehensions.rows import A, Tables
from tests.comprehensions.texts import Texts

SEEDS = (1_000_000, 2_000_000, 3_000_000)
EACH = 150
ONCE_WRONG = (6_000_699,)
"""Seeds of texts whose view once differed from Python, or that could not be compiled."""


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_views_are_what_python_computes_of_their_texts(seed: int) -> None:
    found = play_many(EACH, seed)
    assert found["played"] > 0.9 * EACH
    assert found["refused"] == 0


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_once_is_right(seed: int) -> None:
    assert play_many(1, seed)["played"] == 1


def test_the_texts_have_all_forms() -> None:
    text = "".join(Texts(Random(seed)).function(3) for seed in range(1_500))
    forms = (
        *("return [", "return {", "return (", "return sorted(", "[:2]", " | ", " & ", " - ", " ^ "),
        *("sum(", "len(", "min(", "max(", "any(", "all(", "not any(", " in {", " not in [", "key="),
        *("defaultdict(list)", "defaultdict(int)", ".append(", ".items()", ".get(", "default="),
        *("frozenset(", "tuple(sorted(", "in view", "in big", ".tags", ".pairs", " if ", " else "),
        *("is None", "bool([", "//", "q1 = {", "q1 = ["),
    )
    assert [form for form in forms if form not in text] == []


def test_a_view_that_differs_is_found() -> None:
    """Test of the judge: a text whose result is an order of rows differs from a view."""
    tables = Tables()
    tables.a.add_all([A(1, 2, "x"), A(1, 3, "x")])
    query = function_of("def query():\n    return [r.v for r in a]\n", tables.names())
    made = tables.db.query(query)
    view = made.materialize()
    other = function_of("def query():\n    return [r.v + 1 for r in a]\n", tables.names())
    made.text = type(made.text)(other)

    assert find_difference(view) is not None


def test_what_raises_for_no_order_must_not_raise() -> None:
    with pytest.raises(Difference):
        _play_with_a_view_that_raises()


def _play_with_a_view_that_raises() -> None:

    tables = Tables()
    query = function_of("def query():\n    return [r.v for r in a]\n", tables.names())
    made = tables.db.query(query)
    expect_raise(made, ValueError("no"), Random(1), tables, "")


def test_a_text_is_played_with_every_kind_of_row() -> None:
    text = "def query():\n    return [(r.id, p, q) for r in d for p, q in r.pairs if p in r.tags]\n"
    assert play(text, 5) == "played"

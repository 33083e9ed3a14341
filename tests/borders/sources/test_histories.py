"""After every batch, tables, token, origins and errors equal the state of the source."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Batch
from reactive.engine.transactions.transaction import Transaction
from tests.borders.offload.elsewhere import Elsewhere
from tests.borders.sources.histories import BATCHES, Fact, Fed, Item, Model, parts
from tests.budget import stride
from tests.moments import Moments

HISTORIES = st.lists(BATCHES, max_size=6)
TOKENS = st.sampled_from([lambda n: n, lambda n: {"offset": n}, lambda n: ("log", n)])


@pytest.mark.long
@given(HISTORIES, st.booleans(), TOKENS)
def test_tables_are_what_the_batches_say(history: Any, optimize: bool, token: Any) -> None:
    fed, model = Fed(raising=False, optimize=optimize), Model()
    for number, drawn in enumerate(history):
        before, batch = fed.db.version, model.batch(drawn, token(number))
        fed.source.take(batch)
        assert fed.db.version == before + 1
        check(fed, model)
        fed.source.take(Batch(origins=batch.origins))
        assert fed.db.version == before + 1, "what is there already is no change"


@pytest.mark.long
@given(HISTORIES, st.sampled_from(["raise", "drop"]))
def test_tables_and_views_may_be_elsewhere(history: Any, on_error: Any) -> None:
    fed, model = Fed(raising=False, offload=Elsewhere(), on_error=on_error), Model()
    joined = fed.views[-1]
    for number, drawn in enumerate(history):
        if number % 3 < 2:
            (joined.recall if number % 3 else joined.offload)()
        fed.source.take(model.batch(drawn, number))
        check(fed, model)
    fed.db.close()
    assert fed.source.token == model.token


@pytest.mark.long
@given(HISTORIES, st.booleans())
def test_rows_that_raise_are_left_out_until_the_source_changes_them(
    history: Any, optimize: bool
) -> None:
    fed, model = Fed(raising=True, optimize=optimize, on_error="drop"), Model()
    for number, drawn in enumerate(history):
        before, batch = fed.db.version, model.batch(drawn, number)
        fed.source.take(batch)
        assert fed.db.version == before + 1
        good, bad = parts(model.rows(), bad=False), parts(model.rows(), bad=True)
        assert fed.rows() == good
        assert Counter(error.row for error in fed.source.errors) == sum(bad, Counter())
        assert fed.source.token == number
        fed.source.errors.verify()
        fed.verify()


@pytest.mark.long
@given(HISTORIES)
def test_a_batch_with_a_row_that_raises_changes_nothing(history: Any) -> None:
    fed, model = Fed(raising=True), Model()
    for number, drawn in enumerate(history):
        after = Model(dict(model.items), Counter(model.facts), dict(model.origins), model.token)
        batch = after.batch(drawn, number)
        try:
            fed.source.take(batch)
            model = after
        except ZeroDivisionError as error:
            assert any(parts(after.rows(), bad=True))
            assert fed.source.error is error
        check(fed, model)


@pytest.mark.long
def test_rows_and_token_change_together_at_every_moment() -> None:
    first = Batch([Item(1, 1), Fact("a", 2)], origins={"f": [1, Fact("b", 1)], "h": [3]}, token=1)
    second = Batch(
        [Item(1, 2), Item(2, 1)],
        removes=[Fact("a", 2)],
        origins={"f": [2], "g": [Fact("b", 2)]},
        appends={"h": [3, 4]},
        token=2,
    )
    moment, seen = 0, set()
    while True:
        fed = Fed(raising=False)
        fed.source.take(first)
        before = state(fed)
        with Moments(moment) as moments, suppress(KeyboardInterrupt):
            fed.source.take(second)
        assert state(fed) == before or state(fed)[-1] == 2, moments.where
        seen.add(fed.source.token)
        if fed.source.token == 1:
            fed.source.take(second)
        assert state(fed) == (
            [Counter([Item(1, 2), Item(2, 1)]), Counter([Fact("b", 2)]), Counter([2, 3, 3, 4])],
            {"f": (2,), "g": (Fact("b", 2),), "h": (3, 3, 4)},
            2,
        ), moments.where
        fed.verify()
        if moments.where is None:
            break
        moment += stride(1, 7)
    assert seen == {1, 2}
    assert moment > 200


def test_an_interrupt_between_the_beginning_of_a_transaction_and_its_block_leaves_none_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fed = Fed(raising=False)
    enter = Transaction.__enter__

    def interrupted(transaction: Transaction) -> Transaction:
        enter(transaction)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Transaction, "__enter__", interrupted)
        fed.source.take(Batch([Item(1, 1)], token=1))
    assert isinstance(fed.source.error, KeyboardInterrupt)  # which holds the frames
    fed.source.take(Batch([Item(1, 1)], token=1))
    assert (list(fed.items), fed.source.token) == ([Item(1, 1)], 1)


@pytest.mark.parametrize("on_error", ["raise", "drop"])
def test_a_batch_that_fails_at_any_row_leaves_the_token(on_error: Any) -> None:
    rows = [Item(number, 1) for number in range(5)]
    for place in range(5):
        fed = Fed(raising=True, on_error=on_error)
        fed.source.take(Batch([Item(9, 2)], token="first"))
        given_rows = [*rows[:place], Item(place, 0), *rows[place + 1 :]]
        if on_error == "raise":
            with pytest.raises(ZeroDivisionError):
                fed.source.take(Batch(given_rows, token="second"))
            assert (list(fed.items), fed.source.token) == ([Item(9, 2)], "first")
        else:
            fed.source.take(Batch(given_rows, token="second"))
            assert (len(fed.items), fed.source.token) == (5, "second")
        fed.verify()


def check(fed: Fed, model: Model) -> None:
    assert fed.rows() == parts_with_weight(model.rows())
    assert fed.source.token == model.token
    assert {origin: Counter(rows) for origin, rows in fed.source.origins.items()} == {
        origin: Counter(rows) for origin, rows in model.origins.items() if rows
    }
    fed.verify()


def parts_with_weight(rows: list[Counter[Any]]) -> list[Counter[Any]]:
    return [+some for some in rows]


def state(fed: Fed) -> Any:
    return fed.rows(), dict(fed.source.origins), fed.source.token

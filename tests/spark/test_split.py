"""What a fragment says that its state holds, how that is merged, and what is made of it."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from reactive import Avg, Count, Max
from spark_backend.incremental.split import split_of
from tests.spark.fragments import Query, fragment_of


def lines(query: Query) -> list[str]:
    return split_of(fragment_of(query).node).lines()


def test_an_average_is_the_answer_of_a_sum_and_a_count_and_what_is_above_follows() -> None:
    found = lines(
        lambda o, c: (
            o.join(c, on=lambda o, c: o.customer == c.id)
            .group_by(lambda o, c: c.town)
            .aggregate(Count(), Avg(lambda o, c: o.amount), Max(lambda o, c: o.id))
            .where(lambda town, n, mean, most: n > 1)
        )
    )
    assert found == [
        "h: counts, sums and counts, values with their weights by c.town",
        "merge: +, of weights and sums",
        "answer, of what changed: Avg = sum / count, then Max = greatest value, then where n > 1",
    ]


def test_a_join_holds_rows_and_answers_with_pairs() -> None:
    found = lines(lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id))
    assert found[0] == "h: the rows of both sides by key"
    assert found[2] == "answer, of what changed: their pairs"
    alone = lines(lambda o, c: o.anti_join(c, on=lambda o, c: o.customer == c.id))
    assert alone[2] == "answer, of what changed: those without a partner"

"""Views equal their query wherever their parts are, and whenever they move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reactive import Count, Database, OffloadError, Sum
from tests import generate
from tests.offload.elsewhere import Elsewhere
from tests.replica import Replica

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), history=generate.HISTORIES, optimize=st.booleans())
def test_random_queries_over_random_moves(data: Any, history: Any, optimize: bool) -> None:
    offload = Elsewhere()
    db = Database(offload=offload, optimize=optimize)
    bag, keyed = generate.tables(db)
    relations = [data.draw(generate.finals([bag, keyed])) for _ in range(2)]
    views = [relation.materialize() for relation in relations]
    replicas = [Replica(view) for view in views]
    for commit in history:
        for view in views:
            match data.draw(st.sampled_from(["move", "recall", "stay", "stay"])):
                case "move":
                    try:
                        view.offload()
                    except OffloadError as error:
                        assert "cannot be moved" in str(error)
                case "recall":
                    view.recall()
        with db.transaction():
            for change in commit:
                generate.apply(bag, keyed, change)
        if data.draw(st.booleans()):
            for view, replica in zip(views, replicas, strict=True):
                view.verify()
                replica.check()
    late = [relation.materialize() for relation in relations]
    for view in [*views, *late]:
        view.verify()


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    size: int


@dataclass(frozen=True, slots=True)
class Stat:
    total: int
    size: int


@pytest.mark.parametrize("optimize", [True, False])
def test_named_rows_and_queries_of_views_move(optimize: bool) -> None:
    db = Database(offload=Elsewhere(), optimize=optimize)
    words = db.table(Word, name="words")
    groups = words.group_by("size")
    named = groups.aggregate(n=Count(), total=Sum("size")).materialize()
    own: Any = groups.aggregate(total=Sum("size"), as_=Stat).materialize()
    distinct = words.select(lambda w: w.size).distinct().materialize()
    large = named.where(lambda r: r.n > 1).materialize()
    views: list[Any] = [named, own, distinct, large]
    words.add_all([Word("to", 2), Word("be", 2), Word("not", 3)])

    def check(two: int) -> None:
        assert named == {2: (two, 2 * two), 3: (1, 3)} and named[2].total == 2 * two
        assert own[2] == Stat(2 * two, 2) and 3 in own and own.get(9) is None
        assert sorted(distinct) == [2, 3] and large == [(2, two, 2 * two)]
        for view in views:
            view.verify()

    check(2)
    for two, view in enumerate((named, own, distinct), 3):
        view.offload()
        words.add(Word("or" * two, 2))
        check(two)
    named.recall()
    own.recall()
    words.remove(Word("or" * 5, 2))
    check(4)

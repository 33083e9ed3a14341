"""Arguments and refusals of `iterate`, and the bound of a loop with a tolerance."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, FixpointError, PlanError, Sum, Table, VerificationError, iterate
from tests.budget import examples
from tests.properties.test_loops import EDITS, Edge, edges_of, play, ranks

Rel = Any


class Reading(NamedTuple):
    name: str
    value: float


def readings_of() -> Table[Reading]:
    return Database().table(Reading, name="readings")


def halved(rows: Rel) -> Rel:
    return rows.select(lambda r: Reading(r.name, r.value / 2))


OF: dict[str, Any] = {"of": lambda r: r.value}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "iterate has neither times= nor until="),
    "both": ({"times": 2, "until": "settled"}, "iterate has both times= and until="),
    "max_rounds_of_times": ({"times": 2, "max_rounds": 9}, "max_rounds= belongs to until="),
    "until_what": ({"until": "done"}, "until='done': it may be \"settled\" or a condition"),
    "no_rounds": ({"until": "settled", "max_rounds": 0}, "max_rounds is a number of rounds, not 0"),
    "tolerance_without_of": ({"times": 2, "tolerance": 1}, "has tolerance= but no of="),
    "of_without_tolerance": ({"times": 2, **OF}, "has of= but no tolerance="),
    "by_alone": ({"times": 2, "by": lambda r: r.name}, "has by= but no tolerance="),
    "negative": ({"times": 2, "tolerance": -1, **OF}, "tolerance=-1: it is a number that is not"),
    "nan": ({"times": 2, "tolerance": float("nan"), **OF}, "tolerance=nan: it is a number"),
    "no_number": ({"times": 2, "tolerance": "small", **OF}, "tolerance='small': it is a number"),
    "no_contraction": (
        {"times": 2, "tolerance": 1, "contraction": 1, **OF},
        "contraction=1: it is a number from 0 to less than 1",
    ),
    "contraction_of_nothing": (
        {"times": 2, "contraction": 0.5},
        "contraction= says how far tolerance= may lead, and there is none",
    ),
    "norm": ({"times": 2, "tolerance": 1, "norm": "mean", **OF}, "norm='mean'"),
    "no_field": (
        {"times": 2, "tolerance": 1, "of": lambda r: r.value + 1},
        "which rows correspond from round to round?",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_words_that_do_not_go_together_are_refused(name: str) -> None:
    words, message = WRONG[name]
    with pytest.raises(PlanError) as caught:
        iterate(halved, readings_of(), **words)
    assert message in str(caught.value)


def test_several_relations_start_from_as_many() -> None:
    readings = readings_of()
    step: Any = lambda a, b: (a, b)  # noqa: E731
    starts: tuple[Any, ...] = (readings, (readings,), (readings, 3))
    for start in starts:
        with pytest.raises(PlanError):
            iterate(step, start, times=2)
    with pytest.raises(PlanError, match="two databases"):
        iterate(step, (readings, readings_of()), times=2)
    with pytest.raises(PlanError, match="one entry for each of a, b"):
        iterate(step, (readings, readings), times=2, tolerance=1, of=(lambda r: r.value,))


@pytest.mark.parametrize("words", [{"until": "settled"}, {"times": 2, "tolerance": 1, **OF}])
def test_what_settles_or_tolerates_stands_in_no_other_recursion(words: dict[str, Any]) -> None:
    readings = readings_of()
    with pytest.raises(PlanError, match="depends on a relation of another recursion"):
        iterate(lambda r: iterate(halved, r, **words), readings, times=2)


def test_a_loop_that_does_not_settle_is_rolled_back_and_named() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    view = iterate(
        lambda n: n.select(lambda x: -x), numbers, until="settled", max_rounds=9
    ).materialize()
    numbers.add(0)
    with pytest.raises(FixpointError) as caught:
        numbers.add_all([1, 2])
    assert str(caught.value).splitlines()[:2] == [
        "iterate 'n' has not settled after 9 rounds",
        "  rows that still change: -1, -2",
    ]
    assert (list(numbers), list(view)) == ([0], [0])
    numbers.add(0)
    assert list(view) == [0, 0]
    view.verify()


def test_several_rows_of_a_key_are_refused_at_the_commit() -> None:
    readings = readings_of()
    view = iterate(halved, readings, times=2, tolerance=1, **OF).materialize()
    readings.add(Reading("a", 8.0))
    with pytest.raises(FixpointError, match="by= says which rows correspond"):
        readings.add(Reading("a", 9.0))
    assert (len(readings), list(view)) == (1, [Reading("a", 2.0)])


def test_explain_says_whether_a_bound_is_known() -> None:
    readings = readings_of()
    words: dict[str, Any] = {"times": 2, "tolerance": 0.5, **OF}
    assert "no bound is known" in str(iterate(halved, readings, **words).explain())
    known = iterate(halved, readings, contraction=0.5, **words).explain()
    assert "tolerance 0.5 of r.value, contraction 0.5 of the max" in str(known)


def test_what_is_within_no_known_bound_is_not_verified() -> None:
    readings = readings_of()
    words: dict[str, Any] = {"times": 2, "tolerance": 0.5, **OF}
    loop = iterate(halved, readings, **words)
    above = iterate(halved, readings, contraction=0.5, **words).where(lambda r: r.value > 1)
    for query in (loop, above):
        view = query.materialize()
        with pytest.raises(PlanError, match="no bound is known for its rows"):
            view.verify()


def test_rows_beyond_the_bound_are_told() -> None:
    """A promise that is not kept: values grow."""
    readings = readings_of()
    view = iterate(
        lambda rows: rows.select(lambda r: Reading(r.name, r.value * 10)),
        readings,
        times=3,
        tolerance=0.5,
        contraction=0.5,
        **OF,
    ).materialize()
    readings.add(Reading("a", 1.0))
    view.verify()
    readings.update(Reading("a", 1.0), Reading("a", 1.04))
    with pytest.raises(VerificationError, match="beyond its bound"):
        view.verify()


ROUNDS: dict[str, dict[str, Any]] = {
    "times": {"times": 12},
    "settled": {"until": "settled"},
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("rounds", "tolerance"),
    [("times", 0.0), ("times", 1e-3), ("times", 0.3), ("settled", 1e-6), ("settled", 0.01)],
)
def test_ranks_are_within_the_bound_after_every_commit(rounds: str, tolerance: float) -> None:
    @examples(20)
    @given(edits=EDITS)
    def run(edits: list[list[tuple[bool, Edge]]]) -> None:
        edges = edges_of()
        words = {"tolerance": tolerance, "of": lambda r: r.rank}
        view = ranks(edges, **ROUNDS[rounds], **words, contraction=0.85, norm="sum").materialize()
        play(edits, edges, lambda _: view.verify())

    run()


@examples(25)
@given(
    edits=st.lists(
        st.dictionaries(st.sampled_from("abc"), st.none() | st.floats(0, 100), max_size=3),
        max_size=10,
    )
)
def test_a_loop_that_feeds_on_itself_follows_what_comes_and_goes(
    edits: list[dict[str, float | None]],
) -> None:
    """Rows exist only because they existed in the round before."""
    readings: Table[Reading] = Database().table(Reading, name="readings", key=lambda r: r.name)
    views = [
        iterate(halved, readings, tolerance=0.01, contraction=0.5, **OF, **words).materialize()
        for words in ROUNDS.values()
    ]
    for edit in edits:
        for name, value in edit.items():
            if value is not None:
                readings.upsert(Reading(name, value))
            elif readings.get(name) is not None:
                readings.delete(name)
        for view in views:
            view.verify()
            assert {r.name for r in view} == {r.name for r in readings}


class Factor(NamedTuple):
    of: int
    value: float


class Rating(NamedTuple):
    user: int
    item: int
    stars: float


def factors(ratings: Rel, w: Rel, h: Rel, **words: Any) -> tuple[Rel, Rel]:
    """Alternating least squares of rank one: w[u] = sum of stars h[i] / sum of h[i]**2, ..."""

    def step(w: Rel, h: Rel) -> tuple[Rel, Rel]:
        users = ratings.join(h, on=lambda r, h: r.item == h.of)
        w = (
            users.group_by(lambda r, h: r.user)
            .aggregate(Sum(lambda r, h: r.stars * h.value), Sum(lambda r, h: h.value**2))
            .select(lambda user, up, down: Factor(user, up / (down + 0.01)))
        )
        items = ratings.join(w, on=lambda r, w: r.user == w.of)
        h = (
            items.group_by(lambda r, w: r.item)
            .aggregate(Sum(lambda r, w: r.stars * w.value), Sum(lambda r, w: w.value**2))
            .select(lambda item, up, down: Factor(item, up / (down + 0.01)))
        )
        return w, h

    return iterate(step, (w, h), **words)


def test_a_matrix_is_factorized() -> None:
    db = Database()
    ratings: Table[Rating] = db.table(Rating, name="ratings")
    ratings.add_all([Rating(u, i, (u + 1.0) * (i + 2.0)) for u in range(4) for i in range(3)])
    users = ratings.select(lambda r: Factor(r.user, 1.0)).distinct()
    items = ratings.select(lambda r: Factor(r.item, 1.0)).distinct()
    w, h = (each.materialize() for each in factors(ratings, users, items, times=30))
    for _ in range(2):
        of_users, of_items = ({f.of: f.value for f in view} for view in (w, h))
        for rating in ratings:
            assert abs(of_users[rating.user] * of_items[rating.item] - rating.stars) < 1
        w.verify()
        h.verify()
        ratings.discard(Rating(3, 2, 16.0))
        ratings.add(Rating(4, 0, 10.0))


def test_each_relation_of_several_has_a_tolerance_of_its_own() -> None:
    ratings: Table[Rating] = Database().table(Rating, name="ratings")
    ratings.add_all([Rating(u, i, u + i) for u in range(4) for i in range(3)])
    users = ratings.select(lambda r: Factor(r.user, 1.0)).distinct()
    items = ratings.select(lambda r: Factor(r.item, 1.0)).distinct()
    words: dict[str, Any] = {"times": 4, "tolerance": 1e-6, "of": (lambda f: f.value, None)}
    w, _ = (each.materialize() for each in factors(ratings, users, items, **words))
    exact, _ = (each.materialize() for each in factors(ratings, users, items, times=4))
    ratings.add(Rating(1, 1, 3.0))
    found, wanted = ({f.of: f.value for f in view} for view in (w, exact))
    assert found.keys() == wanted.keys()
    assert max(abs(found[index] - wanted[index]) for index in found) < 1e-3

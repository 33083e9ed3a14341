"""A row of the user's own tuple type is no pair of a key and a row, whatever places are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from optimizer.expr import Function
from optimizer.subqueries.keyed_rows import KeyedRows
from optimizer.subqueries.translation import Translation
from reactive import Database, VerificationError
from tests.budget import TIMES, drawing
from tests.comprehensions.typed_tuples import play_comprehension, play_group

EACH = 60


@pytest.mark.long
@pytest.mark.parametrize("seed", range(0, 3_000, 1_000))
def test_comprehensions_are_what_python_computes_of_their_texts(seed: int) -> None:
    for each in range(seed, seed + EACH):
        play_comprehension(each)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(0, 3_000, 1_000))
def test_queries_of_groups_are_what_python_computes(seed: int) -> None:
    for each in range(seed, seed + EACH // 2):
        play_group(each)


@pytest.mark.long
@pytest.mark.parametrize("play", [play_comprehension, play_group])
def test_tuples_of_any_types_are_what_python_computes(play: Any) -> None:
    random = drawing()
    for _ in range(2_000 if TIMES else 30):
        play(random.randrange(10**9), typed=True)


def _views_of_a_broken_translation(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Views whose translation takes every row for a pair, as it once did."""
    packed = Translation.packed

    def broken(self: Translation, x: KeyedRows, f: Function | None = None) -> KeyedRows:
        return packed(self, replace(x, pair=len(x.row)), f)

    monkeypatch.setattr(Translation, "packed", broken)
    db = Database()
    triples, who = db.table(tuple[str, str, str], name="triples"), db.table(str, name="who")
    groups = triples.group_by(lambda t: t[0])
    made: dict[str, Any] = {
        "len": db.query(lambda: [(w, len({p for s, p, o in triples if s == w})) for w in who]),
        "sum": db.query(
            lambda: [sum(len(p) for p in {t[1] for t in triples if t[0] == w}) for w in who]
        ),
        "each": groups.each(lambda g: g.select(lambda t: t[1]).distinct()),
        "rows": groups.rows(lambda g: g.select(lambda t: t[1]).distinct()),
        "nest": who.nest(
            p=lambda w: triples.where(lambda t: t[0] == w).select(lambda t: t[1]).distinct()
        ),
    }
    views = {name: query.materialize() for name, query in made.items()}
    who.add("ann")
    triples.add_all([("ann", "likes", "tea"), ("ann", "likes", "rum")])
    return views


def test_verify_finds_a_broken_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, view in _views_of_a_broken_translation(monkeypatch).items():
        with pytest.raises(VerificationError):
            view.verify()
            pytest.fail(f"{name} holds {list(view)}")


def test_verify_asks_as_many_rows_as_agree_in_the_equation() -> None:
    asked = [_tested_by_verify(count) for count in (50, 500)]

    assert 50 <= asked[0] <= 2 * 50 and 500 <= asked[1] <= 2 * 500


class Counted:
    """A value that counts how often one of them is compared."""

    times = 0

    def __lt__(self, other: Any) -> bool:
        Counted.times += 1
        return True


def _tested_by_verify(count: int) -> int:
    db = Database()
    pairs, who = db.table(tuple[int, Counted], name="pairs"), db.table(int, name="who")
    view = db.query(
        lambda: [w for w in who if any(v < w for k, v in pairs if k == w)]
    ).materialize()
    who.add_all(range(count))
    pairs.add_all([(n, Counted()) for n in range(count)])
    Counted.times = 0
    view.verify()
    return Counted.times

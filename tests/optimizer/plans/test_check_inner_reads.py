"""An inner query that reads a missing field is refused when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database, PlanError


@dataclass(frozen=True)
class Team:
    id: int
    name: str


@dataclass(frozen=True)
class League(Team):
    top: int


@dataclass(frozen=True)
class Player:
    team: int
    score: float


def is_league(team: Any) -> bool:
    return isinstance(team, League)


WRONG: dict[str, Any] = {
    "the row around": lambda teams, players: (
        lambda: [(t.name, [p for p in players if p.team == t.idd]) for t in teams]
    ),
    "the row around, twice": lambda teams, players: (
        lambda: [
            (t.id, [(p.score, q.score) for p in players for q in players if q.team == t.idd])
            for t in teams
        ]
    ),
    "the row inside": lambda teams, players: (
        lambda: [(t.name, [p for p in players if p.teem == t.id]) for t in teams]
    ),
    "a fold inside": lambda teams, players: (
        lambda: {t.id: sum(p.skore for p in players if p.team == t.id) for t in teams}
    ),
    "a condition": lambda teams, players: (
        lambda: [p.score for t in teams if t.idd > 3 for p in players if p.team == t.id]
    ),
    "a join": lambda teams, players: (
        lambda: [p.score for t in teams for p in players if p.team == t.idd]
    ),
    "exists": lambda teams, players: (
        lambda: [t for t in teams if any(p.team == t.idd for p in players)]
    ),
    "two levels": lambda teams, players: (
        lambda: [
            (t.id, [(p.score, [q for q in players if q.team == t.idd]) for p in players])
            for t in teams
        ]
    ),
    "a test of another": lambda teams, players: (
        lambda: [
            (t.id, [p for p in players if p.team == t.idd])
            for t in teams
            if any(p.score > t.id for p in players)
        ]
    ),
}
NESTS: dict[str, Any] = {
    "by name": lambda teams, players: teams.nest(p=lambda t: players.where(team=t.idd)),
    "by a callable": lambda teams, players: teams.nest(
        p=lambda t: players.where(lambda p: p.team == t.idd)
    ),
    "two levels": lambda teams, players: teams.nest(
        p=lambda t: players.nest(q=lambda p: players.where(lambda q: (q.team, p) == (t.idd, p)))
    ),
}
RIGHT: list[Any] = [
    lambda teams, players: (
        lambda: [(t.id, [p for p in players if is_league(t) and p.team == t.top]) for t in teams]
    ),
    lambda teams, players: (
        lambda: [
            (t.id, [p for p in players if isinstance(t, League) and p.team == t.top]) for t in teams
        ]
    ),
    lambda teams, players: (
        lambda: [
            (t.id, [p for p in players if p.team == (t.top if hasattr(t, "top") else 0)])
            for t in teams
        ]
    ),
    lambda teams, players: (
        lambda: [
            (t.id, [p for p in players if p.team == t.top]) for t in teams if isinstance(t, League)
        ]
    ),
    lambda teams, players: (
        lambda: [
            t for t in teams if isinstance(t, League) and any(p.team == t.top for p in players)
        ]
    ),
    lambda teams, players: (
        lambda: [t for t in teams if isinstance(t, League) for p in players if p.team == t.top]
    ),
    lambda teams, players: (
        lambda: {
            t.id: sum(p.score for p in players if p.team == t.top) for t in teams if is_league(t)
        }
    ),
]


def tables() -> tuple[Database, Any, Any]:
    db = Database()
    teams, players = db.table(Team, name="teams"), db.table(Player, name="players")
    teams.add_all([Team(1, "a"), League(2, "b", 1)])
    players.add_all([Player(1, 2.0), Player(2, 3.0)])
    return db, teams, players


@pytest.mark.parametrize("query", WRONG.values(), ids=WRONG)
def test_a_comprehension_reads_fields_that_rows_have(query: Any) -> None:
    db, teams, players = tables()
    with pytest.raises(PlanError, match=r"has no field '(idd|teem|skore)'; did you mean"):
        db.query(query(teams, players))


@pytest.mark.parametrize("query", NESTS.values(), ids=NESTS)
def test_a_query_inside_reads_fields_that_rows_have(query: Any) -> None:
    _, teams, players = tables()
    with pytest.raises(PlanError, match="Team has no field 'idd'; did you mean 'id'") as raised:
        query(teams, players)
    assert "reads outer.idd" in str(raised.value)


@pytest.mark.parametrize("query", RIGHT)
def test_what_a_test_may_tell_is_let_through(query: Any) -> None:
    db, teams, players = tables()
    view = db.query(query(teams, players)).materialize()
    plain = query(list(teams), list(players))()
    assert len(view) == len(plain) > 0
    view.verify()

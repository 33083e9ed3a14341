"""Random sessions: a sample of `python -m tests.borders.mirrors`."""

from __future__ import annotations

from pathlib import Path
from random import randrange

import pytest
from sqlalchemy.exc import SQLAlchemyError

from tests.borders.mirrors import sessions
from tests.borders.mirrors.shop import shop

SESSIONS = 25


@pytest.mark.parametrize("is_file", [False, True])
def test_after_random_sessions_views_equal_the_query_in_sql(tmp_path: Path, is_file: bool) -> None:
    seed = randrange(10**6)
    engine = shop(tmp_path / "shop.db" if is_file else None)
    try:
        world = sessions.run(engine, seed, SESSIONS)
    except BaseException as error:
        error.add_note(f"python -m tests.borders.mirrors: sessions.run(engine, {seed}, {SESSIONS})")
        raise
    world.mirror.close()
    engine.dispose()
    assert world.done["Session.commit"]


def test_every_kind_of_statement_can_be_done() -> None:
    """None of them is an error each time, which a random session would take for one of SQL."""
    engine = shop()
    world = sessions.World(engine, 1)
    with world.sessions() as session:
        for fill in (sessions.add_customer, sessions.add_order, sessions.edit_tags) * 4:
            fill(session, world.random)
        session.commit()
    for act in sessions.ACTS:
        if act is sessions.break_a_rule:
            continue
        for _ in range(6):
            with world.sessions() as session:
                try:
                    act(session, world.random)
                    session.flush()
                    world.done[act.__name__] += 1
                except SQLAlchemyError:
                    session.rollback()
        assert world.done[act.__name__], act.__name__
    world.mirror.close()
    engine.dispose()

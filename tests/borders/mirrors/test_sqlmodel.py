"""Mirrors of classes of SQLModel, whose annotations have to be there when a class is made."""

from pathlib import Path
from typing import Any

import sqlmodel

from reactive import Database, mirror


class Team(sqlmodel.SQLModel, table=True):
    id: int | None = sqlmodel.Field(default=None, primary_key=True)
    name: str


class Hero(sqlmodel.SQLModel, table=True):
    id: int | None = sqlmodel.Field(default=None, primary_key=True)
    name: str
    age: int | None = None
    team_id: int | None = sqlmodel.Field(default=None, foreign_key="team.id")
    team: Team | None = sqlmodel.Relationship()


def test_classes_of_sqlmodel_are_mirrored(tmp_path: Path) -> None:
    engine = sqlmodel.create_engine(f"sqlite:///{tmp_path / 'heroes.db'}")
    sqlmodel.SQLModel.metadata.create_all(engine)
    with mirror(Database(), engine, Team, Hero) as m:
        names = m.related(Hero.team).select(lambda h, t: (h.name, t.name)).materialize()
        with sqlmodel.Session(engine) as session:
            session.add(Hero(name="ann", team=Team(name="red")))
            session.commit()
        assert list(names) == [("ann", "red")]
        with sqlmodel.Session(engine) as session:
            hero = session.exec(sqlmodel.select(Hero)).one()
            hero.age = 7
            session.add(hero)
            session.commit()
        row: Any = m[Hero][1]
        assert (row.age, row.name) == (7, "ann")
    engine.dispose()

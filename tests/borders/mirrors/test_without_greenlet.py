"""Work without greenlet, which SQLAlchemy installs only with its asyncio extra."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["greenlet"] = None
from sqlalchemy import Column, Integer, create_engine
from sqlalchemy.orm import declarative_base, scoped_session, sessionmaker
from sqlalchemy.pool import StaticPool
from reactive import Database, mirror

Base = declarative_base()
class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)

engine = create_engine("sqlite://", poolclass=StaticPool)
Base.metadata.create_all(engine)
Session = sessionmaker(engine)
for given in (Session, scoped_session(Session), engine):
    m = mirror(Database(), given, Order)
    with Session.begin() as session:
        session.add(Order())
    print(len(m[Order]))
    m.close()
db = Database()
rows = db.table(int)
with Session() as session, db.transaction(commit_with=session):
    session.add(Order())
    rows.add(1)
print(len(rows))
"""


def test_sessions_that_are_not_asynchronous_are_followed_without_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "2", "3", "1"]

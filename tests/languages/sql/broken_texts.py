"""Broken texts: nodes and words of valid texts deleted, doubled, swapped, nested.

    select a + b from t where c > 3      select a + from t where c > 3 > 3
                                         select t.c + t.c from t where (select max(c) from t) > 3

Any text must give a result or a `PlanError`, and its view must raise nothing of its own at a
commit.

python -m tests.languages.sql.broken_texts COUNT SEED [STATE]     10^5 of them in the soak, which
                                                        continues from the file STATE
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from reactive import Database, PlanError
from reactive.errors import FixpointError, ReactiveError
from tests.languages.sql.script import Record, read
from tests.seeds import play_all

SCRIPTS = Path(__file__).parent / "scripts"
DIALECTS = ("duckdb", "sqlite", "postgres")
WRITTEN_FOR = {"postgres": "duckdb"}
"""Engine whose scripts are played in a dialect without scripts; refused texts are left out."""
LONGEST = 4_000
"""Maximum of characters; repeated mutations may grow without end."""
STRANGE = ("", "x", "-1", "2024-02-30", "ä%_", None, 0, -1, 2**63, 1.5, float("nan"), True)
"""Values that are put into rows, whatever their columns are declared as."""
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


@cache
def scripts() -> list[tuple[Any, list[str], list[str]]]:
    """Return dialect, statements, and the queries that follow them."""
    found = []
    for path in sorted(SCRIPTS.glob("*.test")):
        script = read(path)
        for engine in DIALECTS:
            for statements, queries in script.groups(WRITTEN_FOR.get(engine, engine)):
                found.append((engine, _texts(statements), _texts(queries)))
    return found


def _texts(records: list[Record]) -> list[str]:
    return [record.text for record in records]


def broken(text: str, dialect: str, random: Random) -> str:
    """Return a valid text after a few random changes."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice((_changed_tree, _changed_tree, _changed_words))
        text = change(text, dialect, random)
    return text[:LONGEST]


def _changed_tree(text: str, dialect: str, random: Random) -> str:
    try:
        tree: Any = sqlglot.parse_one(text, read=dialect)
        nodes = [node for node in tree.walk() if node.parent is not None]
        if not nodes:
            return text
        node, other = random.choice(nodes), random.choice(nodes)
        match random.randrange(6):
            case 0:
                node.pop()
            case 1:
                node.replace(other.copy())
            case 2:
                copied = other.copy()
                other.replace(node.copy())
                node.replace(copied)
            case 3:
                node.replace(exp.Paren(this=node.copy()))
            case 4:
                node.replace(exp.Subquery(this=exp.Select(expressions=[node.copy()])))
            case 5 if isinstance(node.parent.args.get(node.arg_key), list):
                node.parent.append(node.arg_key, node.copy())
            case _:
                node.replace(exp.Add(this=node.copy(), expression=other.copy()))
        made: str = tree.sql(dialect=dialect)
    except Exception:  # sqlglot cannot read, change or write each tree
        return text
    return made


def _changed_words(text: str, dialect: str, random: Random) -> str:
    try:
        words = sqlglot.tokenize(text, read=dialect)
    except Exception:
        return text
    shown = [text[word.start : word.end + 1] for word in words]
    if not shown:
        return text
    place, other = random.randrange(len(shown)), random.randrange(len(shown))
    match random.randrange(4):
        case 0:
            del shown[place]
        case 1:
            shown.insert(place, shown[place])
        case 2:
            shown[place], shown[other] = shown[other], shown[place]
        case _:
            literal = words[place].token_type in (TokenType.NUMBER, TokenType.STRING)
            shown[place] = random.choice(("null", "'a'", "-1", "9e99", "[1]")) if literal else "*"
    return " ".join(shown)


class Player:
    """Databases with the tables of the scripts, in which broken texts are played."""

    def __init__(self, *, strange: bool) -> None:
        self._strange = strange
        self._databases: dict[int, Database] = {}

    def play(self, seed: int) -> str:
        """Play one text: "made", "refused", or an exception that is not ours."""
        random = Random(seed)
        text, db = self.drawn(random)
        try:
            return self._played(db, text, random)
        except Exception as error:
            error.add_note(f"{db._engine.dialect}: {text}")
            raise

    def drawn(self, random: Random) -> tuple[str, Database]:
        """Return a broken text, and the database that it is for."""
        place = random.randrange(len(scripts()))
        engine, statements, queries = scripts()[place]
        db = self._database(place, engine, statements)
        return broken(random.choice(queries), engine, random), db

    def play_statement(self, seed: int) -> str:
        """Play one statement in a database of its own."""
        random = Random(seed)

        engine, statements, _ = random.choice(scripts())
        place = random.randrange(len(statements))
        text = broken(statements[place], engine, random)
        db = prepared(engine, statements[:place])
        try:
            db.execute(text)
        except ReactiveError:
            return "refused"
        except Exception as error:
            error.add_note(f"{engine}: {text}")
            raise
        return "made"

    def _database(self, place: int, engine: str, statements: list[str]) -> Database:
        if place not in self._databases:
            self._databases[place] = prepared(engine, statements)
        return self._databases[place]

    def _played(self, db: Database, text: str, random: Random) -> str:
        try:
            relation = db.sql(text)
            view = relation.materialize()
        except (PlanError, FixpointError):  # a recursion that does not end
            return "refused"
        with view:
            undo = list(_changes(db, random, STRANGE if self._strange else ()))
            list(view)
            for each in reversed(undo):
                each()
        return "made"


def prepared(engine: str, statements: Sequence[str]) -> Database:
    """Return a database after some statements, except those that its dialect refuses."""
    db = Database(dialect=cast(Any, engine))
    for each in statements:
        try:
            db.execute(each)
        except ReactiveError:
            if engine not in WRITTEN_FOR:
                raise
    return db


def _changes(db: Database, random: Random, values: Sequence[Any]) -> Iterator[Any]:
    """Change a table, by a row with some of the values; yield functions that undo the changes."""
    tables: list[Any] = list(db._engine.tables.values())
    if not tables:
        return
    table = random.choice(tables)
    rows = list(table)
    if not rows:
        return
    row = random.choice(rows)
    table.remove(row)
    yield lambda: table.add(row)
    if not values:
        return
    try:
        strange = type(row)(*(random.choice((old, random.choice(values))) for old in row))
        table.add(strange)
    except ReactiveError:  # its key is there, or a column takes no such value
        return
    yield lambda: table.remove(strange)


def main() -> int:
    """Play the requested number of texts; return 1 if an exception is not the library's."""
    count, seed = (int(each) for each in sys.argv[1:3])
    state = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    player = Player(strange=True)

    def play(number: int) -> None:
        player.play_statement(number) if number % 5 == 0 else player.play(number)

    return play_all(play, count, seed, every=1_000, state=state)


if __name__ == "__main__":
    sys.exit(main())

"""Write scripts of drawn queries that at least one database accepts.

tables that both know    two thirds of the queries, `skipif` where one refuses
tables with typed rows   one third, of DuckDB alone
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.languages.sql import shop
from tests.languages.sql.oracles import Oracle, Refused, oracle
from tests.languages.sql.queries import Queries, Tables
from tests.languages.sql.script import ENGINES

OF_A_SCRIPT = 50


def scripts(count: int, seed: int, *, of_a_script: int = OF_A_SCRIPT) -> Iterator[tuple[str, str]]:
    """The names and texts of scripts with `count` queries together."""
    for number, start in enumerate(range(0, count, of_a_script)):
        typed = number % 3 == 2
        few = min(of_a_script, count - start)
        random = Random(f"{seed} {number}")
        kind = "typed" if typed else "common"
        yield f"{kind}_{seed}_{number:03}.test", _script(few, random, typed=typed)


def _script(count: int, random: Random, *, typed: bool) -> str:
    tables = {**shop.TYPED, "note": shop.COMMON["note"]} if typed else shop.COMMON
    engines = ENGINES[:1] if typed else ENGINES
    databases = [oracle(engine) for engine in engines]
    blocks: list[str] = []
    for text in shop.statements(tables, random):
        for database in databases:
            database.run(text)
        only = "onlyif duckdb\n" if typed else ""
        blocks.append(f"{only}statement ok\n{text}")
    blocks += _queries(tables, databases, count, random, typed=typed)
    return "\n\n".join(blocks) + "\n"


def _queries(
    tables: Tables, databases: list[Oracle], count: int, random: Random, *, typed: bool
) -> Iterator[str]:
    drawn = Queries(tables, random, typed=typed)
    while count:
        text = drawn.query()
        taken = [database.name for database in databases if _takes(database, text)]
        if not taken:
            continue
        count -= 1
        skipped = [engine for engine in ENGINES if engine not in taken]
        yield "".join(f"skipif {engine}\n" for engine in skipped) + f"query\n{text}"


def _takes(database: Oracle, text: str) -> bool:
    try:
        database.ask(text)
    except Refused:
        return False
    return True

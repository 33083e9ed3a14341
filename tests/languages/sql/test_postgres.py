"""Expressions of the dialect "postgres" equal a Postgres server, with type and NULL."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from reactive import Database, PlanError
from tests.budget import TIMES, drawing
from tests.languages.sql.postgres_cases import GROUPS
from tests.languages.sql.postgres_formats import DRAWN
from tests.languages.sql.postgres_player import Played, Server, new_database, play, play_constant
from tests.postgres_server import PostgresServer

LIMIT, CONSTANTS, SHARE = (400, 40, 1) if TIMES else (12, 1, 10)


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> Iterator[Server]:
    made = Server(new_database(postgres))
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS)
def test_expressions_are_what_postgres_gives(group: str, server: Server) -> None:
    random, played = drawing(), Played()
    patterns = GROUPS[group]
    for pattern in random.sample(patterns, -(-len(patterns) // SHARE)):
        played.add(play(server, pattern, LIMIT, random, CONSTANTS))
    assert played.cases > len(patterns) // SHARE
    wrong = played.wrong
    assert not wrong, f"{len(wrong)} of {played.cases} differ:\n" + "\n".join(wrong[:20])


@pytest.mark.long
@pytest.mark.parametrize("kind", DRAWN)
def test_drawn_formats_are_those_of_postgres(kind: str, server: Server) -> None:
    random, played = drawing(), Played()
    for text in DRAWN[kind](random, 400 if TIMES else 60, server):
        play_constant(server, text, played)
    assert not played.wrong, "\n".join(played.wrong[:20])
    assert len(played.refused) < played.cases / 4


@pytest.mark.parametrize(
    ("text", "form"),
    [
        *(("123 123456", "MS US"), ("12 120000", "FF3 FF6"), ("999 999999", "MS US")),
        *(
            ("12345678,", "FMFF6,"),
            ("0999999", "FF6"),
            ("4 4", "ID ID"),
            ("5 9 ", "IW ID "),
            ("1 Monday", "ID Day"),
        ),
        *(("6 Friday", "D Day"), ("172", "JMI"), ("18002023", "SSSSYYYY"), ("2,+02 x", "Y,YYY")),
        *(("23 13 Friday", "IYY IW Day"), ("109 1", "IW ID"), ("1 200", "MM DDD"), ("xii", "RM")),
        *(("am 11 PM", "AM HH PM"), ("-5 BC", "YYYY BC"), ("+5 3", "DD MM"), ("2024+5", "YYYYMM")),
    ],
)
def test_fields_of_moments_are_read_as_postgres_does(text: str, form: str, server: Server) -> None:
    played = Played()
    for year in ("", "2024 "):
        of = form if not year or "YYY" in form or "J" in form else f"YYYY {form}"
        of = f"IYYY {form}" if "I" in form.replace("MI", "") and year else of
        play_constant(server, f"to_timestamp('{year}{text}', '{of}')::timestamp", played)
    assert not played.wrong


def test_a_wrong_function_is_found(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from reactive.languages.sql.postgres.functions import TABLE

    monkeypatch.setitem(TABLE, "upper", TABLE["lower"])
    assert play(server, "upper({text})", 20, Random(1), 5).wrong


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'abc' similar to 'a%'", True),
        ("'abc' similar to '_b'", False),
        ("substring('foobar' from 'o(.)b')", "o"),
        ("to_char(timestamp '2006-01-02 15:04:05', 'HH12:MI:SS am')", "03:04:05 pm"),
        (
            "to_char(timestamp '2006-01-02 15:04:05', 'yyyy-mm-dd hh24:mi:ss')",
            "2006-01-02 15:04:05",
        ),
        ("1.0::float8::text", "1"),
        ("(array[1, 2])[-1]", None),
        ("array[1] || 2 || array[3]", (1, 2, 3)),
        ("'\\xdead'::bytea", b"\xde\xad"),
        ("concat(true, 1, null)", "t1"),
        ("row(null) is null", True),
        ("round(2.5::float8)", 2.0),
    ],
)
def test_a_constant_is_what_postgres_gives(text: str, expected: object) -> None:
    view = Database(dialect="postgres").sql(f"select {text} as x").materialize()
    assert view.value.x == expected


def test_generate_series_is_a_table() -> None:
    db = Database(dialect="postgres")
    view = db.sql("select x from generate_series(1, 3) g(x)").materialize()
    assert [row.x for row in view] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("instr('a', 'b')", "no function 'instr' in postgres"),
        ("list_sum(array[1])", "no function 'list_sum' in postgres"),
        ("true + 1", r"postgres has no operator \+ for boolean and integer"),
        ("upper(5)", r"postgres has no upper\(integer\)"),
        ("true::date", "postgres has no cast of BOOLEAN to DATE"),
        ("'ab'::char(3)", r"CHAR\(n\) pads with blanks"),
        ("x'1f'", "bit strings of postgres are not supported"),
        ("extract(hour from date '2024-01-01')", "postgres has no field 'hour' of date"),
    ],
)
def test_what_postgres_has_not_is_refused_with_its_name(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Database(dialect="postgres").sql(f"select {text} as x")


def test_an_integer_that_is_too_large_is_an_error_of_its_row() -> None:
    db = Database(dialect="postgres")
    db.execute("create table t (a integer not null)")
    view = db.sql("select a + 1 as x from t").materialize()
    db.execute("insert into t values (1), (2147483647)")
    assert [row.x for row in view] == [2]
    (error,) = view.errors
    assert "integer out of range" in str(error)

"""Generated row classes match the tables of the server; type checkers accept them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive import Database, NotifySource, PostgresSource
from reactive.borders.sources.postgres.__main__ import main
from reactive.borders.sources.postgres.rows import (
    RowClass,
    _row_classes,
    classes_text,
    postgres_row_class,
)
from reactive.borders.sources.postgres.schema import PostgresColumn, PostgresSchema
from reactive.borders.sources.postgres.values import BUILT_IN, array_conversion
from tests.postgres_server import PostgresServer

PATIENCE = 30
TYPES = Path(__file__).parent.parent / "types"
NAMES = (
    *("id", "date", "datetime", "int", "tuple", "count", "index", "class", "None", "NamedTuple"),
    *("Any", "unit price", "2024", "_private", "__slots__", "self", "UTC", 'a"b', "a\\", "a\nb"),
    *("_int", "Decimal", "UUID", "naïve", "ﬁne", "match", "", "Users", "timedelta", "print"),
)
"""Names of columns and tables: plain, of types, methods, keywords, and no identifiers."""
CONVERSIONS = [*BUILT_IN.items(), *((0, array_conversion(each)) for each in BUILT_IN.values())]


def schema_of(
    table: str, columns: Sequence[tuple[str, int, bool]], schema: str = "public"
) -> PostgresSchema:
    found = tuple(
        PostgresColumn(name, *CONVERSIONS[kind % len(CONVERSIONS)], not_null)
        for name, kind, not_null in columns
    )
    key = frozenset(column.name for column in found[:1])
    return PostgresSchema(table, 1, schema, table, False, found, key, False, (key,), key, ())


def executed(classes: Sequence[RowClass]) -> dict[str, Any]:
    """The module as it runs."""
    found: dict[str, Any] = {"__name__": "written"}
    exec(compile(classes_text(classes), "written.py", "exec", dont_inherit=True), found)
    return found


columns = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 99), st.booleans()),
    min_size=1,
    max_size=8,
    unique_by=lambda column: column[0],
)
tables = st.lists(st.tuples(st.sampled_from(NAMES), columns), min_size=1, max_size=4)


@settings(deadline=None)
@given(tables)
def test_a_written_class_is_the_one_that_the_source_makes(tables: list[Any]) -> None:
    schemas = [schema_of(name, columns) for name, columns in tables]
    classes = _row_classes(schemas)
    found = executed(classes)
    for each, schema in zip(classes, schemas, strict=True):
        written, made = found[each.name], postgres_row_class(schema)
        assert written._fields == made._fields
        hints = get_type_hints(written, include_extras=True)
        assert hints == get_type_hints(made, include_extras=True)


def test_a_name_of_a_table_stays_inside_of_its_text() -> None:
    name = 'a"""\nimport sys\n"""\\'
    text = classes_text(_row_classes([schema_of(name, [("id", 3, True)])]))
    assert [type(each) for each in ast.parse(text).body] == [ast.Expr, ast.ImportFrom, ast.ClassDef]
    assert repr(name) in (ast.get_docstring(ast.parse(text).body[2], clean=False) or "")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of classes with each name beside each kind of type."""
    path = tmp_path_factory.mktemp("written") / "written.py"
    kinds = range(len(CONVERSIONS))
    schemas = [
        schema_of(
            name, [(other, place + shift, shift % 2 == 0) for shift, other in enumerate(NAMES)]
        )
        for place, name in zip(kinds, NAMES * 2, strict=False)
    ]
    path.write_text(classes_text(_row_classes(schemas)))
    return path


def test_mypy_accepts_what_is_written(hostile: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", str(hostile)]
    done = subprocess.run(command, cwd=hostile.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:2000]


@pytest.mark.long
def test_pyright_accepts_what_is_written(hostile: Path) -> None:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install -e '.[dev]'")
    strict = "# pyright: strict\n"
    hostile.with_name("strict.py").write_text(strict + hostile.read_text())
    command = [sys.executable, "-m", "pyright", "--outputjson", str(hostile.with_name("strict.py"))]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    if "{" not in text:
        pytest.skip(f"pyright cannot be run, which needs node or a network: {text:.300}")
    found = json.loads(text[text.find("{") :])["generalDiagnostics"]
    assert [each["message"] for each in found if each["severity"] == "error"] == []


def test_the_command_writes_and_compares(
    postgres: PostgresServer, database: str, tmp_path: Path, capsys: Any
) -> None:
    postgres.execute(database, (TYPES / "written.sql").read_text())
    path = tmp_path / "rows.py"
    assert main([database, "orders", "customers", "--outfile", str(path)]) == 0
    assert path.read_text() == (TYPES / "written.py").read_text()
    assert main([database, "orders", "customers", "--check", str(path)]) == 0
    assert capsys.readouterr().out == ""
    postgres.execute(database, "alter table orders add column paid bool not null default false")
    assert main([database, "orders", "customers", "--check", str(path)]) == 1
    assert "+    paid: bool\n" in capsys.readouterr().out
    assert main([database]) == 0  # all tables
    found = capsys.readouterr().out
    assert found.index("class Customers(") < found.index("class Orders(")


def test_the_command_says_why_it_writes_nothing(
    postgres: PostgresServer, database: str, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "rows.py"
    assert main([database, "--outfile", str(path)]) == 2
    assert "no table in the schemas" in capsys.readouterr().err
    assert main([database, "absent", "--outfile", str(path)]) == 2
    assert "no table 'absent'" in capsys.readouterr().err
    assert main([database, "--check", str(path)]) == 2
    assert main(["postgresql://127.0.0.1:1/none", "orders"]) == 2
    assert "Postgres cannot be asked" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize("is_queried", [False, True], ids=["replication", "queries"])
def test_a_source_takes_the_class_that_is_written(
    postgres: PostgresServer, database: str, tmp_path: Path, is_queried: bool
) -> None:
    def run(text: str) -> None:
        postgres.execute(database, text)

    run("""create schema shop; create table users (id int primary key);
        create table shop.users (id int primary key, "full name" text,
        upper text generated always as (upper("full name")) stored)""")
    run("insert into shop.users values (1, 'ann')")
    path = tmp_path / "rows.py"
    options = ["--generated"] if is_queried else []
    assert main([database, "users", "shop.users", "--outfile", str(path), *options]) == 0
    found: dict[str, Any] = {"__name__": "rows"}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), found)
    assert found["PublicUsers"]._fields == ("id",)
    kind = found["ShopUsers"]
    assert ("without what is generated" in kind.__doc__) is not is_queried
    db = Database()
    users = db.table(kind, key="id")
    made = NotifySource if is_queried else PostgresSource
    source: Any = made(database, "shop.users")
    if is_queried:
        run(source.trigger_sql())
    with db.ingest(source, users):
        until(lambda: [row.full_name for row in users] == ["ann"])
        assert [getattr(row, "upper", None) for row in users] == ["ANN" if is_queried else None]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)

"""The shell prints the changes of views; files become tables of their columns' types."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from reactive import Database, PlanError
from reactive.languages.sql.shell.session import load_file
from reactive.languages.sql.text.read import statements

CSV = "id,town,total,day\n1,Bonn,7.5,2026-01-02\n2,Ulm,,2026-01-03\n"


def shell(folder: Path, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Return the exit code of the shell, and its output."""
    command = [sys.executable, "-m", "reactive.sql", *arguments]
    environment = {"PYTHONPATH": str(Path(__file__).parents[3]), "COLUMNS": "200", "PATH": ""}
    done = subprocess.run(
        command, input=typed, capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_views_are_printed_when_they_change(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(CSV)
    (tmp_path / "shop.sql").write_text(
        "create table towns (name text primary key, people int);\n"
        "insert into towns values ('Bonn', 330), ('Ulm', 126); -- two; of them\n"
        "select name, total from towns join 'orders.csv' o on o.town = name;\n"
    )
    typed = "insert into towns\nvalues ('Köln', 1000);\ndelete from towns where name = 'Bonn'"
    typed += " returning people;\n"
    code, told = shell(tmp_path, "shop.sql", typed=typed + "selct 1;\n.views\n.nothing\n")
    assert code == 0
    assert told.count("view 1: 2 rows") == 1  # a town without orders changes nothing
    assert told.count("view 1: 1 row") == 1
    assert "Row(people=330)" in told
    assert "this is no SQL" in told
    assert "1: 1 row  select name, total" in told
    assert "there is no command .nothing" in told


@pytest.mark.long
def test_a_statement_of_a_file_that_fails_is_told_by_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text("select nothing from nowhere;")
    code, told = shell(tmp_path, "shop.sql", "-c")
    assert code == 1
    assert "there is no table or view 'nowhere'" in told
    assert shell(tmp_path, "absent.sql", "-c")[0] == 1


def test_explain_and_close_are_commands(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(CSV)
    typed = "select id from orders;\n.explain select id from orders\n.close 1\n.close 1\n.tables\n"
    code, told = shell(tmp_path, "orders.csv", typed=typed)
    assert code == 0
    assert "select Row(orders.id)" in told
    assert told.count("there is no view 1") == 1
    assert "Table('orders', 2 rows)" in told


def test_a_csv_becomes_a_table_of_the_types_of_its_cells(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(CSV)
    db = Database()
    table = load_file(db, tmp_path / "orders.csv")
    assert table.name == "orders"
    assert list(table) == [(1, "Bonn", 7.5, date(2026, 1, 2)), (2, "Ulm", None, date(2026, 1, 3))]
    found = db.sql("select sum(total) as s from orders where day > date '2026-01-01'")
    assert list(found.materialize()) == [(7.5,)]


def test_parquet_becomes_a_table(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    parquet.write_table(pa.table({"id": [1, 2], "of": [["a", "b"], None]}), path)
    db = Database()
    assert list(load_file(db, path)) == [(1, ("a", "b")), (2, None)]
    found = db.sql("select id, x from lists, unnest(of) as u(x)").materialize()
    assert sorted(found) == [(1, "a"), (1, "b")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "x,y\n1\n", "row 2: 1 cells, not 2"),
        ("a.csv", "", "has no columns"),
        ("a.txt", "x\n1\n", "neither .csv nor .parquet"),
    ],
)
def test_what_is_no_table_is_said(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PlanError, match=said):
        load_file(Database(), tmp_path / name)


def test_semicolons_in_texts_and_remarks_end_no_statement() -> None:
    text = "select ';' from \"a;b\"; /* ; */ select 2 -- ;\n;\n.views\nselect 3"
    assert list(statements(text)) == [
        "select ';' from \"a;b\"",
        "select 2 -- ;",
        ".views",
        "select 3",
    ]

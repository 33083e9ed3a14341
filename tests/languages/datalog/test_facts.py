"""Files of facts and of outputs."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import Database, PlanError, SourceError

CLOSURE = """
.decl edge(x: symbol, y: number) .input edge{input}
.decl path(x: symbol, y: number) .output path{output}
path(x, y) :- edge(x, y).
path(x, y + 1) :- path(x, y), y < 3.
"""


def closure(input: str = "", output: str = "") -> str:
    return CLOSURE.format(input=input, output=output)


def test_facts_are_read_and_outputs_are_written(tmp_path: Path) -> None:
    (tmp_path / "closure.dl").write_text(closure())
    (tmp_path / "edge.facts").write_text("a b\t1\nc\t-0x2\r\na b\t1\n\t7\n")
    program = Database().datalog(tmp_path / "closure.dl")
    view = program["path"].materialize()
    program.tables["edge"].add(program.row("edge")("old", 3))
    program.load()
    assert sorted(program.tables["edge"]) == [("", 7), ("a b", 1), ("c", -2)]
    program.write()
    written = (tmp_path / "path.csv").read_text()
    assert sorted(written.splitlines()) == sorted(f"{x}\t{y}" for x, y in view)
    (tmp_path / "edge.facts").write_text("a\t3\n")
    program.load()
    program.write(tmp_path / "made" / "here")
    assert (tmp_path / "made" / "here" / "path.csv").read_text() == "a\t3\n"


@pytest.mark.parametrize(
    ("options", "text", "rows"),
    [
        ('delimiter=","', "a,1\nb,2\n", [("a", 1), ("b", 2)]),
        ('delimiter="::"', "a::1\nb:::2\n", [("a", 1), ("b", 2)]),
        ('filename="edge.facts", headers=true', "x\ty\na\t1\n", [("a", 1)]),
        ("rfc4180=true", '"a, ""b""\n",1\n"c",2\n', [('a, "b"\n', 1), ("c", 2)]),
        ('rfc4180=true, delimiter=";", headers=true', 'x;y\n";";1\n', [(";", 1)]),
    ],
)
def test_a_file_has_the_form_that_the_options_say(
    tmp_path: Path, options: str, text: str, rows: Any
) -> None:
    if ":::" in text:
        text = text.replace(":::", "::")
    (tmp_path / "edge.facts").write_text(text)
    out = options.replace('filename="edge.facts"', 'filename="edge.out"')
    source = f"""
        .decl edge(x: symbol, y: number) .input edge({options})
        .output edge({out})
    """
    program = Database().datalog(source, folder=tmp_path)
    program.load()
    assert sorted(program.tables["edge"]) == rows
    program.write()
    path = tmp_path / ("edge.out" if "filename" in out else "edge.csv")
    assert path.read_text() == text


def test_some_columns_of_a_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\tz\ta\n2\tz\tb\n")
    program = Database().datalog(closure('(columns="2:0")'), folder=tmp_path)
    program.load()
    assert sorted(program.tables["edge"]) == [("a", 1), ("b", 2)]
    (tmp_path / "edge.facts").write_text("1\tz\n")
    with pytest.raises(SourceError, match=r"line 1: .* has 2 columns, and the last to read is 2"):
        program.load()
    for input, output in [('(columns="a")', ""), ('(columns="1:")', ""), ("", '(columns="0")')]:
        with pytest.raises(PlanError, match="column"):
            other = Database().datalog(closure(input, output), folder=tmp_path)
            other.load() if input else other.write()


def test_files_are_packed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "edge.facts.gz", "wt") as file:
        file.write("a\t3\n")
    packed = "(compress=true)"
    program = Database().datalog(closure(packed, packed), folder=tmp_path)
    program.load()
    program.write()
    with gzip.open(tmp_path / "path.csv.gz", "rt") as file:
        assert file.read() == "a\t3\n"


def test_tables_of_sqlite_are_read_and_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "facts.db")) as connection, connection:
        connection.execute("create table edge (a, b)")
        connection.executemany("insert into edge values (?, ?)", [("a", 2), ("b", 3)])
    options = '(IO=sqlite, dbname="{}.db")'
    text = closure(options.format("facts"), options.format("found")).replace(
        ".decl path", ".type L = [x: number, y: L] .decl l(l: L, f: float)\n.decl path"
    )
    text += 'l([1, nil], 1.5). .output l(IO="sqlite", filename="found.db")'
    program = Database().datalog(text, folder=tmp_path)
    program.load()
    for _ in range(2):  # a table is replaced
        program.write()
        with closing(sqlite3.connect(tmp_path / "found.db")) as connection:
            rows = connection.execute("select x, y from path order by 1, 2").fetchall()
            assert rows == [("a", 2), ("a", 3), ("b", 3)]
            assert connection.execute("select l, f from l").fetchall() == [("[1, nil]", 1.5)]


VALUES = """
.type L = [x: number, s: symbol, y: L]
.type E = Num {n: float} | Add {a: E, b: E} | Zero {}
.decl v(l: L, e: E, u: unsigned, f: float) .input v .output v
.decl none() .input none .output none
"""


def test_records_and_branches_are_written_as_they_are_read(tmp_path: Path) -> None:
    lines = [
        "[1, a b, [-2, c, nil]]\t$Add($Num(1.5), $Zero)\t7\t0.5",
        "nil\t$Zero\t4294967295\t-1e-07",
    ]
    (tmp_path / "v.facts").write_text("\n".join(lines) + "\n")
    (tmp_path / "none.facts").write_text("()\n")
    program = Database().datalog(VALUES, folder=tmp_path)
    program.load()
    assert sorted(program.tables["v"], key=repr)[0].l.y.s == "c"
    program.write()
    assert sorted((tmp_path / "v.csv").read_text().splitlines()) == sorted(lines)
    assert (tmp_path / "none.csv").read_text() == "()\n"


OF_JSON = VALUES.replace(".input v", ".input v(IO=jsonfile)").replace(
    ".output v", ".output v(IO=jsonfile)"
)


@pytest.mark.parametrize(
    ("form", "rows"),
    [
        (
            "",
            """[[[1, "é", [-2, "c", null]], ["$Add", ["$Num", 1.5], ["$Zero"]], 7, 0.5],
[null, ["$Zero"], 4294967295, -1e-07]]""",
        ),
        (
            ", format=object",
            """[{"l": {"x": 1, "s": "", "y": null}, "e": ["$Num", 2.0], "u": 0, "f": 0.0},
{"l": null, "e": ["$Zero"], "u": 7, "f": 1.0}]""",
        ),
        ("", "[]"),
    ],
)
def test_rows_are_written_to_json_as_they_are_read(tmp_path: Path, form: str, rows: str) -> None:
    (tmp_path / "v.json").write_text(rows, encoding="utf-8")
    (tmp_path / "none.facts").write_text("()\n")
    program = Database().datalog(OF_JSON.replace("jsonfile", f"jsonfile{form}"), folder=tmp_path)
    for _ in range(2):  # what is written can be read
        program.load()
        program.write()
        assert (tmp_path / "v.json").read_text(encoding="utf-8") == f"{rows}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1", "the file is no JSON"),
        ("{}", "the file holds no array of rows"),
        ("[[null, 1, 2]]", "row 1: cannot read a row of 'v': .* has not 4 columns"),
        ('[{"l": null, "e": 1, "u": 1}]', "row 1: .* the object has the names l, e, u, not l, e"),
        ("[[null, null, 1, 1]]", "row 1: .* None is no E"),
        ('[[null, ["$Mul", 1], 1, 1]]', "row 1: .* type E has no branch 'Mul'"),
        ('[[null, ["$Num"], 1, 1]]', "row 1: .* has not 1 columns"),
        ('[[null, ["$Zero"], true, 1]]', "row 1: .* True is no unsigned"),
        ('[[null, ["$Zero"], -1, 1]]', "row 1: .* -1 is no unsigned"),
        ('[[[1, 2, null], ["$Zero"], 1, 1]]', "row 1: .* 2 is no symbol"),
        ('[[null, ["$Zero"], 1, "1"]]', "row 1: .* '1' is no float"),
    ],
)
def test_json_that_is_no_row_is_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "v.json").write_text(text)
    (tmp_path / "none.facts").write_text("")
    program = Database().datalog(OF_JSON, folder=tmp_path)
    with pytest.raises(SourceError, match=said):
        program.load()


def test_rows_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    text = ".decl a(x: number, s: symbol) a(1, {}). a(2, {}). .output a(IO=json, format={})"
    for form, wanted in [
        ("list", '[[1, "b"],\n[2, "\\"c"]]\n'),
        ("object", '[{"x": 1, "s": "b"},\n{"x": 2, "s": "\\"c"}]\n'),
    ]:
        Database().datalog(text.format('"b"', '"\\"c"', form)).write()
        assert capsys.readouterr().out == wanted
    with pytest.raises(PlanError, match=r"format=lines of \.output is not supported"):
        Database().datalog(text.format('"b"', '"c"', "lines")).write()
    with pytest.raises(PlanError, match=r"IO=json of \.input is not supported"):
        Database().datalog(".decl a(x: number) .input a(IO=json)").load()


def test_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    program = Database().datalog(
        ".decl a(x: number) a(1). a(2). .output a(IO=stdout)\n.printsize a"
    )
    program.write()
    line = "=" * 15
    assert capsys.readouterr().out == f"{'-' * 15}\na\n{line}\n1\n2\n{line}\na\t2\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a", "line 2: cannot read a row of 'edge': the line has 1 columns, not 2"),
        ("a\tb", "line 2: cannot read a row of 'edge': 'b' is no number"),
    ],
)
def test_a_line_that_is_no_row_is_told(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "edge.facts").write_text(f"a\t1\n{line}\n")
    program = Database().datalog(closure(), folder=tmp_path)
    program.tables["edge"].add(program.row("edge")("old", 3))
    with pytest.raises(SourceError, match=said):
        program.load()
    assert list(program.tables["edge"]) == [("old", 3)]


@pytest.mark.parametrize(
    "text",
    ["[1, a]", "[1, a, nil", "[1 a nil]", "[x, a, nil]", "nil]", "$Add", "$Add($Zero)", "$Mul(1)"],
)
def test_a_record_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    values = [text, "$Zero"] if not text.startswith("$") else ["nil", text]
    (tmp_path / "v.facts").write_text("\t".join([*values, "1", "1"]) + "\n")
    (tmp_path / "none.facts").write_text("")
    program = Database().datalog(VALUES, folder=tmp_path)
    with pytest.raises(SourceError, match="line 1: cannot read a row of 'v'"):
        program.load()


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    program = Database().datalog(closure(), folder=tmp_path)
    with pytest.raises(FileNotFoundError):
        program.load()
    with pytest.raises(PlanError, match=r"IO=stdin of \.input is not supported"):
        Database().datalog(closure("(IO=stdin)"), folder=tmp_path).load()
    with pytest.raises(PlanError, match="the name of the database is missing"):
        Database().datalog(closure("(IO=sqlite)"), folder=tmp_path).load()


def test_files_of_facts_are_followed(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("a\t1\n")
    db = Database()
    program = db.datalog(closure('(delimiter="\\t")'), folder=tmp_path, watch=True)
    view = program["path"].materialize()
    assert sorted(view) == [("a", 1), ("a", 2), ("a", 3)]
    (tmp_path / "edge.facts").write_text("b\t3\n")
    table: Any = program.tables["edge"]
    table.catch_up()
    assert sorted(view) == [("b", 3)]
    db.close()


class Edge(NamedTuple):
    x: str
    y: int


def test_watch_knows_the_suffix_of_facts(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("a\t1\nb\t2\n")
    db = Database()
    table = db.watch(tmp_path / "*.facts", Edge, name="edge")
    assert sorted(table) == [Edge("a", 1), Edge("b", 2)]
    assert sorted(db.datalog(closure())["path"].materialize())[0] == ("a", 1)
    db.close()

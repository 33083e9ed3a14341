"""JSON functions of the dialect "sqlite" against SQLite itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Database, PlanError
from reactive.languages.sql.sqlite import json
from reactive.languages.sql.sqlite.json import Edit, patched, removed
from tests.budget import TIMES, drawing
from tests.languages.sql.sqlite_player import Both

pytestmark = pytest.mark.skipif(
    sqlite3.sqlite_version_info >= (3, 42),
    reason="SQLite reads JSON5 from 3.42 on, and the dialect is that of 3.40",
)
TEXTS: list[Any] = [
    *("{}", "[]", "null", "true", "false", "0", "-0", "1.0e2", "-12", "1E5", "0.50", '""', '"a"'),
    *('{"a":1}', ' { "a" : [ 1 , 2.50 , {"b": null} ] } ', '[1,[2,[3,{"a":"x"}]],"y"]'),
    *('{"a b":1,"":2,"a":{"a":{"a":[true,false]}}}', '{"a":1,"a":2}', '{"é":"Ä","a":"日本 😀"}'),
    *(r'"\u00e9\n\"\\\/"', r'{"a\u0062":1,"ab":2}', r'"\ud83d\ude00"', r'"a\u0000b"', '["it\'s"]'),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e400", "\t[1]\r\n"),
    *("", " ", "{", "[1,]", "[,1]", '{"a"}', '{"a":}', "{a:1}", "'a'", "01", "-", "1.", ".5", "+1"),
    *("nul", "True", "NaN", "Infinity", "[1] x", "[1 2]", '"a', '"\x01"', '"\t"', r'"\x"', "-01"),
    *(r'"\u12"', '{"a":1,}', "[1}", "{1:2}", "]", ":", "1e", "\u00a01", "[[[[]]]]", "truex"),
    *(None, 0, 12, -1.5, "[1,2,3]"),
]
PATHS: list[Any] = [
    *(
        "$",
        "$.a",
        "$.a[0]",
        "$[0]",
        "$[1]",
        "$[#-1]",
        "$[#-2]",
        "$[#]",
        "$[#-9]",
        '$."a b"',
        "$.a b",
    ),
    *("$.a.a.a[1]", "$[1][1][1].a", '$.""', "$.é", "$.a[2].b", "$.ab", "$[99]", "$.a[#-1]", None),
    *("", "a", "$a", "$.", "$[", "$[]", "$[x]", "$[-1]", '$."a', "$.a[", "$[#x]", "$[0]x", "$..a"),
]
STEPS: list[Any] = [*PATHS, 0, 1, -1, "0", "a b", "[0]", "[#-1]", "a.a", "é", "0a", 2.5]
VALUES: list[Any] = [
    *(
        None,
        0,
        -7,
        1.0,
        0.1,
        1e20,
        2.5e-9,
        "",
        "a",
        'q"q',
        "b\\s",
        "é😀",
        "\t\n\x01\x1f",
        "[1]",
        b"x",
    ),
]
NEW: list[Any] = [
    *(*PATHS, "$.b", "$.b.c", "$.b[0]", "$.b[1]", "$[#].a", "$[3]", "$[2].a", "$.a.b", "$.a[0].b"),
    *('$."x y"', "$.a\\b", "$.b[0].c", "$.b.", "$[0][0]", "$.a.a.b[0]"),
]
"""Paths, some of which lead to missing values."""
PATCHES: list[Any] = [
    *('{"a":{"b":null,"c":1}}', '{"a":null}', '{"a":{"a":{"a":null}}}', '{"x":{"y":null},"a":1}'),
    *('{"a":[1,null]}', '{"a":1,"a":null}', '{"a":null,"a":2}', '{"b":1,"b":2}', '[{"a":null}]'),
    *('{"a":{"b":{"c":null,"d":{"e":null}}}}', *TEXTS),
]
CASES: dict[str, tuple[str, Callable[..., Any], tuple[list[Any], ...]]] = {
    "json": ("json(?)", json.json, (TEXTS,)),
    "json_valid": ("json_valid(?)", json.valid, (TEXTS,)),
    "json_type": ("json_type(?)", json.type_at, (TEXTS,)),
    "json_type of a path": ("json_type(?, ?)", json.type_at, (TEXTS, PATHS)),
    "json_array_length": ("json_array_length(?)", json.length_at, (TEXTS,)),
    "json_array_length of a path": ("json_array_length(?, ?)", json.length_at, (TEXTS, PATHS)),
    "json_extract": ("json_extract(?, ?)", json.extracted, (TEXTS, PATHS)),
    "json_extract of two": (
        "json_extract(?, ?, ?)",
        json.extracted,
        (TEXTS, PATHS[:19], PATHS[:19]),
    ),
    **{
        f"json_{kind}{' of two' * (places > 3)}": (
            f"json_{kind}({', '.join('?' * places)})",
            Edit(kind),
            (TEXTS, *[NEW, VALUES] * (places // 2)),
        )
        for kind in ("set", "insert", "replace")
        for places in (3, 5)
    },
    "json_remove": ("json_remove(?, ?)", removed, (TEXTS, PATHS)),
    "json_remove of two": ("json_remove(?, ?, ?)", removed, (TEXTS, PATHS, PATHS)),
    "json_patch": ("json_patch(?, ?)", patched, (PATCHES, PATCHES)),
    "->": ("? -> ?", json.part, (TEXTS, STEPS)),
    "->>": ("? ->> ?", json.value_at, (TEXTS, STEPS)),
    "json_quote": ("json_quote(?)", json.Quoted("quote"), (VALUES,)),
    "json_array": ("json_array(?, ?)", json.Quoted("array"), (VALUES, VALUES)),
    "json_object": ("json_object(?, ?)", json.Quoted("object"), (VALUES, VALUES)),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_are_those_of_sqlite(name: str) -> None:
    text, function, places = CASES[name]
    other, random, wrong = sqlite3.connect(":memory:"), drawing(), []
    for _ in range(20_000 * TIMES or 1_000):
        given = [random.choice(values) for values in places]
        theirs: Any = None
        mine: Any = None
        try:
            (theirs,) = other.execute(f"select {text}", given).fetchone()
        except sqlite3.Error:
            theirs = sqlite3.Error
        try:
            mine = function(*given)
            mine = str(mine) if isinstance(mine, json.Json) else mine
        except ValueError as error:
            if "makes longer" in str(error):  # SQLite counts from an added part there
                continue
            mine = sqlite3.Error
        if (type(mine), mine) != (type(theirs), theirs):
            wrong.append(f"{text} {given!r}: {mine!r:.200} for {theirs!r:.200}")
    assert not wrong, "\n".join(wrong[:10])


def test_columns_hold_json() -> None:
    both = Both("create table t (id integer primary key, j text, k text, n)")
    both.execute(
        """insert into t values (1, '{"a": [1, "é", {"b": null}], "c d": 2}', 'a', 1),
        (2, '[1, 2.50]', '[0]', null), (3, null, null, 2.5), (4, '"x"', '$', 'q"q'),
        (5, '{}', 'a', '')"""
    )
    for text in (
        "json(j)",
        "j -> k",
        "j ->> k",
        "j -> 'a' ->> 1",
        "json_extract(j, '$.a', '$[#-1]')",
        "typeof(json_extract(j, '$[1]'))",
        "json_array(n, j, json(j), j -> k, j ->> k)",
        "json_object('id', id, 'j', (json(j)))",
        "json_quote(json_array(n))",
        "json_quote(n)",
        "json_array()",
        "json_object()",
        "json_array(id = 1, json_object('n', n))",
        """j -> '$."c d"'""",
        "coalesce(json_array_length(j, '$.a'), -1)",
        "j ->> 'a' is null",
        "json_valid(k)",
        "'x' || (j ->> k)",
        "j ->> k || 'x'",
        "(substr(j, 1, 1) || substr(j, 2)) -> k",
        "-(j ->> 0)",
        "j -> id - 1",
    ):
        both.ask(f"select id, {text} as x from t")
    both.ask("select json_type(j) as x, count(*) as n from t group by json_type(j)")
    both.ask("select id from t where j ->> '$.a[0]' = 1")
    both.ask("select a.id, b.id as x from t a join t b on json_type(a.j) = json_type(b.j)")
    assert not both.wrong, "\n".join(both.wrong)


KNOWN = [
    *("case when a = 1 then json(j) else '[2]' end", "case a when 1 then json(j) end", "json(j)"),
    *("coalesce(json(j), '[3]')", "ifnull(json(j), '[3]')", "iif(a = 1, json(j), '[3]')"),
    *("nullif(json(j), 'x')", "+json(j)", "(json(j))", "json(j) collate nocase", "json_quote(j)"),
    *("max(json(j), 'a')", "min(json('[1]'), 'z')", "likely(json(j))", "cast(json(j) as text)"),
    *("json(j) || ''", "lower(json(j))", "substr(json(j), 1)", "replace(json(j), 'z', 'y')"),
    *("trim(json(j))", "upper(json(j))", "json_extract(j, '$')", "json_extract('[[1]]', '$[0]')"),
    *("""json_extract('["a"]', '$[0]')""", "json_extract(j, '$', '$')", "j -> '$'", "j ->> '$'"),
    *("json_set('1', '$', '[1]')", "json_set('1', '$', json('[1]'))", "json_quote(json(j))"),
    *("json_remove(j, '$[0]')", "json_patch(j, '{}')", "json_replace(j, '$[0]', json('{}'))"),
    *("json_array(json(j), j)", "json_object('a', json(j))", "json_insert(j, '$[#]', j)", "j"),
    *("json_extract(json_array(json(j)), '$[0]')", "quote(json(j))", "printf('%s', json(j))"),
    *("hex(json(j))", "ltrim(json(j), '[')", "cast(json(j) as integer)", "typeof(json(j))"),
]
"""Expressions, some of which SQLite knows to be JSON."""
OVER = [
    "select json_array(x) from (select json(j) as x from t)",
    "with w(x) as (select json(j) from t) select json_array(x) from w",
    "select json_array(x) from (select distinct json(j) as x from t)",
    "select json_array(x) from (select json(j) as x from t union all select '[9]')",
    "select json_array(x) from (select max(json(j)) as x from t)",
    "select json_array(max(j)), json_array(json(max(j))) from t",
]


@pytest.mark.parametrize(
    "form", ["json_array({})", "json_set('{{}}', '$.a', {})", "json_quote({})"]
)
def test_json_is_known_as_json_by_what_hands_it_on(form: str) -> None:
    both = Both("create table t (a, j)")
    both.execute("insert into t values (1, '[1]'), (2, null), (3, '{}'), (4, '\"é\"')")
    for text in KNOWN:
        both.ask(f"select a, {form.format(text)} as x from t")
    for query in OVER:
        both.ask(query)
    assert not both.wrong, "\n".join(both.wrong)


def test_text_that_is_not_json_is_an_error_of_its_row() -> None:
    db = Database(dialect="sqlite")
    db.execute("create table t (j)")
    db.execute("insert into t values ('[1'), ('[1]')")
    with db.sql("select j -> 0 as x from t").materialize() as view:
        assert [tuple(row) for row in view] == [("1",)]
        assert "malformed JSON" in str(next(iter(view.errors)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("json_array((select json('[1]')))", "JSON of a sub-query or an aggregate inside of JSON"),
        ("json_set('{}', '$.a', max(json('[1]')))", "JSON of a sub-query or an aggregate"),
        ("json_set('{}', '$.a')", "takes pairs of a path and a value"),
        ("json_object('a')", "takes pairs of a label and a value"),
        ("json_group_array(1)", "json_group_array"),
        ("json_pretty('{}')", "json_pretty"),
        ("'[' || ']' -> 0", "-> behind another operator of sqlite is not supported"),
        ("-'[1]' ->> 0", "->> behind another operator of sqlite is not supported"),
    ],
)
def test_what_is_not_there_is_refused_by_name(text: str, told: str) -> None:
    with pytest.raises(PlanError, match=told):
        Database(dialect="sqlite").sql(f"select {text}")


def test_labels_of_large_objects_are_looked_up_not_searched() -> None:
    def calls(size: int) -> int:
        compared: list[None] = []

        class Label(str):
            """A label that notes how often it is compared."""

            __slots__ = ()
            __hash__ = str.__hash__

            def __eq__(self, other: object) -> bool:
                compared.append(None)
                return str(self) == other

        node, patch = json.Node("object"), json.Node("object")
        for number in range(size):
            for made in (node, patch):
                made.labels.append(Label(f'"k{number}"'))
                made.parts.append(json.Node("integer", str(number)))
        assert str(json._merge_patch(node, patch)).count(":") == size
        return len(compared)

    assert calls(400) <= 3 * calls(200)


@pytest.mark.parametrize("size", [3, 40])
def test_large_objects_are_changed_as_sqlite_does(size: int) -> None:
    text = "{" + ",".join(f'"k{n % 30}":{n}' for n in range(size)) + "}"
    patch = "{" + ",".join(f'"k{n}":{"null" if n % 3 else n}' for n in range(0, size, 2)) + "}"
    other = sqlite3.connect(":memory:")
    (expected,) = other.execute("select json_patch(?, ?)", (text, patch)).fetchone()
    assert patched(text, patch) == expected
    given = [each for n in range(0, size + 9, 3) for each in (f"$.k{n}", n)]
    marks = ", ".join("?" * len(given))
    (expected,) = other.execute(f"select json_set(?, {marks})", (text, *given)).fetchone()
    assert Edit("set")(text, *given) == expected
    other.close()

"""COLUMNS, PIVOT, UNPIVOT and BY NAME, and rare aggregates: equal to DuckDB after each commit."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pytest

from reactive import Database, PlanError
from tests.budget import seeds
from tests.languages.sql.compare import difference

TABLE = "create table t (id int primary key, g int, m varchar, n1 int, n2 int)"
COLUMNS = [
    "select columns(*) from t",
    "select min(columns(* exclude (m))), max(columns('^n')) from t",
    "select g, sum(columns('n[0-9]')) from t group by all",
    "select columns('n(.)') as 'k\\1', id from t",
    "select min(columns('n.')) as 'least_\\0' from t",
    "select columns(*) is null from t",
    "select columns('^n') + columns('^n') from t",
    "select id, columns(['n2', 'n1']) * id from t",
    "select columns(lambda c: c like 'n%') from t",
    "select coalesce(*columns('^n'), 0) from t",
    "select [*columns('^n')], greatest(*columns('^n')) from t",
    "select concat(*columns(* exclude (id))) from t",
    "select * from t where columns('^n') > 1",
    "select * from t where not (columns('^n') > 1) or id = 2",
    "select id from t where n1 in (*columns('id|n2'))",
    "select columns(* replace (n1 + n2 as n1)) from t",
    "select * rename (n1 as a, t.n2 as b) from t",
    "select * like 'n%' from t",
    "select t.* not like 'n%' from t",
    "select * ilike 'N%' from t",
    "select * similar to 'n(\\d)' as 'c\\1' from t",
    "select * exclude (t.id, m) from t",
    "select count(columns('^n')) filter (where g > 0) from t",
    "select distinct columns('^(g|m)$') from t",
    "select sum(columns('^n')) over (partition by g) from t",
    "select columns(a.*) from t a join t b using (id)",
    "select case when columns('^n') > 2 then m end from t",
]
PIVOTS = [
    "pivot t on m in ('a', 'b', 'zz') using sum(n1)",
    "pivot t on m in ('a', 'b') using sum(n1) group by g",
    "pivot t on m in ('a' as x, null, 'b') using sum(n1) as s, count(*) as c group by g",
    "pivot t on m in ('a', 'b'), g in (0, 1) using count(*) group by n2",
    "pivot t on m in ('a') group by g",
    "pivot t on m in ('a') using coalesce(max(n1), 0) + 1 group by g",
    "pivot t on m in ('a', 'b') using list(n1 order by id) group by g",
    "pivot t on upper(m) in ('A') using sum(n1) filter (n2 > 1) group by g",
    "pivot t on (n1 % 2) in (0, 1, '2') using count(*) group by g",
    "pivot (select g, m from t where n1 > 0) on m in ('a', 'b') using count(*)",
    "pivot t on m in ('a') using sum(n1), max(n2) group by g",
    "from t pivot (sum(n1) for m in ('a', 'b') group by g) as p(k, one) where one > 1",
    "from t pivot (sum(n1) for (m, g) in (('a', 0), ('b', 1)) group by n2)",
    "from (select n1, m from t) pivot (count(*), sum(n1) for m in ('a'))",
    "select p.a, t.id from t pivot (sum(n1) for m in ('a') group by g) p join t using (g)",
    "with w as (pivot t on m in ('a') using count(*) group by g) select sum(a) from w",
    "from (pivot t on m in ('a', 'b') using sum(n1) group by g) unpivot (v for k in (a, b))",
    "unpivot t on n1, n2",
    "unpivot t on n1, n2 into name k value v",
    "unpivot t on (n1, n2), (n2, n1) as other into name k value v, w",
    "unpivot t on n1 + 1 as more, g into name id value v",
    "unpivot t on columns('^n')",
    "unpivot t on columns(* exclude (m)) into name k value v",
    "unpivot (select n1, n2 from t) on *",
    "from t unpivot (v for k in (n1, n2 as second)) as u(a, b, c, d, e)",
    "from t unpivot include nulls (v for k in (n1, n2)) where v is null",
    "from t unpivot ((v, w) for k in ((n1, n2), (g, id) as keys))",
    "select k, sum(v) from (unpivot t on n1, n2 into name k value v) group by k",
    "from t unpivot (v for k in (n1)) unpivot (w for l in (n2))",
]
UNIONS = [
    "select n1, m from t union all by name select g, n1 from t",
    "select id from t union by name select m as id, g from t",
    "(select g from t) union by name (select m from t) union by name (select n1 as g, id from t)",
]
AGGREGATES = [
    "select g, max(n1, 2), min(n2, 3), max(m, 2) from t group by g",
    "select max(distinct n1, 3), min(n1, 2) filter (g = 1), min([n1], 2) from t",
    "select arg_max(id, n1 * 10 + id, 2), max_by(m, id, 3), min_by(id, id, 2) from t",
    "select g, arg_min(m, n1 order by id), arg_max(id, n2 order by id desc) from t group by g",
    "select arg_min(m, n1 * 10 + id, 3 order by id) from t",
    "select arg_min_null(m, id), arg_max_null(m, id), arg_min_nulls_last(n1, id, 9) from t",
    "select arg_max_nulls_last(id, n1 * 10 + id, 9) from t",
    "select id, arg_max(id, n1) over (partition by g order by id) from t",
    "select g, kurtosis_pop(n1), sem(n1), sem(n2), entropy(m), entropy(n1) from t group by g",
    "select g, weighted_avg(n1, n2), wavg(n1, id) from t group by g",
    "select approx_quantile(n1, 0.5), approx_quantile(n1::double, [0.25, 0.5, 0.9]) from t",
    "select approx_count_distinct(n1), list_sort(approx_top_k(id, 20)) from t",
    "select arbitrary(n1 order by id), mode() within group (order by id) from t",
    "select mode() within group (order by id desc), mode(id order by id desc) from t",
    "select g, m, grouping_id(g, m), count(*) from t group by cube (g, m)",
]
COLLATIONS = [
    "select id from t where m collate nocase = 'A'",
    "select id, m collate nocase < 'b', m collate nocase <> 'a' from t",
    "select id from t where m collate nocase in ('A', 'null') or m collate nocase >= 'B'",
    "select count(*), sum(n1) from t group by m collate nocase",
    "select count(distinct m collate nocase), count(distinct m) from t",
    "select count(*) from (select distinct m collate nocase from t)",
    "select list(id order by m collate nocase desc, id) from t",
    "select id, rank() over (partition by g order by m collate nocase) from t",
    "select id, count(*) over (partition by m collate nocase) from t",
    "select a.id, b.id from t a join t b on a.m = b.m collate nocase",
    "with c as (select id, m collate nocase as k from t) select a.id from c a join c b using (k)",
    "with c as (select id, m collate nocase as k from t) select id from c where k = 'A'",
    "with c as (select m collate nocase as k from t) select count(*) from t where 'A' in (from c)",
    "with c as (select id, m collate nocase as k from t) select id, k::varchar = 'A' from c",
    "select id from t where m collate nocase is distinct from 'A'",
    "select count(*) from t group by m collate noaccent",
    "select ('Ä' || m) collate noaccent = 'Aa', 'é' collate nocase.noaccent = 'E' from t",
    "select id from t order by m collate nocase desc, id limit 2",
    "select id from t qualify row_number() over (order by m collate nocase, id) < 3",
    "select distinct on (m collate nocase) id from t order by m collate nocase, id",
]
MATCHES = [
    "select regexp_extract_all(m || n1, '[0-9]'), regexp_extract_all(m, '(.)(x)?', 2) from t",
    "select regexp_extract_all(m, 'a', 0, 'i'), regexp_extract(m, '(.)(.?)', ['x', 'y']).x from t",
    "select regexp_split_to_array(m || n1, '[0-9]'), regexp_escape(m || '.é-') from t",
    "select strip_accents(m || 'é'), nfc_normalize(m), url_encode(m || ' /ü~') from t",
    "select from_base64('YWJj'), from_hex('6a'), constant_or_null(5, n1), unhex('616') from t",
    "select signbit(-n1::double), gamma(-n1::double), lgamma(-n1::double), gamma(n1 * 900) from t",
    "select cot(n1::double), gamma(id + 0.5), lgamma(id + 0.5), nextafter(n1::double, 9.0) from t",
    "select damerau_levenshtein(m || 'ab', 'ba'), jaccard(m, 'ab') from t",
    "select hamming(m || 'b', m || 'c') from t",
    "select try(cast(m as int)) from t",
]
QUERIES = [*MATCHES, *COLLATIONS, *AGGREGATES, *COLUMNS, *PIVOTS, *UNIONS]


def drawn_row(rnd: Random) -> tuple[Any, ...]:
    """Return a row without its id, with ties and NULLs."""
    few = [None, 0, 1, 2, 3]
    letters = [None, "a", "b", "A", "NULL"]
    return rnd.choice(few[:3]), rnd.choice(letters), rnd.choice(few), rnd.choice(few)


@pytest.mark.parametrize("seed", seeds(24))
def test_rows_and_names_are_those_of_duckdb(seed: int) -> None:
    rnd = Random(seed)
    db, other = Database(), duckdb.connect()
    for each in (db, other):
        each.execute(TABLE)
    chosen = rnd.sample(QUERIES, 16)
    views = [db.sql(query).materialize(on_error="raise") for query in chosen]
    for _ in range(8):
        number = rnd.randrange(6)
        texts = [f"delete from t where id = {number}"]
        if rnd.random() < 0.8:
            values = ", ".join("null" if v is None else repr(v) for v in drawn_row(rnd))
            texts.append(f"insert into t values ({number}, {values})")
        if rnd.random() < 0.2:
            texts.append("update t set n1 = n2, g = 1 - g")
        for text in texts:
            db.execute(text)
            other.execute(text)
        for query, view in zip(chosen, views, strict=True):
            found = other.execute(query)
            names = [column[0] for column in found.description or ()]
            expected = [tuple(map(_plain, row)) for row in found.fetchall()]
            shown = [tuple(row) for row in view]
            wrong = difference(shown, expected, ordered=False, typed=False)
            assert wrong is None, f"{query}: {wrong}"
            for row in list(view)[:1]:
                pairs = zip(row._fields, names, strict=True)
                is_told = [mine == name for mine, name in pairs if name.isidentifier()]
                assert all(is_told) or len(set(names)) < len(names), (query, row._fields, names)
    db.verify()
    other.close()


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select columns('zz') from t", "no column has such a name"),
        ("select columns('[') from t", "no regular expression"),
        ("select columns('n1') + columns('n2') from t", "must all be the same"),
        ("select columns(['zz']) from t", "no column 'zz'"),
        ("select * exclude (zz) from t", "EXCLUDE names no column 'zz'"),
        ("select * exclude (n1) rename (n1 as x) from t", "EXCLUDE and RENAME both name"),
        ("select columns(n1) from t", "there is no column 'n1'"),
        ("select (*columns(*)) from t", "stands for the arguments of a function"),
        ("pivot t on m using sum(n1)", "cannot depend on its rows"),
        ("pivot t on m in ('a', 'a') using sum(n1)", "stands twice"),
        ("pivot t on zz in ('a') using sum(n1)", "no column 'zz'"),
        ("pivot t on m in ('a') using abs(n1)", "one aggregate, and not 0"),
        ("pivot t on m in ('a') using sum(n1) over ()", "neither windows nor queries"),
        ("unpivot t on n1, m", "no common type"),
        ("unpivot t on n1 into name k value v, w", "1 columns of 'n1' for 2 names"),
        ("select n1, n1 from t union by name select id from t", "needs one column 'n1'"),
        ("select nosuch(columns(*)) from t", "there is no function"),
        ("select upper(m collate nocase) from t", "a text with collation 'nocase' can be compared"),
        ("select m collate nocase = m collate noaccent from t", "a comparison has two collations"),
        ("select m collate zz from t", "no collation 'zz'"),
        ("select n1 collate nocase from t", "a collation is of a text"),
        ("select m collate nocase from t union select m from t", "a text with collation"),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, told: str) -> None:
    db = Database()
    db.execute(TABLE)
    with pytest.raises(PlanError, match=told):
        db.sql(text)

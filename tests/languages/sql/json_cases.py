"""Documents, and expressions over them, for the tests of JSON."""

from __future__ import annotations

from random import Random

NUMBERS = ["1", "1.0", "1e0", "0", "-2", "2.50", "10", "-0.0", "1e3", "12345678901234567890"]
TEXTS = ['"a"', '"b"', '"1"', '""', '"aa"', '"é"', '"\\u00e9"', '"x y"', '"A"', '"\\n\\""']
KEYS = ['"a"', '"b"', '"aa"', '"c"', '"0"', '"é"']


def draw_document(random: Random, depth: int = 0) -> str:
    """Return the text of a document: duplicate keys, escapes, numbers in several spellings."""
    match random.randrange(10 if depth < 3 else 6):
        case 0:
            return "null"
        case 1:
            return random.choice(["true", "false"])
        case 2:
            return random.choice(NUMBERS)
        case 3 | 4:
            return random.choice(TEXTS)
        case 5 | 6 | 7:
            parts = [draw_document(random, depth + 1) for _ in range(random.randrange(4))]
            return f"[{random.choice([', ', ',', ' , ']).join(parts)}]"
        case _:
            pairs = [
                random.choice(KEYS) + random.choice([":", " : "]) + draw_document(random, depth + 1)
                for _ in range(random.randrange(4))
            ]
            return f"{{{', '.join(pairs)}}}"


POSTGRES = """
j -> s; j ->> s; j -> n; j ->> n; t -> s; t ->> s; t -> n; t ->> n
j #> p; j #>> p; t #> p; t #>> p; j #>> '{a,b}'; j #> array['a']; j ->> -1
j @> k; j <@ k; j ? s; j ?| p; j ?& p; j || k; j - s; j - n; j - p; j #- p; j - 'a' - 'b'
j -> 'a' -> 0; j -> 'a' ->> 'b'; j -> 'a' || k; j @> '{"a":1}' and j ? 'a'; j->'a' = '1'
jsonb_set(j, p, k); jsonb_set(j,p,k,false); jsonb_insert(j,p,k); jsonb_insert(j,p,k,true)
jsonb_set_lax(j, p, k); jsonb_strip_nulls(j); json_strip_nulls(t); jsonb_pretty(j)
jsonb_typeof(j); json_typeof(t); jsonb_array_length(j); json_array_length(t)
jsonb_extract_path(j, s, 'a'); jsonb_extract_path_text(j, 'a', s)
json_extract_path(t, s, 'a'); json_extract_path_text(t,'a',s)
j = k; j < k; j <= k; j <> k; j > k; greatest(j,k); least(j,k); j is distinct from k
j in (k, '1', '[]'); j between k and '[1]'; coalesce(j,k); nullif(j,k)
j::text; t::text; t::jsonb; j::json; j::int; j::bigint; j::numeric; j::float8; j::bool
j::numeric(5,1); j::real; j::smallint
to_json(j); to_jsonb(t); to_json(s); to_json(n); to_json(p); to_jsonb(p)
to_json(n::numeric/3); to_jsonb(n::float8/3); to_json(n > 0); to_jsonb(j->>'a')
to_json(timestamp '2020-01-02 03:04:05.5'); to_jsonb(date '2020-01-02'); to_json('nan'::float8)
json_build_object(id, j, 'x', n); jsonb_build_object('a', t, s||'', p); jsonb_build_object(s, n)
json_build_array(j,t,s,n,p,null); jsonb_build_array(j,s,n,p,null)
json_object(p); jsonb_object(p); jsonb_object(p,p); row_to_json(row(n,s,j)); to_jsonb(row(1,p))
j['a']; j[0]; j['a'][0]; j[n]; j[s]; j[s]['b']; case when j ? 'a' then j->'a' else '0' end
jsonb_path_query_array(j, '$[*] ? (@ == $x)', '{"x": 1}'); '[1]' || j; j - array['a']
"""
PATHS = """
$; $.a; $.a.b; $[*]; $[0]; $[last]; $.*; $.**; $.**{1}; $.a[*] ? (@ > 1); $ ? (@.a == 1)
$ ? (exists(@.a)); strict $.a; strict $[0]; $.size(); $.type(); $.a.type(); $[*].double()
$.a + 1; $[0] * 2; $.a == 1; $.a == "a"; $[*] == null; $ ? (@ starts with "a")
$[*] ? (@ like_regex "^a"); $[1 to 2]; $[0,2]; -$.a; $.a.floor(); $[*].ceiling().abs()
($.a > 1) is unknown; !($.a == 1); $.a > 0 && $.b > 0; $.a == 1 || $.b == 1; $ ? (@[*] > 1)
strict $[*] ? (@ == 1); $."é"; $.a ? (@.type() == "number"); $[$.n]; $.a % 2; $[last - 1]
$.**{last}; $.**{1 to 2}; strict $.**.a; $.a.size(); true; "a"; $.a[*].b ? (@ != null)
"""
CALLS = [
    "jsonb_path_query_array(j, '{}')",
    "jsonb_path_exists(j, '{}')",
    "j @? '{}'",
    "j @@ '{}'",
    "jsonb_path_query_first(j, '{}')",
    "jsonb_path_match(j, '{}')",
    "jsonb_path_query_array(j, '{}', '{{}}', true)",
]


def split_cases(text: str) -> list[str]:
    """Return the expressions of a text, which semicolons and lines divide."""
    return [each.strip() for line in text.splitlines() for each in line.split(";") if each.strip()]


def postgres_expressions() -> list[str]:
    """Return the expressions of Postgres over a document `j`, a second one `k` and others."""
    calls = [call.format(path) for path in split_cases(PATHS) for call in CALLS]
    return split_cases(POSTGRES) + calls


ARRAY = "case when jsonb_typeof(j) = 'array' then j else '[]' end"
OBJECT = "case when jsonb_typeof(j) = 'object' then j else '{}' end"
QUERIES = [
    "select id, j from t order by j nulls last, id",
    "select min(id), j from t group by j order by 1",
    "select count(distinct j) from t",
    "select a.id, b.id as b from t a join t b on a.j = b.j order by 1, 2",
    "select a.id from t a where exists (select 1 from t b where b.j @> a.j and b.id <> a.id)",
    "select jsonb_agg(j order by id) from t",
    "select json_agg(t order by id) from t",
    "select json_agg(s order by id), jsonb_agg(n order by id), json_agg(p order by id) from t",
    "select json_agg(row(id, j) order by id) from t",
    "select json_object_agg(id, j order by id), jsonb_object_agg(coalesce(s, 'q'), k order by id)"
    " from t",
    "select json_agg(s) from t where false",
    "select s, jsonb_agg(n order by id) filter (where n > 0) from t group by s",
    "select jsonb_agg(distinct j) from t",
    f"select id, v.value from t, jsonb_array_elements({ARRAY}) v order by 1, 2",
    f"select id, e from t, jsonb_array_elements_text({ARRAY}) e order by 1, 2",
    f"select id, e.* from t, jsonb_each({OBJECT}) e order by 1, 2",
    f"select id, a, b from t, lateral jsonb_each_text({OBJECT}) as e(a, b) order by 1, 2",
    f"select id, jsonb_object_keys({OBJECT}) as q from t order by 1, 2",
    f"select id, x, o from t, jsonb_array_elements({ARRAY}) with ordinality e(x, o) order by 1, 3",
    f"select id, jsonb_array_elements({ARRAY}) from t order by 1, 2",
    "select id, e.key, e.value::text from t, json_each('{\"a\": 1}') e order by 1",
    "select j from t union select k from t order by 1 nulls first",
    "select j from t except select k from t order by 1",
    "select max(n) over (partition by j), id from t order by id",
    "select row_number() over (order by j, id), id from t order by 2",
    "select id, value ->> 'a' from t, jsonb_path_query(j, '$.**') q(value) order by 1, 2",
]


DUCKDB = """
j->'a'; j->>'a'; j->0; j->>0; j->-1; j->>'$'; j->'$'; v->'$.a'; v->>'$.a.b'; j->'$[0]'
j->'$[#-1]'; j->'$.*'; j->>'$.*'; j->'$[*]'; j->>'$[*].a'; j->'$..a'; j->s; j->>s; j->n; j->>n
(j->'a')->'b'; (j->'a')->>0; j->'$.a.b'; json_extract(j,'a'); json_extract(v, '/a/b')
json_extract_string(j,'$.b'); json_extract(j,['a','$.b']); json_extract_string(j,['a','b'])
json_value(j,'a'); json_exists(j,'a'); json_exists(j,s); json_type(j); json_type(j,'a')
json_keys(j); json_keys(j,'a'); json_array_length(j); json_array_length(j,'a'); json_valid(v)
json_valid(s); json_contains(j,k); json_contains(k,'1'); json_contains(j,'"a"')
json_structure(j); json_merge_patch(j,k); json_merge_patch(j,'{"a":null,"z":1}')
json_pretty(j); json(v); to_json(n); to_json(d); to_json(x); to_json(s); to_json(l)
to_json(day); to_json(st); to_json(j); to_json(v); to_json(n > 0); to_json(row(n,s))
json_object('a',j,'b',v,'c',d,'d',st); json_array(j,v,n,d,x,l,day,st); json_quote(s)
row_to_json(st); array_to_json(l); to_json(interval 1 day); to_json([st,null])
to_json(timestamp '2020-01-01 01:02:03.5'); j::varchar; v::json; s::json; try_cast(s as json)
j::int; j::double; j::bool; (j->'a')::int; (j->'a')::varchar; (j->'a')::double; (j->'a')::bool
try_cast(j as int); try_cast(j->'a' as date); j::int[]; j::varchar[]; j::json[]
try_cast(j as int[]); j::struct(a varchar); try_cast(j as struct(a int, b json))
(j->'a')::decimal(5,2); n::json; d::json; l::json; st::json
from_json(j,'{"a":"INTEGER","b":["VARCHAR"]}'); from_json(v,'"VARCHAR"')
json_transform(j,'["JSON"]'); json_transform(j,'{"a":"DOUBLE","b":{"c":"BOOLEAN"}}')
from_json_strict(j,'{"a":"INTEGER"}'); json_transform(j, '["INTEGER"]')
j = k; j = v; j < k; j >= '1'; j in ('1','2'); j is distinct from k; coalesce(j,'1')
greatest(j,k); case when id > 5 then j else '0' end; length(j); upper(j); j like '%a%'
j || 'x'; j || k; s || j; j['a']; j[0]; j['$.a']; [j, k]; {'x': j}; list_contains([j,k], '1')
json_array_length(j->'a'); json_type(j->'a'); j->>'a' = '1'; (j->'a') is null
json_extract(j, 'a')::int + 1; nullif(j,k); j between '0' and '9'
"""
DUCKDB_QUERIES = [
    "select j, count(*) from t group by j order by j nulls last",
    "select count(distinct j) from t",
    "select a.id, b.id from t a join t b on a.j = b.j order by 1, 2",
    "select t.id, e.* from t, json_each(j) e order by t.id, e.id, e.key",
    "select t.id, e.key, e.value, e.type, e.atom, e.id, e.parent, e.fullkey, e.path"
    " from t, json_tree(j) e order by 1, 6, 2",
    "select e.key from t, json_each(j, '$.a') e order by 1 nulls last",
    "select json_group_array(n) from (select n from t where n = 1)",
    "select json_group_object(id::varchar, j) from t where id < 1",
    "select min(j), max(j) from t",
    "select row_number() over (partition by j order by id), id from t order by 2",
    "select j from t union select k from t order by 1 nulls last",
    "select id from t where j in (select k from t) order by 1",
]

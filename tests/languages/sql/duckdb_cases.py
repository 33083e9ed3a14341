"""Expressions of DuckDB, the arguments that each is played with, and the engine that plays them.

    PATTERNS            "lpad({text}, {count}, {letter})", by group
    ARGUMENTS           text: null, '', 'äß', ...       each a literal of the type `TYPES[kind]`

A pattern without `{kind}` is one case. `python -m tests.languages.sql.duckdb_cases` lists the
differences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import duckdb

from tests.languages.sql.postgres_cases import Arguments
from tests.languages.sql.postgres_player import ERROR, UNREADABLE, span_of, sweep

TYPES: dict[str, str] = {
    "int": "integer",
    "tiny": "tinyint",
    "byte": "utinyint",
    "big": "bigint",
    "huge": "hugeint",
    "float": "double",
    "real": "real",
    "dec": "decimal(10,2)",
    "wide": "decimal(38,4)",
    "text": "varchar",
    "letter": "varchar",
    "pattern": "varchar",
    "number": "varchar",
    "moment": "varchar",
    "count": "integer",
    "bool": "boolean",
    "date": "date",
    "stamp": "timestamp",
    "instant": "timestamptz",
    "time": "time",
    "span": "interval",
    "ints": "integer[]",
    "texts": "varchar[]",
    "bytes": "blob",
    "uuid": "uuid",
}
"""The type of each kind of argument; several kinds of one type have other values."""
ARGUMENTS: dict[str, tuple[str | None, ...]] = {
    "int": (None, "0", "1", "-1", "7", "-13", "2147483647", "-2147483648"),
    "tiny": (None, "0", "5", "-5", "127", "-128"),
    "byte": (None, "0", "9", "255"),
    "big": (None, "0", "-3", "40", "9223372036854775807", "-9223372036854775808"),
    "huge": (None, "0", "-7", "170141183460469231731687303715884105727"),
    "float": (
        *(None, "0", "-0.0", "1", "2.5", "-2.5", "3.5", "0.1", "-7", "1e15", "123456789.125"),
        *("1e16", "1e300", "-1e-7", "2147483648", "Infinity", "-Infinity"),
    ),
    "real": (None, "0", "1.5", "-2.5", "0.1", "16777216", "1e30"),
    "dec": (None, "0.00", "2.50", "-2.55", "0.05", "-7.00", "99999999.99"),
    "wide": (None, "0", "1.5", "-2.0001", "9999999999999999999999999999999999.9999"),
    "text": (
        *(None, "", "abc", "ABC def-gHi", "äÖß€ ñ", "a%b_c\\d", "  x ", "a,b,,c", "😀é"),
        *("ab\nab", "e\u0301a"),
    ),
    "letter": (None, "", "a", "b", ",", "ß", "ab", " "),
    "pattern": (None, "", "a%", "%b%", "_b_", "a", "ABC%", "%ß%", "__%"),
    "number": (
        *(None, "", "12", " -7 ", "1.5", "1e3", "x", "9223372036854775808", "2147483648"),
        *("0x1f", "1_000", "+3", ".5", "5.", "inf", "-2.5", "1 2", "2.5", "1e400"),
    ),
    "moment": (
        *(None, "", "2024-02-29", "2024-02-30", "2024-2-3 4:05", "2024-01-02 03:04:05.1234567"),
        *("x", "2024-01-02T03:04:05", "24:00", "12:30", "12:30:05.5", "1 day", "10000-01-01"),
        *("2024-01-02 24:00:00", "1999/12/31", "yes", "t", "on", "TRUE ", "2024-01-02 03:04:05Z"),
        *("2024-01-02 03:04:05+02", " 2024-01-02 ", "2024-01-02 03:04:05.999999999", "02:03 x"),
    ),
    "count": (None, "0", "1", "2", "-1", "-2", "5", "100"),
    "bool": (None, "true", "false"),
    "date": (None, "2024-02-29", "1999-12-31", "2000-01-01", "0001-01-01", "9999-12-31"),
    "stamp": (
        *(None, "2024-02-29 13:05:09.123456", "1999-12-31 23:59:59", "1970-01-01 00:00:00"),
        *("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2023-03-31 00:30:00"),
    ),
    "instant": (None, "2024-02-29 13:05:09.123456+02", "1970-01-01 00:00:00Z"),
    "time": (None, "00:00:00", "23:59:59.999999", "12:05:09.5"),
    "span": (
        *(None, "0 days", "1 day", "-1 day", "1 month 2 days 03:04:05.6", "1 year", "30 days"),
        *("-00:00:01.5", "14 months -3 days -00:30:00", "-1 month 1 day"),
    ),
    "ints": (None, "[]", "[1, 2, 3]", "[NULL, 2]", "[2147483647, -1]", "[3, 1, 3]"),
    "texts": (None, "[]", "[a, b, a]", "[NULL, x]", "['', ä, 'a b', 'c,d']"),
    "bytes": (None, "", "\\xDE\\xADbe", "\\x00A", "abc"),
    "uuid": (
        *(None, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        "123e4567-e89b-12d3-a456-426614174000",
    ),
}
DUCKDB = Arguments(TYPES, ARGUMENTS)
NUMBERS = ("int", "tiny", "byte", "big", "huge", "float", "real", "dec", "wide")
MOMENTS = ("date", "stamp", "instant", "time", "span")
PARTS = (
    *("second", "minute", "hour", "day", "month", "year", "quarter", "week", "dow", "isodow"),
    *("doy", "epoch", "century", "decade", "millennium", "isoyear", "milliseconds", "era"),
    *("microseconds", "yearweek", "julian"),
)
UNITS = (
    *("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month"),
    *("quarter", "year", "decade", "century", "millennium"),
)


def _lines(text: str) -> list[str]:
    """Return the pattern of each line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _of(functions: str, *kinds: str) -> list[str]:
    """Return calls of functions with an argument of each kind."""
    return [f"{name}({{{kind}}})" for name in functions.split() for kind in kinds]


OPERATORS = [
    *(f"{{{a}}} {op} {{{b}}}" for op in "+-*/%" for a in NUMBERS for b in NUMBERS),
    *(f"{{{a}}} // {{{b}}}" for a in NUMBERS for b in ("int", "count", "big", "float", "dec")),
    *(f"-{{{a}}}" for a in NUMBERS),
    *(f"+{{{a}}}" for a in NUMBERS),
    *(f"{{{a}}} {op} {{{a}}}" for op in "&|" for a in ("int", "tiny", "byte", "big", "huge")),
    *(f"{{{a}}} {op} {{count}}" for op in ("<<", ">>") for a in ("int", "tiny", "byte", "big")),
    *(f"~{{{a}}}" for a in ("int", "tiny", "byte", "big")),
    *_lines("""
        {int} ^ {count}
        {int} ** {count}
        {float} ^ {float}
        {tiny} + 1
        {int} + 1
        {byte} - 1
        1 / {dec}
        {dec} / 3
        {int} / 2.0
        {dec} * 1.10
        {int} % 2
        2 ^ {int}
        add({int}, {int})
        subtract({tiny}, {tiny})
        multiply({int}, {int})
        divide({int}, {count})
        xor({int}, {count})
    """),
]
COMPARED = [
    *(f"{{{a}}} {op} {{{b}}}" for a in NUMBERS for b in NUMBERS for op in ("=", "<")),
    *(
        f"{{{k}}} {op} {{{k}}}"
        for k in ("text", "bool", *MOMENTS, "ints", "texts", "bytes", "uuid")
        for op in ("=", "<", "<>", ">=", "is distinct from")
    ),
    *(f"{f}({{{k}}}, {{{k}}})" for k in TYPES for f in ("greatest", "least", "nullif", "coalesce")),
    *_lines("""
        {date} < {stamp}
        {stamp} = {date}
        {int} is distinct from {count}
        {int} is not distinct from {count}
        greatest({int}, {real})
        least({dec}, {int})
        greatest({text}, {letter}, {text})
        {int} between {count} and {big}
        {int} not between {count} and {count}
        {int} in (1, {count}, -1)
        {text} in ('abc', {text})
        {int} not in (7, {count})
        {text} not in ('abc', null)
        ({int}, {text}) = ({count}, {text})
        ({int}, {int}) < ({count}, {count})
        {int} is null
        {text} is not null
        {bool} and {bool}
        {bool} or {bool}
        not {bool}
        {bool} is true
        {bool} is not false
        {bool} is unknown
        {ints} <@ {ints}
        {ints} @> {ints}
        list_has_all({ints}, {ints})
        list_has({ints}, {int})
        list_contains({ints}, {int})
        list_indexof({ints}, {int})
        array_position({texts}, {letter})
        cast({moment} as timestamp_ns)
        try_cast({moment} as timestamp_ns)
        cast({moment} as timestamptz)
        try_cast({moment} as timestamptz)
        cast({moment} as time)
        try_cast({moment} as time)
        array_contains({texts}, {letter})
        list_position({ints}, {int})
        {int} = any({ints})
        {int} <> all({ints})
        {int} < any({ints})
        {text} = any({texts})
        {bool} = ({int} > 1)
        coalesce({int}, {big}, 3)
        ifnull({int}, {count})
        nvl2({int}, {text}, 'none')
        case when {bool} then {int} else {dec} end
        case {int} when 1 then 'a' when 7 then {text} end
        if({bool}, {int}, {count})
        {bool} ? {int} : 0
        greatest({int}, null)
        least(null, {text})
        typeof({int})
        typeof({dec} + {int})
        typeof({tiny} + {int})
        typeof({float} * {int})
        typeof({int} / {int})
        typeof({dec} * {dec})
    """),
]
MATHS = [
    *_of("abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log2 log10", *NUMBERS),
    *_of("sin cos tan asin acos atan sinh cosh tanh degrees radians even", "float", "int"),
    *_of("isnan isinf isfinite", "float", "real"),
    *_of("factorial", "count"),
    *_of("bit_count", "int", "tiny", "byte", "big"),
    *_lines("""
        round({float}, {count})
        round({dec}, 1)
        round({dec}, 0)
        round({dec}, -1)
        round({dec}, {count})
        round({int}, -1)
        round({int}, {count})
        round({real}, 1)
        trunc({float}, {count})
        trunc({dec}, 1)
        power({float}, {float})
        pow({int}, {count})
        power({dec}, {count})
        log(2, {float})
        log({float}, {float})
        log(10, {int})
        atan2({float}, {float})
        mod({int}, {count})
        mod({dec}, {dec})
        fmod({float}, {float})
        fdiv({float}, {float})
        gcd({int}, {int})
        lcm({int}, {count})
        gcd({big}, {big})
        lcm({big}, {big})
        pi()
        greatest({float}, 1.5)
    """),
]
TEXTS = [
    *_of("upper lower ucase lcase length len char_length strlen reverse", "text"),
    *_of("bit_length octet_length ascii ord unicode md5 sha256 trim ltrim rtrim", "text"),
    *_of("hex to_base64 base64", "text"),
    *_of("hex bin to_hex", "int", "big"),
    *_of("chr", "int", "count"),
    *(f"{{text}} || {{{k}}}" for k in ("text", "int", "bool", "float", "dec", *MOMENTS, "ints")),
    *(f"concat({{text}}, {{{k}}})" for k in ("int", "bool", "float", "dec", *MOMENTS, "uuid")),
    *_lines("""
        concat({text})
        concat({text}, {letter}, {count})
        concat_ws({letter}, {text}, {int}, {bool})
        concat_ws(',', {stamp}, {text})
        substring({text}, {count})
        substring({text}, {count}, {count})
        substr({text}, {count}, {int})
        substring({text} from {count} for {count})
        substr({text}, {int})
        left({text}, {int})
        right({text}, {int})
        left({text}, {count})
        right({text}, {count})
        lpad({text}, {count}, {letter})
        rpad({text}, {count}, {letter})
        repeat({text}, {count})
        replace({text}, {letter}, {letter})
        trim({text}, {letter})
        trim(both {letter} from {text})
        trim(leading {letter} from {text})
        trim(trailing {letter} from {text})
        ltrim({text}, {letter})
        rtrim({text}, {letter})
        translate({text}, {letter}, {letter})
        split_part({text}, {letter}, {count})
        string_split({text}, {letter})
        split({text}, {letter})
        str_split({text}, {letter})
        string_to_array({text}, {letter})
        strpos({text}, {letter})
        instr({text}, {letter})
        position({letter} in {text})
        starts_with({text}, {letter})
        prefix({text}, {letter})
        suffix({text}, {letter})
        ends_with({text}, {letter})
        contains({text}, {letter})
        levenshtein({text}, {letter})
        editdist3({text}, {text})
        array_to_string({texts}, {letter})
        array_to_string({ints}, {letter})
        {text}[{count}]
        {text}[1]
        {text}[0]
        {text}[-1]
        'abc'[0]
        'abc'[-1]
        'abc'[5]
        'abc'[-5]
        {text}[{count}:{count}]
        {text}[2:]
        {text}[:2]
        {text}[-2:]
        {text}[:-2]
        array_extract({text}, {count})
        array_slice({text}, {count}, {count})
        string_split_regex({text}, 'b')
        format('{{}}', {int})
        printf('%d', {int})
        format('{{:5d}}|{{:<8}}|{{:+}}|{{:x}}', {int}, {text}, {count}, {int})
        format('{{:.2f}}|{{}}|{{:e}}|{{:<9}}', {dec}, {float}, {float}, {real})
        format('{{1}} {{0:*^7}} {{}}', {bool}, {date})
        format('{{1}} {{0:*^7}}', {text}, {ints})
        printf('%d|%5d|%-5d|%05d', {int}, {count}, {count}, {int})
        printf('%x|%,d|%s', {big}, {int}, {bool})
        printf('%s|%.2f|%g|%8.1e', {text}, {dec}, {float}, {float})
        starts_with({text}, 'a')
        {text} ^@ {letter}
        {text} < {letter}
        length({bytes})
        octet_length({bytes})
        {bytes} || {bytes}
        md5({bytes})
        hex({bytes})
        upper({int})
        length({int})
        bin({text})
    """),
]
MATCHES = _lines(r"""
    {text} like {pattern}
    {text} not like {pattern}
    {text} ilike {pattern}
    {text} not ilike {pattern}
    {text} ~~ {pattern}
    {text} like {pattern} escape '!'
    {text} like 'a!%b%' escape '!'
    {text} like '%\%%'
    {text} like 'a\%%' escape '\'
    {text} glob 'a*'
    {text} glob '[ab]*'
    {text} glob '[!a]*'
    {text} glob '[^a]*'
    {text} glob '?b?'
    {text} glob '*\**'
    {text} similar to 'a.*'
    {text} similar to '(a|b|c)+'
    {text} not similar to 'a.*'
    {text} ~ 'a.c'
    {text} ~ '.*b.*'
    {text} !~ 'a.*'
    regexp_matches({text}, 'b')
    regexp_matches({text}, '^a')
    regexp_matches({text}, 'B', 'i')
    regexp_matches({text}, 'a.a', 's')
    regexp_matches({text}, 'b$')
    regexp_matches({text}, '\d+')
    regexp_matches({text}, '\w+$')
    regexp_matches({text}, '^\W')
    regexp_matches({text}, '[[:alpha:]]')
    regexp_matches({text}, '\bb')
    regexp_matches({text}, '\s')
    regexp_matches({text}, {letter})
    regexp_full_match({text}, '[a-c]+')
    regexp_full_match({text}, '.*')
    regexp_replace({text}, 'a', 'X')
    regexp_replace({text}, 'a', 'X', 'g')
    regexp_replace({text}, '(a)(b)', '\2\1', 'g')
    regexp_replace({text}, 'A', 'x', 'gi')
    regexp_replace({text}, 'b*', '-', 'g')
    regexp_replace({text}, 'b', '[\0]')
    regexp_extract({text}, 'b.')
    regexp_extract({text}, '(a)(b)', 2)
    regexp_extract({text}, 'a(x)?', 1)
    regexp_extract({text}, 'z')
    regexp_extract({text}, 'a|ab')
""")
ARRAYS = [
    *_of("len array_length list_sort list_reverse_sort list_reverse", "ints"),
    *_of("array_reverse list_sum list_avg list_min list_max list_unique cardinality", "ints"),
    *_of("len list_sort list_reverse list_min list_max list_reverse_sort", "texts"),
    *_of("list_any_value list_first list_last", "ints"),
    *_lines("""
        {ints}[{count}]
        {ints}[1]
        {ints}[0]
        {ints}[-1]
        {ints}[1:2]
        {ints}[2:]
        {ints}[:1]
        {ints}[-2:]
        {ints}[:-2]
        {ints}[{count}:{count}]
        {ints}[{count}:]
        {ints}[:{count}]
        list_extract({ints}, {count})
        list_element({texts}, {count})
        array_extract({ints}, {count})
        element_at({ints}, {count})
        list_slice({ints}, {count}, {count})
        array_slice({ints}, 1, {count})
        list_contains({ints}, {int})
        array_contains({texts}, {letter})
        list_has({ints}, {int})
        list_has_all({ints}, {ints})
        list_has_any({ints}, {ints})
        {ints} @> {ints}
        {ints} <@ {ints}
        {ints} && {ints}
        list_position({ints}, {int})
        list_indexof({ints}, {int})
        array_position({texts}, {letter})
        list_append({ints}, {int})
        array_append({texts}, {letter})
        list_prepend({int}, {ints})
        array_prepend({int}, {ints})
        list_concat({ints}, {ints})
        array_cat({texts}, {texts})
        {ints} || {ints}
        {texts} || {texts}
        {ints} || {int}
        [{int}, {count}]
        [{text}, {letter}]
        array[{int}, {dec}]
        [{int}, {float}]
        list_value({int}, {count})
        [[{int}], [{count}]]
        [{date}, {date}]
        list_sort({ints}, 'desc')
        list_sort({ints}, 'asc', 'nulls last')
        list_sort({ints}, 'desc', 'nulls first')
        list_reverse_sort({ints}, 'nulls first')
        list_sort([{text}, {letter}, null])
        list_sort(list_distinct([{int}, {count}, {int}]))
        list_sort(list_distinct({ints}))
        list_sort(list_distinct({texts}))
        list_sum([{dec}, {dec}])
        list_sum([{float}, {float}])
        list_avg([{float}, {dec}])
        list_min([{text}, {letter}])
        list_max([{date}, {date}])
        range({count})
        range({count}, 5)
        range({count}, {count}, {count})
        generate_series({count}, 3)
        generate_series(1, {count}, {count})
        len(range({count}))
        {ints} = {ints}
        list_contains([1, null], {int})
        {{'a': {int}, 'b': {text}}}
        {{'a': {int}}}.a
        ({{'a': {int}, 'b': {text}}}).b
        {{'a': {int}}}['a']
        struct_extract({{'a': {int}}}, 'a')
        struct_pack(x := {int}, y := {text})
        row({int}, {text})
        {{'a': {int}}} = {{'a': {count}}}
        {{'a': {int}}} < {{'a': {count}}}
        [{{'a': {int}}}]
        []
        [null]
        [1, 2.5]
        [1, null, 3][2]
        [[1, 2], [3]][1][2]
    """),
]
TIMES = [
    *(f"extract({part} from {{{kind}}})" for part in PARTS for kind in MOMENTS),
    *(f"date_part('{part}', {{{kind}}})" for part in PARTS for kind in ("stamp", "date", "span")),
    *(f"date_trunc('{unit}', {{{kind}}})" for unit in UNITS for kind in ("stamp", "date")),
    *(f"date_trunc('{unit}', {{{kind}}})" for unit in UNITS for kind in ("instant", "span")),
    *(f"date_diff('{unit}', {{{k}}}, {{{k}}})" for unit in UNITS for k in ("stamp", "date")),
    *(f"date_sub('{unit}', {{{k}}}, {{{k}}})" for unit in UNITS for k in ("stamp", "date")),
    *_of("year month day hour minute second dayofweek isodow dayofyear weekday week", "stamp"),
    *_of("year month day dayofmonth dayofweek dayofyear weekofyear quarter yearweek", "date"),
    *_of("century decade millennium era isoyear julian epoch epoch_ms dayname", "stamp"),
    *_of("monthname dayname last_day epoch", "date"),
    *_of("monthname last_day epoch_us epoch_ns", "stamp"),
    *_of("epoch", "time", "span", "instant"),
    *_of("year month day hour second", "span", "instant"),
    *(
        f"to_{unit}({{count}})"
        for unit in (*(u for u in UNITS if u[-1] == "s"), "seconds", "minutes", "hours", "days")
    ),
    *(f"to_{unit}({{count}})" for unit in ("weeks", "months", "quarters", "years", "decades")),
    *("to_centuries({count})", "to_millennia({count})"),
    *_lines("""
        {date} + {count}
        {date} - {count}
        {count} + {date}
        {date} - {date}
        {date} + {span}
        {date} - {span}
        {span} + {date}
        {date} + {time}
        {stamp} + {span}
        {stamp} - {span}
        {stamp} - {stamp}
        {stamp} - {date}
        {instant} + {span}
        {instant} - {instant}
        {span} + {span}
        {span} - {span}
        {span} * {count}
        {count} * {span}
        {span} / {count}
        {span} * 1.5
        -{span}
        {time} + {span}
        {time} - {span}
        {time} - {time}
        {date} + interval 1 month
        {date} + interval (count) day
        {stamp} + interval ({count}) month
        {stamp} - interval '1 day 2 hours'
        interval ({count}) hour
        interval '90' minute
        interval '1.5 days'
        interval '1 year 2 months'
        interval 1.5 month
        interval '-1 day'
        interval 3 weeks
        interval '2 weeks'
        interval 1 decade
        age({stamp}, {stamp})
        age({date}, {date})
        make_date({int}, 2, {count})
        make_date(2024, {count}, 29)
        make_timestamp(2024, {count}, 3, 4, 5, 6.75)
        make_time({count}, 5, 6.5)
        time_bucket(interval '2 hours', {stamp})
        time_bucket(interval '1 month', {date})
        time_bucket(interval '1 week', {date})
        time_bucket({span}, {stamp})
        time_bucket(interval '3 days', {date})
        date_add({date}, interval 1 day)
        date_add({stamp}, {span})
        strftime({date}, '%Y-%m-%d')
        strftime({stamp}, '%d.%m.%Y %H:%M:%S')
        strftime({stamp}, '%A %a %B %b %j %y %p %I %f %U %W %w %u %V %G')
        strftime({stamp}, '%-d %-m %-H %-I %-M %-S %-y %-j')
        strftime({stamp}, '%c|%x|%X|%%|%Z|%z|%g|%n')
        strptime({moment}, '%Y-%m-%d')
        strptime('2024-02-03 04:05:06', '%Y-%m-%d %H:%M:%S')
        strptime('3/2/24', '%d/%m/%y')
        strptime('Feb 3, 2024', '%b %d, %Y')
        to_timestamp({int})
        to_timestamp({float})
        epoch_ms({int})
        epoch_ms({big})
        make_timestamp({big})
        {date} between {date} and {stamp}
        datediff('day', {date}, {date})
        datepart('hour', {stamp})
        datetrunc('day', {stamp})
        datesub('month', {date}, {date})
        date_diff('hour', {date}, {stamp})
        date({moment})
        {stamp}::date + 1
        date '2024-01-31' + interval '1 month'
        time '12:00' + interval '13 hours'
        timestamp '2024-01-01' - 1 * interval '1 day'
        ({date}, {date}) overlaps ({date}, {date})
        {instant}::timestamp
        {instant} at time zone 'UTC'
        {stamp} at time zone 'Asia/Tokyo'
        isfinite({date})
        isfinite({stamp})
    """),
]
TARGETS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "ubigint", "double"),
    *("real", "decimal(5,2)", "decimal(3,0)", "decimal", "varchar", "varchar(3)", "boolean"),
    *("date", "timestamp", "timestamptz", "time", "interval", "blob", "uuid", "integer[]"),
    *("varchar[]", "double[]", "timestamp_s", "timestamp_ms", "timestamp_ns"),
)
CASTS = [
    f"{cast}({{{kind}}} as {target})"
    for target in TARGETS
    for kind in TYPES
    if kind not in ("count", "pattern", "letter")
    for cast in ("cast", "try_cast")
]
CONSTANTS = _lines("""
    127::tinyint + 1::tinyint
    100::tinyint * 2::tinyint
    -(-128)::tinyint
    2147483647 + 1
    9223372036854775807 + 1
    1 / 0
    1 // 0
    1 % 0
    0.1 + 0.2 = 0.3
    5 / 2
    5 // 2
    -5 // 2
    -5 % 3
    -2 ^ 2
    2 ^ 3 ^ 2
    'a' < 'B'
    'a ' = 'a'
    1 < 2.5
    1 = '1'
    '3' + 4
    '3' || 4
    null is null
    null = null
    null || 'a'
    null and false
    null or true
    1 in (null)
    1 not in (2, null)
    [1, null] = [1, null]
    (1, null) = (1, 2)
    greatest(null, null)
    greatest(1, null, 3)
    nullif(1, 1)
    coalesce(null, null)
    case when null then 1 else 2 end
    1e20::double::varchar
    1e-5::double::varchar
    1.0::double::varchar
    1e15::double::varchar
    1e16::double::varchar
    0.1::real::varchar
    0.1::real::double
    1::real / 3
    '1.10'::decimal(5,2)::varchar
    true::varchar
    {{'a': 1, 'b': 'x y'}}::varchar
    ['a b', '', 'null', null]::varchar
    [1.50, null]::varchar
    [true, false]::varchar
    [date '2024-01-02']::varchar
    [[1, 2], []]::varchar
    'infinity'::double
    'nan'::double
    date '9999-12-31' + 1
    timestamp_ns '2024-01-02 03:04:05.123456789'
    try_cast('10000-01-01' as date)
    try_cast('5000000-01-01' as date)
    'a\\nb'
    E'a\\nb'
    x'1f'
    0x1f
    1_000
    .5
    5.
    1e3
    12::varchar::integer
""")
GROUPS: dict[str, Sequence[str]] = {
    "operators": OPERATORS,
    "comparisons": COMPARED,
    "maths": MATHS,
    "texts": TEXTS,
    "matches": MATCHES,
    "arrays": ARRAYS,
    "times": TIMES,
    "casts": CASTS,
    "constants": CONSTANTS,
}
INFINITE = re.compile(
    r"'inf'.*: 'an error', and in DuckDB (datetime\.date(time)?\(9999, 12, 31|'infinity')"
)
"""Infinite moments, which DuckDB's client returns as the last one of the year 9999."""
LOOSE = re.compile(r": 'nan', and in DuckDB '-nan'$")
"""The sign of a NaN, which depends on the processor, not on DuckDB."""

HUGE = re.compile(r"170141183460469231731687303715884105727.*: None, and in DuckDB 'an error'$")
"""A HUGEINT too large for a decimal beside NULL: DuckDB casts it before it looks at the NULL."""


def is_known(wrong: str) -> bool:
    """True if a difference is one that is known."""
    return any(each.search(wrong) for each in (LOOSE, INFINITE, HUGE))


class DuckDB:
    """A connection to DuckDB that returns values in the form of views."""

    name: str = "DuckDB"
    dialect: Literal["duckdb", "postgres"] = "duckdb"
    arguments = DUCKDB

    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self.run("set timezone = 'UTC'")

    def close(self) -> None:
        self._connection.close()

    def run(self, text: str) -> None:
        self._connection.execute(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        found = self._connection.execute(text)
        kinds = [str(column[1]) for column in found.description or ()]
        if {"INTERVAL", "TIMESTAMP_NS"} & {*kinds}:  # Python's types have a smaller range
            names = [f"c{n}" for n in range(len(kinds))]
            shown = ", ".join(
                f"{name}::varchar" if kind in ("INTERVAL", "TIMESTAMP_NS") else name
                for name, kind in zip(names, kinds, strict=True)
            )
            found = self._connection.execute(f"select {shown} from ({text}) q({', '.join(names)})")
        rows = found.fetchall()
        return [tuple(map(_plain, row, kinds)) for row in rows]

    def value(self, text: str) -> Any:
        try:
            ((found,),) = self.rows(text)
        except duckdb.Error:
            return ERROR
        return found

    def column(self, expr: str, ids: Sequence[int]) -> dict[int, Any]:
        try:
            return dict(self.rows(f"select id, ({expr}) from cases"))
        except duckdb.Error:
            return {n: self.value(f"select ({expr}) from cases where id = {n}") for n in ids}


def _plain(value: Any, kind: str) -> Any:
    if isinstance(value, str) and kind == "INTERVAL":
        return span_of(value)
    if isinstance(value, str) and kind == "TIMESTAMP_NS":
        is_long = value.partition(".")[2][6:].strip("0") or value.endswith("infinity")
        return UNREADABLE if is_long else datetime.fromisoformat(value[:26])
    if isinstance(value, str) and kind.startswith(("DATE", "TIMESTAMP", "TIME")):
        return UNREADABLE
    if isinstance(value, list | tuple):
        inner = kind.removesuffix("[]")
        return tuple(_plain(each, inner) for each in value)
    if isinstance(value, dict):
        return tuple(_plain(each, "") for each in value.values())
    return value


if __name__ == "__main__":
    sweep(DuckDB(), GROUPS, is_known)

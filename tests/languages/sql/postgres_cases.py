"""Expressions of Postgres, and the arguments that each is played with.

    PATTERNS            "lpad({text}, {count})", by group
    ARGUMENTS           text: null, '', 'äß', ...        each a literal of the type `TYPES[kind]`
    cases(pattern)      all combinations of the arguments, or as many as a limit says

A pattern without `{kind}` is one case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

PLACE = re.compile(r"\{(\w+)\}")
TYPES: dict[str, str] = {
    "int": "integer",
    "small": "smallint",
    "big": "bigint",
    "num": "numeric",
    "exact": "numeric",
    "real": "double precision",
    "money": "numeric(10,2)",
    "float": "double precision",
    "text": "text",
    "bool": "boolean",
    "date": "date",
    "stamp": "timestamp",
    "time": "time",
    "span": "interval",
    "ints": "integer[]",
    "texts": "text[]",
    "bytes": "bytea",
    "count": "integer",
    "pattern": "text",
    "number": "text",
    "moment": "text",
    "letter": "text",
}
"""The type of each kind of argument; several kinds of one type have other values."""
ARGUMENTS: dict[str, tuple[str | None, ...]] = {
    "int": (None, "0", "1", "-1", "7", "-13", "2147483647", "-2147483648"),
    "small": (None, "0", "5", "-5", "32767", "-32768"),
    "big": (None, "0", "-3", "40", "9223372036854775807", "-9223372036854775808"),
    "num": (
        *(None, "0", "1.5", "-2.5", "0.005", "-7", "10", "100.00", "0.10"),
        *("123456789012345678901234567890.5", "-0.000000000000000000012", "NaN"),
    ),
    "exact": (None, "0", "1.5", "-2.50", "7", "123456789012345678901234567890.5"),
    "real": (None, "0", "-0.0", "1", "2.5", "-7", "1e16", "2147483648", "Infinity", "-Infinity"),
    "money": (None, "0.00", "2.50", "-2.55", "99999999.99"),
    "float": (
        *(None, "0", "-0.0", "1", "2.5", "-2.5", "3.5", "0.1", "-7", "1e15", "123456789.125"),
        *("1e16", "1e300", "-1e-7", "2147483648", "Infinity", "-Infinity", "NaN"),
    ),
    "text": (
        None,
        "",
        "abc",
        "ABC def-gHi",
        "äÖß€ ñ",
        "a%b_c\\d",
        "  x ",
        "a,b,,c",
        "😀é",
        "ab\nab",
    ),
    "bool": (None, "true", "false"),
    "date": (None, "2024-02-29", "1999-12-31", "2000-01-01", "0001-01-01", "9999-12-31"),
    "stamp": (
        *(None, "2024-02-29 13:05:09.123456", "1999-12-31 23:59:59", "1970-01-01 00:00:00"),
        *("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "2023-03-31 00:30:00"),
    ),
    "time": (None, "00:00:00", "23:59:59.999999", "12:05:09.5"),
    "span": (
        *(None, "0", "1 day", "-1 day", "1 mon 2 days 03:04:05.6", "1 year", "-1 mon 1 day"),
        *("-00:00:01.5", "14 mons -3 days -00:30:00"),
    ),
    "ints": (None, "{}", "{1,2,3}", "{NULL,2}", "{2147483647,-1}", "{3,1,3}"),
    "texts": (None, "{}", "{a,b,a}", "{NULL,x}", '{"",ä,"a b","c,d","q\\"\\\\"}'),
    "bytes": (None, "\\x", "\\xdeadbeef", "\\x00ff41"),
    "count": (None, "0", "1", "2", "-1", "-2", "5", "100"),
    "pattern": (None, "", "a%", "%b%", "_b_", "%\\%%", "a", "ABC%", "%ß%", "abc\\"),
    "number": (
        *(None, "", "12", " -7 ", "1.5", "1e3", "x", "9223372036854775808", "NaN", "2147483648"),
        *("0x1f", "1_000", "+3", ".5", "5.", "infinity", "-2.5", "1 2"),
    ),
    "moment": (
        *(None, "", "2024-02-29", "2024-02-30", "2024-2-3 4:05", "2024-01-02 03:04:05.1234567"),
        *("20240102", "x", "2024-01-02T03:04:05", "24:00", "12:30", "99:00", "1 day", "P1D"),
        *("Jan 2, 2024", "2024-01-02 24:00:00", "0000-01-01", "10000-01-01", "1999/12/31"),
        *("yes", "t", "of", "on", "TRUE ", "2"),
    ),
    "letter": (None, "", "a", "b", ",", "ß", "ab", " "),
}
NUMBERS = ("int", "big", "num", "float", "small", "money")
COMPARABLE = ("int", "big", "exact", "real")
"""Columns without NaN, which equals nothing here."""
OF_NUMBERS = [f"{{{a}}} {op} {{{b}}}" for op in "+-*/%" for a in NUMBERS for b in NUMBERS]
COMPARED = [
    *(f"{{{a}}} {op} {{{b}}}" for a in COMPARABLE for b in COMPARABLE for op in ("=", "<")),
    *(f"{{{k}}} {op} {{{k}}}" for k in ("text", "bool", "date", "stamp", "time") for op in "=<"),
    *(f"{{{k}}} {op} {{{k}}}" for k in ("span", "ints", "texts", "bytes") for op in ("=", "<")),
    *("{date} < {stamp}", "{stamp} = {date}", "{int} is distinct from {int}"),
    *("greatest({int}, {real})", "least({exact}, {int})", "greatest({text}, {letter})"),
    *("{int} between {count} and {big}", "{int} in (1, {count}, -1)", "{text} in ('abc', {text})"),
    *("{int} not in (7, {count})", "{exact} between symmetric {int} and {count}"),
    *("({int}, {text}) = ({count}, {text})", "({int}, {int}) < ({count}, {count})"),
    *("row({int}, {text}) is null", "row({int}, {text}) is not null", "row({int}) is null"),
    *("({int}, {text}) is null", "({int}, {text}) is not null", "{bool} is unknown"),
    *(
        "{bool} and {bool}",
        "{bool} or {bool}",
        "not {bool}",
        "{bool} is true",
        "{bool} is not false",
    ),
    *(
        "{int} = any({ints})",
        "{int} <> all({ints})",
        "{int} < any({ints})",
        "{text} = any({texts})",
    ),
    *("{ints} @> {ints}", "{ints} && {ints}", "{bool} = ({int} > 1)"),
    *("nullif({int}, {count})", "coalesce({int}, {big})", "coalesce({num}, {int}, 3)"),
    *(
        "case when {bool} then {int} else {num} end",
        "case {int} when 1 then 'a' when 7 then {text} end",
    ),
    *("num_nulls({int}, {text})", "num_nonnulls({int}, {text})"),
]
MATHS = [
    *(
        f"{f}({{{k}}})"
        for f in ("abs", "ceil", "floor", "round", "trunc", "sign", "-")
        for k in NUMBERS
    ),
    *(
        f"{f}({{float}})"
        for f in ("sqrt", "cbrt", "exp", "ln", "log", "log10", "sin", "cos", "tan")
    ),
    *(f"{f}({{float}})" for f in ("asin", "acos", "atan", "sinh", "cosh", "tanh", "degrees")),
    *(f"{f}({{float}})" for f in ("radians", "cot", "asinh", "acosh", "atanh", "sind", "cosd")),
    *(
        f"{f}({{num}})"
        for f in ("sqrt", "exp", "ln", "log", "log10", "scale", "min_scale", "trim_scale")
    ),
    *(
        f"{f}({{int}})"
        for f in ("sqrt", "ln", "exp", "log", "cbrt", "factorial", "to_hex", "radians")
    ),
    *("round({num}, {count})", "trunc({num}, {count})", "round({money}, 1)", "round({int}, -1)"),
    *(
        "power({float}, {float})",
        "power({num}, {count})",
        "power({int}, {count})",
        "{float} ^ {count}",
    ),
    *("{int} ^ {count}", "{num} ^ {count}", "log({num}, {num})", "atan2({float}, {float})"),
    *("mod({int}, {count})", "mod({num}, {num})", "div({num}, {num})", "div({int}, {count})"),
    *("gcd({int}, {int})", "lcm({int}, {int})", "gcd({big}, {big})", "lcm({int}, {count})"),
    *(
        "{int} & {int}",
        "{int} | {int}",
        "{int} # {int}",
        "~{int}",
        "{int} << {count}",
        "{int} >> {count}",
    ),
    *("{big} & {int}", "{big} << {count}", "|/ {float}", "||/ {float}", "to_hex({big})", "pi()"),
    *("width_bucket({float}, 0, 10, 5)", "width_bucket({num}, 0, 10, {count})"),
    *(
        "2 ^ {int}",
        "-{int}",
        "-{big}",
        "+{num}",
        "abs({small})",
        "{small} + {small}",
        "{small} * {int}",
    ),
    *("1 / {num}", "{num} / 3", "{int} / 2.0", "{num} % 2", "{money} * 1.10", "{money} / {money}"),
]
TEXTS = [
    *(f"{f}({{text}})" for f in ("upper", "lower", "initcap", "length", "char_length", "reverse")),
    *(f"{f}({{text}})" for f in ("octet_length", "bit_length", "ascii", "md5", "trim", "btrim")),
    *(
        f"{f}({{text}})"
        for f in ("ltrim", "rtrim", "quote_literal", "quote_ident", "quote_nullable")
    ),
    *(
        "{text} || {text}",
        "{text} || {int}",
        "{text} || {bool}",
        "{text} || {float}",
        "{num} || {text}",
    ),
    *(
        "{text} || {date}",
        "{text} || {stamp}",
        "{text} || {span}",
        "{text} || {ints}",
        "'a' || {int} || 'b'",
    ),
    *(
        "concat({text}, {int}, {bool}, {float})",
        "concat({bool})",
        "concat({date}, {num})",
        "concat({ints})",
    ),
    *("concat_ws({letter}, {text}, {int}, {bool})", "concat_ws(',', {stamp}, {text})"),
    *(
        "substring({text}, {count})",
        "substring({text}, {count}, {count})",
        "substr({text}, {count}, {int})",
    ),
    *(
        "substring({text} from {count} for {count})",
        "substring({text} from 'b.')",
        "substr({text}, {int})",
    ),
    *("substring({text} from '(a)b')", "substring({text} from '%#\"b#\"%' for '#')"),
    *("substring({text}, 'a(.)')", "substring({text} similar '%#\"b#\"%' escape '#')"),
    *(
        "left({text}, {int})",
        "right({text}, {int})",
        "left({text}, {count})",
        "right({text}, {count})",
    ),
    *("lpad({text}, {count})", "rpad({text}, {count})", "lpad({text}, {count}, {letter})"),
    *(
        "rpad({text}, {count}, {letter})",
        "repeat({text}, {count})",
        "replace({text}, {letter}, {letter})",
    ),
    *(
        "trim(both {letter} from {text})",
        "trim(leading {letter} from {text})",
        "btrim({text}, {letter})",
    ),
    *("trim(trailing {letter} from {text})", "ltrim({text}, {letter})", "rtrim({text}, {letter})"),
    *("translate({text}, {letter}, {letter})", "split_part({text}, {letter}, {count})"),
    *("strpos({text}, {letter})", "position({letter} in {text})", "starts_with({text}, {letter})"),
    *(
        "overlay({text} placing {letter} from {count})",
        "overlay({text} placing 'Z' from {count} for {count})",
    ),
    *("chr({int})", "chr({count})", "chr(8364)", "string_to_array({text}, {letter})"),
    *("string_to_array({text}, {letter}, 'b')", "array_to_string({texts}, {letter})"),
    *(
        "array_to_string({ints}, {letter}, '*')",
        "encode({bytes}, 'hex')",
        "encode({bytes}, 'base64')",
    ),
    *(
        "decode('dead', 'hex')",
        "decode({text}, 'hex')",
        "decode('3q0=', 'base64')",
        "encode({bytes}, 'escape')",
    ),
    *(
        "length({bytes})",
        "md5({bytes})",
        "octet_length({bytes})",
        "sha256({bytes})",
        "{bytes} || {bytes}",
    ),
    *("substring({bytes}, 2, 1)", "get_byte({bytes}, 0)", "convert_from({bytes}, 'UTF8')"),
    *(
        "convert_to({text}, 'UTF8')",
        *(f"convert_from({{bytes}}, '{name}')" for name in ("Latin-9", "koi8", "WIN 874", "x")),
        *(f"convert_to({{text}}, '{name}')" for name in ("iso_8859_1", "win1252", "latin2", "")),
        "format('%s-%s', {text}, {int})",
        "format('%I %L %%', {text}, {text})",
    ),
    *(
        "format('%5s|%-5s|', {text}, {int})",
        "regexp_count({text}, 'a')",
        "regexp_like({text}, 'A', 'i')",
    ),
    *("to_hex({int})", "unistr('\\0041')", "normalize({text})", "regexp_substr({text}, 'b.')"),
    *(
        "regexp_instr({text}, 'b')",
        "parse_ident('a.b')",
        "text 'x' || {text}",
        '{text} collate "C"',
    ),
]
MATCHES = [
    *(
        "{text} like {pattern}",
        "{text} not like {pattern}",
        "{text} ilike {pattern}",
        "{text} ~~ {pattern}",
    ),
    *(
        "{text} like {pattern} escape '!'",
        "{text} like 'a!%b%' escape '!'",
        "{text} like 'a\\%%' escape ''",
    ),
    *(
        "{text} similar to {pattern}",
        "{text} not similar to {pattern}",
        "{text} similar to '%(b|d)%'",
    ),
    *(
        "{text} similar to '(a|b)+c'",
        "{text} similar to '[a-c]+'",
        "{text} similar to 'a#%b%' escape '#'",
    ),
    *("{text} similar to '[^a]%'", "{text} similar to 'ab.'", "{text} similar to '(ab){{2}}|a_c'"),
    *("{text} similar to '_{{3}}'", "{text} similar to 'a^b$c'", "{text} similar to '%\\%%'"),
    *(
        "{text} similar to '[[:alpha:]]+'",
        "{text} similar to 'a?b*c'",
        "{text} ~ 'a.c'",
        "{text} ~* 'A.C'",
    ),
    *(
        "{text} !~ '^a'",
        "{text} !~* '^A'",
        "{text} ~ '\\d+'",
        "{text} ~ '^[[:alpha:]]+$'",
        "{text} ~ 'b$'",
    ),
    *(
        "{text} ~ '\\mab'",
        "{text} ~ '[[:space:]]'",
        "{text} ~ 'a.ab'",
        "{text} ~ '(a|ab)(c|bcd)?$'",
    ),
    *(
        "regexp_replace({text}, 'a', 'X')",
        "regexp_replace({text}, 'a', 'X', 'g')",
        "{text} ~ {letter}",
    ),
    *("regexp_replace({text}, '(a)(b)', '\\2\\1', 'g')", "regexp_replace({text}, 'b', '[\\&]')"),
    *("regexp_replace({text}, 'A', 'x', 'gi')", "regexp_replace({text}, 'a|ab', 'x', 'g')"),
    *(
        "regexp_match({text}, 'a(.)')",
        "regexp_match({text}, 'ab')",
        "regexp_split_to_array({text}, ',')",
    ),
    *("regexp_split_to_array({text}, '\\s+')", "regexp_replace({text}, '.', '-', 'n')"),
]
ARRAYS = [
    *(
        "{ints}[{count}]",
        "{ints}[1:2]",
        "{ints}[{count}:{count}]",
        "{ints}[2:]",
        "{ints}[:1]",
        "{ints}[-1]",
    ),
    *(
        "(array[1,2,3])[-1]",
        "(array[1,2,3])[0]",
        "(array[1,2,3])[2]",
        "(array[1,2,3])[2:5]",
        "array[{int}, 2]",
    ),
    *(
        "array_length({ints}, 1)",
        "array_length({ints}, {count})",
        "array_upper({ints}, 1)",
        "cardinality({ints})",
    ),
    *(
        "array_lower({ints}, 1)",
        "array_ndims({ints})",
        "array_dims({ints})",
        "array_position({ints}, {int})",
    ),
    *(
        "array_positions({ints}, 3)",
        "array_remove({ints}, {int})",
        "array_replace({ints}, {int}, 9)",
    ),
    *("array_append({ints}, {int})", "array_prepend({int}, {ints})", "array_cat({ints}, {ints})"),
    *(
        "{ints} || {ints}",
        "{ints} || {int}",
        "{int} || {ints}",
        "{texts} || 'x'::text",
        "array[1] || 2 || array[3]",
    ),
    *(
        "array[array[1,2],array[3,4]] || array[5,6]",
        "array[array[1,2]] || array[array[3,4]]",
        "trim_array({ints}, 1)",
    ),
    *(
        "array_to_string({ints}, ',')",
        "(array[1,2] || array[3])[3]",
        "array[]::integer[]",
        "array[null]::integer[]",
    ),
    *(
        "(array[array[1,2],array[3,4]])[2][1]",
        "array_fill({int}, array[2])",
        "array_position({texts}, 'b')",
    ),
    *(
        "array[1, 2.5]",
        "array['a', null]",
        "'{1,2}'::int[]",
        "'{a,\"b c\"}'::text[]",
        "array_ndims(array[array[1]])",
    ),
]
FIELDS: tuple[str, ...] = (
    "second",
    "minute",
    "hour",
    "day",
    "month",
    "year",
    "quarter",
    "week",
    "dow",
    "isodow",
)
FIELDS += ("doy", "epoch", "century", "decade", "millennium", "isoyear", "milliseconds", "julian")
FIELDS += ("microseconds",)
UNITS: tuple[str, ...] = (
    "microseconds",
    "milliseconds",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
)
UNITS += ("year", "decade", "century", "millennium")
TIMES = [
    *(f"extract({f} from {{{k}}})" for f in FIELDS for k in ("stamp", "date", "time", "span")),
    *(f"date_part('{f}', {{{k}}})" for f in FIELDS for k in ("stamp", "date", "span")),
    *(f"date_trunc('{u}', {{{k}}})" for u in UNITS for k in ("stamp", "span")),
    *(
        "{date} + {int}",
        "{date} - {count}",
        "{date} - {date}",
        "{date} + {span}",
        "{date} - {span}",
    ),
    *(
        "{stamp} + {span}",
        "{stamp} - {span}",
        "{stamp} - {stamp}",
        "{span} + {span}",
        "{span} - {span}",
    ),
    *(
        "{span} * {count}",
        "{span} * {float}",
        "{span} / {count}",
        "{span} / {float}",
        "-{span}",
        "{time} + {span}",
    ),
    *("{time} - {span}", "{time} - {time}", "{date} + {time}", "{count} + {date}", "2.5 * {span}"),
    *(
        "age({stamp}, {stamp})",
        "age({date}, {date})",
        "justify_days({span})",
        "justify_hours({span})",
    ),
    *("justify_interval({span})", "isfinite({stamp})", "isfinite({date})", "isfinite({span})"),
    *("make_date({int}, 2, {count})", "make_date(2024, {count}, 29)", "make_time({count}, 5, 6.5)"),
    *("make_timestamp(2024, {count}, 3, 4, 5, 6.75)", "make_interval(days => {count})"),
    *(
        "make_interval({count}, 1)",
        "make_interval(hours => 2, secs => 1.5)",
        "make_interval(years => {count})",
    ),
    *(
        "date_bin('2 hours', {stamp}, timestamp '2001-01-01 00:30')",
        "date_bin('15 minutes', {stamp}, {stamp})",
    ),
    *(
        "date_bin({span}, {stamp}, timestamp '2001-01-01')",
        "interval '1 day' * {int}",
        "{date}::timestamp",
    ),
    *(
        "interval '1-2'",
        "interval '3 4:05:06'",
        "interval '1.5 days'",
        "interval '1 year 2 months' + {span}",
    ),
    *(
        "interval '90' minute",
        "interval '1' year",
        "interval 'P1DT2H'",
        "interval '1.5' month",
        "interval '-1 day'",
    ),
    *("date '2024-01-31' + interval '1 month'", "timestamp '2024-01-01' - 1 * interval '1 day'"),
    *(
        "({date}, {date}) overlaps ({date}, {date})",
        "interval '2 weeks ago'",
        "interval '1 decade'",
    ),
    *(
        "interval '1 mon -1 hour'",
        "interval '0.1 year'",
        "interval '4 5'",
        "time '12:00' + interval '13 hours'",
    ),
]
FORMATS: tuple[str, ...] = (
    *(
        "yyyy-mm-dd hh24:mi:ss",
        "HH:MI",
        "HH12:MI:SS am",
        "Mon DD, YYYY",
        "Month|Day|Dy|dy|MON|mon|MONTH",
    ),
    *(
        "FMMonth FMDD FMDay",
        "Q WW IW IYYY ID D DDD J",
        "YYY YY Y Y,YYY",
        "CC RM rm",
        "HH24MISS US MS",
    ),
    *(
        "AM am A.M. p.m. PM",
        "DDth DDTH FMDDth",
        "SSSS SSSSS",
        '"year "YYYY',
        "FF1 FF3 FF6",
        "BC B.C. AD",
    ),
    *(
        "",
        "abc xyz",
        "Day, DD  HH12:MI:SS",
        "FMHH24:FMMI",
        "IDDD IYY I",
        "YYYY-MM-DD\\ T",
        "W",
        "day DAY",
    ),
)
NUMBER_FORMATS: tuple[str, ...] = (
    *(
        "999",
        "000",
        "9999.99",
        "0000.00",
        "FM999.99",
        "FM990.00",
        "S999",
        "999S",
        "SG999",
        "MI999",
        "999MI",
    ),
    *(
        "PL999",
        "9,999",
        "9G999D99",
        "999PR",
        "FM9999",
        "RN",
        "FMRN",
        "9.9EEEE",
        "L999",
        "99V99",
        "999th",
    ),
    *(
        "FM999TH",
        "$999",
        '"n="999',
        "9 9 9",
        "B999",
        "0,000.0",
        "FM0.999",
        "99999999999",
        "999D",
        ".99",
        "",
        "FM",
    ),
)
FORMATTED = [
    *(f"to_char({{stamp}}, '{form}')" for form in FORMATS),
    *(f"to_char({{date}}, '{form}')" for form in FORMATS[:4]),
    *(f"to_char({{span}}, '{form}')" for form in ("HH24:MI:SS", "DD HH12", "YYYY-MM", "Q")),
    *(f"to_char({{{k}}}, '{form}')" for form in NUMBER_FORMATS for k in ("int", "num", "float")),
    *(
        f"{f}('{text}', '{form}'){cast}"
        for f, cast in (("to_timestamp", "::timestamp"), ("to_date", ""))
        for text, form in (
            *(("2024-02-03 04:05:06", "YYYY-MM-DD HH24:MI:SS"), ("05 Dec 2000", "DD Mon YYYY")),
            *(("20240203", "YYYYMMDD"), ("3/2/24", "DD/MM/YY"), ("2024-02-30", "YYYY-MM-DD")),
            *(
                ("11:30 pm 2024", "HH:MI am YYYY"),
                ("x", "YYYY"),
                ("2024 60", "YYYY DDD"),
                ("12", "MM"),
            ),
            *(
                ("2024-W05-3", 'IYYY-"W"IW-ID'),
                ("February 3, 2024", "Month DD, YYYY"),
                ("", "YYYY"),
            ),
            *(
                ("1.123", "SS.MS"),
                ("2000    JUN", "YYYY MON"),
                ("95", "YY"),
                ("44", "YYYY"),
                ("2024x3", "YYYY-MM"),
            ),
            *(
                ("12.5", "SS.US"),
                ("2460000", "J"),
                ("99:00", "HH24:MI"),
                ("2024-13-01", "YYYY-MM-DD"),
            ),
        )
    ),
    *(
        f"to_number('{text}', '{form}')"
        for text, form in (
            *(
                ("12,454.8-", "99G999D9S"),
                ("123", "999"),
                ("-34.5", "99.9"),
                ("-34.5", "S99.9"),
                ("1,2", "9,9"),
            ),
            *(
                ("12", "99.99"),
                ("x", "99"),
                ("", "9"),
                ("$12", "L99"),
                ("<12>", "99PR"),
                ("12-", "99MI"),
            ),
            *(
                ("0012", "9999"),
                (" 5", "99"),
                ("1234", "99"),
                ("12.345", "99D99"),
                ("+7", "S9"),
                ("3rd", "9th"),
            ),
        )
    ),
]
TARGETS: tuple[str, ...] = (
    "integer",
    "smallint",
    "bigint",
    "numeric",
    "numeric(5,2)",
    "numeric(3,0)",
    "double precision",
)
TARGETS += (
    "real",
    "text",
    "varchar(3)",
    "char(3)",
    "boolean",
    "date",
    "timestamp",
    "time",
    "interval",
    "bytea",
)
TARGETS += ("integer[]", "text[]")
CASTS = [
    *(
        f"cast({{{k}}} as {t})"
        for t in TARGETS
        for k in TYPES
        if k not in ("count", "pattern", "letter")
    ),
    *(
        "'\\xdeadbeef'::bytea",
        "'abc'::bytea",
        "'a\\\\134'::bytea",
        "1.0::float8::text",
        "'\\x1'::bytea",
        "true::text",
    ),
    *(
        "1e20::float8::text",
        "1e-5::float8::text",
        "'1.10'::numeric::text",
        "5::bit(4)",
        "x'1f'::int",
        "12::char",
    ),
    *(
        "'(1,a)'::text",
        "row(1, 'a', null)::text",
        "row('a b', '', true)::text",
        "array[1.50, null]::text",
    ),
    *(
        "array['a b', '', 'null', null]::text",
        "array[true, false]::text",
        "array[date '2024-01-02']::text",
    ),
    *(
        "array[array[1,2],array[3,4]]::text",
        "E'a\\nb\\u00e9'",
        "'infinity'::float8",
        "'inf'::numeric",
        "-5 % 3",
    ),
    *(
        "date 'infinity'",
        "timestamp '-infinity'",
        "'epoch'::timestamp",
        "'3' + 4",
        "'3' || 4",
        "1 = '1'",
        "2 ^ 3 ^ 2",
    ),
    *(
        "-2 ^ 2",
        "'a' < 'B'",
        "'a ' = 'a'",
        "'abc'::char(5) = 'abc'",
        "'abc'::char(5) || 'x'",
        "length('ab '::char(5))",
    ),
    *(
        "1 < 2.5",
        "0.1 + 0.2 = 0.3",
        "1::real / 3",
        "0.1::real::float8",
        "'1'::int + '2'",
        "true = 't'",
        "1 / 2",
        "1 % 0",
    ),
    *("5 / 2.0", "2147483647 + 1", "9223372036854775807 + 1", "null is null"),
    *("null = null", "null || 'a'", "null and false", "null or true", "not null", "1 in (null)"),
    *(
        "1 in (1, null)",
        "1 not in (2, null)",
        "null in (1)",
        "array[1, null] = array[1, null]",
        "(1, null) = (1, 2)",
    ),
    *(
        "(1, 2) = (1, null)",
        "(1, null) = (2, null)",
        "row(1, 2) < row(1, 3)",
        "row(null) is null",
        "row() is null",
    ),
    *(
        "row(1, null) is null",
        "row(1, null) is not null",
        "row(null, null) is not null",
        "null::int is null",
    ),
    *(
        "greatest(null, null)",
        "greatest(1, null, 3)",
        "least('b', 'a')",
        "nullif(1, 1)",
        "nullif('a', 'b')",
    ),
    *(
        "coalesce(null, null)",
        "coalesce(null, 'a')",
        "coalesce(1, 2.5)",
        "case when null then 1 else 2 end",
    ),
]
GROUPS: dict[str, Sequence[str]] = {
    "arithmetic": OF_NUMBERS,
    "comparisons": COMPARED,
    "maths": MATHS,
    "texts": TEXTS,
    "matches": MATCHES,
    "arrays": ARRAYS,
    "times": TIMES,
    "formats": FORMATTED,
    "casts": CASTS,
}


def kinds_of(pattern: str) -> list[str]:
    """The kind of each argument, in order."""
    return PLACE.findall(pattern.replace("{{", "").replace("}}", ""))


def filled(pattern: str, arguments: Sequence[str]) -> str:
    """The expression that a pattern is with arguments in its places."""
    found = iter(arguments)
    made = PLACE.sub(lambda _: next(found), pattern.replace("{{", "\0").replace("}}", "\1"))
    return made.replace("\0", "{").replace("\1", "}")


@dataclass(frozen=True)
class Arguments:
    """The kinds of arguments that an engine is played with."""

    types: Mapping[str, str]
    values: Mapping[str, Sequence[str | None]]

    def combinations(
        self, pattern: str, limit: int, random: Random
    ) -> list[tuple[str | None, ...]]:
        """The arguments of the cases of a pattern: all, or `limit` that are drawn."""
        every = list(product(*(self.values[kind] for kind in kinds_of(pattern))))
        return every if len(every) <= limit else random.sample(every, limit)

    def literal(self, kind: str, text: str | None) -> str:
        """An argument as it is written in a query."""
        written = "null" if text is None else "'" + text.replace("'", "''") + "'"
        return f"(cast({written} as {self.types[kind]}))"


POSTGRES = Arguments(TYPES, ARGUMENTS)

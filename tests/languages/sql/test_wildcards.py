"""Patterns are matched in linear time, and as a plain oracle, `re` and SQLite match them."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections.abc import Callable
from typing import NamedTuple

import pytest

from reactive import Database
from reactive.languages.sql.postgres import patterns
from reactive.languages.sql.runtime import texts
from reactive.languages.sql.runtime.automaton import Expression, TooManyWays
from reactive.languages.sql.sqlite import values

TEXTS = "aabbABÉé\nß\u017fK%_!"
LIKES = "aab%%%__AÉ\n!\\"


class Row(NamedTuple):
    s: str


def written(letters: str, longest: int, choice: random.Random) -> str:
    return "".join(choice.choice(letters) for _ in range(choice.randrange(longest)))


def is_like(text: str, pattern: list[str | None], same: Callable[[str, str], bool]) -> bool:
    """Match by the definition: `%` is None, `_` is the empty text."""
    ends = {0}
    for part in pattern:
        if part is None:
            ends = {end for start in ends for end in range(start, len(text) + 1)}
        else:
            ends = {e + 1 for e in ends if e < len(text) and (part == "" or same(text[e], part))}
    return len(text) in ends


def parts(pattern: str, escape: str) -> list[str | None] | None:
    found: list[str | None] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            if (escaped := next(letters, None)) is None:
                return None
            found.append(escaped)
        else:
            found.append(None if letter == "%" else "" if letter == "_" else letter)
    return found


def folded(one: str, other: str) -> bool:
    return re.fullmatch(re.escape(other), one, re.IGNORECASE) is not None


@pytest.mark.parametrize("seed", range(4))
def test_like_matches_as_its_definition(seed: int) -> None:
    choice, both = random.Random(seed), set[bool]()
    for _ in range(400):
        text, pattern = written(TEXTS, 9, choice), written(LIKES, 8, choice)
        escape = choice.choice(["", "!", "\\", "a"])
        wanted = parts(pattern, escape)
        if wanted is None:
            continue
        expected = is_like(text, wanted, str.__eq__)
        both.add(expected)
        assert texts.like(text, pattern, escape) is expected, (text, pattern, escape)
        assert patterns.like(text, pattern, escape) is expected, (text, pattern, escape)
        expected = is_like(text, wanted, folded)
        assert texts.like_folded(text, pattern, escape) is expected, (text, pattern, escape)
        assert patterns.like_folded(text, pattern, escape) is expected, (text, pattern, escape)
    assert both == {True, False}


@pytest.mark.parametrize("seed", range(2))
def test_like_and_glob_match_as_sqlite_has_them(seed: int) -> None:
    choice, con = random.Random(seed), sqlite3.connect(":memory:")
    for _ in range(400):
        text, pattern = written(TEXTS, 9, choice), written(LIKES, 8, choice)
        found = con.execute("select ? like ?", (text, pattern)).fetchone()[0]
        assert values.like(text, pattern) is bool(found), (text, pattern)
        pattern = written("aab**??[]-^!ÉA\n", 9, choice)
        found = con.execute("select ? glob ?", (text, pattern)).fetchone()[0]
        assert values.glob(text, pattern) is bool(found), (text, pattern)


@pytest.mark.parametrize("seed", range(2))
def test_similar_to_matches_as_the_regular_expression_it_stands_for(seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(300):
        text, pattern = written(TEXTS, 9, choice), written("aab%%__[(|)", 8, choice)
        pattern = pattern.replace("[", choice.choice(["[ab]", "[^a]", "[[:alpha:]]", "[a-b]"]))
        plain = pattern.replace("%", ".*").replace("_", ".").replace("[[:alpha:]]", r"[^\W\d_]")
        try:
            expected = re.fullmatch(plain, text, re.DOTALL) is not None
        except re.error:
            with pytest.raises(ValueError, match="invalid regular expression"):
                patterns.similar(text, pattern)
            continue
        assert patterns.similar(text, pattern) is expected, (text, pattern)


def expression(depth: int, choice: random.Random) -> str:
    """A regular expression, up to a depth."""
    kind = choice.randrange(10 if depth else 3)
    if kind < 3:
        leaves = ["a", "b", "ab", ".", "[ab]", "[^a]", r"\w", r"\n", "É"]
        return choice.choice(leaves)
    one = expression(depth - 1, choice)
    if kind < 5:
        return f"(?:{one}|{expression(depth - 1, choice)})"
    if kind < 7:
        return one + expression(depth - 1, choice)
    if kind == 7:
        return choice.choice(["^", "$", r"\b", r"\Z", "(?<!a)(?=b)"]) + one
    return f"({one}){choice.choice(['*', '+', '?', '*?', '+?', '{1,2}', '{2}', '{0,3}'])}"


@pytest.mark.parametrize("seed", range(2))
def test_an_automaton_matches_as_re(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow `re` no pattern, so that the automaton matches all of them."""
    monkeypatch.setattr("reactive.languages.sql.runtime.automaton.MOST", -1)
    choice = random.Random(seed)
    for _ in range(150):
        flags = choice.choice([0, re.IGNORECASE, re.DOTALL, re.MULTILINE])
        compiled = re.compile(expression(3, choice), flags)
        made = Expression(compiled)
        for _ in range(6):
            text = written("abAé\n ", 7, choice)
            found = (made.search(text), made.fullmatch(text))
            expected = (compiled.search(text), compiled.fullmatch(text))
            assert found == tuple(each is not None for each in expected), (compiled, text)


SLOW: dict[str, tuple[str, str, str]] = {
    "like": ("duckdb", "s like '%error%timeout%'", "error "),
    "like of many": ("duckdb", "s like '%a%b%c%d'", "abc"),
    "like of one letter": ("postgres", "s like '%a%a%a%a%b'", "a"),
    "like of any letters": ("sqlite", "s like '%a_b%c_d%e'", "abc"),
    "ilike": ("postgres", "s ilike '%A%A%A%A%b'", "a"),
    "glob": ("sqlite", "s glob '*[a-b]*[a-b]*[a-b]*c'", "ab"),
    "similar": ("postgres", "s similar to '%a%a%a%a%b'", "a"),
    "similar with alternatives": ("postgres", "s similar to '(a|aa)*b'", "a"),
    "regular expression": ("postgres", "s ~ '(a*)*b'", "a"),
    "regular expression of DuckDB": ("duckdb", "regexp_matches(s, '(a|a)*$b')", "a"),
    "all of a text": ("duckdb", "regexp_full_match(s, '(a+)+b')", "a"),
}


@pytest.mark.parametrize("name", SLOW)
def test_the_time_of_a_pattern_grows_with_the_text(name: str) -> None:
    """Matching is not quadratic, where 16 times the letters would take 256 times as long."""
    dialect, condition, unit = SLOW[name]
    db = Database(dialect=dialect)  # type: ignore[arg-type]
    t = db.table(Row, name="t")
    view = db.sql(f"select s from t where {condition}").materialize()
    took = []
    for size in (4_000, 64_000):
        best = 1e9
        for n in range(3):
            row = Row(unit * (size // len(unit)) + "!" * n)
            began = time.process_time()
            t.add(row)
            best = min(best, time.process_time() - began)
        took.append(best)
    assert len(view) == 0 and not view.errors
    assert took[1] < 100 * max(took[0], 0.002)


def test_places_of_matches_have_a_limit_that_the_error_names() -> None:
    db = Database(dialect="postgres")
    t = db.table(Row, name="t")
    view = db.sql("select regexp_replace(s, '(a+)+!', '') as s from t").materialize()
    t.add_all([Row("aaa!"), Row("a" * 4_999 + "!"), Row("b")])
    assert sorted(row.s for row in view) == ["", "b"]
    (refused,) = view.errors
    assert "'(a+)+!' against a text of 5,000 letters" in str(refused)


def test_a_reference_has_no_automaton_and_a_limit() -> None:
    made = Expression(re.compile(r"(a*)*\1b"))
    assert made.search("aab")
    with pytest.raises(TooManyWays):
        made.search("a" * 100)


def test_a_replaced_empty_match_at_the_end_is_the_last_one() -> None:
    db = Database(dialect="postgres")
    assert db.sql("select regexp_replace('abc', 'x|', 'y', 'g') as a").materialize().value == (
        "yaybycy",
    )

"""Broken texts give results or a `PlanError`: a sample of the soak."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlglot import exp

from reactive import Database, PlanError
from tests.budget import TIMES
from tests.languages.datalog import test_broken_programs as programs
from tests.languages.sql.broken_texts import Player
from tests.seeds import play_all

TEXTS, STATEMENTS = 450, 50


@pytest.fixture(scope="module")
def player() -> Player:
    return Player(strange=True)


@pytest.mark.long
def test_a_broken_text_raises_nothing_of_its_own(player: Player) -> None:
    said = [player.play(seed) for seed in range(TEXTS)]
    assert said.count("made") > TEXTS / 10
    assert said.count("refused") > TEXTS / 10


def test_a_broken_statement_raises_nothing_of_its_own(player: Player) -> None:
    said = {player.play_statement(seed) for seed in range(STATEMENTS)}
    assert said == {"made", "refused"}


NODES = [name for name in dir(exp) if name[:1].isupper() and not name.isupper()]
INTERNAL = re.compile(
    rf"exploding_|sqlglot|\bexp\.|\bAnonymous\b|\b_[A-Z]\w+|0x[0-9a-f]{{6}}|\b\w+Error: "
    rf"|\b(?:{'|'.join(n for n in NODES if re.search('[a-z][A-Z]', n))})\b|cannot be read \("
    r"|object has no attribute|positional argument|NoneType"
)
"""Names of nodes of the parser and of classes and exceptions of Python, which users never wrote."""
REPEATED = re.compile(r"'([^'\n]+)'[^\n]*did you mean '\1'", re.IGNORECASE)
TEXTS_OF_MESSAGES = 300 if TIMES else 100


def _said(text: str, read: Any) -> str | None:
    try:
        read(text)
    except PlanError as error:
        return str(error)
    except Exception:  # reported by the tests above
        return None
    return None


def _check(message: str, text: str) -> None:
    first = message.split("\n")[0]  # later lines show the text, and a remedy
    shown = INTERNAL.search(first)
    assert shown is None or shown[0].lower() in text.lower(), f"{message}\n{text}"
    assert not REPEATED.search(message), message


def test_messages_of_sql_name_nothing_internal(player: Player) -> None:
    found = 0
    for seed in range(TEXTS_OF_MESSAGES):
        random = Random(seed)
        text, db = player.drawn(random)
        message = _said(text, db.sql)
        if message is not None:
            found += 1
            _check(message, text)
    assert found > TEXTS_OF_MESSAGES / 10


def test_messages_of_datalog_name_nothing_internal() -> None:
    found = 0
    for seed in range(TEXTS_OF_MESSAGES):
        text = programs.broken(Random(seed))
        message = _said(text, Database().datalog)
        if message is not None:
            found += 1
            _check(message, text)
    assert found > TEXTS_OF_MESSAGES / 10


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    played: list[int] = []

    def play(seed: int) -> None:
        played.append(seed)
        if seed == 3:
            raise ValueError("something differs")

    state = tmp_path / "state.json"
    assert play_all(play, 5, 1, every=2, state=state) == 1
    assert json.loads(state.read_text()) == {
        "next": 6,
        "differences": {"ValueError: something differs": 1},
    }
    assert play_all(play, 8, 1, every=2, state=state) == 1
    assert played == [*range(1, 9)]

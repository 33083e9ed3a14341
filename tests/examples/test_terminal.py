"""Lines of output: cut on a terminal, and whole without one."""

from __future__ import annotations

import pytest
from rich.console import Console

from examples.terminal import console, line, progress, say, signed

LONG = "com.example." + "shop." * 30 + "Cart: is wrong"


def test_lines_are_cut_where_a_terminal_ends() -> None:
    out = Console(width=80, force_terminal=True, color_system=None)
    with out.capture() as shown:
        say(out, line(LONG), line("short"), signed("+", LONG))
    first, second, third = shown.get().splitlines()
    assert (first, second) == (LONG[:79] + "…", "short")
    assert third == f"+ {LONG}"[:79] + "…"


def test_nothing_is_folded_or_cut_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(console(), line(LONG * 100))
    console().print(LONG * 100, markup=False)
    assert capsys.readouterr().out.splitlines() == [LONG * 100] * 2


def test_what_came_is_red_and_what_went_is_green() -> None:
    assert [str(signed(sign, "x").style) for sign in "+-!="] == ["red", "green", "yellow", "yellow"]
    assert signed("-", 7).plain == "- 7"


def test_one_item_is_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    for total in (1, 2000):
        with progress(console(), "reading", total, "class file"):
            pass
    assert capsys.readouterr().out == "reading: 1 class file\nreading: 2,000 class files\n"

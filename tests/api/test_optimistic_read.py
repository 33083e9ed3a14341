"""Readings are generated when they are first called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactive.api.keyed_rows import optimistic_read
from reactive.engine.runtime.lock import DatabaseLock


def made() -> Any:
    class Held:
        """Some numbers by name."""

        _db_lock = DatabaseLock()
        numbers = {"a": 1}

        @optimistic_read("self.numbers[name]", ready="self.numbers")
        def number(self, name: str, default: int = 7) -> int:
            """The number of a name."""
            if name == "bad":
                raise KeyError(name)
            return default

    return Held


def test_the_first_call_puts_the_reading_in_its_place() -> None:
    held = made()
    waiting = vars(held)["number"]
    assert (held().number("a"), held().number("b"), held().number(name="b", default=3)) == (1, 7, 3)
    assert vars(held)["number"] is not waiting
    assert waiting(held(), "a") == 1  # the method that was read before still works


def test_a_subclass_reads_by_the_method_of_its_base() -> None:
    held = made()
    kind = type("More", (held,), {"numbers": {"a": 5}})
    assert (kind().number("a"), held().number("a"), kind().number("a")) == (5, 1, 5)
    assert "number" not in vars(kind)


def test_it_is_documented_before_and_after_and_raises_alike() -> None:
    held = made()
    for _ in range(2):
        assert held.number.__doc__ == "The number of a name."
        assert held.number.__name__ == "number"
        with pytest.raises(KeyError, match="bad") as raised:
            held().number("bad")
        assert {Path(each.path).name for each in raised.traceback} == {"test_optimistic_read.py"}

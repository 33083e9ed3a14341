"""Generated functions: what they may be named, and what they see."""

from __future__ import annotations

import builtins

from reactive.codegen.functions import Values, build


def test_code_is_generated_at_a_prompt_too_which_keeps_its_last_value() -> None:
    values = Values(["pairs", "_"])
    builtins._ = 1  # type: ignore[attr-defined]
    try:
        text = "def count(pairs):\n    return sum(1 for _ in pairs)\n"
        assert build("count", text, values)([1, 2]) == 2
    finally:
        del builtins._  # type: ignore[attr-defined]

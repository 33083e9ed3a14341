"""Recursion: every view equals a naive evaluation of its program, after every commit."""

import pytest

pytest.register_assert_rewrite(
    "tests.engine.operators.fixpoint.follow", "tests.engine.operators.fixpoint.play"
)

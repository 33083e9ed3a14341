"""Recursion: every view equals a naive evaluation of its program, after every commit."""

import pytest

pytest.register_assert_rewrite("tests.operators.fixpoint.follow", "tests.operators.fixpoint.play")

"""Recursion: every view equals a naive evaluation of its program, after every commit."""

import pytest

pytest.register_assert_rewrite("tests.recursion.follow", "tests.recursion.play")

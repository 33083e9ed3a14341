"""What users are told when something is wrong: every message as its full text."""

import pytest

pytest.register_assert_rewrite("tests.errors.golden")

"""Messages to users about errors: every message as its full text."""

import pytest

pytest.register_assert_rewrite("tests.errors.golden")

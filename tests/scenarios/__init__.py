"""Every operator in the situations that such systems have been seen to get wrong."""

import pytest

pytest.register_assert_rewrite("tests.scenarios.play")

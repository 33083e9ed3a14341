"""Write the table of kinds and borders into the docs: python -m tests.borders."""

from __future__ import annotations

from tests.borders.test_matrix import PAGE, with_table

PAGE.write_text(with_table(PAGE.read_text()))

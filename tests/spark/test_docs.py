"""Programs of README and docs that need Spark run, and print what their comments say.

They run in this process, in the JVM that is there, and leave it running.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from spark_backend.cluster.session import Session
from tests.docs.pages import page_of, printed, programs

OF_SPARK = programs(of_spark=True)


def test_some_pages_have_a_program_of_spark() -> None:
    assert len(OF_SPARK) >= 2


@pytest.mark.quick
@pytest.mark.parametrize(("page", "program"), OF_SPARK, ids=page_of)
def test_programs_run_and_print_what_their_comments_say(
    page: Path,
    program: str,
    session: Session,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "program.py"
    file.write_text(program)
    runpy.run_path(str(file), run_name="__main__")
    expected = printed(program)
    assert capsys.readouterr().out.splitlines()[: len(expected)] == expected
    assert session.is_alive()

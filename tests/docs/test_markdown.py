"""The code in README and docs runs, with the stated output.

Programs that need Spark are in `tests/spark/test_docs.py`.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name, page_of, printed, programs

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sessions_show_what_they_say(page: Path) -> None:
    result = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
    )
    assert result.failed == 0


@pytest.mark.long
@pytest.mark.parametrize(("page", "program"), programs(of_spark=False), ids=page_of)
def test_programs_run_and_print_what_their_comments_say(
    page: Path, program: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One that talks to a database has a new one, where there is a server."""
    environment = dict(os.environ)
    if "DATABASE_URL" in program:
        environment["DATABASE_URL"] = request.getfixturevalue("database")
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, f"{page}:\n{done.stderr}"
    expected = printed(program)
    assert done.stdout.splitlines()[: len(expected)] == expected


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target

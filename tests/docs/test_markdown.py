"""The code in README and docs runs, and shows what it says."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def programs() -> list[tuple[Path, str]]:
    found = [(page, block) for page in PAGES for block in BLOCK.findall(page.read_text())]
    return [(page, block) for page, block in found if ">>>" not in block]


def page_of(value: object) -> str:
    return name(value) if isinstance(value, Path) else ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_sessions_show_what_they_say(page: Path) -> None:
    result = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.ELLIPSIS,
    )
    assert result.failed == 0


@pytest.mark.parametrize(("page", "program"), programs(), ids=page_of)
def test_programs_run_and_print_what_their_comments_say(
    page: Path, program: str, tmp_path: Path
) -> None:
    if "SparkOffload" in program:
        _need_spark()
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{page}:\n{done.stderr}"
    expected = [line.split("  # ")[1] for line in program.splitlines() if _prints(line)]
    assert done.stdout.splitlines()[: len(expected)] == expected


def _need_spark() -> None:
    from reactive import OffloadError
    from spark_backend import SparkOffload

    try:
        SparkOffload()
    except OffloadError as error:
        pytest.skip(str(error))


def _prints(line: str) -> bool:
    return "print(" in line and "  # " in line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target

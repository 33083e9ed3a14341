"""The published package: metadata, extras, the targets of `make`, and the picture in the README."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
import tomllib
from email.message import Message
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from build.util import project_wheel_metadata

import reactive

ROOT = Path(__file__).parent.parent
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")
TARGET = re.compile(
    r"""\]\(([^)]*)\)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=["']([^"']*)""", re.MULTILINE
)
DEMO = 45
"""Lines of a README that one sees without scrolling, with a picture among them."""


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """Return the metadata for the index page."""
    folder = tmp_path_factory.mktemp("built")
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, folder)
    built: Any = project_wheel_metadata(folder, isolated=False)
    return built  # type: ignore[no-any-return]


def long_description(metadata: Message) -> str:
    payload: Any = metadata.get_payload()
    return payload or str(metadata["Description"])


def test_no_link_of_the_long_description_is_relative(metadata: Message) -> None:
    text = long_description(metadata)
    found = [next(filter(None, groups), "") for groups in TARGET.findall(text)]
    assert len(found) > 15
    assert [target for target in found if not target.startswith("https://")] == []


def test_links_of_the_long_description_lead_to_files_of_the_repository(metadata: Message) -> None:
    text = long_description(metadata)
    files = re.findall(r"https://[^)\s]+?/main/([^)#\s]+)", text)
    assert {"docs/guide.md", "docs/live_lint.svg"} <= set(files)
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_long_description_is_the_readme_but_for_links(metadata: Message) -> None:
    bare = re.compile(r"\]\([^)]*\)")
    readme = (ROOT / "README.md").read_text().strip()
    assert bare.sub("]", long_description(metadata)).strip() == bare.sub("]", readme)


def test_an_index_page_says_who_where_and_for_which_python(metadata: Message) -> None:
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert {"Documentation", "Source", "Changelog", "Issues"} <= urls.keys()
    assert all(url.startswith("https://") for url in urls.values())
    assert metadata["Author"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    named = re.compile(r"Programming Language :: Python :: 3\.(\d+)$")
    classifiers = metadata.get_all("Classifier", [])
    versions = [int(m[1]) for c in classifiers if (m := named.match(c))]
    assert versions == list(range(11, max(versions) + 1))


def test_the_python_of_these_tests_is_among_the_classifiers(metadata: Message) -> None:
    name = f"Programming Language :: Python :: 3.{sys.version_info.minor}"
    assert name in metadata.get_all("Classifier", [])


def test_the_version_is_that_of_the_package(metadata: Message) -> None:
    assert metadata["Version"] == reactive.__version__


def test_the_demo_needs_little() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["demo"]]
    names = {re.split(r"[<>=]", requirement)[0] for requirement in needed}
    assert names <= {"rich", "sortedcontainers", "typing-extensions", "watchfiles", "py4j"}


def test_tests_have_what_demos_and_docs_have() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    names = {extra: {re.split(r"[<>=]", r)[0] for r in needed} for extra, needed in extras.items()}
    assert names["demo"] | names["findbugs"] | names["docs"] <= names["dev"]


def test_the_readme_opens_with_what_it_is_and_a_picture_and_then_the_commands() -> None:
    text = (ROOT / "README.md").read_text()
    places = [
        text.index(part) for part in ("**Live queries", "live_lint.svg", "make demo ", "make test ")
    ]
    assert places == sorted(places)
    assert text[: places[-1]].count("\n") < DEMO


def test_the_picture_shows_the_demo_and_is_small() -> None:
    picture = ROOT / "docs" / "live_lint.svg"
    assert picture.stat().st_size < 100_000
    shown = "".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ")
    for part in ("unused-import", "from scratch", "times faster", "verified: after 200 edits"):
        assert part in shown


@pytest.mark.skipif(not os.environ.get("CI"), reason="here tests of what is absent are skipped")
def test_what_tests_need_is_installed_where_all_of_them_must_run() -> None:
    """A module of tests that is skipped as a whole leaves only a letter in the output."""
    needed = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'importorskip\(\s*"([\w.]+)"', path.read_text(encoding="utf-8"))
    }
    assert not [name for name in sorted(needed) if not _can_be_imported(name)]


def _can_be_imported(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True

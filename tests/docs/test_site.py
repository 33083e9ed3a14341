"""The site is built strictly, and its reference has every exported name."""

from __future__ import annotations

import inspect
import re
import runpy
import subprocess
import sys
from collections import Counter
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import reactive
import spark_backend

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
REFERENCE: dict[str, Any] = runpy.run_path(str(DOCS / "reference.py"))
PAGES = sorted((DOCS / "api").glob("*.md"))
TOOLS = ("sphinx", "myst_parser", "furo")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    missing = [tool for tool in TOOLS if find_spec(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*build, "-d", str(folder / "trees"), "docs", str(folder / "html")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.long
def test_the_site_is_built_without_a_warning(site: Path) -> None:
    assert (site / "index.html").exists()


@pytest.mark.long
def test_every_page_is_on_the_site(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    built = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}
    assert pages - built == set()


@pytest.mark.long
def test_the_site_needs_no_network(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img)[^>]*src=\"(https?:[^\"]*)|<link[^>]*stylesheet[^>]*https?:"
    )
    found = {page.name: loaded.findall(page.read_text()) for page in site.rglob("*.html")}
    assert {name: targets for name, targets in found.items() if targets} == {}


@pytest.mark.long
def test_methods_have_their_docstrings_on_the_site(site: Path) -> None:
    text = (site / "api" / "relations.html").read_text()
    assert 'id="reactive.Relation.join"' in text
    first, *_ = (reactive.Relation.join.__doc__ or "").splitlines()
    assert first and first in unescape(re.sub(r"<[^>]*>", "", text))


def test_every_exported_name_is_once_in_the_reference() -> None:
    listed = Counter(name for page in PAGES for name in REFERENCE["names_in"](page.read_text()))
    assert listed == Counter(
        [*reactive.__all__, *(f"spark_backend.{name}" for name in spark_backend.__all__)]
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_of_a_page_have_all_names_and_their_methods(page: Path) -> None:
    tables, _, _ = page.read_text().partition("<!-- reference")
    said = set(re.findall(r"\w+", tables))
    for path in REFERENCE["names_in"](page.read_text()):
        name = path.rpartition(".")[2]
        assert name in said
        if path == name and inspect.isclass(of := getattr(reactive, name)):
            methods = () if issubclass(of, BaseException) else REFERENCE["own_members"](of)
            assert [method for method in methods if method not in said] == []


def test_every_exported_name_has_a_docstring() -> None:
    assert [name for name in reactive.__all__ if not getattr(reactive, name).__doc__] == []

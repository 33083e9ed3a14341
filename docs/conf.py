"""The site: `make docs` builds it of these pages and the docstrings, strictly, into build/site.

The pages are plain Markdown, which is read in the repository too. What only a site has is added
while it is built: the contents (`CONTENTS`), links to files of the repository, and the reference
of the API (`reference.py`).
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import reference
from sphinx.application import Sphinx

REPOSITORY = "https://github.com/reactive-collections/reactive-collections"
CONTENTS = {
    "Tutorials": ["tutorials/services", "tutorials/analyses", "tutorials/spark"],
    "Guide": [
        "guide",
        "comprehensions",
        "parameters",
        "time",
        "windows",
        "sql",
        "nested",
        "frames",
        "types",
        "recursion",
        "lattices",
        "why",
        "rings",
        "own_operators",
        "datalog",
        "tracked",
        "tracked_lists",
        "mirror",
        "feeding",
        "files",
        "postgres",
        "durable",
        "writing",
        "services",
        "deployment",
        "two_commits",
        "threads",
        "delivery",
        "limits",
        "notebooks",
        "spark",
        "mistakes",
    ],
    "How to": [
        *("cookbook", "coming_from/polars", "coming_from/sql", "coming_from/datalog"),
        "coming_from/rxpy",
    ],
    "Reference": ["api", "operators", "optimizer", "words", "sources"],
    "Examples": ["live_lint", "parser", "findbugs"],
    "Inside": [
        "internals",
        "interpreters",
        "adding_an_operator",
        "performance",
        "benchmarks",
        "thesis",
    ],
}
API = [
    f"api/{page}"
    for page in (
        *("database", "mirrors", "feeding", "relations", "aggregates", "views", "changes"),
        *("writing", "spark", "errors"),
    )
]
LINK = re.compile(r"\]\((\.\.?/[^)#\s]+)")

project = "reactive-collections"
copyright = "the authors of reactive-collections"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["**/__pycache__"]
html_theme = "furo"
html_title = project
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}

# Links and references that lead nowhere are warnings, and `-W` makes warnings errors. What a
# docstring has in backticks is a link where it is a name of the API, and code where it is not.
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*"), ("py:.*", r"(?!reactive\.[A-Z]).*")]
default_role = "py:obj"
myst_heading_anchors = 4

# What Spark needs is large; signatures and docstrings can be read without it.
autodoc_mock_imports = [
    name for name in ("numpy", "pandas", "py4j", "pyarrow", "pyspark") if find_spec(name) is None
]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "none"
add_module_names = False
toc_object_entries_show_parents = "hide"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)
    app.connect("source-read", link_to_repository)
    reference.setup(app)


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Each page has its place in the contents."""
    if page == "index":
        source[0] += "".join(listed(pages, caption) for caption, pages in CONTENTS.items())
    elif page == "api":
        source[0] += listed(API, "API")


def listed(pages: list[str], caption: str) -> str:
    lines = ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]
    return "\n".join(lines)


def link_to_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Links to what is outside of the pages lead to the repository."""
    folder = (DOCS / page).parent

    def linked(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if target.is_relative_to(DOCS) or not target.exists():
            return found[0]
        return f"]({REPOSITORY}/blob/main/{target.relative_to(DOCS.parent)}"

    source[0] = LINK.sub(linked, source[0])

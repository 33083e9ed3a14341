"""Files, modules, classes and functions that a page names in backticks exist.

A file is a path from the root, from the folder of the page, or the end of one path of the
repository. A dotted name that begins with a package of the repository is imported. Any other name
that can only be one of code (`CamelCase`, `snake_case`, `call()`) has to occur in the code of the
repository, or in a program on the same page.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, name

CHECKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PACKAGES = ("optimizer", "reactive", "spark_backend", "tests", "examples", "asv_benchmarks")

FENCED = re.compile(r"^```.*?^```|^    .*?$", re.MULTILINE | re.DOTALL)
DRAWING = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"(?<![\w.{<*-])[\w./-]*\w\.(?:py|md|sh|toml|txt|svg)\b(?![\w*/.(])")
DOTTED = re.compile(rf"(?<![\w./\"'-])(?:{'|'.join(PACKAGES)})(?:\.\w+)+(?!\w*/)")
CAMEL = re.compile(r"(?<![\w.\"'/$-])_*[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+\b")
CLASS = re.compile(r"^_*[A-Z][a-z]+(?=$|[.(])")
SNAKE = re.compile(r"(?<![\w\"'/$-])_*[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b(?![/\"'-])")
CALL = re.compile(r"(?<![\w\"'/$-])(\w+)\(")
CODE = re.compile(
    r"(?:\b(?:def|class|import|as) |[.\"'@])([A-Za-z_]\w*)|\b([A-Za-z_]\w*)(?=\s*[=:,)(\[]|\.\w|$)",
    re.MULTILINE,
)

EXCEPTIONS: dict[str, str] = {
    **dict.fromkeys(("join_where", "nulls_equal", "nulls_last", "read_parquet"), "of polars"),
    **dict.fromkeys(("cum_sum", "rolling_mean", "rolling_sum_by"), "of polars"),
    **dict.fromkeys(("BehaviorSubject", "ReplaySubject", "buffer_with_count"), "of RxPY"),
    **dict.fromkeys(("on_completed", "start_with", "throttle_first"), "of RxPY"),
    **dict.fromkeys(("QuerySet", "bulk_create"), "of Django"),
    **dict.fromkeys(("is_adult", "older_than"), "functions of a reader"),
    "umask": "of the operating system",
    "set_int_max_str_digits": "of Python's sys",
    "max_slot_wal_keep_size": "a setting of Postgres",
    "receive_text": "of FastAPI",
    "group_concat": "of SQL",
    "app.py": "a file of the reader",
    "A0EEBC99": "the begin of a UUID",
}
"""Names that pages have and the repository has not, each with the reason."""


@cache
def files() -> tuple[str, ...]:
    """Paths of the repository, each with a slash before it."""
    hidden = re.compile(r"/(?:\.(?!ci|github)[^/]+|build|__pycache__)/")
    paths = (f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.*"))
    return tuple(path for path in paths if not hidden.search(path))


@cache
def names_of_code() -> frozenset[str]:
    found: set[str] = set()
    for path in files():
        if path.endswith(".py") and path.split("/")[1] in PACKAGES:
            found |= names_in((ROOT / path[1:]).read_text())
    return frozenset(found)


def names_in(code: str) -> set[str]:
    return {word for pair in CODE.findall(code) for word in pair if word}


def is_file(page: Path, named: str) -> bool:
    if (ROOT / named).exists() or (page.parent / named).exists():
        return True
    return any(path.endswith(f"/{named}") for path in files() if not path.startswith("/tests/"))


def is_importable(dotted: str) -> bool:
    """True if `dotted` is a module, or a name in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            if find_spec(module) is None:
                continue
        except (ImportError, AttributeError):
            continue
        if length == len(parts):
            return True
        value: object = import_module(module)
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def unknown_names(page: Path) -> list[str]:
    text = page.read_text()
    known = names_of_code() | names_in("\n".join(FENCED.findall(text)))
    missing: list[str] = []
    for drawing in DRAWING.findall(text):
        missing += [file for file in FILE.findall(drawing) if not is_file(page, file.strip("/"))]
    for span in SPAN.findall(FENCED.sub("", text)):
        named = set(FILE.findall(span))
        missing += [file for file in named if not is_file(page, file.strip("/"))]
        rest = FILE.sub(" ", span)
        missing += [dotted for dotted in DOTTED.findall(rest) if not is_importable(dotted)]
        rest = DOTTED.sub(" ", rest)
        words = {
            *CLASS.findall(span),
            *CAMEL.findall(rest),
            *SNAKE.findall(rest),
            *CALL.findall(rest),
        }
        missing += [word for word in words if word not in known and not word[0].isdigit()]
    return sorted({word for word in missing if word not in EXCEPTIONS})


@pytest.mark.parametrize("page", CHECKED, ids=name)
def test_names_in_backticks_exist(page: Path) -> None:
    assert unknown_names(page) == []


def test_exceptions_are_needed() -> None:
    text = "\n".join(page.read_text() for page in CHECKED)
    assert [word for word in EXCEPTIONS if word not in text] == []

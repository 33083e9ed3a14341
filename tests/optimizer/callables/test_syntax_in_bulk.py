"""Syntax trees in bulk: of the standard library, and of files edited at random."""

from __future__ import annotations

import ast
import importlib
import random
import re
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

from optimizer.callables.syntax import NoSyntax, Syntax, same_code, syntax_of
from tests.optimizer.callables.test_same_code import code_without_places

LIBRARY = [
    "argparse",
    "bisect",
    "calendar",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "fractions",
    "functools",
    "heapq",
    "json.decoder",
    "queue",
    "shlex",
    "statistics",
    "textwrap",
]
EDITED = ["bisect", "contextlib", "copy", "fnmatch", "heapq", "queue", "sched", "shlex", "textwrap"]
SWAPS = [
    (r"==", "!="),
    (r" < ", " > "),
    (r" \+ ", " - "),
    (r" and ", " or  "),
    (r" is None", " != None"),
    (r"\bself\b", "that"),
    (r"\bTrue\b", "False"),
    (r"\bNone\b", "0"),
    (r"\b1\b", "2"),
    (r"\b0\b", "False"),
    (r"\bnot ", ""),
    (r" in ", " is "),
    (r"=None", "=0"),
    (r"\blen\b", "sum"),
    (r"    return ", "    yield "),
    (r"if ", "if not "),
    (r"\.append\b", ".extend"),
]


@pytest.mark.long
@pytest.mark.parametrize("module", LIBRARY)
def test_functions_of_the_standard_library_are_found(module: str) -> None:
    owner = importlib.import_module(module)
    every = list(_codes_of(owner))
    refusals = [c for c in every if isinstance(syntax_of(c, vars(owner)), NoSyntax)]
    assert len(refusals) <= len(every) / 100, refusals


def test_the_standard_library_is_a_test_worth_its_name() -> None:
    modules = map(importlib.import_module, LIBRARY)
    assert sum(len(list(_codes_of(module))) for module in modules) > 600


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The codes of the functions, lambdas and generator expressions written in a module."""
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    for owner in (module, *(c for c in classes if c.__module__ == module.__name__)):
        for value in vars(owner).values():
            if isinstance(value, FunctionType) and value.__code__.co_filename == module.__file__:
                yield from _functions(value.__code__)


def _functions(code: CodeType) -> Iterator[CodeType]:
    if code.co_name in ("<lambda>", "<genexpr>") or code.co_name.isidentifier():
        yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and constant.co_flags & CO_OPTIMIZED:
            yield from _functions(constant)


@pytest.mark.long
@pytest.mark.parametrize("module", EDITED)
def test_a_random_edit_of_a_file_never_makes_a_wrong_tree(module: str, tmp_path: Path) -> None:
    source = importlib.import_module(module).__file__
    assert source is not None
    text = Path(source).read_text(encoding="utf-8")
    truth = _answers(text, text, tmp_path / "unchanged.py")
    chance = random.Random(module)
    outcomes = set()
    for number in range(4):
        edited = _edited(text, chance)
        answers = _answers(text, edited, tmp_path / f"{number}.py")
        for tree, answer in zip(truth, answers, strict=True):
            assert isinstance(tree, NoSyntax) or _equivalent(tree, answer)
            outcomes.add(isinstance(answer, NoSyntax))
    assert False in outcomes


def _answers(text: str, later: str, path: Path) -> list[Syntax | NoSyntax]:
    """The trees of the functions of a file that was compiled from one text and holds another."""
    path.write_text(later, encoding="utf-8")
    module = compile(text, str(path), "exec", dont_inherit=True)
    nested = (c for c in module.co_consts if isinstance(c, CodeType))
    codes = [code for inner in nested for code in _all(inner)]
    return [syntax_of(code, {"__file__": str(path)}) for code in codes]


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all(constant)


def _edited(text: str, chance: random.Random) -> str:
    """The text with one to three small changes, as a person or a tool might make."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.choice([1, 1, 2, 3])):
        here, there = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.random()
        if kind < 0.1:
            lines.insert(here, chance.choice(["\n", "# note\n"]))
        elif kind < 0.2:
            lines[here], lines[there] = lines[there], lines[here]
        else:
            pattern, other = chance.choice(SWAPS)
            places = [n for n, line in enumerate(lines) if re.search(pattern, line)] or [here]
            here = chance.choice(places)
            lines[here] = re.sub(pattern, other, lines[here], count=1)
    return "".join(lines)


def _equivalent(tree: Syntax, answer: Syntax | NoSyntax) -> bool:
    """Refused, or the same tree, or at least (after a change of dead code) the same code."""
    if isinstance(answer, NoSyntax) or ast.dump(tree) == ast.dump(answer):
        return True
    return same_code(code_without_places(tree), code_without_places(answer))

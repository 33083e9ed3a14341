"""A function's syntax tree is the one that it was compiled from, or there is none.

Functions from other places are tested in `torture`.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from optimizer.callables import syntax
from optimizer.callables.syntax import NoSyntax, SourceTree, Syntax, syntax_of

NUMBERS = count()


def made(text: str, name: str = "f", filename: str | None = None) -> FunctionType:
    """The function of this name in a text that is registered in linecache."""
    filename = filename or f"<made {next(NUMBERS)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict[str, Any] = {}
    exec(compile(text, filename, "exec", dont_inherit=True), names)
    function = names[name]
    assert isinstance(function, FunctionType)
    return function


def found(function: Any) -> Syntax:
    tree = syntax_of(function.__code__, function.__globals__)
    assert not isinstance(tree, NoSyntax), tree.reason
    return tree


def refused(function: Any) -> NoSyntax:
    tree = syntax_of(function.__code__, function.__globals__)
    assert isinstance(tree, NoSyntax)
    return tree


def same(first: ast.AST, second: ast.AST) -> bool:
    return ast.dump(first, include_attributes=True) == ast.dump(second, include_attributes=True)


def test_what_the_code_does_not_prove_is_left_out() -> None:
    text = "@max\n@min\ndef f(a: A, /, b: B = 1, *c: C, d: D, e: E = 2, **g: G) -> H: return a"
    text = f"from __future__ import annotations\nmax = min = lambda f: f\n{text}"
    assert ast.unparse(found(made(text))) == "def f(a, /, b, *c, d, e, **g):\n    return a"


def test_a_generator_expression_leaves_its_first_iterable_out() -> None:
    rows = [1, 2]
    generator: Any = (a + b for a in rows for b in rows if a < b)
    tree = syntax_of(generator.gi_code, globals())
    assert isinstance(tree, ast.GeneratorExp)
    first = tree.generators[0].iter
    assert isinstance(first, ast.Name)
    assert (first.id, ast.unparse(tree.generators[1])) == (".0", " for b in rows if a < b")


def test_private_names_are_spelled_as_in_the_code() -> None:
    text = (
        "class A:\n"
        "    def f(self, __x):\n"
        "        class B:\n"
        "            __y = self.__z\n"
        "        return __x, self.__z, self.__w__, dict(__x=__x)\n"
        "f = A.f\n"
    )
    body = ast.unparse(found(made(text)))
    assert "_B__y = self._B__z" in body
    assert "return (_A__x, self._A__z, self.__w__, dict(__x=_A__x))" in body


def test_lines_and_columns_are_those_of_the_file() -> None:
    tree = found(made("\n\nf = [0, lambda s: s.y][1]"))
    assert (tree.lineno, tree.col_offset, tree.end_col_offset) == (3, 8, 21)


def test_a_tree_is_the_callers_own() -> None:
    function = made("f = lambda s: s.x + s.y")
    before = found(function)
    for node in list(ast.walk(before)):
        vars(node).clear()
    assert ast.unparse(found(function)) == "lambda s: s.x + s.y"


def test_nothing_that_a_tool_hung_on_a_parsed_node_is_copied() -> None:
    shared = ast.parse("x").body[0].value.ctx  # type: ignore[attr-defined]
    shared.parent = "a whole file"
    try:
        nodes = list(ast.walk(found(made("f = lambda s: s.x"))))
    finally:
        del shared.parent
    assert not any(hasattr(node, "parent") for node in nodes)


@pytest.mark.parametrize("text", ["f = lambda s: s.x", "f = eval('lambda s: s.x')"])
def test_the_second_answer_looks_at_no_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = made(text)
    first = syntax_of(function.__code__, function.__globals__)
    monkeypatch.setattr(syntax, "texts", None)
    second = syntax_of(function.__code__, function.__globals__)
    assert type(first) is type(second)


def test_equal_code_of_different_files_is_told_apart() -> None:
    first, second = made("f = lambda s: s.x"), made("f = lambda s: s.x")
    assert first.__code__ == second.__code__
    found(first)
    linecache.cache.pop(second.__code__.co_filename)
    assert refused(second).reason == "there is no source text"


@pytest.mark.parametrize("functions", [20, 2000])
def test_a_big_file_is_parsed_once_and_compiled_by_the_statement(
    functions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[int] = []

    class Watched(SourceTree):
        def _compile_source(self, source: str | ast.Module, flags: int = 0) -> object:
            compiled.append(-1 if isinstance(source, str) else len(source.body))
            return super()._compile_source(source, flags)

    monkeypatch.setattr(syntax, "SourceTree", Watched)
    imports = "import os\ntry:\n    import json\nexcept ImportError:\n    json = None\n"
    text = "".join(f"def f{n}(s):\n    return os.sep, {n}\n" for n in range(functions))
    last = f"f = (f{functions // 2}, lambda s: json.dumps(s))[1]\n"
    function = made(imports + text + last)
    found(function)
    found(function.__globals__["f3"])
    found(function.__globals__["f4"])
    statement_and_imports = 3
    assert compiled == [-1, *[statement_and_imports] * 3]


def test_functions_on_one_line_are_told_apart_by_their_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    each = [f"lambda row: row.f{n}(lambda: row) > {n}" for n in range(20)]
    every: Any = made(f"fs = [{', '.join(each)}]\ndef f():\n    return fs")()
    compiled: list[object] = []

    class Watched(SourceTree):
        def _compile_source(self, source: str | ast.Module, flags: int = 0) -> object:
            compiled.append(source)
            return super()._compile_source(source, flags)

    monkeypatch.setattr(syntax, "SourceTree", Watched)
    assert [ast.unparse(found(function)) for function in every] == each
    assert len(compiled) == 2  # the text is parsed, and the statement compiled


def test_a_function_is_found_when_the_file_changes_later(tmp_path: Path) -> None:
    path = tmp_path / "people.py"
    path.write_text("f = lambda s: s.x\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    before = found(names["f"])
    path.write_text("f = lambda s: s.y\n")
    assert same(found(names["f"]), before)


def test_the_file_counts_where_linecache_remembers_an_older_text(tmp_path: Path) -> None:
    path = tmp_path / "people.py"
    path.write_text("f = lambda s: s.x\n")
    linecache.getlines(str(path))
    path.write_text("f = lambda s: s.yy\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert ast.unparse(found(names["f"])) == "lambda s: s.yy"


def test_linecache_keeps_what_it_remembers(tmp_path: Path) -> None:
    path = tmp_path / "people.py"
    path.write_text("f = lambda s: s.x\n")
    linecache.getlines(str(path))
    path.write_text("import os\n")
    names: dict[str, Any] = {}
    exec(compile("f = lambda s: s.z\n", str(path), "exec"), names)
    refused(names["f"])
    assert linecache.cache[str(path)][2] == ["f = lambda s: s.x\n"]  # type: ignore[misc]


def test_without_a_text_the_remedy_is_to_give_one() -> None:
    refusal = refused(eval("lambda s: s.x"))
    assert refusal.reason == "there is no source text"
    assert "register the text in linecache" in refusal.remedy


def test_with_another_text_the_remedy_is_to_reload() -> None:
    function = made("f = lambda s: s.x")
    made("f = lambda s: s.y", filename=function.__code__.co_filename)
    refusal = refused(function)
    assert refusal.reason.startswith("its source has changed since it was compiled")
    assert refusal.remedy.startswith("reload the module")


@pytest.mark.parametrize("text", ["class A: x = 1", "import os"])
def test_code_that_is_no_function_is_refused(text: str) -> None:
    module = compile(text, "<no function>", "exec")
    code = next((c for c in module.co_consts if isinstance(c, CodeType)), module)
    refusal = syntax_of(code, {})
    assert isinstance(refusal, NoSyntax)
    assert refusal.reason.startswith("it is not the code of a lambda")


@pytest.mark.parametrize("room", range(20, 200, 20))
def test_near_the_end_of_the_stack_it_refuses_until_there_is_room(
    room: int, tmp_path: Path
) -> None:
    path = tmp_path / "deep.py"
    path.write_text("f = lambda s: " + " + ".join(["s.x"] * 50))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back

    def deeper(levels: int) -> Syntax | NoSyntax:
        if levels:
            return deeper(levels - 1)
        return syntax_of(names["f"].__code__, names)

    answer = deeper(sys.getrecursionlimit() - depth - room)
    if isinstance(answer, NoSyntax):
        assert answer.reason == "it is nested too deeply"
    found(names["f"])


def test_what_a_prompt_keeps_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f = lambda s: [s.x, k]"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<python-input-0>", "exec"), names)
    monkeypatch.setattr("inspect.findsource", lambda function: ([text], 0))
    assert ast.unparse(found(names["f"])) == "lambda s: [s.x, k]"


def test_globals_that_mislead_do_no_harm() -> None:
    code = eval("lambda s: s.x").__code__
    lies = dict.fromkeys(("__name__", "__file__", "__loader__", "__spec__"), 3)
    for module in ({}, lies, {"__file__": "\0.py"}, {"__file__": str(Path(__file__).parent)}):
        assert isinstance(syntax_of(code, module), NoSyntax)


def test_no_warning_is_given_or_silenced() -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        function = made("f = lambda s: s.x is 3 or '\\d'")
        given.clear()
        filters = list(warnings.filters)
        found(function)
        assert (given, list(warnings.filters)) == ([], filters)


def test_threads_get_the_same_trees_as_one() -> None:
    text = "f = [" + ", ".join(f"lambda s: s.x + {n}" for n in range(40)) + "]\ng = max(f, key=id)"
    filename = f"<threads {next(NUMBERS)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    names: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), names)
    with ThreadPoolExecutor(8) as pool:
        trees = list(pool.map(found, names["f"]))
    assert [ast.unparse(tree) for tree in trees] == [f"lambda s: s.x + {n}" for n in range(40)]

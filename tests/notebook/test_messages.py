"""Messages in a notebook: places are cells, and redefined classes are distinct."""

from __future__ import annotations

import pytest

from tests.notebook.conftest import Notebook


def test_places_are_cells_and_their_lines(notebook: Notebook) -> None:
    n = notebook.shell.execution_count
    notebook.run("limit = 3\nv = rows.where(lambda r: r.a > 3).materialize('v')")
    assert f"made at In[{n}], line 2)" in repr(notebook["v"])
    assert str(notebook["v"].place) == f"In[{n}], line 2"
    assert notebook.views() == ["v"]


def test_an_error_of_a_callable_names_its_cell(notebook: Notebook) -> None:
    n = notebook.shell.execution_count
    notebook.run("v = (rows\n  .select(lambda r: 1 / r.a)\n  .materialize('v'))")
    error = notebook.tried("rows.add(Row(0))").error_in_exec
    assert isinstance(error, ZeroDivisionError)
    assert f"(In[{n}], line 2)" in "".join(error.__notes__)


def test_what_could_not_be_read_names_its_cell(notebook: Notebook) -> None:
    n = notebook.shell.execution_count
    notebook.run("def odd(r):\n    for _ in (1,):\n        return r.a % 2")
    text = str(notebook.run("rows.where(odd).explain()"))
    assert f"odd (In[{n}], line 1)" in text


def test_a_change_of_a_captured_variable_names_the_cell(notebook: Notebook) -> None:
    n = notebook.shell.execution_count
    notebook.run("limit = 3\nw = rows.where(lambda r: r.a > limit).materialize('w')")
    notebook.run("limit = 900")
    with pytest.warns(UserWarning, match=rf"captured by <lambda> \(In\[{n}\], line 2\), has"):
        notebook.run("rows.add(Row(8))")


def test_the_views_over_a_table_are_named_by_their_cells(notebook: Notebook) -> None:
    n = notebook.shell.execution_count
    notebook.run("v = rows.materialize()")
    assert f"the view made at In[{n}], line 1" in notebook.error("db.drop(rows)")


def test_a_row_of_a_class_that_was_defined_again_is_said_to_be_one(notebook: Notebook) -> None:
    notebook.run("@dataclass(frozen=True, slots=True)\nclass Row:\n    a: int")
    message = notebook.error("rows.add(Row(5))")
    assert "takes rows of another class Row than that of Row(a=5): Row was defined again" in message
    assert "db.table(Row, name='rows', replace=True)" in message
    notebook.run("rows = db.table(Row, name='rows', replace=True)")
    notebook.run("rows.add(Row(5))")
    assert len(notebook["rows"]) == 1


def test_a_table_cell_can_be_run_again(notebook: Notebook) -> None:
    notebook.run("words = db.table(str, name='words', replace=True)\nwords.add('to')")
    notebook.run("v = words.materialize('v')\nv")
    n = notebook.shell.execution_count
    notebook.run("words = db.table(str, name='words', replace=True)\nwords.add('be')")
    message = notebook.error("list(v)")
    assert f"view 'v' is closed: table 'words' was replaced at In[{n}], line 1" in message
    notebook.run("v = words.materialize('v')\nv")
    assert list(notebook["v"]) == ["be"]
    assert [table.name for table in notebook["db"].tables()] == ["rows", "words"]

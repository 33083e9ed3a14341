"""A cell that is run again: which views of its previous run are closed, and which are not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.notebook.conftest import Notebook

CELL = "v = rows.where(lambda r: r.a > 3).materialize('v')\nv"


def test_only_the_view_of_the_last_run_is_computed(notebook: Notebook) -> None:
    for _ in range(5):
        notebook.run(CELL)
    assert notebook["db"].views() == [notebook["v"]]
    notebook.run("rows.add(Row(7))")
    assert len(notebook["v"]) == 3
    notebook["v"].verify()


def test_reading_a_view_that_was_replaced_says_by_which_cell(notebook: Notebook) -> None:
    first = notebook.shell.execution_count
    notebook.run(CELL)
    notebook.run("1 + 1")
    again = notebook.shell.execution_count
    notebook.run(CELL)
    message = notebook.error(f"list(Out[{first}])")
    assert message.startswith(f"view 'v' is closed: In[{again}] ran the cell again that made it")
    assert notebook.error(f"len(_{first})") == message


@pytest.mark.parametrize(
    "cell",
    [
        "rows.where(lambda r: r.a > 3).materialize('v')",
        "v = rows.materialize('v')\nw = v\nv",
        "v = rows.materialize('v')\n(v, 1)",
        "v = rows.materialize('v')\n[v, v]",
        "v, w = rows.materialize('v'), rows.materialize('w')\nv, w",
        "kept = [rows.materialize(f'v{n}') for n in range(3)]\nkept",
        "v = rows.materialize('v')\nprint(v)\nv;",
    ],
)
def test_what_only_the_history_holds_goes(notebook: Notebook, cell: str) -> None:
    notebook.run(cell)
    names = notebook.views()
    for _ in range(3):
        notebook.run(cell)
        assert notebook.views() == names


@pytest.mark.parametrize(
    "holder",
    [
        "mine = v",
        "mine = [v]",
        "mine = {1: (v,)}",
        "def mine(of=v): return len(of)",
        "mine = v.subscribe(lambda delta: None)",
        "mine = v.show",
        "import types; mine = types.SimpleNamespace(v=v)",
        "mine = (lambda view: lambda: view)(v)",
    ],
)
def test_what_anything_else_holds_stays(notebook: Notebook, holder: str) -> None:
    notebook.run(CELL)
    notebook.run(holder)
    for _ in range(3):
        notebook.run(CELL)
    assert notebook.views() == ["v", "v"]
    notebook.run("del mine")
    notebook.run(CELL)
    assert notebook.views() == ["v"]


def test_a_view_that_a_thread_reads_stays(notebook: Notebook) -> None:
    notebook.run(CELL)
    end, begun = threading.Event(), threading.Event()

    def reader(view: Any) -> None:
        begun.set()
        end.wait(20)
        len(view)

    thread = threading.Thread(target=reader, args=(notebook["v"],))
    thread.start()
    try:
        begun.wait(20)
        notebook.run(CELL)
        assert notebook.views() == ["v", "v"]
    finally:
        end.set()
        thread.join()
    del thread
    notebook.run(CELL)
    assert notebook.views() == ["v"]


def test_a_name_that_the_new_run_does_not_bind_holds_its_view(notebook: Notebook) -> None:
    notebook.run("old = rows.materialize('old')\nold", cell="a")
    notebook.run("new = rows.materialize('new')\nnew", cell="a")
    assert notebook.views() == ["old", "new"]
    notebook.run("del old")
    notebook.run("new = rows.materialize('newer')\nnew", cell="a")
    assert notebook.views() == ["newer"]


def test_a_cell_with_an_id_is_the_same_whatever_its_text(notebook: Notebook) -> None:
    notebook.run("v = rows.materialize('first')\nv", cell="a")
    notebook.run("v = rows.distinct().materialize('second')\nv", cell="a")
    assert notebook.views() == ["second"]


def test_cells_with_different_ids_are_not_the_same_whatever_their_text(notebook: Notebook) -> None:
    notebook.run(CELL, cell="a")
    notebook.run(CELL, cell="b")
    assert notebook.views() == ["v", "v"]


def test_another_cell_closes_nothing(notebook: Notebook) -> None:
    notebook.run("v = rows.materialize('v')\nv")
    notebook.run("v = rows.materialize('w')\nv")
    notebook.run("v = 3")
    assert notebook.views() == ["v", "w"]


def test_a_run_that_fails_has_replaced_nothing(notebook: Notebook) -> None:
    cell = "rows.materialize('v')"
    notebook.run(cell, cell="a")
    notebook.tried("1 / 0", cell="a")
    notebook.tried("1 +", cell="a")
    assert notebook.views() == ["v"]
    notebook.run(cell, cell="a")
    assert notebook.views() == ["v"]


def test_views_that_functions_of_modules_make_belong_to_the_cell(notebook: Notebook) -> None:
    notebook.run("make = lambda: rows.materialize('v')")
    for _ in range(3):
        notebook.run("v = make()\nv")
    assert notebook.views() == ["v"]


def test_the_very_first_cell_may_make_views(notebook: Notebook) -> None:
    cell = "db = Database()\nrows = db.table(Row)\nv = rows.materialize('v')\nv"
    notebook.run(cell)
    notebook.run(cell)
    assert "In[3] ran the cell again" in notebook.error("list(Out[2])")


def test_a_subscription_that_a_cell_ends_in_is_there_once(notebook: Notebook) -> None:
    notebook.run("heard = []")
    for _ in range(4):
        notebook.run("rows.where(lambda r: r.a > 3).subscribe(heard.append)")
    for _ in range(4):
        notebook.run("v = rows.materialize('v')\nv.subscribe(heard.append)")
    notebook.run("rows.add(Row(7))")
    assert len(notebook["heard"]) == 2
    assert notebook.views() == ["v"]


def test_a_view_whose_subscription_was_replaced_is_not_said_to_be(notebook: Notebook) -> None:
    notebook.run("v = rows.materialize('v')")
    for _ in range(2):
        notebook.run("v.subscribe(print)")
    notebook.run("v.close()")
    assert "again that made" not in notebook.error("len(v)")


def test_views_are_not_noticed_while_no_cell_runs(notebook: Notebook) -> None:
    notebook.run(CELL)
    view = notebook["rows"].materialize("outside")
    for _ in range(2):
        notebook.run(CELL)
    assert notebook.views() == ["outside", "v"]
    assert not view.closed


def test_history_that_was_cut_is_none(notebook: Notebook) -> None:
    notebook.run(CELL)
    notebook.run("%reset -f out")
    notebook.run(CELL)
    assert notebook.views() == ["v"]


def test_an_asynchronous_cell_is_one_too(notebook: Notebook) -> None:
    for _ in range(3):
        notebook.run("import asyncio\nawait asyncio.sleep(0)\n" + CELL)
    assert notebook.views() == ["v"]

"""Every node is run by every interpreter, or there is a reason why not; the page says so."""

from __future__ import annotations

from tests import interpreters


def test_the_page_has_the_table_of_today() -> None:
    text = interpreters.PAGE.read_text()
    assert interpreters.BEGIN in text and interpreters.END in text
    assert interpreters.page(text) == text, "run python -m tests.interpreters"


def test_each_cell_that_is_empty_has_a_reason() -> None:
    places = interpreters.found()
    for each in interpreters.INTERPRETERS:
        for node in interpreters.nodes():
            if (node, each.name) not in places:
                assert interpreters.reason(node, each.name), f"{node}, {each.name}"


def test_no_reason_stands_for_a_cell_that_is_filled_or_gone() -> None:
    places = interpreters.found()
    for name, reasons in interpreters.WHY_NOT.items():
        for node in reasons:
            assert node in interpreters.nodes(), node
            assert (node, name) not in places, f"{name} runs {node}: {places[node, name]}"

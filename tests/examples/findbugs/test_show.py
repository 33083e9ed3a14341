"""Text of a finding in Java's notation, and display of findings and figures."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
from rich.console import Console, RenderableType

from examples import terminal
from examples.findbugs import finding as findings_module
from examples.findbugs import letters, notation, show
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.classfile import read
from examples.findbugs.facts import FieldDecl, Invoke, MethodDecl
from examples.findbugs.finding import Finding, finding, findings
from examples.findbugs.load import Loaded
from examples.findbugs.notation import type_name
from examples.findbugs.program import Program
from tests.doctests import tried

from .packed import whole_fixture

SAYS = [
    "a.Coercion.total(int) at byte 8: unboxes what has just been boxed, by Integer.doubleValue()",
    "b.Account.balance: is protected int, in a final class",
    "c.Sheep: is Cloneable, and neither has clone() nor calls it",
    "d.Copy.clone(): does not call super.clone()",
    "e.Sweeper.hurry() at byte 3: calls Runtime.gc()",
    "e.Sweeper.sweep() at byte 0: calls System.gc()",
    "f.Exit.leave() at byte 1: calls System.runFinalizersOnExit(boolean)",
    "g.Opener.open(Field) at byte 2: calls Field.setAccessible(boolean), and its class is no "
    "privileged action",
    "h.Money.equals(Money): is abstract, and does not override equals(Object): it takes Money",
    "i.Handle.finalize(): is public, should be protected",
    "j.Waiter.serve(): catches IllegalMonitorStateException",
    "k.Table.SIZES: is public static final int[], which all can change and only its package reads",
    "l.Limits.most: is public static int, which all can set",
    "m.Order$Item: is Serializable, m.Order around it is not",
    "n.Start.main(String[]) at byte 12: calls JFrame.setVisible(boolean) outside of Swing's thread",
    "o.Person.setName(String): is synchronized, getName() is not",
]


@pytest.fixture(scope="module")
def program() -> Program:
    program = Program()
    classes = whole_fixture().items()
    program.put({name: read(data, name, program.kinds) for name, data in classes})
    return program


def printed(shown: RenderableType, width: int = 140) -> str:
    out = Console(width=width)
    with out.capture() as captured:
        out.print(shown)
    return captured.get()


def test_every_analysis_says_what_it_found_and_where(program: Program) -> None:
    found = findings(program)
    assert [f"{one.place}: {one.message}" for one in found] == SAYS
    assert [str(one).rpartition(" ")[2] for one in found[:2]] == [
        "[BX_BOXING_IMMEDIATELY_UNBOXED_TO_PERFORM_COERCION]",
        "[CI_CONFUSED_INHERITANCE]",
    ]


def test_json_has_what_a_finding_is_about_and_no_more(program: Program) -> None:
    found = json.loads(show.as_json(findings(program)))
    assert "".join(sorted({one["letter"] for one in found})) == "".join(ANALYSES)
    assert found[0] == {
        "letter": "A",
        "analysis": "BX_BOXING_IMMEDIATELY_UNBOXED_TO_PERFORM_COERCION",
        "class": "a.Coercion",
        "method": "double total(int)",
        "pc": 8,
        "message": "unboxes what has just been boxed, by Integer.doubleValue()",
    }
    assert found[1]["field"] == "int balance"
    assert set(found[2]) == {"letter", "analysis", "class", "message"}
    assert found[5]["pc"] == 0
    assert found[-2]["method"] == "void main(java.lang.String[])"


def test_types_have_the_names_of_java() -> None:
    descriptors = ["B", "C", "D", "F", "I", "J", "S", "Z", "V", "Ljava/util/Map$Entry;", "[[LA;"]
    assert [type_name(descriptor) for descriptor in descriptors] == [
        *("byte", "char", "double", "float", "int", "long", "short", "boolean", "void"),
        "java.util.Map$Entry",
        "A[][]",
    ]


def test_methods_are_told_apart_by_their_parameters() -> None:
    keys = ["<init>(I[J)V", "<clinit>()V", "add(Ljava/util/Map$Entry;Z)[I"]
    calls = [Invoke("A", key, 0, 184, 3, "java/lang/System", "gc", (), "V") for key in keys]
    found = [finding("E", call) for call in calls]
    assert [one.place for one in found] == [
        "A.<init>(int, long[]) at byte 0",
        "A.<clinit>() at byte 0",
        "A.add(Map$Entry, boolean) at byte 0",
    ]
    assert found[2].method == "int[] add(java.util.Map$Entry, boolean)"


def test_findings_come_in_the_order_of_the_code() -> None:
    program = Program()
    calls = [
        Invoke(cls, "f()V", pc, 184, pc + 3, "java/lang/System", "gc", (), "V")
        for cls, pc in [("B", 1), ("A", 100), ("A", 20), ("A", 3)]
    ]
    program.put({"A": {Invoke: calls}})
    assert [one.place for one in findings(program)] == [
        "A.f() at byte 3",
        "A.f() at byte 20",
        "A.f() at byte 100",
        "B.f() at byte 1",
    ]


def test_a_finding_is_the_same_anywhere_in_its_method() -> None:
    def call(pc: int, name: str) -> Finding:
        return finding("E", Invoke("A", "f()V", pc, 184, 0, "java/lang/System", name, (), "V"))

    assert call(1, "gc").anywhere == call(2, "gc").anywhere
    assert call(1, "gc").anywhere != call(1, "cg").anywhere


def test_names_cannot_write_on_the_terminal() -> None:
    row = MethodDecl("a/\x1b[2J\ud800", "finalize()V", 1, "finalize", (), "V")
    assert str(finding("I", row)).startswith("a.\\x1b[2J\\ud800.finalize(): ")
    program = Program()
    program.put({"a/A": {MethodDecl: [row]}})
    shown = printed(show.findings_by_analysis(findings(program), 0, tables=True))
    assert "a.\\x1b[2J\\ud800.finalize()" in shown
    assert "\x1b" not in shown
    assert json.loads(show.as_json(findings(program)))[0]["class"] == "a.\x1b[2J\ud800"


def test_braces_in_a_name_are_only_braces() -> None:
    row = FieldDecl("{0}", 9, "{declared}", "L{x};", None)
    assert str(finding("L", row)).startswith("{0}.{declared}: is public static {x}, which all")


def test_overview_counts_what_each_analysis_has_found(program: Program) -> None:
    lines = printed(show.overview(program.views, findings(program)), 200).splitlines()
    counts = {line[2]: line.split("│")[3].strip() for line in lines if line.startswith("│")}
    assert counts == {letter: "2" if letter == "E" else "1" for letter in ANALYSES}


@pytest.mark.parametrize(("limit", "shown", "more"), [(0, 2, False), (1, 1, True), (2, 2, False)])
@pytest.mark.parametrize("tables", [False, True])
def test_findings_are_limited_per_analysis(
    program: Program, limit: int, shown: int, more: bool, tables: bool
) -> None:
    text = printed(show.findings_by_analysis(findings(program), limit, tables=tables))
    assert text.count("e.Sweeper.") == shown
    assert ("1 more" in text) is more
    assert "E DM_GC: 2\n" in text
    assert "m.Order$Item" in text


@pytest.mark.parametrize("tables", [False, True])
def test_analyses_without_findings_have_no_part(tables: bool) -> None:
    assert printed(show.findings_by_analysis([], 0, tables=tables)).strip() == ""


def test_lines_have_all_that_a_finding_says(program: Program) -> None:
    lines = printed(show.findings_by_analysis(findings(program), 0, tables=False), 200).splitlines()
    assert [one for one in lines if one.endswith("]")] == [*map(str, findings(program))]


def test_overview_folds_nothing_at_80_columns(program: Program) -> None:
    lines = printed(show.overview(program.views, findings(program)), 80).splitlines()
    assert len([one for one in lines if one.startswith("│")]) == len(ANALYSES)
    assert not any("…" in one for one in lines)


def test_sizes_tell_the_speed() -> None:
    loaded = Loaded(classes=3000, facts=1, reading=0.5, analysing=0.5)
    assert show.sizes(loaded, 2) == (
        "3,000 classes, 1 fact, 2 findings: 500.0 ms to read, 500.0 ms for tables and views, "
        "3,000 classes/s"
    )


def test_what_was_left_out_is_told_if_there_is_any() -> None:
    assert show.left_out(Loaded()) == []
    assert show.left_out(Loaded(duplicates=1, problems=2)) == [
        "1 class file left out: the same class came before",
        "2 files could not be read, and left out",
    ]


def test_peak_of_memory_is_a_number() -> None:
    assert int(show.peak_memory().split()[0].replace(",", "")) > 5


@pytest.mark.parametrize("module", [findings_module, letters, notation, terminal])
def test_doctests_hold(module: ModuleType) -> None:
    result = tried(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_an_analysis_without_a_sentence_of_its_own_shows_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ANALYSES, "P", ANALYSES["I"])
    row = MethodDecl("shop/Cart", "clone()V", 1, "clone", (), "V")
    assert str(finding("P", row)).startswith("shop.Cart.clone(): MethodDecl(")
    assert "shop.Cart: 'shop/Cart'" in str(finding("P", "shop/Cart"))

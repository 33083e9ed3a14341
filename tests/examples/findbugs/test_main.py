"""The command line: exit codes, JSON, the choice of analyses, and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from examples.findbugs import __main__ as command
from examples.findbugs.__main__ import main
from examples.findbugs.analyses import ANALYSES, description
from examples.watching import MissingExtra

from .packed import case, folder, jar, whole_fixture

ROOT = Path(__file__).parents[3]


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The program, from the outside."""
    words = [sys.executable, "-m", "examples.findbugs", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the error about wrong usage."""
    with pytest.raises(SystemExit) as error:
        main([*map(str, arguments)])
    assert error.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.partition("error: ")[2].strip()


@pytest.fixture
def fixture_jar(tmp_path: Path) -> Path:
    return jar(tmp_path / "fixture.jar", whole_fixture())


def test_json_has_all_findings_and_the_exit_code_tells_that_there_are_some(
    fixture_jar: Path,
) -> None:
    done = run(fixture_jar, "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert "".join(one["letter"] for one in found) == "ABCDEEFGHIJKLMNO"
    assert found[4]["message"] == "calls Runtime.gc()"
    assert done.stderr == "reading: 16 class files\n"


def test_tables_show_findings_and_figures(
    fixture_jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(fixture_jar), "--limit", "1"]) == 1
    shown = capsys.readouterr().out
    assert "E DM_GC: 2" in shown
    assert "e.Sweeper.hurry() at byte 3" in shown
    assert "e.Sweeper.sweep()" not in shown
    last = shown.splitlines()[-1]
    assert last.startswith("16 classes, ")
    assert "16 findings" in last
    assert last.endswith(" classes/s")


def test_clean_classes_exit_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder(tmp_path, case("clean"))), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_only_the_analyses_that_are_asked_for_run(
    fixture_jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", "o, A", "--json", str(fixture_jar)]) == 1
    assert [one["letter"] for one in json.loads(capsys.readouterr().out)] == ["A", "O"]
    assert main(["--only", "A", str(fixture_jar)]) == 1
    assert "DM_GC" not in capsys.readouterr().out
    assert main(["--only", "dm_gc", "--json", str(fixture_jar)]) == 1
    assert {one["letter"] for one in json.loads(capsys.readouterr().out)} == {"E"}


def test_paths_may_stand_before_and_after_options(
    tmp_path: Path, fixture_jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = folder(tmp_path / "clean", case("clean"))
    assert main([str(clean), "--json", "--only", "A", str(fixture_jar)]) == 1
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_files_that_cannot_be_read_are_named_counted_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path, {**case("c"), "Broken": b"no class"})
    (tmp_path / "broken.jar").write_text("no archive")
    jar(tmp_path / "x.jar", case("c"))
    assert main([str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[1:] == [
        f"{tmp_path}/Broken.class: offset 0: it does not begin as a class file does, with CAFEBABE",
        f"{tmp_path}/broken.jar: cannot be read: File is not a zip file",
    ]
    assert captured.out.splitlines()[-2:] == [
        "1 class file left out: the same class came before",
        "2 files could not be read, and left out",
    ]


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_nothing_that_can_be_read_exits_with_2(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "x.jar").write_bytes(content)
    assert main([str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith(f"no class file that can be read in {tmp_path}\n")


def test_sources_alone_are_to_be_compiled_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "shop" / "Cart.java"
    source.parent.mkdir()
    source.write_text("class Cart {}")
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(
        f"no class file that can be read in {tmp_path}; there is Java source: compile it first\n"
    )
    assert refused(capsys, source) == f"{source} is a source: compile it first"


def test_one_class_file_is_not_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder(tmp_path, case("c")))]) == 1
    assert capsys.readouterr().err == "reading: 1 class file\n"


def test_a_finding_is_a_line_of_any_length_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data = next(iter(case("c").items()))
    long = name + "p" * 300
    old, new = (len(one).to_bytes(2, "big") + one.encode() for one in (name, long))
    assert main([str(folder(tmp_path, {"A": data.replace(old, new)}))]) == 1
    said = "is Cloneable, and neither has clone() nor calls it [CN_IDIOM]"
    assert f"{long.replace('/', '.')}: {said}" in capsys.readouterr().out.splitlines()


def test_descriptions_are_printed_once(
    fixture_jar: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(fixture_jar)])
    shown = capsys.readouterr().out
    assert {shown.count(description(one)) for one in ANALYSES.values()} == {1}


def test_paths_that_cannot_be_meant_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no class")
    assert refused(capsys, tmp_path / "absent") == f"there is no {tmp_path}/absent"
    assert refused(capsys, tmp_path, notes).startswith(f"{notes} is no folder, no .class file,")


@pytest.mark.parametrize("only", ["Z", "A,,C", ""])
def test_unknown_analyses_are_refused_with_those_that_there_are(
    only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "--only", only)
    assert said.startswith("argument --only: there is no analysis '")
    assert "\n  E DM_GC\n" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "-1"], "--limit takes a number of findings from 0 on"),
        (["--watch"], "--watch needs a PATH to follow"),
        (["--all", "."], "--all goes without PATH"),
        (["--all", "--watch"], "--watch needs a PATH to follow"),
        (["--json", "--watch", "."], "not allowed with argument --json"),
    ],
)
def test_wrong_usage_exits_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *arguments)


def test_without_path_the_jar_of_py4j_is_analysed(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        metadata.distribution("py4j")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the package py4j")
    assert main([]) in (0, 1)
    shown = capsys.readouterr().out
    assert "UG_SYNC_SET_UNSYNC_GET" in shown
    assert int(shown.splitlines()[-1].split()[0]) > 50


def test_all_takes_the_jars_of_pyspark_too_and_tells_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jars = {
        "py4j": (jar(tmp_path / "py4j.jar", case("c")),),
        "pyspark": (jar(tmp_path / "a.jar", case("c")), jar(tmp_path / "b.jar", case("d"))),
    }
    monkeypatch.setattr(command, "installed_jars", jars.__getitem__)
    assert main(["--all"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].startswith("2 classes, ")
    assert lines[-2] == "1 class file left out: the same class came before"
    assert lines[-1].endswith(" MB of memory at the peak")


@pytest.mark.parametrize(
    ("missing", "arguments"), [("py4j", []), ("pyspark", ["--all"]), ("py4j", ["--all"])]
)
def test_missing_package_is_told_with_how_to_install_it(
    missing: str,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def jars(package: str) -> tuple[Path, ...]:
        if package == missing:
            raise MissingExtra(package, "reading its jars")
        return ()

    monkeypatch.setattr(command, "installed_jars", jars)
    said = refused(capsys, *arguments)
    assert said == (
        f"reading its jars needs the package {missing}\n  .venv/bin/python -m pip install {missing}"
    )


def test_an_interrupt_is_one_line_and_exits_with_130(
    fixture_jar: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "load", interrupted)
    assert main([str(fixture_jar)]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "interrupted"


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["--help"])
    assert error.value.code == 0
    assert "exit codes" in capsys.readouterr().out

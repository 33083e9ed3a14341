"""Class files and their order; an unreadable file is an error that names it."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.findbugs import archives
from examples.findbugs.archives import ClassFile, Unreadable
from examples.findbugs.inputs import (
    Inputs,
    class_files,
    count,
    installed_jars,
    problem_of,
)
from examples.watching import MissingExtra
from tests.budget import examples

from .packed import case, folder, jar

SOME = {"a/A": b"1", "b/B": b"2"}
SIZE = 24
"""Offset of the size of an entry in the directory of an archive."""


def listed(path: Path, *roots: str) -> list[str]:
    files = Inputs(tuple(path / root for root in roots)).files()
    return [file.relative_to(path).as_posix() for file in files]


def test_class_files_of_a_folder_come_before_its_jars_and_each_by_name(tmp_path: Path) -> None:
    folder(tmp_path, {"z/Z": b"", "b/B": b""})
    for name in ("a.jar", "lib/b.war", "lib/a.ZIP", "m.jmod"):
        jar(tmp_path / name, SOME)
    (tmp_path / "notes.txt").write_text("no class")
    (tmp_path / "Not.class").mkdir()
    (tmp_path / "not.jar").mkdir()
    assert listed(tmp_path, "") == [
        "b/B.class",
        "z/Z.class",
        "a.jar",
        "lib/a.ZIP",
        "lib/b.war",
        "m.jmod",
    ]


def test_files_come_in_the_order_of_the_given_paths_and_once(tmp_path: Path) -> None:
    folder(tmp_path / "one", SOME)
    jar(tmp_path / "one" / "x.jar", SOME)
    folder(tmp_path / "two", SOME)
    assert listed(tmp_path, "two/b/B.class", "one/x.jar", "one", "two") == [
        "two/b/B.class",
        "one/x.jar",
        "one/a/A.class",
        "one/b/B.class",
        "two/a/A.class",
    ]


def test_order_is_that_of_the_files(tmp_path: Path) -> None:
    folder(tmp_path / "one", SOME)
    folder(tmp_path / "two", SOME)
    jar(tmp_path / "one" / "a.jar", SOME)
    some = Inputs((tmp_path / "two", tmp_path / "one"))
    assert sorted({*some.files()}, key=some.order) == some.files()
    assert some.below(tmp_path / "one") == some.files()[2:]
    assert some.below(tmp_path / "one" / "a") == some.files()[2:3]
    assert some.below(tmp_path) == some.files()


def test_versions_for_newer_javas_are_left_out(tmp_path: Path) -> None:
    newer = {"META-INF/versions/9/a/A": b"", "META-INF/x/B": b""}
    jar(tmp_path / "x.jar", {**SOME, **newer})
    folder(tmp_path / "classes", {**SOME, **newer})
    places = [one.place.partition("!")[2] for one in class_files(tmp_path / "x.jar")]
    assert places == ["a/A.class", "b/B.class", "META-INF/x/B.class"]
    assert count(tmp_path / "x.jar") == 3
    assert listed(tmp_path, "classes") == [
        "classes/META-INF/x/B.class",
        "classes/a/A.class",
        "classes/b/B.class",
    ]
    assert len(listed(tmp_path, "classes/META-INF/versions/9/a/A.class")) == 1


def test_class_files_in_archives_are_read_wherever_they_are(tmp_path: Path) -> None:
    of_module = jar(tmp_path / "m.jmod", {"classes/a/A": b"1"}, beginning=b"JM\1\0")
    of_web = jar(tmp_path / "w.war", {"WEB-INF/classes/a/A": b"2", "a/A": b"3"})
    found = [(one.place, one.read()) for file in (of_module, of_web) for one in class_files(file)]
    assert found == [
        (f"{of_module}!classes/a/A.class", b"1"),
        (f"{of_web}!WEB-INF/classes/a/A.class", b"2"),
        (f"{of_web}!a/A.class", b"3"),
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absent", "there is no "),
        ("notes.txt", ".class file, and no archive (.jar, .war, .zip, .jmod)"),
        ("x.jar", None),
        ("a/A.class", None),
        ("a", None),
    ],
)
def test_wrong_path_is_told(tmp_path: Path, name: str, problem: str | None) -> None:
    folder(tmp_path, SOME)
    jar(tmp_path / "x.jar", SOME)
    (tmp_path / "notes.txt").write_text("no class")
    found = problem_of(tmp_path / name)
    assert found is None if problem is None else found and problem in found


def test_broken_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jar"
    path.write_text("no archive")
    with pytest.raises(Unreadable, match=r"x\.jar: cannot be read: File is not a zip file$"):
        list(class_files(path))
    assert count(path) == 0


def test_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"x\.jar: cannot be read: No such file or directory$"):
        list(class_files(tmp_path / "x.jar"))
    with pytest.raises(Unreadable, match=r"X\.class: cannot be read: No such file or directory$"):
        contents(tmp_path / "X.class")


def test_entry_that_claims_too_much_is_refused_unread(tmp_path: Path) -> None:
    path = with_size(jar(tmp_path / "x.jar", {"a/A": b"1"}), 2**31)
    with pytest.raises(Unreadable, match=r"x\.jar!a/A\.class: said to have 2,147,483,648 bytes"):
        contents(path)


def test_entry_that_has_more_than_it_claims_is_refused(tmp_path: Path) -> None:
    path = with_size(jar(tmp_path / "x.jar", {"a/A": bytes(10**6)}), 100)
    with pytest.raises(Unreadable, match=r"x\.jar!a/A\.class: cannot be read: Bad CRC-32"):
        contents(path)


def test_no_more_is_read_than_a_class_file_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LARGEST", 1000)
    folder(tmp_path, {"A": bytes(1001), "B": bytes(1000)})
    with pytest.raises(Unreadable, match=r"A\.class: has more than 1,000 bytes"):
        contents(tmp_path / "A.class")
    assert contents(tmp_path / "B.class") == [bytes(1000)]


def test_encrypted_entry_is_told(tmp_path: Path) -> None:
    path = jar(tmp_path / "x.jar", {"a/A": b"1"})
    data = bytearray(path.read_bytes())
    for start, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.rindex(start) + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="is encrypted"):
        contents(path)


def test_names_cannot_write_on_the_terminal(tmp_path: Path) -> None:
    (one,) = class_files(jar(tmp_path / "x.jar", {"\x1b[2JA": b"1"}))
    assert one.place.endswith("!\\x1b[2JA.class")


def test_two_entries_of_one_name_are_both_there(tmp_path: Path) -> None:
    path = tmp_path / "x.jar"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("a/A.class", b"1")
        archive.writestr("b/B.class", b"2")
    data = path.read_bytes().replace(b"b/B.class", b"a/A.class")
    path.write_bytes(data)
    assert contents(path) == [b"1", b"2"]


@examples(150)
@given(edits=st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), max_size=6))
def test_damaged_archive_is_read_or_unreadable(
    tmp_path: Path, edits: list[tuple[int, int]]
) -> None:
    path = jar(tmp_path / "x.jar", {**case("a"), **case("c")})
    data = bytearray(path.read_bytes())
    for at, byte in edits:
        data[-(at % len(data))] = byte
    path.write_bytes(data)
    try:
        for one in class_files(path):
            read_or_unreadable(one)
    except Unreadable as error:
        assert str(path) in str(error)


def read_or_unreadable(one: ClassFile) -> None:
    try:
        assert len(one.read()) < 10**6
    except Unreadable as error:
        assert one.place in str(error)


def test_jars_of_installed_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "somejava", ["../share/b.jar", "some/a.jar", "some/absent.jar"])
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    assert installed_jars("somejava") == (
        tmp_path / "share" / "b.jar",
        tmp_path / "site" / "some" / "a.jar",
    )


@pytest.mark.parametrize("jars", [None, [], ["some/absent.jar"]])
def test_package_without_jars_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jars: list[str] | None
) -> None:
    if jars is not None:
        installed(tmp_path, "somejava", jars)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    with pytest.raises(MissingExtra, match="somejava"):
        installed_jars("somejava")


def installed(path: Path, package: str, files: list[str]) -> None:
    """Pretend that a package with these files is installed in the folder `site`."""
    about = path / "site" / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        if "absent" not in file:
            jar((path / "site" / file).resolve(), SOME)


def contents(path: Path) -> list[bytes]:
    return [one.read() for one in class_files(path)]


def with_size(path: Path, size: int) -> Path:
    """Let the directory of an archive claim another size of its last entry."""
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\1\2") + SIZE
    data[at : at + 4] = size.to_bytes(4, "little")
    path.write_bytes(data)
    return path

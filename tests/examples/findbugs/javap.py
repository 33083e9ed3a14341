"""Facts from the output of `javap -v -p` on class files: an oracle that reads no bytes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from examples.findbugs import facts as f
from tests.examples.findbugs.javap_code import code_facts, signature
from tests.examples.findbugs.javap_pool import Pool

MODIFIERS = {"public": 1, "private": 2, "protected": 4, "static": 8, "final": 16, "abstract": 0x400}
SHOWN = sum(MODIFIERS.values())
"""The access bits of an inner class that javap shows; for interfaces, it leaves out abstract."""
INTERFACE = 0x200

HEX = re.compile(r"flags: \(0x([0-9a-f]+)\)")
GENERIC = re.compile(r"<[^<>]*>")
INNER = re.compile(r"  ((?:\w+ )*)(?:#(\d+)= )?#(\d+)(?: of #(\d+))?;")
PAIR = re.compile(r"#(\d+)\.#(\d+)")
VALUE = re.compile(r"    ConstantValue: (int|long|float|double|String) ?(.*)")


def run(javap: str, files: Sequence[Path]) -> str:
    """The output of javap for class files."""
    command = [javap, "-J-Dfile.encoding=UTF-8", "-J-Dstdout.encoding=UTF-8", "-v", "-p"]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def parse(output: str) -> Iterator[list[f.Fact]]:
    """The facts of each class file in the output of javap."""
    for text in re.split(r"^Classfile .*\n", output, flags=re.MULTILINE)[1:]:
        yield list(_class_facts(text.split("\n")))


def comparable(fact: f.Fact) -> f.Fact:
    """A fact as far as javap shows it.

    It shows interfaces as source code would, where `A$B` may be `A.B`, only some modifiers of inner
    classes, lone surrogates as question marks and no spaces at the end of a line.
    """
    match fact:
        case f.ClassDecl(interfaces=interfaces):
            return fact._replace(interfaces=tuple([_dotted(name) for name in interfaces]))
        case f.InnerClass(access=access):
            hidden = MODIFIERS["abstract"] if access & INTERFACE else 0
            return fact._replace(access=access & SHOWN & ~hidden)
        case f.FieldDecl(value=str(text)) | f.ConstInsn(value=str(text)):
            shown = text.encode("utf-8", "replace").decode("utf-8")
            return fact._replace(value=shown.rstrip(" "))
        case _:
            return fact


def _class_facts(lines: list[str]) -> Iterator[f.Fact]:
    begin, end = lines.index("{"), lines.index("}")
    start = lines.index("Constant pool:")
    pool = Pool(lines[start + 1 : begin])
    header = _header(lines[:start], pool)
    yield header
    yield from _members(lines[begin + 1 : end], header.name, pool)
    yield from _attributes(lines[end + 1 :], header.name, pool)


def _header(lines: list[str], pool: Pool) -> f.ClassDecl:
    said = dict(line.strip().split(": ", 1) for line in lines if ": " in line)
    declared = next(line for line in lines if not line.startswith(" ") and " " in line)
    above = _index(said["super_class"])
    name = pool.name(_index(said["this_class"]))
    return f.ClassDecl(
        name,
        int(said["major version"]),
        int(said["flags"][3:7], 16),
        pool.name(above) if above else None,
        _interfaces(declared, int(said["interfaces"].split(",")[0])),
    )


def _interfaces(declared: str, count: int) -> tuple[str, ...]:
    if not count:
        return ()
    while GENERIC.search(declared):
        declared = GENERIC.sub("", declared)
    word = " implements " if " implements " in declared else " extends "
    names = declared.partition(word)[2].split(",")
    assert len(names) == count
    return tuple([_dotted(name.strip()) for name in names])


def _members(lines: list[str], cls: str, pool: Pool) -> Iterator[f.Fact]:
    starts = [n for n, line in enumerate(lines) if re.match(r"  \S.*;$", line)]
    for start, end in pairwise([*starts, len(lines)]):
        declared, descriptor, flags, *rest = lines[start:end]
        access = int(HEX.search(flags)[1], 16)  # type: ignore[index]
        kind = descriptor.removeprefix("    descriptor: ")
        if kind.startswith("("):
            yield from _method(cls, _method_name(declared, cls), access, kind, rest, pool)
        else:
            name = declared.removesuffix(";").split(" ")[-1]
            yield f.FieldDecl(cls, access, name, kind, _constant_value(rest))


def _method(
    cls: str, name: str, access: int, descriptor: str, lines: list[str], pool: Pool
) -> Iterator[f.Fact]:
    method = name + descriptor
    yield f.MethodDecl(cls, method, access, name, *signature(descriptor))
    if "    Code:" in lines:
        yield from code_facts(lines[lines.index("    Code:") + 1 :], cls, method, pool)
    if "    Exceptions:" in lines:
        thrown = lines[lines.index("    Exceptions:") + 1].strip().removeprefix("throws ")
        for exception in dict.fromkeys(thrown.split(", ")):
            yield f.Throws(cls, method, exception.replace(".", "/"))


def _method_name(declared: str, cls: str) -> str:
    if declared.strip() == "static {};":
        return "<clinit>"
    name = declared.partition("(")[0].split(" ")[-1]
    return "<init>" if name == cls.replace("/", ".") else name


def _constant_value(lines: list[str]) -> f.Constant:
    for line in lines:
        match = VALUE.match(line)
        if match:
            return Pool.value(match[1].capitalize(), match[2])
    return None


def _attributes(lines: list[str], cls: str, pool: Pool) -> Iterator[f.Fact]:
    for line in lines:
        inner = INNER.match(line)
        if inner:
            words, name, index, outer = inner.groups()
            access = sum(MODIFIERS[word] for word in words.split())
            owner = pool.name(int(outer)) if outer else None
            named = pool.text(int(name)) if name else None
            yield f.InnerClass(cls, pool.name(int(index)), owner, named, access)
        elif line.startswith("EnclosingMethod: "):
            cls_index, method = map(int, PAIR.findall(line)[0])
            key = "".join(pool.texts(method)) if method else None
            yield f.EnclosingMethod(cls, pool.name(cls_index), key)


def _index(text: str) -> int:
    return int(text.split()[0].removeprefix("#"))


def _dotted(name: str) -> str:
    return name.replace("/", ".").replace("$", ".")

"""A new version of one class file of thousands: read it, compare it and apply the differences.

From scratch, all class files are read and all analyses evaluated. The class files are those of a
JDK; the new version of one calls another method somewhere.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random
from time import process_time

from asv_benchmarks.measure import SEED
from examples.collector import without_collector
from examples.findbugs.analyses import ANALYSES
from examples.findbugs.classfile import read
from examples.findbugs.difference import difference
from examples.findbugs.facts import Facts
from examples.findbugs.inputs import class_files
from examples.findbugs.program import Program
from examples.findbugs.replay.mirror import Mirror, differing

FILES, EDITED = 5_000, 50
CALLED = ("toString", "equals", "hashCode", "length", "append", "get", "size", "add", "close")
"""Names of methods that many classes call."""

Times = dict[str, list[float]]


def reading_figures(files: Mapping[str, bytes] | None = None, edited: int = EDITED) -> Times:
    """Seconds to read all and to evaluate all from scratch, and of each edit and its undoing.

    Empty where no JDK is found.
    """
    files = dict(islice(jdk_files(), FILES)) if files is None else files
    if not files:
        return {}
    program, mirror = Program(), Mirror()
    with without_collector():
        start = process_time()
        facts = {name: read(data, name, program.kinds) for name, data in files.items()}
        reading = process_time() - start
        program.put(facts)
        mirror.apply(difference({}, facts))
        start = process_time()
        expected = mirror.evaluate(ANALYSES)
        evaluating = process_time() - start
        chosen = islice(_edits(files, facts, program), edited)
        edits = [seconds for name, new in chosen for seconds in _timed(program, files, name, new)]
    if differing(program, expected):
        raise AssertionError("the views differ after the edits were taken back")
    return {"reading": [reading], "evaluating": [evaluating], "edits": edits}


def jdk_files() -> Iterator[tuple[str, bytes]]:
    """Yield the class files of the module java.base of a JDK, in the order of their names."""
    java = shutil.which("java")
    homes = [os.environ.get("JAVA_HOME"), java and str(Path(java).resolve().parent.parent)]
    modules = [Path(home) / "jmods" / "java.base.jmod" for home in homes if home]
    for module in [path for path in modules if path.exists()][:1]:
        yield from sorted(
            (file.place.removeprefix(f"{module}!"), file.read()) for file in class_files(module)
        )


def edited_file(data: bytes) -> bytes:
    """Return the file with another called method; the file itself if it has none of the names.

    Names are constants of their own in a class file: a tag, a length, and the name.
    """
    for name in CALLED:
        constant = _constant(name)
        if constant in data:
            return data.replace(constant, _constant(name[:-1] + "X"), 1)
    return data


def _constant(name: str) -> bytes:
    return b"\x01" + len(name).to_bytes(2, "big") + name.encode()


def _edits(
    files: Mapping[str, bytes], facts: Mapping[str, Facts], program: Program
) -> Iterator[tuple[str, bytes]]:
    """Yield files in random order, with new versions whose facts differ."""
    for name in Random(SEED).sample([*files], len(files)):
        new = edited_file(files[name])
        if new != files[name] and read(new, name, program.kinds) != facts[name]:
            yield name, new


def _timed(program: Program, files: Mapping[str, bytes], name: str, new: bytes) -> Iterator[float]:
    for data in (new, files[name]):
        start = process_time()
        program.put({name: read(data, name, program.kinds)})
        yield process_time() - start

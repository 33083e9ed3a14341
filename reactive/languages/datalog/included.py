"""Texts of a program in several files: `.include "file"`, `#include "file"` and `.once`.

The tokens of an included file stand in place of the directive. A file is looked for beside the
file that includes it, then in the folder of the program. Lines of the preprocessor are read, and
the macros that they define are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reactive.languages.datalog.preprocessor import Preprocessor
from reactive.languages.datalog.tokens import Span, Token, tokens, unescape_text, wrong

MOST = 100
"""Files that include each other."""


def read_program(
    source: str | Path, folder: Path | None, macros: Mapping[str, str]
) -> tuple[str, list[Token], Path | None]:
    """Return the text of a program, its tokens with those of included files, and its folder.

    `macros` are texts by name, that are defined before the first line.

    Raises
    ------
    PlanError: the text is no program, or a file cannot be read.
    """
    if isinstance(source, Path):
        folder = source.parent if folder is None else folder
        text, name = source.read_text(encoding="utf-8"), str(source)
    else:
        text, name = source, ""
    beside = source.parent if isinstance(source, Path) else folder
    return text, list(_Included(folder, macros).tokens(text, name, beside, ())), folder


class _Included:
    """Reads the files of a program."""

    def __init__(self, folder: Path | None, macros: Mapping[str, str]) -> None:
        self._folder = folder
        self._preprocessor = Preprocessor(macros)
        self._once: set[Path] = set()

    def tokens(
        self, text: str, name: str, beside: Path | None, through: tuple[Path, ...]
    ) -> Iterator[Token]:
        """Yield the tokens of a text, those of included files in their places."""
        found = tokens(text, name)
        before, macros = self._preprocessor.depth, self._preprocessor.macros
        place = 0
        while place < len(found):
            token = found[place]
            place += 1
            if token.kind == "macro":
                file = self._preprocessor.line(token)
                if file is not None:
                    yield from self._file(self._path(file, beside), token.at, through)
            elif token.kind == "end":
                if self._preprocessor.depth > before:
                    raise wrong(token.at, "a condition does not end", "close it with #endif")
                if not through:
                    yield token
            elif self._preprocessor.skips:
                pass
            elif token.kind == "directive" and token.text == ".once":
                if through and through[-1] in self._once:
                    return
                self._once.update(through[-1:])
            elif token.kind == "directive" and token.text == ".include":
                path = self._path(found[place], beside)
                place += 1
                yield from self._file(path, token.at, through)
            elif token.text in macros and (used := self._preprocessor.use(found, place - 1)):
                made, place = used
                yield from made
            else:
                yield token

    def _file(self, path: Path, at: Span, through: tuple[Path, ...]) -> Iterator[Token]:
        if len(through) >= MOST:
            raise wrong(at, f"{path.name!r} includes itself", "begin it with .once")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise wrong(at, f"cannot read {str(path)!r}: {error}") from None
        yield from self.tokens(text, str(path), path.parent, (*through, path))

    def _path(self, token: Token, beside: Path | None) -> Path:
        """Return the path of a file: beside the including one, or in the folder of the program."""
        if token.kind != "text":
            raise wrong(token.at, f"the name of a file is missing before {token}")
        name = unescape_text(token.text, token.at)
        folders: Sequence[Path] = [each for each in (beside, self._folder) if each is not None]
        if not folders and not Path(name).is_absolute():
            remedy = "give db.datalog the path of the program, or its folder="
            raise wrong(token.at, f"there is no folder to look for {name!r} in", remedy)
        found = [folder / name for folder in folders] or [Path(name)]
        path = next((each for each in found if each.is_file()), None)
        if path is None:
            raise wrong(token.at, f"there is no file {name!r}", f"looked for {found[0]}")
        return path.resolve()

"""A folder of Python files: which files there are, what they are called, what else is known."""

from __future__ import annotations

import pkgutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

SKIPPED = frozenset({"site-packages", "dist-packages", "__pycache__", "node_modules"})
ALWAYS_KNOWN = frozenset({"__main__", "os.path", "_typeshed"})


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, with the name of the package that it is part of ("" if it is none).

    Files are named by their path in it, with slashes.
    """

    path: Path
    package: str = ""

    def files(self) -> list[str]:
        """Return the Python files of the folder, at any depth, but hidden and installed ones."""
        found = (path.relative_to(self.path) for path in self.path.rglob("*.py"))
        return sorted(path.as_posix() for path in found if _is_ours(path.parts[:-1]))

    def has(self, path: Path) -> bool:
        """Return True if an absolute path is that of a Python file in it."""
        return path.suffix == ".py" and self.covers(path.parent)

    def covers(self, path: Path) -> bool:
        """Return True if an absolute path is in it, and in no hidden or installed folder."""
        inside = path.is_relative_to(self.path)
        return inside and _is_ours(path.relative_to(self.path).parts)

    def name(self, path: Path) -> str:
        """Return the file that an absolute path stands for."""
        return path.relative_to(self.path).as_posix()

    def read(self, file: str) -> bytes | None:
        """Return the contents of a file; None if it cannot be read, as when it is deleted."""
        try:
            return (self.path / file).read_bytes()
        except OSError:
            return None

    def sources(self) -> dict[str, bytes]:
        """All files with their contents."""
        pairs = ((file, self.read(file)) for file in self.files())
        return {file: source for file, source in pairs if source is not None}

    def module(self, file: str) -> str:
        """Return the name of a file in imports.

        >>> Folder(Path("/project")).module("src/shop/cart/__init__.py")
        'shop.cart'
        """
        parts = Path(file).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if parts and parts[0] == "src" and not self.package:
            parts = parts[1:]
        return ".".join([*filter(None, [self.package]), *parts])

    def known(self) -> set[str]:
        """Modules that can be imported from elsewhere: of Python, installed, or compiled here.

        Those of Python are the ones of all platforms.
        """
        installed = {module.name for module in pkgutil.iter_modules()}
        return {*sys.stdlib_module_names, *ALWAYS_KNOWN, *installed, *self._compiled()}

    def _compiled(self) -> Iterator[str]:
        for suffix in EXTENSION_SUFFIXES:
            for path in self.path.rglob(f"*{suffix}"):
                yield self.module(self.name(path).removesuffix(suffix) + ".py")


def folder_at(path: Path) -> Folder:
    """Return the folder at a path; if it is a package, its modules have the name of the package."""
    path = path.resolve()
    packages: list[str] = []
    outer = path
    while (outer / "__init__.py").exists():
        packages.insert(0, outer.name)
        outer = outer.parent
    return Folder(path, ".".join(packages))


def standard_library() -> Folder:
    """Return the standard library of the running Python."""
    return folder_at(Path(sysconfig.get_path("stdlib")))


def _is_ours(folders: tuple[str, ...]) -> bool:
    return SKIPPED.isdisjoint(folders) and not any(name.startswith(".") for name in folders)

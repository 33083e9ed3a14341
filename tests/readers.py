"""Draw functions and paragraphs of docs, for readers who explain them from their text alone.

    python -m tests.readers --seed 7 --functions 60 --paragraphs 20 --folder build/readers

writes `texts.md`, with the signature and docstring of each function and each paragraph by itself,
and `bodies.md`, with the source of the same functions, to judge the explanations.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
PACKAGES = ("optimizer", "reactive", "spark_backend")
SHORTEST_BODY = 4
"""Lines of a function that is worth a question."""
SHORTEST_PARAGRAPH = 150
"""Characters of a paragraph that is worth a question."""


def functions() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the text (class, signature, docstring) and the source of each function."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text()
            for owner, node in _defined(ast.parse(source)):
                body = ast.get_source_segment(source, node) or ""
                if body.count("\n") < SHORTEST_BODY:
                    continue
                text = ast.get_docstring(node)
                head = f"def {node.name}({ast.unparse(node.args)})"
                returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                told = f'{head}{returns}\n    """{text}"""' if text else f"{head}{returns}"
                place = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield place, f"{owner}{told}", body


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            about = (ast.get_docstring(node) or "").partition("\n\n")[0]
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("__"):
                    yield f"class {node.name}: {about}\n", inner


def paragraphs() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each paragraph of the docs; code and tables are left out."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        is_code, line = False, 1
        for part in path.read_text().split("\n\n"):
            fences = part.count("```")
            plain = not is_code and not fences and not part.lstrip().startswith(("|", "#", "<"))
            if plain and len(part) >= SHORTEST_PARAGRAPH:
                yield f"{path.relative_to(ROOT)}:{line}", part.strip()
            is_code ^= fences % 2 == 1
            line += part.count("\n") + 2


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--paragraphs", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path("build/readers"))
    options = parser.parse_args()
    random = Random(options.seed)
    drawn = random.sample([*functions()], options.functions)
    read = random.sample([*paragraphs()], options.paragraphs)
    options.folder.mkdir(parents=True, exist_ok=True)
    texts = [f"## {n}. {place}\n\n{text}\n" for n, (place, text, _) in enumerate(drawn, 1)]
    texts += [f"## P{n}. {place}\n\n{text}\n" for n, (place, text) in enumerate(read, 1)]
    bodies = [f"## {n}. {place}\n\n{body}\n" for n, (place, _, body) in enumerate(drawn, 1)]
    (options.folder / "texts.md").write_text("\n".join(texts))
    (options.folder / "bodies.md").write_text("\n".join(bodies))


if __name__ == "__main__":
    main()

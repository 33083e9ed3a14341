"""Each check finds its faults, and ignores code that only looks like them."""

from __future__ import annotations

import pytest

from examples.live_lint.checks import CHECKS, description, name_of
from examples.live_lint.project import Project

from .linting import Sources, found, holding, made

Case = tuple[str, Sources, list[str]]

BASE = """
class Base:
    def __init__(self, x):
        self.x = x
    def run(self, x, y=0):
        return x + y
"""

FINDS: list[Case] = [
    ("syntax-error", {"a.py": "x = 1\ndef f(:\n"}, ["a.py:2"]),
    ("syntax-error", {"a.py": b"name = '\xff\xfe'\n"}, ["a.py:1"]),
    ("syntax-error", {"a.py": b"x = 1\x00\n"}, ["a.py:1"]),
    ("unused-import", {"a.py": "import os\n"}, ["a.py:1"]),
    ("unused-import", {"a.py": "x = 1\nfrom os import (\n  path,\n)\n"}, ["a.py:3"]),
    ("unused-import", {"a.py": "def f():\n    import os.path\n"}, ["a.py:2"]),
    ("unused-import", {"a.py": "import os\nclass C:\n    def f(self, os): os.x()\n"}, ["a.py:1"]),
    ("unused-import", {"a.py": "import os\ndef f(*os):\n    return lambda: os\n"}, ["a.py:1"]),
    ("unused-import", {"a.py": "import os\nf = lambda os: [os for x in os]\n"}, ["a.py:1"]),
    ("unused-import", {"a.py": "import os.path, os.nothing\n"}, ["a.py:1"]),
    ("undefined-export", {"a.py": "__all__ = ['f']\n"}, ["a.py:1"]),
    ("undefined-export", {"a.py": "__all__ = []\n__all__ += ['f']\n"}, ["a.py:2"]),
    ("undefined-export", {"a.py": "def f(): g = 1\n__all__ = ['f', 'g']\n"}, ["a.py:2"]),
    ("missing-module", {"a.py": "import nowhere\n"}, ["a.py:1"]),
    ("missing-module", {"p/__init__.py": "", "p/a.py": "from .b import c\n"}, ["p/a.py:1"]),
    ("missing-module", {"p/__init__.py": "", "a.py": "import p.b.c\n"}, ["a.py:1"]),
    ("missing-module", {"os.py": "", "a.py": "import os.nothing\n"}, ["a.py:1"]),
    ("missing-module", {"a.py": "from .. import b\n"}, ["a.py:1"]),
    ("missing-module", {"a.py": "from nowhere import b, c\n"}, ["a.py:1"]),
    ("missing-module", {"a.py": "import nowhere.__init__\n"}, ["a.py:1"]),
    ("missing-name", {"a.py": "from b import f\n", "b.py": "g = 1\n"}, ["a.py:1"]),
    ("missing-name", {"a.py": "from b import f\n", "b.py": "def g(f): return f\n"}, ["a.py:1"]),
    ("missing-name", {"p/__init__.py": "", "a.py": "from p import b\n"}, ["a.py:1"]),
    (
        "missing-name",
        {"p/__init__.py": "g = 1\n", "a.py": "from p.__init__ import f\n"},
        ["a.py:1"],
    ),
    ("import-cycle", {"a.py": "import b\n", "b.py": "import a\n"}, ["a.py:1", "b.py:1"]),
    (
        "import-cycle",
        {"p/__init__.py": "", "p/a.py": "from . import b\n", "p/b.py": "x = 1\nfrom .a import y\n"},
        ["p/a.py:1", "p/b.py:2"],
    ),
    (
        "import-cycle",
        {"a.py": "import b\n", "b.py": "x = 1\nimport c\n", "c.py": "import a\n"},
        ["a.py:1", "b.py:2", "c.py:1"],
    ),
    (
        "import-cycle",
        {
            "a.py": "import b, d\n",
            "b.py": "import c\n",
            "c.py": "import d\n",
            "d.py": "import a, e\n",
            "e.py": "import f\n",
            "f.py": "",
            "main.py": "import a\n",
        },
        ["a.py:1", "a.py:1", "b.py:1", "c.py:1", "d.py:1"],
    ),
    (
        "import-cycle",
        {f"m{n}.py": f"import m{(n + 1) % 30}\n" for n in range(30)},
        sorted(f"m{n}.py:1" for n in range(30)),
    ),
    ("unused-private", {"a.py": "def _f(): pass\n"}, ["a.py:1"]),
    ("unused-private", {"a.py": "class C:\n    def _f(self): pass\n"}, ["a.py:2"]),
    ("unreachable-definition", {"a.py": "def _f(): pass\ndef _g(): _f()\n"}, ["a.py:1"]),
    ("unreachable-definition", {"a.py": "def _f(): _g()\ndef _g(): _f()\n"}, ["a.py:1", "a.py:2"]),
    ("unreachable-definition", {"a.py": "def _f(x): return _f(x - 1)\n"}, ["a.py:1"]),
    ("unreachable-definition", {"a.py": "class _C: pass\n"}, ["a.py:1"]),
    (
        "unreachable-definition",
        {"a.py": "class _C:\n    def run(self): return _f()\ndef _f(): pass\n"},
        ["a.py:1", "a.py:3"],
    ),
    (
        "unreachable-definition",
        {
            "a.py": "class _C:\n    x = _f()\n    class D:\n        def run(self): _g()\n"
            "def _f(): pass\ndef _g(): pass\n"
        },
        ["a.py:1", "a.py:6"],
    ),
    ("unreachable-definition", {"a.py": "def _f(): pass\n", "b.py": "_f()\n"}, ["a.py:1"]),
    (
        "unreachable-definition",
        {
            "a.py": "import b\ndef _f():\n    def g(): b._h()\n    return g\n",
            "b.py": "def _h(): pass\ndef _k(): _h()\n",
        },
        ["b.py:1"],
    ),
    (
        "unreachable-definition",
        {"a.py": "class C:\n    def _f(self): return self._f()\n"},
        ["a.py:2"],
    ),
    ("unused-parameter", {"a.py": "def f(x, y):\n    return x\n"}, ["a.py:1"]),
    ("unused-parameter", {"a.py": "class C:\n    def f(self, x):\n        g()\n"}, ["a.py:2"]),
    ("unused-parameter", {"a.py": "def f(x):\n    return lambda x: x\n"}, ["a.py:1"]),
    (
        "override-parameters",
        {"b.py": BASE, "a.py": "from b import Base\nclass C(Base):\n    def run(self): pass\n"},
        ["a.py:3"],
    ),
    (
        "override-parameters",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def run(self, x, y, z): pass\n"},
        ["a.py:3"],
    ),
    (
        "override-parameters",
        {
            "p/__init__.py": "from .b import Base\n",
            "p/b.py": BASE,
            "a.py": "from p import Base as B\nclass C(B):\n    def run(self, x): pass\n",
        },
        ["a.py:3"],
    ),
    (
        "missing-super-init",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def __init__(self): self.y = 1\n"},
        ["a.py:3"],
    ),
    (
        "missing-super-init",
        {"b.py": BASE + "class C(Base):\n    def __init__(self): self.y = 1\n"},
        ["b.py:8"],
    ),
    ("wrong-arguments", {"b.py": "def f(x): g()\n", "a.py": "import b\nb.f()\n"}, ["a.py:2"]),
    (
        "wrong-arguments",
        {"b.py": "def f(x, y=1): g()\n", "a.py": "from b import f\nf(1, 2, 3)\n"},
        ["a.py:2"],
    ),
    (
        "wrong-arguments",
        {
            "b.py": "def f(x): g()\n",
            "a.py": "import b\ntry: b.f()\nexcept ValueError: x\n"
            "try: x()\nexcept TypeError: b.f()\nelse: b.f()\n",
        },
        ["a.py:2", "a.py:5", "a.py:6"],
    ),
    ("duplicate-definition", {"a.py": "def f(): pass\ndef f(): pass\n"}, ["a.py:2"]),
    (
        "duplicate-definition",
        {"a.py": "class C:\n    def f(self): pass\n    def f(self): pass\n"},
        ["a.py:3"],
    ),
    ("duplicate-definition", {"a.py": "class C: pass\ndef C(): pass\n"}, ["a.py:2"]),
    ("duplicate-test", {"a.py": "def test_a(): pass\ndef test_a(): pass\n"}, ["a.py:2"]),
    (
        "duplicate-test",
        {"a.py": "class T:\n    @skip\n    def test_a(self): pass\n    def test_a(self): pass\n"},
        ["a.py:4"],
    ),
    ("duplicate-test", {"a.py": "class TestA: pass\nclass TestA: pass\n"}, ["a.py:2"]),
    ("mutable-default", {"a.py": "def f(x=[]): return x\n"}, ["a.py:1"]),
    ("mutable-default", {"a.py": "f = lambda *, x=dict(): x\n"}, ["a.py:1"]),
    ("hidden-exception", {"a.py": "try: f()\nexcept: pass\n"}, ["a.py:2"]),
    (
        "hidden-exception",
        {"a.py": "for x in y:\n    try: f()\n    except (E, Exception): continue\n"},
        ["a.py:3"],
    ),
]

LETS_PASS: list[tuple[str, Sources]] = [
    ("syntax-error", {"a.py": ""}),
    ("syntax-error", {"a.py": "# coding: latin-1\nx = 'ä'\n".encode("latin-1")}),
    ("unused-import", {"a.py": "import os.path\nprint(os.name)\n"}),
    ("unused-import", {"a.py": "from __future__ import annotations\n"}),
    ("unused-import", {"a.py": "import os\n__all__ = ['os']\n"}),
    ("unused-import", {"a.py": "import os  # noqa\n"}),
    ("unused-import", {"a.py": "from os import __all__\n"}),
    ("unused-import", {"a.py": "import os as os\n"}),
    ("unused-import", {"p/__init__.py": "from os import path\n"}),
    ("unused-import", {"a.py": "try:\n    import os\nexcept ImportError:\n    os = None\n"}),
    ("unused-import", {"a.py": "import os\ndef f(x: 'list[os.PathLike]'): return x\n"}),
    ("unused-import", {"a.py": "import os\n", "b.py": "from a import os\nos\n"}),
    ("unused-import", {"a.py": "import os\ndef f(os=os.name): return os\n"}),
    ("unused-import", {"a.py": "import os\ndef f(os: os.PathLike): return os\n"}),
    ("unused-import", {"a.py": "import os\ndef f(os): return os\ndef g(): return os\n"}),
    (
        "unused-import",
        {
            "a.py": "import os\ndef f(os):\n    def g():\n        global os\n"
            "        return lambda: os\n    return g\n"
        },
    ),
    ("unused-import", {"a.py": "import os\ndef f(os):\n    class C:\n        os = os\n"}),
    ("unused-import", {"a.py": "import os\n", "b.py": "import a\na.os.getcwd()\n"}),
    ("undefined-export", {"a.py": "__all__ = ['f', 'x', 'C']\ndef f(): g\nx = 1\nclass C: y\n"}),
    ("undefined-export", {"a.py": "from os import *\n__all__ = ['getcwd']\n"}),
    ("undefined-export", {"a.py": "__all__ = ['f']\ndef __getattr__(name): return name\n"}),
    ("undefined-export", {"p/__init__.py": "__all__ = ['b']\n", "p/b.py": ""}),
    ("undefined-export", {"a.py": "def f():\n    global x\n    x = 1\n__all__ = ['x']\n"}),
    ("missing-module", {"a.py": "import os.path, sys, winreg\n"}),
    ("missing-module", {"a.py": "try:\n    import nowhere\nexcept ImportError: pass\n"}),
    ("missing-module", {"a.py": "with suppress(ImportError):\n    import nowhere\n"}),
    ("missing-module", {"d/a.py": "import b\nimport d.b\nfrom d import b\n", "d/b.py": ""}),
    ("missing-module", {"p/__init__.py": "", "p/a.py": "from . import b\n", "p/b.py": ""}),
    ("missing-module", {"p/__init__.py": "x = 1\n", "p/a.py": "from .__init__ import x\n"}),
    ("missing-module", {"p/__init__.py": "x = 1\n", "a.py": "from p.__init__ import x\n"}),
    ("missing-module", {"p/__init__.py": "", "a.py": "import p.__init__\n"}),
    ("missing-name", {"a.py": "from b import f, g\n", "b.py": "def f(): g\nfrom c import g\n"}),
    ("missing-name", {"a.py": "from b import f\n", "b.py": "from os import *\n"}),
    ("missing-name", {"a.py": "from b import __doc__\n", "b.py": ""}),
    ("missing-name", {"a.py": "from b import f\n", "b.py": "def f(:\n"}),
    ("missing-name", {"p/__init__.py": "", "p/b.py": "", "a.py": "from p import b\n"}),
    ("import-cycle", {"a.py": "import b\n", "b.py": "def f():\n    import a\n"}),
    ("import-cycle", {"a.py": "import b\n", "b.py": "if TYPE_CHECKING:\n    import a\n"}),
    ("import-cycle", {"a.py": "import b\n", "b.py": "import c\n", "c.py": ""}),
    ("import-cycle", {"a.py": "import b, c\n", "b.py": "import c\n", "c.py": "import d\n"}),
    ("import-cycle", {"a.py": "import a\n"}),
    (
        "import-cycle",
        {"a.py": "import b\n", "b.py": "import c\n", "c.py": "def f():\n    import a\n"},
    ),
    (
        "import-cycle",
        {"a.py": "import b\n", "b.py": "if __name__ == '__main__':\n    import a\n"},
    ),
    ("unused-private", {"a.py": "def _f(): pass\n", "b.py": "import a\na._f()\n"}),
    ("unused-private", {"a.py": "def _f(): pass\ngetattr(x, '_f')\n"}),
    ("unused-private", {"a.py": "@register\ndef _f(): pass\ndef __len__(): pass\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\n"}),
    ("unreachable-definition", {"a.py": "def _f(): _g()\ndef _g(): _f()\ndef h(): _f()\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\ndef _g(): _f()\n_g()\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\nx = lambda: _f()\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\ndef _g(x=_f()): return x\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\n@register\ndef _g(): _f()\n"}),
    ("unreachable-definition", {"a.py": "@register\nclass _C: pass\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\ndef test_f(): _f()\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\nclass _FTest:\n    x = _f()\n"}),
    ("unreachable-definition", {"a.py": "def _f(): pass\nclass _FTest:\n  def f(s): _f()\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\nclass D(_C): pass\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\n__all__ = ['_C']\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\ndef f(x: '_C'): return x\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\n", "b.py": "from a import _C\n_C()\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\n", "b.py": "import a\na._C()\n"}),
    ("unreachable-definition", {"a.py": "class _C: pass\ngetattr(x, '_C')\n"}),
    (
        "unreachable-definition",
        {"a.py": "class C:\n    def _f(self): pass\n    def __len__(self): return self._f()\n"},
    ),
    ("unused-parameter", {"a.py": "def f(x):\n    def g(): return x\n    return g\n"}),
    ("unused-parameter", {"a.py": "def f(x): raise NotImplementedError\n"}),
    ("unused-parameter", {"a.py": "def f(_x, *args, **options): g()\n"}),
    ("unused-parameter", {"a.py": "def f(x): return locals()\n"}),
    (
        "unused-parameter",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def run(self, x, y=0): g()\n"},
    ),
    (
        "override-parameters",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def run(self, x, y=0, z=0): g\n"},
    ),
    (
        "override-parameters",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def run(self, *args): g\n"},
    ),
    ("override-parameters", {"b.py": BASE + "class C(Base):\n    def run(self): pass\n"}),
    ("override-parameters", {"a.py": "class C(Elsewhere):\n    def run(self): pass\n"}),
    (
        "missing-super-init",
        {"b.py": BASE + "class C(Base):\n    def __init__(self): super().__init__(1)\n"},
    ),
    (
        "missing-super-init",
        {"b.py": BASE + "class C(Base):\n    def __init__(s): f = super().__init__; f(1)\n"},
    ),
    (
        "missing-super-init",
        {"b.py": BASE, "a.py": "import b\nclass C(b.Base):\n    def go(self): pass\n"},
    ),
    ("missing-super-init", {"a.py": "class C(Exception):\n    def __init__(self): self.x = 1\n"}),
    ("wrong-arguments", {"b.py": "def f(x): g()\n", "a.py": "import b\nb.f(x=1)\nb.f(*y)\n"}),
    (
        "wrong-arguments",
        {"b.py": "def f(x): g()\n", "a.py": "import b\ntry: b.f()\nexcept TypeError: b.f(1)\n"},
    ),
    (
        "wrong-arguments",
        {
            "b.py": "def f(x): g()\n",
            "a.py": "import b\nwith self.assertRaises(TypeError):\n    b.f()\n",
        },
    ),
    ("wrong-arguments", {"b.py": "@g\ndef f(x): g()\n", "a.py": "import b\nb.f()\n"}),
    (
        "wrong-arguments",
        {"b.py": "def f(x): g()\n", "a.py": "from b import f\ndef g(f): f()\n"},
    ),
    (
        "wrong-arguments",
        {
            "b.py": "if x:\n    def f(x): g()\nelse:\n    def f(): g()\n",
            "a.py": "import b\nb.f()\n",
        },
    ),
    ("duplicate-definition", {"a.py": "if x:\n    def f(): g\nelse:\n    def f(): h\n"}),
    ("duplicate-definition", {"a.py": "def f(): g\nf = wrap(f)\ndef f(): h\n"}),
    (
        "duplicate-definition",
        {"a.py": "class C:\n  @property\n  def f(s): g\n  @f.setter\n  def f(s, v): h\n"},
    ),
    ("duplicate-definition", {"a.py": "@overload\ndef f(x): ...\ndef f(x): return x\n"}),
    (
        "duplicate-test",
        {"a.py": "class TestA:\n    def test(s): g\nclass TestB:\n    def test(s): g\n"},
    ),
    ("duplicate-test", {"a.py": "if x:\n    def test(): g\nelse:\n    def test(): h\n"}),
    ("mutable-default", {"a.py": "def f(x=(), y=None, z=frozenset()): return x, y, z\n"}),
    ("mutable-default", {"a.py": "def f(x=[1]):  # noqa\n    return x\n"}),
    ("hidden-exception", {"a.py": "try: f()\nexcept ValueError: pass\n"}),
    ("hidden-exception", {"a.py": "try: f()\nexcept Exception: raise\n"}),
    ("hidden-exception", {"a.py": "try: f()\nexcept Exception as e: log(e)\n"}),
]


@pytest.fixture(scope="module")
def project() -> Project:
    return made({})


@pytest.mark.parametrize(("check", "sources", "where"), FINDS)
def test_finds(check: str, sources: Sources, where: list[str], project: Project) -> None:
    with holding(project, sources):
        assert found(project, check) == where


@pytest.mark.parametrize(("check", "sources"), LETS_PASS)
def test_lets_pass(check: str, sources: Sources, project: Project) -> None:
    with holding(project, sources):
        assert found(project, check) == []


@pytest.mark.parametrize("check", [name_of(check) for check in CHECKS])
def test_every_check_has_cases(check: str) -> None:
    assert sum(case[0] == check and bool(case[2]) for case in FINDS) >= 2
    assert sum(case[0] == check for case in LETS_PASS) >= 2


def test_every_check_is_described_by_a_sentence() -> None:
    for check in CHECKS:
        assert description(check).endswith(".")

#!/usr/bin/env python3
"""The reference of the Python module out of its docstrings: docs/reference/python.md.

    PYTHONPATH=python python3 python/api_reference.py [--write]     says whether the page is that of the module, or writes it
"""
import inspect
import re
import sys
from pathlib import Path

import cardan
import cardan.gym
import cardan.study

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
HEAD = """# The Python module

Out of its docstrings, by `python/api_reference.py`; its examples are run by the tests. [The tour](../how-to/python.md) is the place to
begin.
"""


def signature(name, f, method=False):
    try:
        s = inspect.signature(f)
    except (TypeError, ValueError):
        return name
    shown = [p.replace(annotation=p.empty) for i, p in enumerate(s.parameters.values()) if not (method and i == 0)]
    return name + re.sub(r"<[^>]*>", "...", str(s.replace(parameters=shown, return_annotation=s.empty)))


def text(of):
    """A docstring as Markdown: examples become blocks of code."""
    lines, out, inside = (inspect.getdoc(of) or "").split("\n"), [], False
    for line in lines:
        if line.startswith(">>>") and not inside:
            out, inside = [*out, "```pycon"], True
        elif inside and not line.strip():
            out, inside = [*out, "```"], False
        out.append(line)
    return re.sub(r"docs/(?:\w[\w-]*/)?([\w-]+\.md)", link, "\n".join(out + ["```"] * inside).strip())


def link(found):
    """A page that a docstring names, from where the reference stands."""
    page = next(PAGE.parent.parent.glob("*/" + found.group(1)), None)
    if page is None:
        sys.exit(f"a docstring names {found.group(0)}, which is not there")
    folder = "" if page.parent == PAGE.parent else f"../{page.parent.name}/"
    return f"[{page.name}]({folder}{page.name})"


def own(kind, name):
    f = inspect.getattr_static(kind, name)
    f = f.__func__ if isinstance(f, (staticmethod, classmethod)) else f
    return not name.startswith("_") and bool(getattr(f, "__doc__", None)) and (
        isinstance(f, property) or inspect.isfunction(f))


def describe(name, of):
    if not inspect.isclass(of):
        return [f"## `{signature(name, of)}`", text(of)]
    if issubclass(of, Exception):
        return [f"- `{name}` ({', '.join(b.__name__ for b in of.__bases__)}): {text(of).splitlines()[0]}"]
    made = "__init__" in vars(of) and not of.__name__ in ("Run", "State", "Verdict", "Live")
    parts = [f"## `{signature(name, of.__init__, True) if made else name}`", text(of)]
    for member in vars(of):
        if own(of, member):
            f = inspect.getattr_static(of, member)
            shown = f"`.{member}`" if isinstance(f, property) else f"`.{signature(member, f, True)}`"
            parts.append(f"{shown}: {text(f)}")
    return parts


def page():
    objects = [(n, getattr(cardan, n)) for n in cardan.__all__]
    failures = [(n, o) for n, o in objects if inspect.isclass(o) and issubclass(o, Exception)]
    parts = [HEAD.strip(), text(cardan)]
    for name, of in objects:
        if (name, of) not in failures:
            parts += describe(name, of)
    parts += ["## Failures", text(cardan.CardanError), "\n".join(describe(n, o)[0] for n, o in failures)]
    parts += ["## `cardan.gym`", text(cardan.gym)]
    for name in ("Env", "VectorEnv", "Values"):
        parts += describe("cardan.gym." + name, getattr(cardan.gym, name))
    parts += ["## `cardan.study`", text(cardan.study)]
    for name in ("run", "optimise", "check", "Study", "Picture"):
        parts += describe("cardan.study." + name, getattr(cardan.study, name))
    return "\n\n".join(p for p in parts if p) + "\n"


def main():
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.name} is not what the docstrings say: python3 python/api_reference.py --write")


main()

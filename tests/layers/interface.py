#!/usr/bin/env python3
"""interface.py ROOT CC LIBRARY RELEASED [--write | --self-test]: the interface is still that of the last release.

Of every function that leaves LIBRARY its type, of every struct its size and members with their places, of every enumeration its
values, as libabigail (abidw) reads them out of debugging information: one line each. What RELEASED has must be there unchanged;
what was added since is counted. A change that is meant is a new minor version before 1.0, a new major version behind it, with a
line in CHANGELOG.md; the file is then written anew with --write, and the soname changes (docs/reference/stability.md).
--self-test: headers with a changed member, argument, value and a function less are found out; a function more is not."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET


def names_of(library):
    done = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True)
    return sorted({line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()[-2] == "T"})


def describe(include, compiler, names):
    """The XML of a library whose variables have the types of all functions: debugging information of one small file."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "a.c"), os.path.join(folder, "a.so")
        with open(source, "w", encoding="utf-8") as f:
            f.writelines(f'#include "cardan/{h}"\n' for h in sorted(os.listdir(os.path.join(include, "cardan"))))
            f.writelines(f"extern const __typeof__(&{n}) type_{n};\nconst __typeof__(&{n}) type_{n} = {n};\n" for n in names)
        done = subprocess.run([compiler, "-std=gnu17", "-g", "-fPIC", "-shared", f"-I{include}", source, "-o", library], capture_output=True,
                              text=True)
        if done.returncode:
            return None, done.stderr[:500]
        done = subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", library], stdout=subprocess.PIPE, check=True)
        return ET.fromstring(done.stdout), ""


class Types:
    def __init__(self, root):
        self.by_id = {e.get("id"): e for e in root.iter() if e.get("id")}
        self.named = {e.get("naming-typedef-id"): e for e in root.iter() if e.get("naming-typedef-id")}

    def name(self, key):
        e = self.by_id.get(key)
        if e is None:
            return "void"
        kind = e.tag
        if kind == "pointer-type-def":
            inner = self.name(e.get("type-id"))
            return inner.replace("(*)", "(**)", 1) if "(*)" in inner else inner.replace("()", "(*)", 1) if "()" in inner else inner + "*"
        if kind == "qualified-type-def":
            words = [w for w in ("const", "volatile", "restrict") if e.get(w) == "yes"]
            return " ".join([self.name(e.get("type-id")), *words])
        if kind == "function-type":
            return self.function(e, "()")
        if kind == "array-type-def":
            return self.name(e.get("type-id")) + "".join(f"[{s.get('length')}]" for s in e.findall("subrange"))
        if e.get("name") == "crd_real": # double, but on controllers
            return self.name(e.get("type-id"))
        return e.get("name") or kind

    def function(self, e, name):
        last = e.find("return")
        return f"{self.name(last.get('type-id')) if last is not None else 'void'} {name}({', '.join(self.parameter(p) for p in e.findall('parameter'))})"

    def parameter(self, p):
        return "..." if p.get("is-variadic") == "yes" else self.name(p.get("type-id"))

    def members(self, e, name, at):
        for d in e.findall("data-member"):
            var = d.find("var-decl")
            place = at + int(d.get("layout-offset-in-bits") or 0)
            inner = self.by_id.get(var.get("type-id"))
            if inner is not None and inner.get("is-anonymous") == "yes" and inner.tag in ("class-decl", "union-decl") and \
                    inner.get("naming-typedef-id") is None:
                yield from self.members(inner, f"{name}.{var.get('name')}" if var.get("name") else name, place)
            else:
                yield f"{name}.{var.get('name')} at {place // 8}{f' bit {place % 8}' if place % 8 else ''}: {self.name(var.get('type-id'))}"


def interface(root):
    types, lines = Types(root), set()
    for e in root.iter():
        name = e.get("name") or ""
        if e.tag == "var-decl" and name.startswith("type_crd_"):
            pointer = types.by_id[e.get("type-id")]
            while pointer.tag != "pointer-type-def":
                pointer = types.by_id[pointer.get("type-id")]
            lines.add(types.function(types.by_id[pointer.get("type-id")], name[5:]))
        if not name.startswith("crd_"):
            continue
        if e.tag in ("class-decl", "union-decl") and e.get("is-declaration-only") != "yes":
            lines.add(f"{name}: {int(e.get('size-in-bits')) // 8} bytes")
            lines.update(types.members(e, name, 0))
        if e.tag == "enum-decl":
            lines.update(f"{name}: {v.get('name')} = {v.get('value')}" for v in e.findall("enumerator"))
    return lines


def self_test(include, compiler, names, released):
    edits = {"a member": ("coupling.h", r"\bint order;", "long order;"), "an argument": ("coupling.h", r"\bdouble sample\b", "float sample"),
             "a value": ("base.h", r"CRD_LOG_WARNING\b(?=,)", "CRD_LOG_ODD, CRD_LOG_WARNING")}
    with tempfile.TemporaryDirectory() as folder:
        for what, (header, old, new) in edits.items():
            shutil.rmtree(os.path.join(folder, "include"), ignore_errors=True)
            shutil.copytree(include, os.path.join(folder, "include"))
            path = os.path.join(folder, "include/cardan", header)
            with open(path, encoding="utf-8") as f:
                text, count = re.subn(old, new, f.read())
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            found, wrong = describe(os.path.join(folder, "include"), compiler, names)
            if not count or found is None or not released - interface(found):
                print(f"{what} was changed and not noticed ({count} changes) {wrong}")
                return 1
    found, _ = describe(include, compiler, names[1:])
    if not released - interface(found):
        print("a function less was not noticed")
        return 1
    return 0


def main():
    root, compiler, library, path = sys.argv[1:5]
    if not shutil.which("abidw"):
        print("abidw of abigail-tools is not here")
        return 77
    include = os.path.join(root, "include")
    names = names_of(library)
    found, wrong = describe(include, compiler, names)
    if found is None:
        print(wrong)
        return 1
    now = interface(found)
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in sorted(now)))
        return 0
    if "--self-test" in sys.argv:
        return self_test(include, compiler, names, now)
    with open(path, encoding="utf-8") as f:
        released = set(f.read().splitlines())
    for line in sorted(released - now):
        print(f"not as released: {line}")
    print(f"{len(released)} lines of the interface of the last release, {len(released - now)} changed; {len(now - released)} are new")
    return 1 if released - now or len(released) < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The sources that a page of docs/contributing adds and changes, as files.

    page.py list PAGE.md SOURCE          prints their paths in the tree, one per line
    page.py write PAGE.md SOURCE OUT     writes them below OUT

- A block below `<!-- file: src/... -->` is a new file.
- A ```diff block below `<!-- patch: PATH -->` changes a file of the tree: lines with a blank in front
  (or nothing but a `-`) have to stand in it, one after the other and in one place only; lines with `+`
  are added.
"""
import os
import re
import sys

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"^<!-- (file|patch): (.+?) -->\s*$")


def pieces(page):
    """Yields (line number, kind, path, lines) of every block that has a mark."""
    mark, lines, start = None, None, 0
    with open(page, encoding="utf-8") as text:
        for number, line in enumerate(text.read().splitlines(), 1):
            if lines is None and FENCE.match(line):
                lines, start = [], number
            elif lines is not None and line.startswith("```"):
                if mark:
                    yield start, mark[1], mark[2], lines
                mark, lines = None, None
            elif lines is not None:
                lines.append(line)
            elif MARK.match(line):
                mark = MARK.match(line)
            elif line.strip():
                mark = None


def patched(where, path, text, diff):
    """The text with the patch, which fits in one place."""
    old = [line[1:] for line in diff if not line.startswith("+")]
    new = [line[1:] for line in diff if not line.startswith("-")]
    lines = text.split("\n")
    places = [i for i in range(len(lines)) if lines[i:i + len(old)] == old]
    if len(places) != 1:
        sys.exit(f"{where}: its lines stand in {path} {len(places)} times, expected once")
    return "\n".join(lines[:places[0]] + new + lines[places[0] + len(old):])


def read_page(page, source):
    """Path in the tree -> content."""
    files = {}
    for number, kind, path, lines in pieces(page):
        where = f"{page}:{number}"
        if kind == "file" and path.startswith("src/"):
            files[path] = "\n".join(lines) + "\n"
        elif kind == "patch":
            if path not in files:
                with open(os.path.join(source, path), encoding="utf-8") as file:
                    files[path] = file.read()
            files[path] = patched(where, path, files[path], lines)
    return files


def main(argv):
    what, page, source = argv[1:4]
    files = read_page(page, source) if what == "write" else {
        path: "" for _, kind, path, _ in pieces(page) if kind == "patch" or path.startswith("src/")}
    for path, content in files.items():
        if what == "list":
            print(path)
            continue
        target = os.path.join(argv[4], path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as file:
            file.write(content)


main(sys.argv)

#!/usr/bin/env python3
"""Every link in the documentation leads to a file and to a heading in it, and every page that a source names is there.

    links.py SOURCE_DIR
"""
import glob
import os
import re
import subprocess
import sys

root = sys.argv[1]
PAGES = [p for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
         for p in glob.glob(os.path.join(root, pattern), recursive=True)]


def prose(page):
    with open(page, encoding="utf-8") as f:
        return re.sub(r"^```.*?^```", "", f.read(), flags=re.S | re.M)


def anchors(page):
    """The names that headings get, as GitHub makes them."""
    names = set()
    for line in re.findall(r"^#+ +(.+?)\s*$", prose(page), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        while name in names:
            name += "-1"
        names.add(name)
    return names


def bad_links(page):
    for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", prose(page)):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        where = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(where):
            yield f"{page}: {target} leads nowhere"
        elif anchor and where.endswith(".md") and anchor not in anchors(where):
            yield f"{page}: {target}: no such heading"


def named_pages():
    """Pages that sources, tests and messages name."""
    files = subprocess.run(["git", "-C", root, "ls-files", "src", "include", "cmake", "examples", "tests", "docs", "*.md"],
                           capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, files):
        path = os.path.join(root, name)
        if not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as f:
            for page in re.findall(r"(?<![\w/.-])docs/[\w/-]+\.md\b", f.read()):
                if not os.path.exists(os.path.join(root, page)):
                    yield f"{path}: there is no {page}"


bad = [line for page in PAGES for line in bad_links(page)] + list(named_pages())
print("\n".join(bad))
print(f"{len(PAGES)} pages, {len(bad)} bad links")
sys.exit(1 if bad else 0)

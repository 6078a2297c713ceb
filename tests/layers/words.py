#!/usr/bin/env python3
"""words.py ROOT: keeps the words of docs/explanation/architecture.md. Some are nobody's terms: names of functions, fields, files
and keys of JSON do not have them, comments neither. Some mean one thing: names with them stand only where that thing
lives. words.py --self-test: a mistake of each kind is noticed."""
import os
import re
import sys

# Nobody's terms, with what to say instead.
STRANGE = {
    "heed": "note, obey", "heeds": "notes", "heeded": "noted",
    "hear": "receive", "hears": "receives", "heard": "received, last_pdu",
    "deaf": "closed, muted", "ear": "listener", "ears": "listeners",
    "bringer": "source, loader", "told": "given, announced, said",
}
# Plain English in a sentence.
PROSE = {"told"}
CIRCUITS = ("src/circuit/", "src/cli/circuit/", "include/cardan/circuit.h")
# One meaning: where names with the word may stand. Others call such functions by their name: CALLS.
HOMES = {
    "probe": ("src/quality/", "src/master/energy/", "include/cardan/quality.h", *CIRCUITS),
    "probes": ("src/quality/", "src/master/energy/", "include/cardan/quality.h", *CIRCUITS),
    "probing": ("src/quality/", "src/master/energy/"),
    "chain": ("src/reproduce/", *CIRCUITS),
    "chains": ("src/reproduce/", *CIRCUITS),
}
CALLS = re.compile(r"crdi?_|CRDI?_")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*', re.S)
KEY = re.compile(r'"[a-z][a-z0-9_]*"')


def parts_of(name):
    """get_lastPDU -> get, last, pdu"""
    return [p.lower() for p in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def words_in(text):
    """(line, kind, name) of each name, key and word of a comment."""
    line, at = 1, 0
    for m in TOKEN.finditer(text):
        line += text.count("\n", at, m.start())
        at = m.start()
        token = m[0]
        if token.startswith(("//", "/*")):
            yield from ((line, "comment", w) for w in re.findall(r"[A-Za-z]+", token))
        elif token[0] in "\"'":
            if KEY.fullmatch(token):
                yield line, "key", token[1:-1]
        else:
            yield line, "name", token


def wrong_word(path, kind, name):
    """What is wrong with it, or None."""
    for part in parts_of(name):
        if part in STRANGE and not (kind == "comment" and part in PROSE):
            return f"'{part}' is nobody's term, say {STRANGE[part]}"
        homes = HOMES.get(part)
        if kind == "name" and homes and not path.startswith(homes) and not CALLS.match(name):
            return f"'{part}' means something else (docs/explanation/architecture.md, words); it lives in {', '.join(homes)}"
    return None


def sources(root):
    for top in ("src", "include"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for f in sorted(files):
                if f.endswith((".c", ".h", ".js", ".def")):
                    full = os.path.join(folder, f)
                    yield os.path.relpath(full, root).replace(os.sep, "/"), full


def check_file(path, text):
    bad = [f"{path}: '{p}' is nobody's term, say {STRANGE[p]}" for p in parts_of(path) if p in STRANGE]
    for line, kind, name in words_in(text):
        wrong = wrong_word(path, kind, name)
        if wrong:
            bad.append(f"{path}:{line}: {kind} '{name}': {wrong}")
    return bad


def check_tree(root):
    bad, count = [], 0
    for path, full in sources(root):
        count += 1
        with open(full, encoding="utf-8") as f:
            bad += check_file(path, f.read())
    return bad, count


def self_test():
    wrong = [
        ("src/web/heed.c", ""), ("src/web/x.c", "int told_once;"), ("src/web/x.c", "int lastHeard;"),
        ("src/web/x.c", "enum { CRDI_WHY_TOLD };"), ("src/web/x.c", 'put(w, "last_heard", t);'),
        ("src/web/x.c", "// a reader that is deaf\n"), ("src/web/x.c", "/* nobody\n   heeds it */"),
        ("src/ssp/x.c", "char chain[600];"), ("src/web/x.c", "int probe_count;"),
    ]
    right = [
        ("src/web/x.c", "int nearest, clear, heartbeat, linear, early;"), ("src/web/x.c", "// the page is told\n"),
        ("src/web/x.c", 'say("it was told so, and heard");'), ("src/circuit/x.c", "int chain;"),
        ("src/master/step/tick.c", "crdi_bonds_probe(m, t);"),
    ]
    failed = [w for w in wrong if not check_file(*w)] + [r for r in right if check_file(*r)]
    print(f"{len(wrong) + len(right)} examples, {len(failed)} wrong: {failed}")
    return 1 if failed else 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    bad, count = check_tree(os.path.abspath(sys.argv[1]))
    print("\n".join(bad))
    print(f"{count} files, {len(bad)} words that are not ours")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())

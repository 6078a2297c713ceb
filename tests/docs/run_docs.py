#!/usr/bin/env python3
"""Runs the commands that the documentation shows and compares what they print.

    run_docs.py PAGE.md...

A page is run from top to bottom in an empty folder of its own:
- ```LANGUAGE blocks below a line `<!-- file: NAME -->` are written to that file.
- ```console blocks: lines that start with `$ ` are commands for sh (a backslash at the end continues
  them on the next line), the lines below are what they print on standard output and standard error
  together. `...` stands for anything inside a line, a line of `...` alone for any number of lines.
  What is not shown may be printed when the block shows nothing at all for that command.
- `<!-- exit: N -->` in the line above a block is the exit code of its last command; the others, and
  without it all, have to end with 0.

The surroundings come from the environment: CARDAN (the command), FMUS, CARDAN_SOURCE, CARDAN_BUILD.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"^<!-- (file|exit): (.+?) -->\s*$")
TIMEOUT = 120


def blocks(text):
    """Yields (line number, language, marks, lines) of every fenced block."""
    marks, language, lines, start = {}, None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if language is None and fence:
            language, lines, start = fence[1], [], number
        elif language is not None and line.startswith("```"):
            yield start, language, marks, lines
            marks, language = {}, None
        elif language is not None:
            lines.append(line)
        elif MARK.match(line):
            mark = MARK.match(line)
            marks[mark[1]] = mark[2]
        elif line.strip():
            marks = {}


def commands(lines):
    """Yields (command, expected lines) of a console block."""
    command, expected, open_end = None, [], False
    for line in lines:
        if open_end:
            command += "\n" + line
            open_end = line.endswith("\\")
        elif line.startswith("$ "):
            if command is not None:
                yield command, expected
            command, expected = line[2:], []
            open_end = line.endswith("\\")
        else:
            expected.append(line)
    if command is not None:
        yield command, expected


def matches(expected, actual):
    """Whether the printed lines are the expected ones, with their wildcards."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
            continue
        parts = [re.escape(part) for part in line.rstrip().split("...")]
        # Columns move when numbers grow: any run of blanks is like any other.
        parts = [re.sub(r"(?:\\ )+", r"[ \t]+", part) for part in parts]
        pattern += ".*".join(parts) + r"[ \t]*\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def run(command, folder, environment, groups):
    """Returns (exit code, what it printed); its process group is added to `groups`. Into a file,
    not a pipe, which a process in the background would keep open."""
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        shell = subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=printed,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        groups.append(shell.pid)
        code = shell.wait(timeout=TIMEOUT)
        printed.seek(0)
        return code, printed.read()


def run_page(path, environment, keep=False):
    """Returns (number of commands, list of complaints)."""
    text = open(path, encoding="utf-8").read()
    folder = tempfile.mkdtemp(prefix="docs.")
    count, bad, groups = 0, [], []
    try:
        for number, language, marks, lines in blocks(text):
            if "file" in marks:
                name = os.path.join(folder, marks["file"])
                os.makedirs(os.path.dirname(name), exist_ok=True)
                with open(name, "w", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")
            if language != "console":
                continue
            listed = list(commands(lines))
            if not listed:
                bad.append(f"{path}:{number}: a console block without a command")
            for i, (command, expected) in enumerate(listed):
                count += 1
                wanted = int(marks.get("exit", 0)) if i == len(listed) - 1 else 0
                code, printed = run(command, folder, environment, groups)
                if code != wanted:
                    bad.append(f"{path}:{number}: '{command}' ended with {code}, "
                               f"expected {wanted}; it printed:\n" + printed)
                elif expected and not matches(expected, printed.splitlines()):
                    bad.append(f"{path}:{number}: '{command}' printed\n" + printed +
                               "expected\n" + "\n".join(expected))
    finally:
        for group in groups:  # what a page has left in the background
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                pass
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return count, bad


def self_test():
    """The runner has to notice what is wrong."""
    good = [(["a", "...", "z"], ["a", "1", "2", "z"]), (["x = ... m"], ["x =   1.5 m"]),
            (["..."], []), (["a"], ["a  "])]
    wrong = [(["a"], ["a", "b"]), (["a", "b"], ["a"]), (["x = ... m"], ["x = 1.5 s"]), (["a.c"], ["abc"])]
    for expected, actual in good:
        assert matches(expected, actual), (expected, actual)
    for expected, actual in wrong:
        assert not matches(expected, actual), (expected, actual)
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.md")

        def complaints(text):
            with open(page, "w", encoding="utf-8") as file:
                file.write(text)
            return run_page(page, dict(os.environ))[1]

        assert not complaints("```console\n$ echo 1\n1\n```\n")
        assert complaints("```console\n$ echo 1\n2\n```\n")
        assert complaints("```console\n$ false\n```\n")
        assert not complaints("<!-- exit: 1 -->\n```console\n$ true\n$ false\n```\n")
        assert complaints("<!-- exit: 1 -->\n```console\n$ false\n$ false\n```\n")
        assert not complaints("<!-- file: a/b.txt -->\n```yaml\nx\n```\n\n```console\n$ cat a/b.txt\nx\n```\n")


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        print("the runner notices wrong output and wrong exit codes")
        return 0
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    environment["PATH"] = os.path.dirname(environment["CARDAN"]) + ":" + environment["PATH"]
    failed = False
    for path in arguments:
        count, bad = run_page(path, environment)
        for text in bad:
            print(text + "\n")
        print(f"{path}: {count} commands, {len(bad)} wrong")
        failed = failed or bool(bad)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

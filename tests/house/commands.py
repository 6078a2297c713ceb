"""The compile commands of a build, as another compiler or clang-tidy can take them, and many calls at a time."""
import concurrent.futures
import json
import os
import shlex
import subprocess

ONLY_GCC = {"-fno-semantic-interposition"}  # says nothing new to clang


def tracked(root, *endings):
    """Files of the tree with such names: those that git knows or would add, all where there is no git."""
    done = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    names = done.stdout.splitlines()
    if done.returncode:
        names = [os.path.relpath(os.path.join(at, name), root)
                 for at, _, found in os.walk(root) for name in found]
        names = [name for name in names if name.split(os.sep)[0] != "build"]
    return sorted(name for name in names if name.endswith(endings) and os.path.exists(os.path.join(root, name)))


def read(build, root, folders):
    """[(file, arguments, folder of the call)], one for each file below `folders` of root that is compiled."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    found = {}
    for e in entries:
        name = os.path.relpath(e["file"], root)
        if name.split(os.sep)[0] in folders and name not in found and os.path.exists(e["file"]):
            found[name] = (name, arguments(shlex.split(e["command"])), e["directory"])
    return [found[name] for name in sorted(found)]


def arguments(words):
    """Those of a compiler call, without launcher, compiler, output and source file."""
    kept, skip = [], False
    for w in words[next(i for i, w in enumerate(words) if w.startswith("-")):]:
        if skip:
            skip = False
        elif w in ("-o", "-MF", "-MT"):
            skip = True
        elif w == "-c":
            break  # the source file is behind it
        elif w not in ONLY_GCC and w != "-MD":
            kept.append(w)
    return kept


def run_all(calls):
    """calls: [(name, command, folder)]; yields (name, exit code, output), as many at a time as there are CPUs."""
    def one(call):
        name, command, folder = call
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return name, done.returncode, done.stdout + (done.stderr if done.returncode else "")

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one, calls)


def judge(calls, what):
    """Prints what the calls that failed had to say, and how many they are. Exit code."""
    bad = 0
    for _, code, said in run_all(calls):
        if code:
            bad += 1
            print(said)
    print(f"{len(calls)} files, {bad} {what}")
    return 1 if bad or not calls else 0

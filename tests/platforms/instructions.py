"""instructions.py COMMAND SYSROOT FOLDER [PAGE]: what the circuits and twins of Rodriguez (2021, chapters 3 and 4) cost in
instructions of arm64, beside the times of the thesis's boards: the rows of `cardan reproduce ... --times` of the COMMAND built for
arm64, whose clock is qemu's count of instructions (count.c). Prints the table of docs/reference/platforms.md, or says how PAGE
differs from it. Needs qemu-user and the cross compiler; skipped (77) where they, or the COMMAND, are not there."""
import json
import os
import re
import shutil
import subprocess
import sys

CLOCKS = {"BeagleBone": 1.0, "Raspberry Pi 4": 1.5}  # GHz, Table 3.6
TOLERANCE = 0.1  # between the page and the count: compilers and libraries of other versions


def prepared(folder):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count.c")
    os.makedirs(folder, exist_ok=True)
    for compiler, flags, name in (("cc", ["-DCOUNT_PLUGIN"], "plugin.so"), ("aarch64-linux-gnu-gcc", [], "preload.so")):
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", *flags, "-o", os.path.join(folder, name), source], check=True)


def counted(command, sysroot, folder, chapter):
    count = os.path.join(folder, "count")
    with open(count, "wb") as file:
        file.write(bytes(8))
    done = subprocess.run(["qemu-aarch64", "-L", sysroot, "-E", "LD_PRELOAD=" + os.path.join(folder, "preload.so"),
                           "-plugin", os.path.join(folder, "plugin.so"), command, "reproduce", "rodriguez2021-" + chapter,
                           "--times", "--json"], env=dict(os.environ, CARDAN_COUNT=count), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"reproduce rodriguez2021-{chapter} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["rows"]


def digits(x):
    return f"{float(f'{x:.3g}'):.10g}"


def lines_of(rows):
    """A row for each of the thesis's: its form, what Cardan takes by itself, the boards."""
    found = {}
    for row in rows:
        stem, form = row["id"].rsplit(".", 1)
        entry = found.setdefault(stem, {"name": row["what"].split(": time")[0], "boards": {}})
        unit = 1e3 if row["what"].endswith(", s") else 1  # of a millisecond, as a million instructions are now
        entry["thesis" if form == "thesis" else "ours"] = unit * row["ours"]
        for board in CLOCKS if form == "thesis" else ():
            time = re.search(board + r" ([0-9.e+]+)", row["remark"])
            if time:
                entry["boards"][board] = unit * float(time[1])
    yield "| | published form, 10⁶ | Cardan's, 10⁶ | BeagleBone, ms | Raspberry Pi 4, ms | cycles per instruction, published form | the same, Cardan's |"
    yield "|---|---|---|---|---|---|---|"
    for entry in found.values():
        cells = [entry["name"]] + [digits(entry[form]) if form in entry else "" for form in ("thesis", "ours")]
        cells += [f"{entry['boards'][board]:g}" if board in entry["boards"] else "" for board in CLOCKS]
        for form in ("thesis", "ours"):
            cells.append(" / ".join(digits(CLOCKS[board] * time / entry[form]) for board, time in entry["boards"].items()
                                    if form in entry))
        yield "| " + " | ".join(cells) + " |"


def differences(page, lines):
    with open(page, encoding="utf-8") as file:
        kept = {line.split("|")[1].strip(): line for line in file if re.match(r"\| Table [34]\.", line)}
    for line in lines:
        name = line.split("|")[1].strip()
        numbers = [[float(x) for x in re.findall(r"[0-9.]+", text.split("|", 2)[2])] for text in (kept.pop(name, "| |"), line)]
        if len(numbers[0]) != len(numbers[1]) or any(abs(a - b) > TOLERANCE * b for a, b in zip(*numbers)):
            yield line
    yield from (f"no such row any more: {name}" for name in kept)


def main():
    command, sysroot, folder = sys.argv[1:4]
    tools = [tool for tool in ("qemu-aarch64", "aarch64-linux-gnu-gcc", "cc") if not shutil.which(tool)]
    if tools or not os.path.exists(command):
        print("not there:", *(tools or [command]))
        sys.exit(1 if os.environ.get("CARDAN_TEST_ARM") else 77)
    folder = os.path.abspath(folder)
    prepared(folder)
    lines = list(lines_of([row for chapter in ("ch3", "ch4") for row in counted(command, sysroot, folder, chapter)]))
    if len(sys.argv) < 5:
        print(*lines, sep="\n")
        return
    wrong = list(differences(sys.argv[4], lines[2:]))
    print(f"{len(lines) - 2} rows counted, {len(wrong)} differ from the page by more than {TOLERANCE:.0%}", *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


main()

"""Netlists through ngspice in batch mode and through Cardan, and how far apart they are."""

import os
import re
import subprocess

import numpy as np

# abstol and vntol far below the signals; trtol and reltol small: its steps are then far smaller
# than what 1e-3 would need, and what differs is not its own error.
TIGHT = "reltol=1e-5 abstol=1e-12 vntol=1e-9 chgtol=1e-18 trtol=1 itl4=200 itl1=500"
OTHER = (".ac", ".dc", ".disto", ".four", ".meas", ".measure", ".noise", ".op", ".print", ".plot",
         ".pss", ".pz", ".sens", ".sp", ".tf")
INTEGERS = re.compile(rb"No\. (Variables|Points): *(\d+)")


def read_text(path):
    """A netlist whatever its age: latin-1 cannot fail."""
    with open(path, encoding="latin-1") as f:
        return f.read().replace("\r", "")


def logical_lines(text):
    """Lines with their continuations joined; comments and .control left out. The title comes first."""
    out, control = [], False
    for i, line in enumerate(text.split("\n")):
        bare = line.strip()
        low = bare.lower()
        if i == 0:
            out.append(bare)
        elif low.startswith(".control"):
            control = True
        elif low.startswith(".endc"):
            control = False
        elif control or not bare or bare[0] == "*":
            continue
        elif bare[0] == "+" and len(out) > 1:
            out[-1] += " " + bare[1:]
        else:
            out.append(bare)
    return out


def electric(text):
    """The words of .thermal as R, C, V and I; .input as parameters; without .output."""
    out, start = [], None
    for line in text.split("\n"):
        words = line.split()
        low = words[0].lower() if words else ""
        if low == ".thermal":
            start = next((w[6:] for w in words if w.startswith("start=")), "0")
        elif low == ".endthermal":
            start = None
        elif low == ".input":
            value = next(w[6:] for w in words if w.startswith("start="))
            out.append(f".param {words[1]}={value}")
        elif low == ".output":
            continue
        elif start is None or not low or low[0] in "*.":
            out.append(line)
        elif low == "heat":
            out.append(f"I{words[1]} 0 {words[2]} {' '.join(words[3:])}")
        elif low == "temperature":
            out.append(f"V{words[1]} {words[2]} 0 {' '.join(words[3:])}")
        elif low == "resistance":
            value = re.sub(r"\bt\((?=[a-z])", "v(", " ".join(words[4:])).strip("{}")
            out.append(f"R{words[1]} {words[2]} {words[3]} r='{value}'")
        elif low == "capacity":
            own = [w[6:] for w in words if w.startswith("start=")]
            out.append(f"C{words[1]} {words[2]} 0 {words[3]} ic={(own or [start])[0]}")
    return "\n".join(out)


def deck(text, largest=None, options=TIGHT):
    """For ngspice: tight, with a largest step."""
    out = []
    for line in text.split("\n"):
        low = line.strip().lower()
        if low.startswith(".tran") and largest:
            words = line.split()
            uic = [w for w in words if w.lower() == "uic"]
            numbers = [w for w in words[1:] if w.lower() != "uic"]
            start = numbers[2] if len(numbers) > 2 else "0"
            line = f".tran {numbers[0]} {numbers[1]} {start} {largest:g} {' '.join(uic)}"
        if low.startswith(".end") and low.split()[0] == ".end":
            break
        if low.split(" ")[0] in OTHER:
            continue
        out.append(line)
    out.insert(1, f".options {options}\n.save all")
    return "\n".join(out) + "\n.end\n"


def read_raw(path):
    """Name -> array of the first transient in a raw file; names as run_peer's."""
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while True:
        end = data.index(b"Binary:\n", at) + 8
        head = data[at:end]
        sizes = {k: int(v) for k, v in INTEGERS.findall(head)}
        count, rows = sizes[b"Variables"], sizes[b"Points"]
        if b"Flags: complex" in head:
            count *= 2
        size = 8 * count * rows
        if b"Plotname: Transient" in head:
            break
        at = end + size
    names = [line.split()[1].decode("latin-1").lower()
             for line in head[head.index(b"Variables:\n"):].split(b"\n")[1:-2]]
    table = np.frombuffer(data[end:end + size]).reshape(rows, count)
    return {own_name(n): table[:, i] for i, n in enumerate(names)}


def own_name(name):
    """i(l.x1.l2) and v(x1.n): ngspice writes l.x1.l2#branch, and i(...) in raw files."""
    match = re.fullmatch(r"i\((.*)\)", name)
    part = match.group(1) if match else name[:-7] if name.endswith("#branch") else None
    if part is not None:
        if re.match(r"[a-z]\.", part):
            part = part[2:]
        return f"i({part})"
    return name if name == "time" or "(" in name else f"v({name})"


def ngspice(text, folder, name, timeout=300):
    """(signals, None) or (None, what went wrong)"""
    path, raw = os.path.join(folder, name + ".ng.cir"), os.path.join(folder, name + ".raw")
    with open(path, "w", encoding="latin-1") as f:
        f.write(text)
    if os.path.exists(raw):
        os.remove(raw)
    try:
        done = subprocess.run(["ngspice", "-n", "-b", "-r", raw, path], cwd=folder, timeout=timeout,
                              capture_output=True, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return None, f"ngspice takes more than {timeout} s"
    said = done.stdout + done.stderr
    if done.returncode or not os.path.exists(raw):
        lines = [line for line in said.splitlines() if re.search("error|abort|small|fail", line, re.I)]
        return None, "ngspice: " + (lines or said.splitlines() or ["says nothing"])[0]
    if "run simulation(s) aborted" in said or "too small" in said:
        return None, "ngspice: time step too small"
    return read_raw(raw), None


def read_own(path):
    with open(path, "rb") as f:
        names = f.readline().decode().split()
        table = np.frombuffer(f.read()).reshape(-1, len(names))
    return dict(zip(names, table.T))


def cardan(program, path, folder, step, relative=0.0, form="auto", method="tr", check=False,
           timeout=300):
    """(signals, None, 0) or (None, what it said, exit code). check: it is read, not run."""
    out = os.path.join(folder, os.path.basename(path) + f".{form}.bin")
    arguments = ["check"] if check else [out, form, method, repr(step), repr(relative)]
    try:
        done = subprocess.run([program, path, *arguments], capture_output=True, text=True,
                              errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None, f"takes more than {timeout} s", -1
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["says nothing"])[-1], done.returncode
    if check:
        return None, None, 0
    signals = read_own(out)
    os.remove(out)
    return signals, None, 0


def outside(x, t, y, times, width):
    """How far x at these times is from all that y was within `width` seconds of them."""
    first = np.maximum(np.searchsorted(t, times - width) - 1, 0)
    last = np.minimum(np.searchsorted(t, times + width) + 1, len(t))
    out = np.zeros(len(times))
    for i, (a, b) in enumerate(zip(first, last)):
        near = y[a:b]
        out[i] = max(near.min() - x[i], x[i] - near.max(), 0.0)
    return out


def distance(own, peer, until=None, points=4000, width=2e-5):
    """The largest difference as a part of the signal's range, and where; of the first seconds only.

    Half of the times are equally far apart, half are the peer's: it takes many where something
    happens. Edges may be shifted by `width` of the duration, or one step of the peer. A signal
    that is a thousandth of its kind's largest is dust, and measured against that; so is what moves
    by less than a thousand times the peer's tolerances.
    """
    t = peer["time"]
    span = t[-1] - t[0]
    grid = np.union1d(np.linspace(t[0], t[-1], points), t[::max(1, len(t) // points)])
    if until:
        grid = grid[grid <= until]
    worst, where = 0.0, ""
    names = [n for n in own if n in peer and n != "time"]
    scale = {"v": 0.0, "i": 0.0}
    for n in names:
        scale[n[0]] = max(scale[n[0]], np.max(np.abs(peer[n])))
    for n in names:
        if not np.all(np.isfinite(own[n])):
            return float("inf"), f"{n} is not finite", len(names)
        a = np.interp(grid, own["time"], own[n])
        b = np.interp(grid, t, peer[n])
        extent = max(np.ptp(peer[n]), 1e-3 * scale[n[0]], 1e-6 if n[0] == "v" else 1e-9)
        d = np.abs(a - b) / extent
        far = np.flatnonzero(d > 1e-4)
        d[far] = outside(a[far], t, peer[n], grid[far], width * span) / extent
        k = int(np.argmax(d))
        if d[k] > worst:
            worst, where = d[k], f"{n} at {grid[k]:.6g} s: {a[k]:.6g}, ngspice {b[k]:.6g}"
    return worst, where, len(names)

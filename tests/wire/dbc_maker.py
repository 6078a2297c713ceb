"""DBC files in the styles that are met: random messages, signals in both byte orders, multiplexing, floats."""
import random

UNITS = ["", "rpm", "Nm", "V", "A", "degC", "%", "km/h", "\u00b0C", "m/s\u00b2"]
FACTORS = [(1, 0), (1, 0), (0.5, 0), (0.1, -40), (0.01, 0), (2, -100), (0.00390625, -125), (1, -273.15),
           (0.0625, 0), (1e-3, 10), (-0.5, 100), (3, 7)]


class Message:
    def __init__(self, rng, length):
        self.rng, self.length = rng, length
        self.used = set()
        self.signals = []

    def bits(self, start, length, big):
        """The bits of a signal, as numbers byte * 8 + bit; None: they do not fit."""
        found, at = [], start
        for _ in range(length):
            if not 0 <= at < 8 * self.length:
                return None
            found.append(at)
            if not big:
                at += 1
            elif at % 8:
                at -= 1
            else:
                at += 15
        return found

    def place(self, lengths, used):
        for _ in range(30):
            length = self.rng.choice(lengths)
            big = self.rng.random() < 0.5
            start = self.rng.randrange(8 * self.length)
            bits = self.bits(start, length, big)
            if bits and not used & set(bits):
                used |= set(bits)
                return start, length, big
        return None


def number(x):
    return repr(x) if isinstance(x, float) else str(x)


def make_signal(rng, name, place, real=None):
    start, length, big = place
    factor, offset = rng.choice(FACTORS)
    signed = rng.random() < 0.5
    low, high = (-(1 << length - 1), (1 << length - 1) - 1) if signed else (0, (1 << length) - 1)
    limits = (0, 0)
    if not real and length < 40 and rng.random() < 0.4:
        limits = sorted((low * factor + offset, high * factor + offset))
    return dict(name=name, start=start, length=length, big=big, signed=signed or bool(real), factor=factor,
                offset=offset, limits=limits, unit=rng.choice(UNITS), mux="", real=real,
                comment="", items=[(v, f"Item {v}") for v in range(0, min(4, 1 << length))]
                if not real and rng.random() < 0.2 else [])


def fill(rng, m, prefix, used, lengths, most):
    for i in range(rng.randrange(most + 1)):
        real = rng.choice([None] * 8 + [1, 2])
        place = m.place([32 * real] if real else lengths, used)
        if place:
            m.signals.append(make_signal(rng, f"{prefix}S{i}", place, real))
            yield m.signals[-1]


def multiplex(rng, m, name, depth):
    """A selector and what it selects; extended if depth says so. Lines of SG_MUL_VAL_."""
    place = m.place([2, 3, 4, 8], m.used)
    if not place:
        return []
    selector = make_signal(rng, f"{name}Mux", place)
    selector.update(mux="M", signed=False, factor=1, offset=0, limits=(0, 0), items=[])
    m.signals.append(selector)
    ranges, most = [], 1 << place[1]
    values = rng.sample(range(most), min(most, rng.randrange(2, 6)))
    inner = set()
    for k, v in enumerate(sorted(values)):
        used = set(m.used)
        for s in fill(rng, m, f"{name}M{v}", used, [1, 3, 8, 12, 16, 24, 32], 4):
            s["mux"] = f"m{v}"
            ranges.append((s["name"], selector["name"], f"{v}-{v}"))
        if depth and k == 0:
            place = m.place([2, 4], used)
            if place:
                second = make_signal(rng, f"{name}Inner", place)
                second.update(mux=f"m{v}M", signed=False, factor=1, offset=0, limits=(0, 0), items=[])
                m.signals.append(second)
                ranges.append((second["name"], selector["name"], f"{v}-{v}"))
                for w, span in ((0, "0-1"), (2, "2-2, 3-3")):
                    deep = set(used)
                    for s in fill(rng, m, f"{name}D{w}", deep, [4, 8, 16], 3):
                        s["mux"] = f"m{w}"
                        ranges.append((s["name"], second["name"], span))
                    inner |= deep
        inner |= used
    m.used |= inner
    return ranges if depth else []


def line_of(s, rng):
    mux = f" {s['mux']}" if s["mux"] else ""
    low, high = s["limits"]
    return (f" SG_ {s['name']}{mux} : {s['start']}|{s['length']}@{0 if s['big'] else 1}{'-' if s['signed'] else '+'} "
            f"({number(s['factor'])},{number(s['offset'])}) [{number(low)}|{number(high)}] \"{s['unit']}\" "
            f"{rng.choice(['Vector__XXX', 'A', ' A,B', 'B, C'])}")


def make_dbc(seed):
    """The text of a file, as bytes."""
    rng = random.Random(seed)
    head = ['VERSION "%d"' % seed, "", "NS_ : ", "\tNS_DESC_", "\tCM_", "\tBA_DEF_", "\tSG_MUL_VAL_", "", "BS_:", "",
            "BU_: A B C", ""]
    body, tail = [], []
    ids = rng.sample(range(2048), 40)
    for i in range(rng.randrange(4, 25)):
        fd = rng.random() < 0.2
        m = Message(rng, rng.choice([12, 16, 24, 64]) if fd else rng.choice([1, 2, 4, 6, 7, 8, 8, 8, 8]))
        ident = ids[i] if rng.random() < 0.7 else 0x80000000 | rng.randrange(1 << 29)
        for s in fill(rng, m, f"N{i}", m.used, [1, 2, 4, 5, 8, 8, 10, 12, 13, 16, 16, 24, 32, 33, 48, 64], 8):
            s["comment"] = rng.choice(["", "", 'said of "it"', "two\nlines; BO_ 1 X: 8 Y"])
        ranges = multiplex(rng, m, f"N{i}", seed % 3 == 0) if rng.random() < 0.4 else []
        if not m.signals:
            continue
        body += [f"BO_ {ident} Message_{i}: {m.length} {rng.choice(['A', 'B', 'Vector__XXX'])}"]
        body += [line_of(s, rng) for s in m.signals] + [""]
        tail += [f"SG_MUL_VAL_ {ident} {a} {b} {c};" for a, b, c in ranges]
        tail += [f"SIG_VALTYPE_ {ident} {s['name']} : {s['real']};" for s in m.signals if s["real"]]
        tail += [f"VAL_ {ident} {s['name']} " + " ".join(f'{v} "{t}"' for v, t in s["items"]) + " ;"
                 for s in m.signals if s["items"]]
        tail += ["CM_ SG_ %d %s \"%s\";" % (ident, s["name"], s["comment"].replace('"', '\\"'))
                 for s in m.signals if s["comment"]]
        if rng.random() < 0.5:
            tail += [f'BA_ "GenMsgCycleTime" BO_ {ident} {rng.choice([5, 10, 20, 100])};']
        if fd:
            tail += [f'BA_ "VFrameFormat" BO_ {ident} {15 if ident >> 31 else 14};']
    kinds = ",".join(f'"{k}"' for k in ["StandardCAN", "ExtendedCAN"] + ["reserved"] * 12 +
                     ["StandardCAN_FD", "ExtendedCAN_FD"])
    defs = ['BA_DEF_ BO_  "GenMsgCycleTime" INT 0 65535;', f'BA_DEF_ BO_  "VFrameFormat" ENUM  {kinds};',
            'BA_DEF_DEF_  "GenMsgCycleTime" 0;', 'BA_DEF_DEF_  "VFrameFormat" "StandardCAN";']
    end = "\r\n" if seed % 2 else "\n"
    return end.join(head + body + defs + tail + [""]).encode("cp1252")

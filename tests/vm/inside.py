"""inside.py CARDAN: what only a kernel with PREEMPT_RT, CAN and netem can show; run by vm.py in the virtual machine."""
import json
import math
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

import can
import cantools

sys.path.insert(0, "examples/can")
import drive  # noqa: E402  (its checksum)

CARDAN = sys.argv[1]
SO_TIMESTAMPNS = 35  # of Linux; socket does not have it


def run(*line, code=0, **more):
    ran = subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=120, **more)
    assert code is None or ran.returncode == code, f"{line}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran


def real_time():
    """doctor knows the kernel, and a paced run gets its priority and its memory."""
    checks = {row["id"]: row for row in json.loads(run(CARDAN, "doctor", "--json", "--duration", "0", code=None).stdout)["checks"]}
    assert pathlib.Path("/sys/kernel/realtime").read_text().strip() == "1"
    for name, has in (("preemption", "PREEMPT_RT"), ("fifo", "works"), ("memlock", "all")):
        assert checks[name]["state"] == "ok" and has in checks[name]["found"], (name, checks[name])


def late(port_in, port_out, count, pause):
    """Delays in seconds of the datagrams that arrive of `count` sent to port_in, what was lost, and how late this machine is.

    The kernel says when one came, so that nobody has to be awake for it. How much later than it should a sleep ends tells what
    delays have that neither netem nor Cardan has asked for."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("127.0.0.1", port_out))
    receiver.settimeout(30)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sent, arrived, lateness = [0.0] * count, {}, []

    def listen():
        try:
            while len(arrived) < count:
                data, notes, _, _ = receiver.recvmsg(64, 128)
                if data == b"end":
                    return
                seconds, nanoseconds = struct.unpack("qq", notes[0][2][:16])
                arrived[int(data[1:])] = seconds + 1e-9 * nanoseconds
        except TimeoutError:
            pass

    thread = threading.Thread(target=listen)
    thread.start()
    for k in range(count):
        sent[k] = time.time()
        sender.sendto(b"\xf0%06d" % k, ("127.0.0.1", port_in))
        time.sleep(pause)
        lateness.append(time.time() - sent[k] - pause)
    time.sleep(3)  # all that is on its way has come
    for _ in range(100):  # some of them may be lost
        sender.sendto(b"end", ("127.0.0.1", port_out))
    thread.join()
    return [arrived[k] - sent[k] for k in sorted(arrived)], 1 - len(arrived) / count, statistics.quantiles(lateness)[2]


def netem():
    """The kernel's bad network and Cardan's have the same delays and the same loss."""
    count, jitter, loss = 400, 0.4, 0.1
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1s", "400ms", "loss", "10%")
    kernel, kernel_lost, slow = late(7001, 7001, count, 0.01)
    run("tc", "qdisc", "del", "dev", "lo", "root")
    with subprocess.Popen([CARDAN, "dcp", "emulate", "--listen", "udp://127.0.0.1:7002", "--to", "udp://127.0.0.1:7003", "--delay", "1 s",
                           "--jitter", "400 ms", "--loss", "0.1", "--in-order", "no", "--seed", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as relay:
        print(relay.stdout.readline().strip())
        ours, ours_lost, slower = late(7002, 7003, count, 0.01)
        relay.terminate()
        print(relay.stdout.read())
    for name, delays, lost in (("netem", kernel, kernel_lost), ("cardan", ours, ours_lost)):
        print(f"  {name}: quartiles {' '.join(f'{q:.4f}' for q in statistics.quantiles(delays))} s, lost {lost:.3f}")
    # Four standard deviations of each difference. A quantile q of n uniform delays of width w = 2 jitter has w sqrt(q (1 - q) / n). This
    # machine stands still at times, which quartiles do not see; its everyday lateness has been measured with each of the two, and a datagram
    # meets it twice: when it is sent, and when its time has come.
    print(f"  three of four sleeps end up to {1e3 * slow:.1f} and {1e3 * slower:.1f} ms late")
    slack = 0.02 + 2 * (slow + slower)
    assert slack < 0.2, f"this machine is {slow} and {slower} s late: nothing can be told of delays"
    n = count * (1 - loss)
    for q, one, other in zip((0.25, 0.5, 0.75), statistics.quantiles(ours), statistics.quantiles(kernel)):
        assert abs(one - other) < 4 * 2 * jitter * math.sqrt(2 * q * (1 - q) / n) + slack, f"quartile {q}: {one} s, netem {other} s"
    assert abs(ours_lost - kernel_lost) < 4 * math.sqrt(2 * loss * (1 - loss) / count), f"lost {ours_lost}, netem {kernel_lost}"


def frames_of(log):
    """Frames of lines as candump -L writes them, without times: '123#00'. Newer kernels set a flag (4) that says CAN FD once more."""
    frames = [line.split()[2] for line in log.splitlines() if line.startswith("(")]
    return [re.sub("##(.)", lambda flags: f"##{int(flags.group(1), 16) & 3}", frame) for frame in frames]


def random_frames(count, seed):
    """Lines of a log with frames of all kinds: short and long identifiers, CAN FD with its flags, remote ones."""
    draw, lines = random.Random(seed), []
    for k in range(count):
        name = f"{draw.randrange(1 << 29):08X}" if draw.random() < 0.4 else f"{draw.randrange(1 << 11):03X}"
        kind = draw.random()
        if kind < 0.3:
            text = f"{name}##{draw.choice('0123')}{draw.randbytes(draw.choice([0, 1, 7, 8, 12, 16, 20, 24, 32, 48, 64])).hex().upper()}"
        elif kind < 0.4:
            text = f"{name}#R{draw.randrange(1, 9)}"
        else:
            text = f"{name}#{draw.randbytes(draw.randrange(9)).hex().upper()}"
        lines.append(f"({1000 + k * 0.001:.6f}) vcan0 {text}")
    return "\n".join(lines) + "\n"


def listening(program, *line, **more):
    """A program that reads vcan0, once it does: the kernel lists its socket then."""
    receivers = pathlib.Path("/proc/net/can/rcvlist_all")
    before = receivers.read_text().count("vcan0 ")
    started = subprocess.Popen([program, *line], **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more})
    until = time.monotonic() + 60
    while receivers.read_text().count("vcan0 ") <= before and started.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    return started


def can_frames():
    """What cardan can send sends is what candump sees, and what canplayer plays is what cardan can log prints."""
    count = 400
    log = pathlib.Path(os.environ["TMPDIR"]) / "frames.log"
    log.write_text(random_frames(count, 1))
    want = frames_of(log.read_text())
    seen = listening("candump", "-L", "-n", str(count), "vcan0")
    run(CARDAN, "can", "send", "vcan0", "--log", log, "--speed", "0")
    got = frames_of(seen.communicate(timeout=60)[0])
    assert got == want, next((f"frame {k}: candump {g}, sent {w}" for k, (g, w) in enumerate(zip(got, want)) if g != w), f"{len(got)} of {count}")
    ours = listening(CARDAN, "can", "log", "vcan0", "-n", str(count))
    run("canplayer", "-I", log, "-t")
    got = frames_of(ours.communicate(timeout=60)[0])
    assert got == want, next((f"frame {k}: logged {g}, played {w}" for k, (g, w) in enumerate(zip(got, want)) if g != w), f"{len(got)} of {count}")


def can_full_load():
    """1 Mbit/s of frames of 8 bytes is at most 8,000 a second: each is logged, or counted among those that the kernel had no room for while
    the host of this machine let it stand still."""
    count, rate = 20000, 8000
    log = pathlib.Path(os.environ["TMPDIR"]) / "load.log"
    with log.open("w") as file:
        ours = listening(CARDAN, "can", "log", "vcan0", "-n", str(count), stdout=file)
    began = time.monotonic()
    with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as bus:
        bus.bind(("vcan0",))
        for k in range(count):
            while time.monotonic() < began + k / rate:
                pass
            bus.send(struct.pack("=IB3xQ", k % 2048, 8, k))
    took = time.monotonic() - began
    try:
        err = ours.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        ours.send_signal(signal.SIGINT)
        err = ours.communicate(timeout=20)[1]
    got = frames_of(log.read_text())
    print(f"  {count} frames in {took:.2f} s, {count / took:.0f} a second; {err.strip()}")
    lost = re.search(r"(\d+) frames lost for want of room", err)
    assert len(got) + int(lost.group(1) if lost else 0) == count, f"{len(got)} of {count}: {err}"
    numbers = [int.from_bytes(bytes.fromhex(frame.split("#")[1]), "little") for frame in got]
    assert numbers == sorted(set(numbers)) and numbers[-1] < count, "frames in another order, twice, or others"


def can_down():
    """An interface that goes down, or is not there, is named."""
    for name, what in (("nocan0", "nocan0"), ("lo", "lo")):
        ran = run(CARDAN, "can", "log", name, "-n", "1", code=None)
        assert ran.returncode != 0 and what in ran.stderr, ran.stderr
        print("  " + ran.stderr.strip())
    ours = listening(CARDAN, "can", "log", "vcan0", "-n", "1", "--duration", "60 s")
    run("ip", "link", "set", "vcan0", "down")
    said = ours.stderr.readline() + ours.stderr.readline()
    assert "vcan0 is down" in said, said
    run("ip", "link", "set", "vcan0", "up")
    while ours.poll() is None:  # it has the interface again
        run("cansend", "vcan0", "123#01")
    out, err = ours.communicate()
    print("  " + (said + err).strip().replace("\n", "\n  "))
    assert frames_of(out) == ["123#01"], out + err
    run("ip", "link", "set", "vcan0", "down")
    ran = run(CARDAN, "can", "send", "vcan0", "123#01", code=None)
    run("ip", "link", "set", "vcan0", "up")
    assert ran.returncode != 0 and "vcan0" in ran.stderr and "down" in ran.stderr, ran.stderr
    print("  " + ran.stderr.strip())


def folder_of(name):
    folder = pathlib.Path(os.environ["TMPDIR"]) / name
    folder.mkdir()
    return folder


class PythonDrive(threading.Thread):
    """The drive of examples/can by python-can and cantools, on vcan0: Actual follows Set. Neither knows Cardan's codec."""

    def __init__(self):
        super().__init__(daemon=True)
        self.database = cantools.database.load_file("examples/can/drive.dbc")
        self.bus = can.Bus(interface="socketcan", channel="vcan0")
        self.wrong, self.taken, self.ends = 0, [], threading.Event()
        self.speed = self.count = 0
        self.start()

    def run(self):
        while not self.ends.is_set():
            frame = self.bus.recv(0.05)
            if frame is None or frame.arbitration_id != 100:
                continue
            if len(frame.data) != 8 or drive.crc8(frame.data[:7]) != frame.data[7]:
                self.wrong += 1
                continue
            told = self.database.decode_message(100, frame.data)
            self.taken.append(told["Count"])
            self.speed += 0.2 * (told["SpeedRef"] - self.speed)
            data = self.database.encode_message(101, {"Speed": round(self.speed, 1), "Torque": told["TorqueRef"], "State": "running" if told["Enable"]
                                                      else "ready", "Count": self.count % 16, "Crc": 0})
            self.count += 1
            self.bus.send(can.Message(arbitration_id=101, data=data[:7] + bytes([drive.crc8(data[:7])]), is_extended_id=False))

    def end(self):
        self.ends.set()
        self.join()
        self.bus.shutdown()


def can_unit():
    """A unit on vcan0 in a paced run with SCHED_FIFO, against a drive of python-can and cantools: every Set is there, in order."""
    folder = folder_of("unit")
    for name in ("drive.dbc", "drive.yaml"):
        (folder / name).write_text(pathlib.Path("examples/can", name).read_text().replace("udp://239.74.163.2:43113", "vcan0")
                                   .replace("    parameters:", "    link: { contact: 60 s, timeout: 20 s, capture: bus.pcapng }\n    parameters:"))
    peer = PythonDrive()
    ran = run(CARDAN, "run", "drive.yaml", "--json", cwd=folder)
    peer.end()
    assert "SCHED_FIFO" not in ran.stderr, ran.stderr  # it would say that it was not permitted
    assert peer.wrong == 0, f"{peer.wrong} set values with a wrong checksum"
    assert peer.taken == [k % 16 for k in range(len(peer.taken))] and len(peer.taken) > 50, peer.taken
    rows = [line.split(",") for line in (folder / "drive.csv").read_text().splitlines()]
    speeds = [float(row[rows[0].index("drive.Actual.Speed")]) for row in rows[1:]]
    print(f"  {len(peer.taken)} set values, speed up to {max(speeds)} 1/min")
    assert 900 < max(speeds) <= 1000, max(speeds)
    logged = run(CARDAN, "can", "log", "bus.pcapng", "--dbc", "drive.dbc", "--message", "Set", cwd=folder)
    assert len(logged.stdout.splitlines()) == len(peer.taken), (logged.stderr, len(peer.taken))


def can_gateway():
    """The drive as a bench by a gateway on vcan0: 100 N.m are asked for, 20 were agreed."""
    folder = folder_of("gateway")
    page = pathlib.Path("docs/reference/can.md").read_text()
    (folder / "drive.dbc").write_text(pathlib.Path("examples/can/drive.dbc").read_text())
    for name in ("gateway.yaml", "drive-bench.yaml", "session.yaml"):
        text = page.split(f"<!-- file: {name} -->")[1].split("```")[1].split("\n", 1)[1]
        (folder / name).write_text(text.replace("udp://239.74.163.2:43113", "vcan0").replace("contact: 1 s, timeout: 100 ms", "contact: 60 s, timeout: 20 s")
                                   .replace("watchdog: 500 ms", "watchdog: 9 s").replace("heartbeat: 3 s", "heartbeat: 50 s"))
    peer = PythonDrive()
    with subprocess.Popen([CARDAN, "dcp", "slave", "gateway.yaml", "--bench", "drive-bench.yaml", "--listen", "udp://127.0.0.1:9394",
                           "--write-description", "drive.dcpx", "--once"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as slave:
        while "listening" not in (line := slave.stdout.readline()):
            assert line, "the gateway has ended"
        ran = run(CARDAN, "run", "session.yaml", cwd=folder)
    peer.end()
    said = re.search("torque was .* was agreed", ran.stderr)
    assert said, ran.stderr
    print("  " + said.group())


def dcp_over_can():
    """A DCP slave on vcan0 gives what its circuit gives alone, bit by bit; what passed is read from the capture."""
    folder = folder_of("dcp")
    page = pathlib.Path("docs/reference/can.md").read_text()
    for name in ("low.cir", "low.yaml"):
        text = page.split(f"<!-- file: {name} -->")[1].split("```")[1].split("\n", 1)[1]
        (folder / name).write_text(text.replace("can://239.74.163.2:43114", "can://vcan0").replace("bus.xml,", "bus.xml, contact: 60 s, timeout: 5 s,"))
    run(CARDAN, "dcp", "describe", "low.cir", "--resolution", "1ms", "--address", "can://vcan0", "-o", "low.dcpx", cwd=folder)
    run(CARDAN, "dcp", "matrix", "low.dcpx", "-o", "bus.xml", cwd=folder)
    with subprocess.Popen([CARDAN, "dcp", "slave", "low.cir", "--resolution", "1ms", "--listen", "can://vcan0", "--matrix", "bus.xml", "--heartbeat", "60s",
                           "--once"], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as slave:
        assert slave.stdout.readline() == "listening at can://vcan0\n"
        run(CARDAN, "run", "low.yaml", cwd=folder)
    over = (folder / "low.csv").read_text()
    alone = [line for line in (folder / "low.yaml").read_text().replace("dcp: can", "circuit: low.cir #").splitlines()
             if "description" not in line and "session" not in line]
    (folder / "alone.yaml").write_text("\n".join(alone))
    run(CARDAN, "run", "alone.yaml", cwd=folder)
    assert (folder / "low.csv").read_text() == over, "not what the circuit gives alone"
    seen = run(CARDAN, "dcp", "log", "low.pcapng", "--matrix", "bus.xml", "--description", "low.dcpx", cwd=folder).stdout
    assert seen.count("STC_do_step rcv=1 state_id=RUNNING steps=1") == 20 and " v(out)=" in seen, seen


def can_gone():
    """An interface that vanishes while a unit runs is named; a bus that is off (an error frame) is counted."""
    folder = folder_of("gone")
    for name in ("drive.dbc", "drive.yaml"):
        (folder / name).write_text(pathlib.Path("examples/can", name).read_text().replace("udp://239.74.163.2:43113", "vcan7")
                                   .replace("    parameters:", "    link: { contact: 0 s, timeout: 2 s }\n    parameters:").replace("stop: 1 s", "stop: 60 s"))
    run("ip", "link", "add", "vcan7", "type", "vcan")
    run("ip", "link", "set", "vcan7", "up")
    with subprocess.Popen([CARDAN, "run", "drive.yaml"], cwd=folder, text=True, stderr=subprocess.PIPE) as ours:
        with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as bus:
            bus.bind(("vcan7",))
            bus.recv(16)  # it sends
            bus.send(struct.pack("=IB3x8x", 0x20000040, 8))  # bus off, as controllers tell it
        run("ip", "link", "del", "vcan7")
        said = ours.stderr.read()
    print("  " + said.strip().replace("\n", "\n  "))
    assert ours.returncode == 1 and "vcan7 has vanished" in said and "1 error frames" in said, (ours.returncode, said)


failed = 0
for check in (real_time, netem, can_frames, can_full_load, can_unit, can_gateway, dcp_over_can, can_gone, can_down):
    try:
        check()
        print(f"ok {check.__name__}", flush=True)
    except Exception as problem:  # each is judged
        failed += 1
        print(f"FAILED {check.__name__}: {type(problem).__name__}: {problem}", flush=True)
sys.exit(failed != 0)

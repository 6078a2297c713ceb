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

CARDAN = sys.argv[1]


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
    """Delays in seconds of the datagrams that arrive of `count` sent to port_in, and what was lost."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", port_out))
    receiver.settimeout(3)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sent, arrived = [0.0] * count, {}

    def listen():
        try:
            while len(arrived) < count:
                data = receiver.recv(64)
                arrived[int(data[1:])] = time.monotonic()
        except TimeoutError:
            pass

    thread = threading.Thread(target=listen)
    thread.start()
    for k in range(count):
        sent[k] = time.monotonic()
        sender.sendto(b"\xf0%06d" % k, ("127.0.0.1", port_in))
        time.sleep(pause)
    thread.join()
    return [arrived[k] - sent[k] for k in sorted(arrived)], 1 - len(arrived) / count


def netem():
    """The kernel's bad network and Cardan's have the same delays and the same loss."""
    count, jitter, loss = 400, 0.4, 0.1
    run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1s", "400ms", "loss", "10%")
    kernel, kernel_lost = late(7001, 7001, count, 0.01)
    run("tc", "qdisc", "del", "dev", "lo", "root")
    with subprocess.Popen([CARDAN, "dcp", "emulate", "--listen", "udp://127.0.0.1:7002", "--to", "udp://127.0.0.1:7003", "--delay", "1 s",
                           "--jitter", "400 ms", "--loss", "0.1", "--in-order", "no", "--seed", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as relay:
        print(relay.stdout.readline().strip())
        ours, ours_lost = late(7002, 7003, count, 0.01)
        relay.terminate()
        print(relay.stdout.read())
    for name, delays, lost in (("netem", kernel, kernel_lost), ("cardan", ours, ours_lost)):
        print(f"  {name}: quartiles {' '.join(f'{q:.4f}' for q in statistics.quantiles(delays))} s, lost {lost:.3f}")
    # Four standard deviations of each difference. A quantile q of n uniform delays of width w = 2 jitter has w sqrt(q (1 - q) / n). This
    # machine stands still at times, which quartiles do not see; 20 ms are for its everyday lateness.
    n = count * (1 - loss)
    for q, one, other in zip((0.25, 0.5, 0.75), statistics.quantiles(ours), statistics.quantiles(kernel)):
        assert abs(one - other) < 4 * 2 * jitter * math.sqrt(2 * q * (1 - q) / n) + 0.02, f"quartile {q}: {one} s, netem {other} s"
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
    """1 Mbit/s of frames of 8 bytes is at most 8,000 a second: each is counted."""
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
    assert len(got) == count, f"{len(got)} of {count}: {err}"
    numbers = [int.from_bytes(bytes.fromhex(frame.split("#")[1]), "little") for frame in got]
    assert numbers == list(range(count)), "frames in another order, or others"


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


failed = 0
for check in (real_time, netem, can_frames, can_full_load, can_down):
    try:
        check()
        print(f"ok {check.__name__}", flush=True)
    except Exception as problem:  # each is judged
        failed += 1
        print(f"FAILED {check.__name__}: {type(problem).__name__}: {problem}", flush=True)
sys.exit(failed != 0)

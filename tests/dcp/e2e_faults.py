#!/usr/bin/env python3
"""Processes that die: a slave in each state while others go on, the master while slaves run, two
masters for the same slaves, and partners that come back.

Arguments: lag_slave, lag_master, lag.dcpx, a folder for files, the command cardan, an FMU.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

SLAVE, MASTER, DCPX, TMP, CARDAN, FMU = sys.argv[1:7]
DEADLINE = 20
bad = 0


def check(what, ok, detail=""):
    global bad
    if not ok:
        bad += 1
        print(f"{what}: {detail}", flush=True)


def together(functions):
    """Each in a thread of its own: they wait most of the time."""
    def guard(f):
        try:
            f()
        except Exception:  # a thread that ends so would go unnoticed
            check("test", False, traceback.format_exc())

    threads = [threading.Thread(target=guard, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


class Process:
    """With its lines so far, and waiting for one of them."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True)
        self.lines = []
        self.more = threading.Condition()
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line.rstrip())
                self.more.notify_all()
        with self.more:
            self.ended = True
            self.more.notify_all()

    def wait_for(self, pattern, behind=0):
        """The match of the first line behind so many that has it, None: it never came."""
        limit = time.monotonic() + DEADLINE
        with self.more:
            while True:
                for line in self.lines[behind:]:
                    found = re.search(pattern, line)
                    if found:
                        return found
                behind = len(self.lines)
                if self.ended or not self.more.wait(max(0, limit - time.monotonic())):
                    return None

    def last_state(self):
        states = [line[6:] for line in self.lines if line.startswith("state ")]
        return states[-1] if states else "ALIVE"

    def finish(self):
        """Exit code, -1000: none in time."""
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            code = -1000
        self.kill()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def text(self, count=12):
        return "\n".join(self.lines[-count:])


def slave(address, state=None, dcpx=DCPX):
    p = Process(SLAVE, dcpx, address, *([state] if state else []))
    found = p.wait_for(r"listening at (\S+)")
    p.address = found.group(1) if found else address
    return p


def master(slaves, mode, steps, *options, dcpx=DCPX):
    addresses = ",".join(s.address for s in slaves)
    return Process(MASTER, dcpx, addresses, mode, str(steps), "1", *options)


def become_alive(what, slaves):
    for s in slaves:
        limit = time.monotonic() + 20
        while s.last_state() != "ALIVE" and time.monotonic() < limit:
            time.sleep(0.01)
        check(what, s.last_state() == "ALIVE", f"a slave is left in {s.last_state()}")


def slave_dies(transport, mode, state):
    """The master says which is lost and brings the others to ALIVE."""
    what = f"slave killed in {state} ({transport}, {mode})"
    local = f"{transport}://127.0.0.1:0"
    slaves = [slave(local), slave(local, state), slave(local)]
    m = master(slaves, mode, 20 if mode == "nrt" else 100000, "quick")
    code = m.finish()
    others = [slaves[0], slaves[2]]
    check(what, slaves[1].finish() == -9, "it did not die")
    # In STOPPING and STOPPED the run itself was good, and bringing it down was not.
    check(what, code == 1, f"the master ended with {code}\n{m.text()}")
    named = [line for line in m.lines if line.startswith("lag_master:")]
    check(what, named and slaves[1].address in named[0], f"the slave is not named\n{m.text()}")
    become_alive(what, others)
    for s in slaves:
        s.kill()


def all_states():
    """In NRT all of them, in the others some."""
    states = ["CONFIGURATION", "PREPARING", "PREPARED", "CONFIGURING", "CONFIGURED",
              "INITIALIZING", "INITIALIZED", "SENDING_I", "SYNCHRONIZING", "SYNCHRONIZED",
              "RUNNING", "COMPUTING", "COMPUTED", "SENDING_D", "STOPPING", "STOPPED"]
    cases = [("udp", "nrt", s) for s in states]
    cases += [("tcp", "nrt", s) for s in ("PREPARED", "CONFIGURED", "COMPUTED")]
    cases += [("udp", "srt", "RUNNING"), ("tcp", "srt", "RUNNING")]
    together([lambda c=c: slave_dies(*c) for c in cases])


def with_heartbeat():
    """lag.dcpx with a heartbeat that is missed after half a second."""
    with open(DCPX, encoding="utf-8") as f:
        text = f.read()
    text = text.replace('canMonitorHeartbeat="false"', 'canMonitorHeartbeat="true"')
    text = text.replace("  <TransportProtocols>", '  <Heartbeat><MaximumPeriodicInterval numerator="1" '
                        'denominator="2"/></Heartbeat>\n  <TransportProtocols>')
    path = os.path.join(TMP, "lag_heartbeat.dcpx")
    own = f"{path}.{threading.get_ident()}"  # others may be reading it
    with open(own, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(own, path)
    return path


def master_dies(transport):
    """Slaves with a heartbeat make themselves safe; the next master finds and uses them."""
    what = f"master killed in SRT ({transport})"
    dcpx = with_heartbeat()
    slaves = [slave(f"{transport}://127.0.0.1:0", dcpx=dcpx) for _ in range(3)]
    m = master(slaves, "srt", 100000, "quick", dcpx=dcpx)
    for s in slaves:
        check(what, s.wait_for("state RUNNING"), f"it does not run\n{m.text()}")
    m.kill()
    for s in slaves:
        check(what, s.wait_for("state ERRORRESOLVED"), f"a slave is in {s.last_state()}")
    m = master(slaves, "srt", 20, "quick", dcpx=dcpx)
    check(what, m.finish() == 0, f"the next master\n{m.text()}")
    become_alive(what, slaves)
    for s in slaves:
        s.kill()


def two_masters(transport):
    """The second one leaves slaves alone that run, and says so; the first does not notice."""
    what = f"two masters ({transport})"
    slaves = [slave(f"{transport}://127.0.0.1:0") for _ in range(2)]
    first = master(slaves, "srt", 200, "quick")
    for s in slaves:
        check(what, s.wait_for("state RUNNING"), f"it does not run\n{first.text()}")
    second = master(slaves, "srt", 20, "quick")
    code = second.finish()
    check(what, code == 1 and "RUNNING" in second.text(),
          f"the second ended with {code}\n{second.text()}")
    code = first.finish()
    check(what, code == 0, f"the first ended with {code}\n{first.text()}")
    become_alive(what, slaves)
    for s in slaves:
        s.kill()


def comes_back(transport):
    """A slave dies in a run and is started again at the same port; a master dies in a run, slaves
    without heartbeat run on, and one that may takes them over, where they take any port of the host."""
    what = f"partners come back ({transport})"
    local = f"{transport}://127.0.0.1:0"
    slaves = [slave(local, "any-port"), slave(local, "RUNNING")]
    m = master(slaves, "srt", 100000, "quick")
    check(what, m.finish() == 1, f"the slave has died\n{m.text()}")
    slaves[1].kill()
    slaves[1] = slave(slaves[1].address, "any-port")
    m = master(slaves, "srt", 100000, "quick")
    for s in slaves:
        behind = max((i for i, line in enumerate(s.lines) if line == "state ALIVE"), default=0)
        check(what, s.wait_for("state RUNNING", behind), f"it does not run again\n{m.text()}")
    m.kill()
    m = master(slaves, "nrt", 20, "quick", "force")
    check(what, m.finish() == 0, f"the next master\n{m.text()}")
    become_alive(what, slaves)
    for s in slaves:
        s.kill()


def state_of(address):
    """The state of a slave, which anybody may ask for who knows its id; None: no answer."""
    port = int(address.rsplit(":", 1)[1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        s.settimeout(0.2)
        try:
            for number in range(1, 5):
                s.send(bytes([0x80, 0, 0, number]))
            return s.recv(16)[4]
        except OSError:
            return None


def reach(what, address, state):
    limit = time.monotonic() + DEADLINE
    found = state_of(address)
    while found != state and time.monotonic() < limit:
        time.sleep(0.02)
        found = state_of(address)
    check(what, found == state, f"{address} is in state {found}, expected {state}")


ALIVE, RUNNING, ERRORRESOLVED = 0, 0x0B, 0x12


def command(name, *options, run=()):
    """Slaves by 'cardan dcp slave' and the master 'cardan run', which runs for long."""
    slaves = []
    for i in range(3):
        dcpx = os.path.join(TMP, f"{name}_{i}.dcpx")
        p = Process(CARDAN, "dcp", "slave", FMU, "--listen", "udp://127.0.0.1:0",
                    "--write-description", dcpx, *options)
        found = p.wait_for(r"listening at (\S+)")
        p.address, p.dcpx = found.group(1) if found else "udp://127.0.0.1:9", dcpx
        slaves.append(p)
    path = os.path.join(TMP, name + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("cardan: 1\nunits:\n")
        for i, p in enumerate(slaves):
            f.write(f"  s{i}: {{ dcp: '{p.address}', description: {p.dcpx},\n"
                    "        session: { mode: srt, lead: 0, timeout: 0.1, patience: 2 } }\n")
        f.write("run: { stop: 1000 s, step: 10 ms }\n")
    m = Process(CARDAN, "run", path, "--output", "none", *run)
    for p in slaves:
        reach(name, p.address, RUNNING)
    return slaves, m


def end_command(what, slaves):
    """They end as they were asked to."""
    for p in slaves:
        p.process.send_signal(signal.SIGINT)
    for p in slaves:
        code = p.finish()
        check(what, code == 0, f"a slave ended with {code}\n{p.text()}")


def command_slave_dies():
    what = "cardan dcp slave killed"
    slaves, m = command("faults_slave")
    slaves[1].kill()
    code = m.finish()
    check(what, code == 1 and slaves[1].address in m.text(),
          f"cardan run ended with {code}\n{m.text()}")
    for p in (slaves[0], slaves[2]):
        reach(what, p.address, ALIVE)
    end_command(what, [slaves[0], slaves[2]])


def command_master_dies():
    """By itself a slave notices it by its heartbeat; the guard of the run lets it go before."""
    for name, run, state in (("alone", ["--no-watchdog"], ERRORRESOLVED), ("guarded", [], ALIVE)):
        what = f"cardan run killed, {name}"
        heartbeat = "500 ms" if run else "60 s"
        slaves, m = command(f"faults_master_{name}", "--heartbeat", heartbeat, run=run)
        m.kill()
        for p in slaves:
            reach(what, p.address, state)
        end_command(what, slaves)


def main():
    all_states()
    together([lambda f=f, t=t: f(t) for f in (master_dies, two_masters, comes_back)
              for t in ("udp", "tcp")] + [command_slave_dies, command_master_dies])
    print("bad:", bad)
    return bad > 0


sys.exit(main())

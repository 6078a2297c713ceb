"""Work that takes long shows a line on a terminal, and only there; warnings are never hidden."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from e2e import CARDAN, EndToEnd, fmu

# "part: 1.2 of 4.6 GB, 26 %, 410 MB/s, 8 s left"; without an end there is no portion and no rest.
LINE = re.compile(r"^[^:]+: [0-9.e+]+( of [0-9.e+]+)? \w+(, \d+ %)?"
                  r"(, ([0-9.e+]+/s|[0-9.e+]+ MB/s|[0-9.e+]+ x real time|[0-9.e+]+ s each))?"
                  r"(, (\d+ s|\d+ min \d\d s|\d+ h \d\d min) left)?$")


class Progress(EndToEnd):
    def on_terminal(self, *arguments, until=b"\x1b[K", seconds=60, columns=100, term="xterm",
                    held=None):
        """What is written to a terminal until `until` is there; then Ctrl-C. All, and the lines.

        As soon as the command has the file `held` open, it is stopped until it is old enough to show
        progress: how fast the machine reads does not matter."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([CARDAN, *map(str, arguments)], cwd=self.folder, stderr=slave,
                                   stdout=subprocess.DEVNULL,
                                   env=dict(self.environment(), TERM=term))
        os.close(slave)
        began = time.monotonic()
        if held and self.stopped_with(process, held):
            select.select([master], [], [], 1.1)
            process.send_signal(signal.SIGCONT)
        seen, end, told = b"", began + seconds, False
        while True:
            try:
                got = os.read(master, 4096) if select.select([master], [], [], 0.1)[0] else None
            except OSError:
                break
            if got == b"":
                break
            seen += got or b""
            if not told and (until in seen or time.monotonic() > end):
                told = True
                process.send_signal(signal.SIGINT)
        os.close(master)
        process.wait(timeout=60)
        text = seen.decode()
        return text, [x.split("\x1b[K")[0] for x in text.split("\r") if "\x1b[K" in x and
                      x.split("\x1b[K")[0]]

    @staticmethod
    def stopped_with(process, name):
        """Stops a process that has a file open; false: it ended before."""
        folder = f"/proc/{process.pid}/fd"
        while process.poll() is None:
            try:
                files = [os.readlink(f"{folder}/{x}") for x in os.listdir(folder)]
            except OSError:  # it is closing one
                continue
            if any(os.path.basename(x) == name for x in files):
                process.send_signal(signal.SIGSTOP)
                return True
        return False

    def check_lines(self, lines, part, unit):
        self.assertTrue(lines, "no line of progress")
        for line in lines:
            self.assertRegex(line, LINE)
        self.assertTrue(any(x.startswith(part + ": ") and f" {unit}" in x for x in lines), lines)

    def big_csv(self, rows):
        self.write("big.csv", "time,a\n" + "".join(f"{i},1.25\n" for i in range(rows)))

    def test_a_run_shows_part_rate_and_time_left(self):
        text, lines = self.on_terminal("run", fmu("lo_mono"), "--stop-time", "1e9", "-o", "none",
                                       until=b"left")
        self.check_lines(lines, "run", "s")
        self.assertRegex(lines[-1], r"x real time, \d.* left$")
        self.assertIn("interrupted", text.split("\x1b[K")[-1])  # the line has made room

    def test_a_run_on_the_clock_shows_how_late_it_was(self):
        _, lines = self.on_terminal("run", fmu("lo_mono"), "--stop-time", "60", "-o", "none",
                                    "--step", "10 ms", "--pace", "realtime", until=b"left")
        self.assertRegex(lines[-1], r"^run: .* of 60 s, \d+ %, at most .* late, \d+ overruns?, "
                                    r"\d+ s left$")

    def test_a_circuit(self):
        self.write("rc.cir", "RC\nV1 in 0 pulse(0 1 1m 1u 1u 5m 10m)\nR1 in out 1k\n"
                             "C1 out 0 1u\n.tran 1u 1e5\n.end\n")
        _, lines = self.on_terminal("circuit", "rc.cir", until=b"left")
        self.check_lines(lines, "circuit", "s")

    def test_reading_a_recording(self):
        self.big_csv(2_000_000)
        _, lines = self.on_terminal("compare", "big.csv", "big.csv", until=b"MB/s", held="big.csv")
        self.check_lines(lines, "reading big.csv", "MB")

    def test_trials_of_algorithms(self):
        self.write("s.csv", "time,y\n" + "".join(
            f"{0.001 * i:.3f},{(i * 7919) % 1000}\n" for i in range(400_000)))
        _, lines = self.on_terminal("coupling", "compensate", "s.csv", "--signal", "y", "--latency",
                                    "6", "--algorithms", "auto,rls,eros,foh,zoh",
                                    until=b"trying: ", held="s.csv")
        self.check_lines([x for x in lines if x.startswith("trying")], "trying", "algorithms")

    def test_papers(self):
        _, lines = self.on_terminal("reproduce", "rodriguez2021-ch3", until=b" rows")
        self.check_lines(lines, "rodriguez2021-ch3", "rows")

    def test_at_most_ten_lines_a_second(self):
        began = time.monotonic()
        _, lines = self.on_terminal("run", fmu("lo_mono"), "--stop-time", "1e9", "-o", "none",
                                    until=b"\x04", seconds=3)
        self.assertLessEqual(len(lines), 10 * (time.monotonic() - began))
        self.assertGreater(len(lines), 3)

    def test_quiet_shows_none(self):
        text, lines = self.on_terminal("run", fmu("lo_mono"), "--stop-time", "1e9", "-o", "none",
                                       "--quiet", "--max-overruns", "1", until=b"\n", seconds=2)
        self.assertEqual(lines, [], text)
        self.big_csv(300_000)
        text, lines = self.on_terminal("compare", "big.csv", "big.csv", "--quiet", until=b"\x04",
                                       seconds=2)
        self.assertEqual((lines, text), ([], ""))

    def test_nothing_but_a_terminal_gets_it(self):
        process = subprocess.Popen([CARDAN, "run", fmu("lo_mono"), "--stop-time", "1e9", "-o",
                                    "none"], cwd=self.folder, stderr=subprocess.PIPE, text=True,
                                   env=self.environment())
        time.sleep(2)  # the line would have come after one
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertIn("interrupted", said)
        self.assertNotIn("\x1b", said)
        self.assertNotIn("left", said)
        _, lines = self.on_terminal("run", fmu("lo_mono"), "--stop-time", "1e9", "-o", "none",
                                    until=b"\x1b", seconds=2, term="dumb")
        self.assertEqual(lines, [])


class Warnings(EndToEnd):
    def test_quiet_hides_no_warning(self):
        """A result that ends before its stop time, in which a variable is not recorded."""
        self.oscillator()
        options = ("run", "oscillator.yaml", "--variables", "nobody.*", "--variables", "first.x1",
                   "-o", "o.csv")
        told = "no variable matches 'nobody.*': nothing is recorded for it"
        self.cardan(*options, says=told)
        done = self.cardan(*options, "--quiet", says=told)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.cardan(*options, "--quiet", "--json")
        self.assertIn(told, done.stdout)  # in the report, and once
        self.assertNotIn(told, done.stderr)
        done = self.cardan(*options, "--quiet", "--log-level", "error")
        self.assertEqual(done.stderr, "")  # who says so in words gets it

    def test_a_circuit_warns_when_it_is_quiet(self):
        self.write("rc.cir", "R0 in out 1k\nV1 in 0 1\nR1 in out 1k\nC1 out 0 1u\n.tran 1u 1m\n.end\n")
        loud = self.cardan("circuit", "rc.cir").stderr
        quiet = self.cardan("circuit", "rc.cir", "--quiet").stderr
        warnings = [x for x in loud.splitlines() if "warning" in x]
        self.assertTrue(warnings)
        self.assertEqual(quiet.splitlines(), warnings)


if __name__ == "__main__":
    unittest.main()

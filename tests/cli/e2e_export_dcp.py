"""cardan export dcp: FMUs behind which a slave of another process computes."""

import os
import re
import signal
import subprocess
import time
import unittest
import zipfile

from e2e import CARDAN, EndToEnd, fmu

PATIENCE = 60  # s, for anything that will come
PUMP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slave.dcpx")


class ExportDcp(EndToEnd):
    def slave(self, unit, *arguments, transport="udp"):
        """A slave that listens and has written slave.dcpx."""
        process = subprocess.Popen(
            [CARDAN, "dcp", "slave", unit, "--listen", f"{transport}://127.0.0.1:0",
             "--write-description", self.path("slave.dcpx"), *map(str, arguments)],
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, TMPDIR=self.folder))  # not where the masters unpack

        def kill():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(kill)
        line = process.stdout.readline()
        self.assertRegex(line, rf"^listening at {transport}://127\.0\.0\.1:\d+$")
        return process, line.split()[-1]

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, out + err)
        return out

    def export(self, *arguments, **options):
        return self.cardan("export", "dcp", "slave.dcpx", *arguments, **options).stdout

    def run_fmu(self, file, output, *arguments, **options):
        self.cardan("run", file, "-q", "-o", output, *arguments, **options)
        with open(self.path(output), "rb") as f:
            return f.read()

    def test_nrt_gives_the_bytes_of_the_fmu_itself(self):
        self.write("push.csv", "time,u\n" + "".join(f"{k / 100},{(k * 7) % 13 - 6}\n"
                                                    for k in range(101)))
        line = ["--input", "push.csv", "--predict", "hold", "--step", "10 ms", "--stop-time", 1,
                "--set", "zeta=0.25"]
        for transport in ("udp", "tcp"):
            own = fmu("driven_oscillator", 3 if transport == "tcp" else 2)
            expected = self.run_fmu(own, "own.csv", *line)
            process, address = self.slave(own, transport=transport)
            for version in (2, 3):
                said = self.export("--fmi", version, "-o", f"far{version}.fmu")
                self.assertIn(f"{address}, NRT, 1 input, 3 outputs, FMI {version}.0", said)
                self.cardan("check", f"far{version}.fmu", says=())
                self.assertEqual(expected, self.run_fmu(f"far{version}.fmu", "far.csv", *line))
            self.assertIn("2 sessions, 2000 steps", self.end(process))

    def test_types_arrays_and_texts_arrive(self):
        line = ["--step", "10 ms", "--stop-time", "0.2", "--variables", "*"]
        for version in (2, 3):
            own = self.run_fmu(fmu("types", version), "own.csv", *line)
            process, _ = self.slave(fmu("types", version))
            names = own.split(b"\n")[0].split(b",")
            if version == 3:  # binaries do not exist in FMI 2.0
                self.export("-o", "two.fmu", code=2, says="is a binary, which FMI 2.0 does not have")
            self.export("--fmi", 3, "-o", "far.fmu")
            far = self.run_fmu("far.fmu", "far.csv", *line).split(b"\n")
            found = far[0].split(b",")
            rows = [r.split(b",") for r in own.split(b"\n")]
            compared = 0
            for k, name in enumerate(names):
                if name not in found:
                    continue
                j = found.index(name)
                # A DCP slave has no Booleans: they travel as bytes.
                words = {b"true": b"1", b"false": b"0"}
                mine = [words.get(r[k], r[k]) for r in rows[1:] if len(r) > 1]
                theirs = [words.get(r.split(b",")[j], r.split(b",")[j]) for r in far[1:] if r]
                self.assertEqual(mine, theirs, name)
                compared += 1
            self.assertGreater(compared, 5, (names, found))
            self.end(process)

    def test_srt_goes_along_with_the_clock(self):
        process, _ = self.slave(fmu("driven_oscillator"))
        self.export("--mode", "srt", "-o", "far.fmu")
        begin = time.monotonic()
        self.run_fmu("far.fmu", "far.csv", "--step", "10 ms", "--stop-time", "0.5")
        self.assertGreaterEqual(time.monotonic() - begin, 0.5)
        x = self.column("far.csv", "x")
        self.assertEqual(len(x), 51)
        self.assertLess(min(x), 0.9)  # it moves
        self.assertIn("1 session", self.end(process))

    def test_the_address_is_a_parameter(self):
        process, address = self.slave(fmu("driven_oscillator"))
        self.export("--address", "udp://127.0.0.1:9", "-o", "far.fmu")
        self.run_fmu("far.fmu", "far.csv", "--set", f"dcp.address={address}", "--step", "10 ms",
                     "--stop-time", "0.1")
        self.cardan("run", "far.fmu", "-q", "--set", "dcp.address=", "-o", "x.csv", code=1,
                    says="dcp.address is empty")
        self.cardan("run", "far.fmu", "-q", "--set", "dcp.address=tcp://127.0.0.1:9", "-o", "x.csv",
                    code=1, says="the slave does not offer TCP_IPv4, expected udp://")
        self.end(process)

    def test_steps_fit_the_resolution(self):
        process, _ = self.slave(fmu("driven_oscillator"))
        self.export("-o", "far.fmu")
        self.cardan("run", "far.fmu", "-q", "--step", "1.5 ms", "--stop-time", "3 ms", "-o",
                    "x.csv", code=1, says="a communication step of 0.0015 s is not a multiple of "
                    "the slave's time resolution of 0.001 s")
        self.export("--step", "1.5ms", "-o", "far.fmu")
        self.run_fmu("far.fmu", "x.csv", "--stop-time", "3 ms")
        self.assertEqual(self.column("x.csv", "time"), [0, 0.0015, 0.003])
        self.end(process)

    def test_nobody_there(self):
        process, _ = self.slave(fmu("driven_oscillator"))
        self.export("-o", "far.fmu")
        self.end(process)
        self.cardan("run", "far.fmu", "-q", "-o", "x.csv", code=1,
                    says="no DCP slave answers at udp://127.0.0.1:")

    def test_a_description_by_others(self):
        self.cardan("export", "dcp", PUMP)
        self.assertEqual(os.listdir(self.folder).count("pump.fmu"), 1)
        self.cardan("check", "pump.fmu")
        with zipfile.ZipFile(self.path("pump.fmu")) as archive:
            names = archive.namelist()
            text = archive.read("modelDescription.xml").decode()
        self.assertIn("resources/slave.dcpx", names)
        self.assertIn('name="taps[4]"', text)
        self.assertRegex(text, r'<Real unit="rad/s" min="0" max="300" start="10"/>')
        self.assertRegex(text, r'name="gain"[^>]*variability="tunable"')
        self.assertNotIn("canGetAndSet", text)  # a slave does not go back

    def test_what_is_wrong_is_said(self):
        for line, says in (
                (["--mode", "hrt"], "--mode"),
                (["--address", "pigeon://x"], "pigeon"),
                (["--step", "1.3ms"], "no time resolution of which this is a multiple"),
                (["--set", "gain=2"], "it is no structural parameter"),
                (["--set", "n=2"], "no structural parameter of this name"),
                (["--name", "a b"], "expected letters, digits"),
                (["--signals", "2"], "--signals is an option of cardan export coupling"),
                (["-o", PUMP], "would overwrite the description")):
            self.cardan("export", "dcp", PUMP, *line, code=2, says=says)
        self.cardan("export", "dcp", code=2, says="SLAVE.dcpx is missing")
        self.cardan("export", "dcp", "gone.dcpx", code=2, says="gone.dcpx")
        with open(PUMP, encoding="utf-8") as f:
            text = f.read()
        self.write("twice.dcpx", re.sub('valueReference="2"', 'valueReference="1"', text))
        self.cardan("export", "dcp", "twice.dcpx", code=2, says="twice.dcpx:")


if __name__ == "__main__":
    unittest.main()

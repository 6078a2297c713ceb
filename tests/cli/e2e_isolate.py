"""Which FMUs run in worker processes, and what is said about it."""

import json
import os
import resource
import shutil
import subprocess
import unittest
import zipfile

from e2e import CARDAN, EndToEnd, fmu

BINARY = "binaries/linux64/lo_mono.so"
SANITIZED = "asan" in CARDAN or "dev" in os.path.basename(os.path.dirname(CARDAN))


class Isolation(EndToEnd):
    def workers(self, system, *arguments):
        """unit -> number of its worker process, and the sentence about all of them."""
        j = self.cardan_json("run", system, "-o", "none", *arguments)
        return {u["name"]: u["worker"] for u in j["units"]}, j["isolation"]

    def changed_binary(self, name, change):
        """A copy of one of Cardan's own FMUs with another binary."""
        with zipfile.ZipFile(fmu("lo_mono")) as z:
            data = z.read(BINARY)
        return self.bend(fmu("lo_mono"), name, remove=[BINARY], add={BINARY: change(data)})

    def test_own_are_those_with_our_binary_to_the_last_byte(self):
        self.assertEqual(self.workers(fmu("lo_mono")), ({"lo_mono": 0}, None))
        # The description, resources and what else is in the archive are data.
        self.bend(fmu("lo_mono"), "other.fmu", xml=lambda x: x.replace("<fmiModelDescription", "<!-- x -->\n<fmiModelDescription"))
        self.assertEqual(self.workers("other.fmu")[0], {"other": 0})
        # A byte behind the end, or one in a text of the binary that nobody reads.
        text = b"GCC: ("
        for i, change in enumerate((lambda b: b + b"\0", lambda b: b.replace(text, b"GCC: [", 1))):
            with zipfile.ZipFile(fmu("lo_mono")) as z:
                self.assertNotEqual(change(z.read(BINARY)), z.read(BINARY))
            workers, says = self.workers(self.changed_binary(f"changed{i}.fmu", change))
            self.assertEqual(workers, {f"changed{i}": 1})
            self.assertRegex(says, r"^changed\d in worker process 1; sandbox: .*limits")
        # Its name and its tool buy nothing.
        self.bend(fmu("faulty"), "lie.fmu", xml=lambda x: x.replace('modelName="faulty"', 'modelName="lo_mono"'))
        self.assertEqual(list(self.workers("lie.fmu")[0].values()), [1])

    def test_a_folder_is_judged_by_its_binary_too(self):
        folder = self.path("unpacked")
        with zipfile.ZipFile(fmu("lo_mono")) as z:
            z.extractall(folder)
        self.assertEqual(list(self.workers("unpacked")[0].values()), [0])
        with open(os.path.join(folder, BINARY), "ab") as f:
            f.write(b"\0")
        self.assertEqual(list(self.workers("unpacked")[0].values()), [1])

    def test_what_is_said_goes_before_what_is_usual(self):
        shutil.copy(fmu("faulty"), self.path("a.fmu"))
        shutil.copy(fmu("lo_mono"), self.path("b.fmu"))
        system = ("cardan: 1\nunits:\n  a: { fmu: a.fmu }\n  b: { fmu: b.fmu }\n  c: { fmu: a.fmu, isolate: none }\n"
                  "  d: { fmu: b.fmu, isolate: process }\nrun: { stop: 0.1, step: 0.01%s }\n")
        self.write("s.yaml", system % "")
        self.write("none.yaml", system % ", isolate: none")
        inside = lambda *w: {u for u, n in self.workers(*w)[0].items() if n}
        self.assertEqual(inside("s.yaml"), {"a", "d"})
        self.assertEqual(inside("none.yaml"), {"d"})
        self.assertEqual(inside("none.yaml", "--isolate", "foreign"), {"a", "d"})
        self.assertEqual(inside("s.yaml", "--isolate", "none"), {"d"})
        self.assertEqual(inside("s.yaml", "--isolate", "all"), {"a", "b", "d"})
        os.environ["CARDAN_ISOLATE"] = "none"
        try:
            self.assertEqual(inside("s.yaml"), {"d"})
            self.assertEqual(inside("s.yaml", "--isolate", "all"), {"a", "b", "d"})
        finally:
            del os.environ["CARDAN_ISOLATE"]

    def test_summary_and_reports_say_it(self):
        said = self.cardan("run", fmu("faulty"), "--set", "mode=0", "-o", "r.mf4").stderr
        self.assertIn("isolated faulty in worker process 1; sandbox: ", said)
        self.cardan("report", "r.mf4", "-o", "r.md")
        self.cardan("report", "r.mf4", "-o", "r.html")
        for name in ("r.md", "r.html"):
            with open(self.path(name), encoding="utf-8") as f:
                text = f.read()
            self.assertIn("faulty in worker process 1; sandbox: ", text)
            self.assertIn("worker 1", text)
        said = self.cardan("run", fmu("faulty"), "-o", "r.mf4", "--isolate", "none").stderr
        self.assertNotIn("worker process", said)

    def test_without_a_worker_it_fails_instead_of_going_on_in_one_process(self):
        for place, why in (("/nowhere/cardan-worker", "No such file"), ("/bin/true", "could not begin")):
            environment = dict(self.environment(), CARDAN_WORKER=place)
            done = subprocess.run([CARDAN, "run", fmu("faulty"), "-o", "none", "-q"], env=environment, cwd=self.folder,
                                  capture_output=True, text=True, timeout=120)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, why)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            done = subprocess.run([CARDAN, "run", fmu("faulty"), "-o", "none", "-q", "--isolate", "none"], env=environment,
                                  cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_hard_limit_of_file_sizes_is_no_obstacle(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 10_000_000))
        self.cardan("run", fmu("faulty"), "-o", "limited.csv", "-q", preexec_fn=limit)
        self.cardan("run", fmu("faulty"), "-o", "free.csv", "-q")
        self.cardan("compare", "limited.csv", "free.csv", "--tolerance", "0", "--absolute", "0")
        self.assertNotIn("1073741824", subprocess.run(["ipcs", "-m"], capture_output=True, text=True).stdout)

    @unittest.skipIf(SANITIZED, "sanitizers reserve more address space")
    def test_too_little_address_space_is_told(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))
        self.cardan("run", fmu("faulty"), "-o", "none", "-q", code=1, preexec_fn=limit,
                    says=["1024 MB of address space", "ulimit -v", "isolate: none"])

    def test_the_doctor_tells_who_crashed(self):
        for isolate in ("foreign", "none"):
            j = json.loads(self.cardan("doctor", self.crashing(), "--duration", "1", "--profile", "desk", "--json",
                                       "--isolate", isolate, code=3).stdout)
            text = json.dumps(j)
            self.assertIn("crashed in fmi2DoStep (Segmentation fault)", text)
            self.assertEqual([c["state"] for c in j["checks"] if c["id"] == "worker"], ["ok"])

    def crashing(self):
        shutil.copy(fmu("faulty"), self.path("faulty.fmu"))
        return self.write("crash.yaml", "cardan: 1\nunits:\n  bad: { fmu: faulty.fmu, parameters: { mode: 7, when: 0.05 } }\n"
                                        "run: { step: 0.01, stop: 1 }\n")


if __name__ == "__main__":
    unittest.main()

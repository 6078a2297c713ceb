"""Chunks of a study: made anywhere by `study work`, taken in by `study merge`, submitted to a scheduler. The scheduler here is
a pretended one, so that its moods are known; the real ones are in tests/cluster."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from e2e import CARDAN, fmu
from e2e_study import SYSTEM, Study

KILLS = int(os.environ.get("CARDAN_STUDY_KILLS", "6"))
# A job array: every task in a process of its own. `moods` says what else happens.
SBATCH = """#!{python}
import os, re, subprocess, sys
script = open(sys.argv[-1]).read()
state = os.path.dirname(os.path.abspath(sys.argv[0]))
if os.path.exists(state + "/down"):
    sys.exit("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
name = re.search("--job-name=(.*)", script)[1]
open(state + "/scripts", "a").write(script)
for part in re.search("--array=(.*)", script)[1].split(","):
    first, _, last = part.partition("-")
    for task in range(int(first), int(last or first) + 1):
        log = open(re.search('--output="(.*)"', script)[1].replace("%a", str(task)), "a")
        what = "echo this node is broken >&2; exit 1" if os.path.exists(state + "/broken") else script
        p = subprocess.Popen(["sh", "-c", what], stdout=log, stderr=log,
                             env=dict(os.environ, SLURM_ARRAY_TASK_ID=str(task)), start_new_session=True)
        open(state + "/tasks", "a").write(f"{{p.pid}} {{name}}|{{task}}\\n")
print(1)
"""
SQUEUE = """#!{python}
import os, sys
state = os.path.dirname(os.path.abspath(sys.argv[0]))
if os.path.exists(state + "/down"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
for line in open(state + "/tasks") if os.path.exists(state + "/tasks") else []:
    pid, task = line.split(maxsplit=1)
    try:
        if open(f"/proc/{{pid}}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
            print(task, end="")
    except OSError:
        pass
"""


class Chunks(Study):
    def listed(self, *options):
        return [c["command"] for c in self.counts("s.yaml", "--executor", "list", *options)["commands"]]

    def chunks(self):
        folder = self.path("s.study.chunks")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def merge(self):
        return self.cardan_json("study", "merge", "s.yaml")

    def work(self, command, code=0, **options):
        done = subprocess.run(["sh", "-c", command], cwd="/", env=self.environment(), capture_output=True, text=True,
                              timeout=60, check=False, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def same_as_local(self):
        self.counts("s.yaml", "--database", "local.study")
        self.assertEqual(self.rows(), self.rows("local.study"))


class Lists(Chunks):
    def test_chunks_give_what_local_gives(self):
        self.oscillator()
        commands = self.listed("--chunk", 7)
        self.assertEqual(len(commands), 6)
        self.assertEqual(self.listed("--chunk", 3), commands)  # what is in chunks is not put into others
        for c in commands[:2]:
            self.work(c)
        self.assertEqual(self.merge(), {"study": "s.study", "runs": 40, "merged": 14, "open": 26})
        self.assertEqual(len(self.listed()), 4)
        for c in commands[2:]:
            self.work(c + " --workers 2")
        self.work(commands[3])  # again: nothing to do
        self.assertEqual(self.merge()["open"], 0)
        self.assertEqual(self.chunks(), [])
        self.same_as_local()

    def test_values_that_are_texts_travel(self):
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "50 ms"))
        self.write("s.yaml", "study: 1\nsystem: osc.yaml\nrepeat: 2\nvary: { run.step: [1 ms, 2 ms], title: [\"a 'b' $c\", x] }\n"
                             "change: { title: $title $seed }\nkeep: { x: second.x2 }\n")
        for c in self.listed("--chunk", 3):
            self.work(c)
        self.assertEqual(self.merge()["open"], 0)
        self.counts("s.yaml", "--database", "local.study")
        columns = 'id, "run.step", title, x'
        self.assertEqual(self.select("s.study", columns), self.select("local.study", columns))

    def select(self, name, columns):
        with sqlite3.connect(self.path(name)) as c:
            return c.execute(f"SELECT {columns} FROM runs ORDER BY id").fetchall()

    def test_a_chunk_goes_through_pipes(self):
        self.oscillator()
        self.listed("--chunk", 40)
        with open(self.path("s.study.chunks/1.chunk"), "rb") as f:
            done = subprocess.run([CARDAN, "study", "work", "-"], stdin=f, capture_output=True, env=self.environment(),
                                  timeout=60, check=True, cwd="/")
        with open(self.path("s.study.chunks/1.pipe.rows"), "wb") as f:
            f.write(done.stdout)
        self.assertEqual(self.merge()["open"], 0)
        self.same_as_local()

    def test_a_killed_worker_goes_on_and_a_torn_row_is_no_row(self):
        self.oscillator()
        command, = self.listed("--chunk", 40)
        self.work(command)
        rows, = [n for n in self.chunks() if n.endswith(".rows")]
        path = self.path("s.study.chunks/" + rows)
        with open(path, "rb") as f:
            whole = f.read()
        for cut in (5, 30, len(whole) // 2, len(whole) - 1):
            with open(path, "wb") as f:
                f.write(whole[:cut])
            says = self.work(command)
            self.assertIn("made here", says)
            for n in self.chunks():
                if n.endswith(".rows") and n != rows:
                    os.remove(self.path("s.study.chunks/" + n))
        bad = bytearray(whole)
        bad[len(whole) // 2] ^= 4
        with open(path, "wb") as f:
            f.write(bad)
        done = self.merge()
        self.assertTrue(0 < done["open"] < 40, done)
        self.work(command)
        self.assertEqual(self.merge()["open"], 0)
        self.same_as_local()

    def test_what_is_wrong_is_told(self):
        self.oscillator()
        command, = self.listed("--chunk", 40)
        chunk = self.path("s.study.chunks/1.chunk")
        with open(chunk, "rb") as f:
            whole = f.read()
        for data, says in ((b"", "expected a chunk of a study"), (whole[:-9], "ends before its last run"),
                           (whole[:40], "ends before its first run"), (whole + b"x", "more behind its last run"),
                           (whole[:15] + b"\1\2\3\4" + whole[19:], "another order of bytes")):
            self.write("bad.chunk", "")
            with open(self.path("bad.chunk"), "wb") as f:
                f.write(data)
            self.cardan("study", "work", "bad.chunk", code=(1, 2), says=says)
        self.cardan("study", "work", "no.chunk", code=2, says="no.chunk")
        # Other files than those that the study began with
        with open(self.path("osc.yaml"), encoding="utf-8") as f:
            text = f.read()
        self.write("osc.yaml", text.replace("0.2 s", "0.3 s"))
        self.assertIn("osc.yaml has changed since the study began", self.work(command, code=1))
        self.write("osc.yaml", text.replace(fmu("lo_fd2"), "gone.fmu"))
        says = self.work(command, code=2)
        self.assertIn("cannot make runs of this study", says)
        self.assertIn("gone.fmu", says)
        self.write("osc.yaml", text)
        # Results of another study
        self.work(command)
        rows, = [n for n in self.chunks() if n.endswith(".rows")]
        shutil.move(self.path("s.study.chunks/" + rows), self.path("1.x.rows"))
        self.merge()
        os.rename(self.path("s.study"), self.path("old.study"))
        shutil.rmtree(self.path("s.study.chunks"))
        self.listed("--chunk", 40)
        shutil.move(self.path("1.x.rows"), self.path("s.study.chunks/1.x.rows"))
        self.cardan("study", "merge", "s.yaml", code=1, says="results of another study")
        self.assertEqual(self.select("s.study", "count(*), min(state), max(state)"), [(40, 0, 0)])
        self.assertTrue(os.path.exists(self.path("s.study.chunks/1.x.rows")))

    def test_executors_that_cannot_be_had_are_told(self):
        self.oscillator()
        environment = dict(self.environment(), PATH="/nowhere")
        for executor, says in (("slurm", "Slurm's commands have to be on the path"), ("mpi", "--executor mpi: ")):
            done = subprocess.run([CARDAN, "study", "run", "s.yaml", "--executor", executor], cwd=self.folder, text=True,
                                  env=environment, capture_output=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(says, done.stderr)
        self.cardan("study", "run", "s.yaml", "--dry-run", code=2, says="--executor slurm only")
        self.assertEqual(self.counts("s.yaml")["open"], 0)


class Scheduler(Chunks):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE)):
            with open(self.path("bin/" + name), "w", encoding="utf-8") as f:
                f.write(text.format(python=sys.executable))
            os.chmod(self.path("bin/" + name), 0o755)

    def environment(self, leaks=False):
        return dict(super().environment(leaks), PATH=self.path("bin") + ":" + os.environ["PATH"])

    def scripts(self):
        with open(self.path("bin/scripts"), encoding="utf-8") as f:
            return f.read()

    def test_tasks_give_what_local_gives(self):
        self.oscillator()
        shown = self.cardan("study", "run", "s.yaml", "--executor", "slurm", "--chunk", 9, "--submit", "--time=1:00",
                            "--dry-run").stdout
        for part in ("#SBATCH --array=1-5\n", "#SBATCH --time=1:00\n", "study work \"$SLURM_ARRAY_TASK_ID.chunk\""):
            self.assertIn(part, shown)
        self.assertEqual(self.chunks(), [])
        done = self.counts("s.yaml", "--executor", "slurm", "--chunk", 9, "--submit", "--time=1:00")
        self.assertEqual((done["done"], done["open"]), (40, 0))
        self.assertIn(self.scripts().strip(), shown)
        self.assertEqual(self.chunks(), [])
        self.same_as_local()

    def test_a_task_that_always_dies_is_given_up_with_its_last_words(self):
        self.oscillator()
        self.write("bin/broken", "")
        self.cardan("study", "run", "s.yaml", "--executor", "slurm", "--chunk", 30, code=1,
                    says=["2 of its tasks ended 3 times without a result", "s.study.chunks/1.chunk: this node is broken",
                          "the same command tries again"])
        self.assertEqual(self.scripts().count("--array=1-2"), 3)
        os.remove(self.path("bin/broken"))
        self.assertEqual(self.counts("s.yaml", "--executor", "slurm")["open"], 0)
        self.same_as_local()

    def test_the_scheduler_is_away(self):
        self.oscillator()
        self.write("bin/down", "")
        self.cardan("study", "run", "s.yaml", "--executor", "slurm", code=1,
                    says=["Unable to contact slurm controller", "'sinfo'", "--executor local"])
        os.remove(self.path("bin/down"))
        self.assertEqual(self.counts("s.yaml", "--executor", "slurm", "--chunk", 20)["open"], 0)
        self.same_as_local()

    def test_killed_controllers_and_tasks(self):
        """Half of the kills are of who follows, half of tasks and their workers."""
        draw = random.Random(11)
        count = 100 + 20 * KILLS
        self.oscillator(stop="1 s", count=count)
        kills = rounds = 0
        while kills < KILLS:
            rounds += 1
            self.assertLess(rounds, 20 * KILLS)
            run = subprocess.Popen([CARDAN, "study", "run", "s.yaml", "--executor", "slurm", "--chunk", "40"],
                                   cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
            time.sleep(draw.uniform(0.05, 0.8))
            while run.poll() is None and kills < KILLS:
                victim = run.pid if draw.random() < 0.5 else self.task(draw)
                if victim:
                    try:
                        os.kill(victim, signal.SIGKILL)
                        kills += 1
                    except ProcessLookupError:
                        pass
                if victim == run.pid:
                    break
                time.sleep(draw.uniform(0.05, 0.5))
            if kills >= KILLS:
                run.kill()
            run.communicate(timeout=60)
        done = self.to_the_end("--executor", "slurm", "--chunk", "40")
        self.assertEqual((done["done"], done["open"]), (2 * count, 0))
        self.owners_end()
        print(f"{kills} kills in {rounds} rounds")
        self.same_as_local()

    def owners_end(self):
        """What was killed leaves its folder, which the next run removes: once its owner has ended."""
        end = time.monotonic() + 60
        for name in os.listdir(self.unpack):
            while self.lives(name.split("-")[1]):
                self.assertLess(time.monotonic(), end, name + " has an owner whose study has ended")

    @staticmethod
    def lives(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                return f.read() != b""
        except OSError:
            return False

    def task(self, draw):
        """A task or one of its workers."""
        try:
            with open(self.path("bin/tasks"), encoding="utf-8") as f:
                pids = [int(line.split()[0]) for line in f]
        except OSError:
            return None
        found = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
                    children = [int(c) for c in f.read().split()]
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if f.read():
                        found += [pid, *children]
            except OSError:
                pass
        return draw.choice(found) if found else None


if __name__ == "__main__":
    unittest.main()

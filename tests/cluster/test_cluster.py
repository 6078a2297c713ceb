"""Studies on the engines that clusters have: Slurm, Open MPI, Dask, Ray, all of them the real thing on this machine. A study of 200
points whose workers and whose controller are killed gives what --executor local gives, to the last bit.

    CARDAN=... CARDAN_FMUS=... python test_cluster.py Slurm|Mpi|Dask|Ray     ends with code 77 where the engine is not installed
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(1, os.path.join(ROOT, "python"))
import engines  # noqa: E402
from e2e import CARDAN, fmu  # noqa: E402
from e2e_study import STUDY, SYSTEM, Study  # noqa: E402

POINTS = 200


class Engine(Study):
    """200 points of 2 s each: long enough to be met at work."""

    def setUp(self):
        super().setUp()
        self.draw = random.Random(28)
        self.write("osc.yaml", SYSTEM.format(fmu("lo_fd1"), fmu("lo_fd2"), "2 s"))
        self.write("s.yaml", STUDY.format("random", POINTS // 2))

    def same_as_local(self):
        """All runs, made once each, with the bits of `local`."""
        done = self.counts("s.yaml")
        self.assertEqual((done["runs"], done["done"], done["made"]), (POINTS, POINTS, 0), done)
        self.assertFalse(os.path.exists(self.path("s.study.chunks")))
        self.counts("s.yaml", "--database", "local.study")
        self.assertEqual(self.rows(), self.rows("local.study"))

    def begin(self, *words, **more):
        """A controller."""
        with open(self.path("controller.log"), "ab") as log:
            return subprocess.Popen(words, cwd=self.folder, env=dict(self.environment(), **more), stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def log(self):
        with open(self.path("controller.log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def made(self):
        """Runs that are in the study."""
        try:
            return sum(r[1] > 1 for r in self.rows())
        except Exception:  # it is being made
            return 0

    def until(self, what, run, seconds=240):
        """The first thing that `what` finds, while `run` is at work; None if that ends before."""
        end = time.monotonic() + seconds
        while run.poll() is None:
            found = what()
            if found:
                return found
            self.assertLess(time.monotonic(), end, self.log())
            time.sleep(0.02)
        return None

    def processes(self, *parts):
        """Numbers of processes of this test whose command line has all parts."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    line = f.read().replace(b"\0", b" ").decode()
                if line and all(p in line for p in parts) and os.readlink(f"/proc/{pid}/cwd").startswith(self.folder):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def kill_one(self, pids):
        try:
            os.kill(self.draw.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            pass

    def finish(self, run, code=0):
        self.assertEqual(run.wait(timeout=400), code, self.log())


class Slurm(Engine):
    def setUp(self):
        super().setUp()
        short = tempfile.mkdtemp(prefix="slurm_")  # munge's socket wants a short name
        self.addCleanup(shutil.rmtree, short, ignore_errors=True)
        self.slurm = engines.Slurm(os.path.join(short, "s"))
        self.addCleanup(self.slurm.stop)

    def environment(self, leaks=False):
        more = self.slurm.environment if hasattr(self, "slurm") else {}
        return dict(super().environment(leaks), **more)

    def test_a_killed_task_and_a_killed_controller(self):
        words = (CARDAN, "study", "run", "s.yaml", "--executor", "slurm", "--chunk", "25")
        run = self.begin(*words)
        victim = self.until(lambda: self.processes("study work"), run)
        self.assertTrue(victim, self.log())
        self.kill_one(victim)  # a task, or a worker of it
        self.until(lambda: self.made() > POINTS // 8, run)
        run.kill()
        run.wait()
        made = self.made()
        self.assertLess(made, POINTS, "it was faster than its murderer")
        self.finish(self.begin(*words))  # follows what is under way, and submits what is not
        self.same_as_local()

    def test_a_lost_node_and_a_controller_of_slurm_that_is_away(self):
        words = (CARDAN, "study", "run", "s.yaml", "--executor", "slurm", "--chunk", "50")
        run = self.begin(*words)
        self.assertTrue(self.until(lambda: self.processes("study work"), run), self.log())
        self.slurm.end("slurmctld")
        self.kill_one(self.processes("study work"))
        self.slurm.start("slurmctld", "-D", "-f", self.slurm.environment["SLURM_CONF"])
        self.finish(run)
        self.same_as_local()

    def test_a_scheduler_that_cannot_be_reached(self):
        self.slurm.end("slurmctld")
        self.cardan("study", "run", "s.yaml", "--executor", "slurm", code=1, says=["sinfo", "--executor local makes the runs here"])
        self.same_as_local_after_all()

    def same_as_local_after_all(self):
        self.counts("s.yaml")
        self.same_as_local()


class Mpi(Engine):
    def mpirun(self, ranks, *words):
        return ("mpirun", "-n", str(ranks), "--oversubscribe", CARDAN, "study", "run", "s.yaml", "--executor", "mpi", *words)

    def environment(self, leaks=False):
        return dict(super().environment(leaks), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                    OMPI_MCA_btl_vader_single_copy_mechanism="none", TMPDIR=tempfile.gettempdir())

    def test_two_ranks_that_work(self):
        self.finish(self.begin(*self.mpirun(3)))
        self.same_as_local()

    def test_a_killed_worker_a_killed_rank_and_a_killed_mpirun(self):
        run = self.begin(*self.mpirun(3, "--chunk", "5"))
        self.until(lambda: self.made() > 5, run)
        # Workers are children of ranks, which are those of mpirun: a worker's death is the rank's business alone.
        ranks = {p for p in self.processes("study run") if p != run.pid}
        workers = [p for p in ranks if parent_of(p) in ranks]
        self.assertTrue(workers, self.log())
        self.kill_one(workers)
        made = self.made()
        self.assertTrue(self.until(lambda: self.made() > made, run), self.log())
        self.kill_one([p for p in ranks if p not in workers and os.path.exists(f"/proc/{p}")])  # mpirun ends the others
        self.assertNotEqual(run.wait(timeout=100), 0)
        made = self.made()
        self.assertLess(made, POINTS, "it was faster than its murderer")
        run = self.begin(*self.mpirun(3, "--chunk", "5"))
        self.until(lambda: self.made() > made, run)
        run.kill()
        run.wait()
        self.finish(self.begin(*self.mpirun(2)))
        self.same_as_local()


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


FOLLOW_DASK = """
import sys
import cardan.study
from distributed import Client
with Client(sys.argv[1]) as client:
    print(cardan.study.run("s.yaml", client=client, chunk=10, progress=False).counts)
"""


class Dask(Engine):
    def setUp(self):
        super().setUp()
        from distributed import LocalCluster
        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        self.addCleanup(self.cluster.close)

    def test_a_killed_worker_and_a_killed_controller(self):
        self.write("follow.py", FOLLOW_DASK)
        words = (sys.executable, "follow.py", self.cluster.scheduler_address)
        run = self.begin(*words, PYTHONPATH=os.path.join(ROOT, "python"))
        self.until(lambda: self.made() > 0, run)
        self.kill_one([w.pid for w in self.cluster.workers.values()])
        made = self.made()
        self.until(lambda: self.made() > made, run)
        run.kill()
        run.wait()
        self.assertLess(self.made(), POINTS, "it was faster than its murderer")
        self.finish(self.begin(*words, PYTHONPATH=os.path.join(ROOT, "python")))
        self.same_as_local()

    def test_what_does_not_work_is_told(self):
        import cardan
        import cardan.study
        from distributed import Client
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        with Client(self.cluster) as client:
            client.run(os.environ.__setitem__, "CARDAN_LIBRARY", "/nowhere/libcardan.so")
            client.run(break_command)
            with self.assertRaisesRegex(cardan.UnitError, "without a result.*no such program.*the same call tries again"):
                cardan.study.run("s.yaml", client=client, chunk=100)
        self.assertEqual(cardan.study.Study("s.yaml").counts["open"], POINTS)
        with self.assertRaisesRegex(cardan.ReadWriteError, "closed.*the same call goes on"):
            cardan.study.run("s.yaml", client=GoneClient())


def break_command():
    import cardan.study

    def nothing():
        raise OSError("no such program")
    cardan.study.command = nothing


class GoneClient:
    """What is left of a client whose scheduler is gone: tasks never end."""
    status = "closed"

    def submit(self, *_):
        from concurrent.futures import Future
        return Future()


FOLLOW_RAY = """
import cardan.study
import ray
ray.init(num_cpus=2, _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False)
print(cardan.study.run("s.yaml", client=ray, chunk=10, progress=False).counts)
"""


class Ray(Engine):
    def test_a_killed_controller(self):
        self.write("follow.py", FOLLOW_RAY)
        more = {"PYTHONPATH": os.path.join(ROOT, "python"), "TMPDIR": tempfile.gettempdir()}  # where Ray leaves its folder
        run = self.begin(sys.executable, "follow.py", **more)
        self.until(lambda: self.made() > 0, run)
        run.kill()  # and all of Ray with it
        run.wait()
        self.assertLess(self.made(), POINTS, "it was faster than its murderer")
        self.finish(self.begin(sys.executable, "follow.py", **more))
        self.same_as_local()

    def test_a_killed_worker(self):
        import cardan.study
        import ray
        os.environ["PYTHONPATH"] = os.path.join(ROOT, "python")
        ray.init(num_cpus=2, _node_ip_address="127.0.0.1", include_dashboard=False, log_to_driver=False)
        self.addCleanup(ray.shutdown)
        os.chdir(self.folder)
        self.addCleanup(os.chdir, "/")
        pid = os.fork()
        if pid == 0:  # kills a worker of Ray once something has come
            end = time.monotonic() + 200
            while time.monotonic() < end and self.made() == 0:
                time.sleep(0.02)
            for p in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{p}/cmdline", "rb") as f:
                        if f.read().startswith(b"ray::_work"):
                            os.kill(int(p), signal.SIGKILL)
                            break
                except OSError:
                    pass
            os._exit(0)
        cardan.study.run("s.yaml", client=ray, chunk=10, progress=False)
        os.waitpid(pid, 0)
        self.same_as_local()


def missing(engine):
    """Why an engine cannot be tried here."""
    if engine == "Slurm":
        return ", ".join(engines.Slurm.missing())
    if engine == "Mpi":
        plugin = os.path.join(os.path.dirname(CARDAN), "cardan-mpi.so")
        return "" if shutil.which("mpirun") and os.path.exists(plugin) else "mpirun or cardan-mpi.so"
    try:
        __import__({"Dask": "distributed", "Ray": "ray"}[engine])
    except ImportError as e:
        return str(e)
    return ""


def use_packages():
    """Goes on with the interpreter that has them, where there is one."""
    python = os.environ.pop("CARDAN_CLUSTER_PYTHON", "")
    if python and os.path.exists(python):
        os.execv(python, [python, "-B", *sys.argv])


if __name__ == "__main__":
    use_packages()
    if len(sys.argv) > 1 and missing(sys.argv[1].partition(".")[0]):
        print(f"{sys.argv[1]} is not here: {missing(sys.argv[1].partition('.')[0])}")
        sys.exit(77)
    unittest.main(verbosity=2)

"""A run on the clock, for real: what it says about itself against a trace that somebody else took."""

import collections
import ctypes
import json
import math
import os
import resource
import signal
import subprocess
import unittest

from e2e import CARDAN, EndToEnd, fmu

TRACE = os.environ["CARDAN_SLEEP_TRACE"]
SECONDS = float(os.environ.get("CARDAN_TRACE_SECONDS", "5"))


def system(stop, extra=""):
    return f"""
cardan: 1
units:
  cycle:
    signals:
      target: {{ shape: sine, amplitude: 60, frequency: 0.5 Hz, unit: rad/s }}
  controller: {{ fmu: {fmu('drive_controller')} }}
  motor: {{ fmu: {fmu('drive_motor')} }}
  shaft: {{ fmu: {fmu('drive_shaft')} }}
connections:
  - cycle.target -> controller.target
  - controller.demand -> motor.demand
  - shaft.speed -> motor.speed
  - motor.torque -> shaft.torque
  - shaft.speed -> controller.speed
run: {{ step: 1 ms, stop: {stop} s, pace: realtime }}
{extra}
"""


class Trace(EndToEnd):
    def environment(self, leaks=False):
        # The sanitizers want to be first; they are not in the builds that run this.
        return dict(super().environment(leaks), LD_PRELOAD=TRACE,
                    SLEEP_TRACE=self.path("sleeps.txt"))

    def test_every_cycle_is_accounted_for_and_the_summary_is_what_an_outsider_saw(self):
        self.write("drive.yaml", system(SECONDS))
        report = self.cardan_json("run", "drive.yaml", "-o", "none")
        pace = report["pace"]
        cycles = round(SECONDS / 1e-3)
        self.assertEqual(pace["cycles"], cycles)
        self.assertEqual(pace["lateness"]["count"], cycles)
        self.assertEqual(pace["busy"]["count"], cycles)
        self.assertEqual(pace["drift"], 0)
        with open(self.path("sleeps.txt"), encoding="ascii") as f:
            rows = [tuple(map(int, line.split())) for line in f]
        threads = collections.Counter(r[0] for r in rows)
        sleeper = threads.most_common(1)[0][0]
        rows = [r for r in rows if r[0] == sleeper]
        # The grid: each wait is for a whole millisecond from the first, none is asked for twice but
        # by a sleep in parts, and those that are missing had passed when their turn came.
        first = rows[0][1]
        self.assertTrue(all((until - first) % 1_000_000 == 0 for _, until, _ in rows))
        untils = [until for _, until, _ in rows]
        self.assertEqual(untils, sorted(untils))
        self.assertLessEqual(len(set(untils)), cycles)
        # Lateness, as the outsider saw it. Between its look at the clock and ours there is nothing
        # but the return and its own notes, some us; the histogram has steps of 1/16. Of cycles that did not sleep, as they were
        # late already, it does not know how late: they may lie anywhere in its order.
        seen = sorted(back - until for until, back in {r[1]: r[2] for r in rows}.items())
        not_slept = cycles - len(seen)
        for name, q in (("p50", 0.5), ("p90", 0.9)):
            rank = int(q * cycles)
            low = 1e-9 * seen[max(0, min(len(seen) - 1, rank - not_slept))]
            high = 1e-9 * seen[rank] if rank < len(seen) else math.inf
            what = f"{name}: {pace['lateness'][name]} against {low} ... {high}"
            self.assertGreater(pace["lateness"][name], 0.8 * low - 5e-6, what)
            self.assertLess(pace["lateness"][name], 1.2 * high + 5e-6, what)
        # Who did not sleep had no time to: the cycle before was an overrun, or done in the last
        # microseconds. Only the first (which begins the grid) and the one behind the last are free.
        overruns = pace["overrun_count"]
        self.assertGreaterEqual(not_slept, overruns - 1)
        self.assertLessEqual(not_slept, overruns + 2 + cycles // 200)


def without_rights():
    """In the child: as somebody whom nothing of real time is allowed."""
    libc = ctypes.CDLL(None)
    for capability in (14, 23):  # IPC_LOCK, SYS_NICE
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))


class BadThings(EndToEnd):
    def start(self, *arguments, **options):
        return subprocess.Popen([CARDAN, "run", *arguments], cwd=self.folder,
                                env=self.environment(), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def stop_for_a_while(self, pace):
        """A run that stands still for 0.3 s: its process, what it printed, its seconds. It is longer
        where the machine is too busy to stop it in time."""
        for seconds in (0.6, 3, 15, 60):
            self.write("drive.yaml", system(seconds, "results: out.mf4").replace(
                "pace: realtime", f"pace: {pace}"))
            with self.start("drive.yaml", "--json", "--progress", "json") as run:
                for line in run.stderr:  # until it runs
                    if line.startswith("{") and json.loads(line)["time"] > 0.05:
                        break
                os.kill(run.pid, signal.SIGSTOP)
                how = os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                subprocess.run(["sleep", "0.3"], check=True)  # what is tested, not a wait for something
                os.kill(run.pid, signal.SIGCONT)
                out, err = run.communicate(timeout=120)
            if how.si_code == os.CLD_STOPPED and json.loads(out)["pace"]["lateness"]["max"] > 0.05:
                break
        return run, out, err, seconds

    def test_without_any_right_the_run_goes_on_and_says_what_would_allow_it(self):
        self.write("drive.yaml", system(0.2))
        done = self.cardan("run", "drive.yaml", "-o", "none", "--json",
                           preexec_fn=without_rights)
        pace = json.loads(done.stdout)["pace"]
        self.assertFalse(pace["fifo"])
        self.assertFalse(pace["locked"])
        self.assertEqual(pace["cycles"], 200)
        notes = " ".join(pace["notes"])
        self.assertIn("rtprio", notes)
        self.assertIn("memlock", notes)
        self.assertIn("rtprio", done.stderr)

    def test_what_is_required_and_not_allowed_ends_the_run_before_it_begins(self):
        self.write("drive.yaml", system(0.2).replace("pace: realtime",
                                                     "pace: { factor: realtime, required: true }"))
        self.cardan("run", "drive.yaml", "-o", "none", code=1, says="limits.d",
                    preexec_fn=without_rights)

    def test_a_process_that_was_stopped_for_a_while_goes_on_and_says_so(self):
        run, out, _, seconds = self.stop_for_a_while("realtime")
        pace = json.loads(out)["pace"]
        self.assertEqual(run.returncode, 0)
        self.assertEqual(pace["cycles"], round(1000 * seconds))
        self.assertGreaterEqual(pace["lateness"]["max"], 0.25)
        self.assertGreater(pace["overrun_count"], 100)
        self.assertEqual(self.cardan_json("info", "out.mf4")["groups"][0]["rows"],
                         round(1000 * seconds) + 1)

    def test_a_late_cycle_can_end_the_run_with_exit_code_3(self):
        run, out, err, _ = self.stop_for_a_while(
            "{ factor: realtime, overrun: stop, slack: 100 ms }")
        self.assertEqual(run.returncode, 3, err)
        self.assertEqual(json.loads(out)["end"], "overrun")
        self.assertIn("cycle", err)

    def test_limits_that_are_not_kept_give_exit_code_3(self):
        self.write("drive.yaml", system(0.1))
        self.cardan("run", "drive.yaml", "-o", "none", "--max-lateness", "1 ns", code=3,
                    says="--max-lateness")

    def test_a_full_disk_ends_the_run_with_what_was_written(self):
        self.write("drive.yaml", system(20, "results: out.csv"))
        # Room for an unpacked FMU with all that a debugger wants to know.
        self.cardan("run", "drive.yaml", "--pace", "20x", code=1, says="out.csv", preexec_fn=lambda:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000)))
        info = self.cardan_json("info", "out.csv")
        self.assertGreater(info["groups"][0]["rows"], 100)


if __name__ == "__main__":
    unittest.main()

"""Two benches in one network namespace, the car in another, and the emulator as the only way
between them. Ends with code 77 where namespaces are not allowed."""

import os
import subprocess
import sys
import unittest

from bench_field import Field, Process

# Desk 10.1.0.1 - 10.1.0.2 link 10.2.0.2 - 10.2.0.1 hall, without a route past the link. All of it
# is gone with the process that holds it.
HOLD = """
set -e
mount -t tmpfs tmpfs /run
for host in desk link hall; do ip netns add $host; ip -n $host link set lo up; done
ip link add d0 netns desk type veth peer name l0 netns link
ip link add h0 netns hall type veth peer name l1 netns link
ip -n desk addr add 10.1.0.1/24 dev d0
ip -n link addr add 10.1.0.2/24 dev l0
ip -n link addr add 10.2.0.2/24 dev l1
ip -n hall addr add 10.2.0.1/24 dev h0
ip -n desk link set d0 up
ip -n link link set l0 up
ip -n link link set l1 up
ip -n hall link set h0 up
echo ready
exec sleep 300
"""
USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]


class Namespaces(Field):
    watchdog = "1 s"

    def setUp(self):
        super().setUp()
        hold = Process(self, "hold", "unshare", *USER, "--mount", "--net", "sh", "-c", HOLD)
        hold.wait_for(lambda: "ready" in hold.says() or None, "namespaces")
        self.enter = ["nsenter", "--target", str(hold.process.pid), *USER[:1], "--mount", "--net"]

    def at(self, host):
        return [*self.enter, "ip", "netns", "exec", host, "env", "--chdir", self.folder]

    def test_a_session_over_a_bad_link_between_two_hosts_is_accounted_for(self):
        engine, machine = self.benches(("--plain",), ("--plain",), prefix=self.at("hall"),
                                       listen="udp://10.2.0.1:0")
        link = self.emulator(engine, machine, "--delay", "5 ms", "--jitter", "1 ms", "--loss",
                             "0.01", "--seed", "3", "--plain", prefix=self.at("link"),
                             listen=("udp://10.1.0.2:8081", "udp://10.1.0.2:8082"))
        # nobody reaches the benches but through the link
        past = subprocess.run([*self.at("desk"), "ip", "route", "get", "10.2.0.1"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(past.returncode, 0, past.stdout)
        self.system(*link.addresses, "3 s", session=", plain: true")
        run = self.start(prefix=self.at("desk"))
        run.ended()
        self.assertEqual(self.report(run)["end"], "stop time")
        links = self.links(run)
        received = sent = 0
        for bench, way in ((engine, links["engine"]), (machine, links["machine"])):
            before, _ = self.check_stop(bench, "master")
            end = bench.summary()
            received += end["received"]
            sent += end["sent"]
            self.assertGreater(way["round_trip"], 8e-3)
            self.assertEqual(way["out"], 300)
            self.assertEqual(way["bad"] + end["data_dropped"] + end["dropped"], 0)
            # 2 before the start; behind the last that came nobody sees a gap
            self.assertIn(way["out"] + 2 - end["data_in"] - end["data_lost"], range(5))
            # and what the bench sends between the last it got and the order to stop is for nobody
            unread = int(before["data_age"] / 10e-3)
            self.assertIn(end["data_out"] - 2 - way["in"] - way["lost"], range(unread + 5))
        self.check_recording(2.9)
        counts = self.passed(link)
        self.assertEqual(counts["there"]["sent"], received)
        self.assertEqual(counts["back"]["received"], sent)
        self.assertGreater(counts["there"]["lost"] + counts["back"]["lost"], 0)


def refused():
    """Why there are no namespaces here; None: there are."""
    try:
        done = subprocess.run(["unshare", *USER, "--mount", "--net", "sh", "-c",
                               HOLD.replace("exec sleep 300", "")], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or "refused"


if __name__ == "__main__":
    why = refused()
    if why:
        print(f"skipped: no network namespaces here: {why}")
        sys.exit(77)
    unittest.main(verbosity=2)

"""Two benches and a car at 1 kHz: every PDU is accounted for, on a good way and on a bad one."""

import os
import re
import struct
import unittest

from bench_field import Beside, Field

SECONDS = int(os.environ.get("CARDAN_BENCH_SECONDS", "5"))


def count_pdus(path):
    """How many PDUs a capture has, and how many of them are DAT_input_output."""
    pdus = data = 0
    with open(path, "rb") as f:
        bytes_ = f.read()
    at = 0
    while at < len(bytes_):
        kind, length = struct.unpack_from("<II", bytes_, at)
        if kind == 6:  # enhanced packet: 20 bytes, the packet with its IPv4 header
            packet = at + 28
            udp = packet + 4 * (bytes_[packet] & 15)
            pdus += 1
            data += bytes_[udp + 8] == 0xF0
        at += length
    return pdus, data


class Minute(Field):
    step = "1 ms"
    watchdog = "2 s"

    def drive(self, addresses, *benches, **more):
        """A run; for each bench what master, bench and capture have counted."""
        self.system(*addresses, f"{SECONDS} s", gap=5000,
                    session=", capture: session.pcapng", **more)
        run = self.start("field", "--log-level", "info")
        said = run.ended()
        report, links = self.report(run), self.links(run)
        self.assertEqual(report["end"], "stop time")
        self.assertEqual(report["steps"], 1000 * SECONDS)
        pdus, data = count_pdus(self.path("session.pcapng"))
        out = []
        for name, bench in zip(("engine", "machine"), benches):
            self.check_stop(bench, "master")
            found = re.search(rf"unit '{name}': (\d+) data PDUs in, (\d+) out", said)
            total = {"in": int(found[1]), "out": int(found[2])}
            came = re.search(rf"unit '{name}': of (\d+) data PDUs that came", said)
            total["came"] = int(came[1]) if came else total["in"]
            share = bench.cpu_share()
            out.append((name, bench.summary(), links[name], total))
            self.assertLess(share, 0.5, "of a CPU")
            print(f"{name}: {100 * share:.1f} % of a CPU, {out[-1][1]['late_steps']} of "
                  f"{out[-1][1]['steps']} steps late, {links[name]['late']} without new data in "
                  "time", flush=True)
        # the capture has what the master sent and got, no more and no less
        self.assertEqual(data, sum(t["came"] + t["out"] for *_, t in out))
        return out, pdus

    def counted(self, seen, pdus):
        """All PDUs but a copy of each bench's last answer: asked twice, it may come when the master has gone."""
        self.assertGreaterEqual(seen, pdus)
        self.assertLessEqual(seen, pdus + 2)

    def test_on_a_good_way_everything_arrives(self):
        engine, machine = self.benches()
        out, pdus = self.drive((engine.address, machine.address), engine, machine)
        self.counted(sum(b["received"] + b["sent"] for _, b, _, _ in out), pdus)
        for name, bench, link, total in out:
            # what the master sent has come, what the bench sent has come
            self.assertEqual(bench["data_in"], total["out"])
            self.assertEqual(bench["data_out"], total["in"])
            for count in ("data_lost", "data_old", "data_dropped", "dropped", "send_failed"):
                self.assertEqual(bench[count], 0, count)
            for count in ("lost", "duplicates", "reordered", "bad"):
                self.assertEqual(link[count], 0, count)
            self.assertEqual(link["out"], 1000 * SECONDS)
            # a bench sends in every step; when its clock began is the machine's business
            self.assertGreaterEqual(bench["data_out"], bench["steps"])
            self.assertGreater(bench["steps"], 990 * SECONDS)
            self.assertLessEqual(link["in"], total["in"])

    def test_on_a_bad_way_what_is_lost_is_known(self):
        engine, machine = self.benches()
        link = self.emulator(engine, machine, "--loss", "0.01", "--duplicate", "0.005",
                             "--reorder", "0.005", "--seed", "1")
        out, pdus = self.drive(link.addresses, engine, machine)
        counts = self.passed(link)
        there, back = counts["there"], counts["back"]
        # from hop to hop nothing is missing
        self.counted(there["received"] + back["sent"], pdus)
        self.assertEqual(there["sent"], sum(b["received"] for _, b, _, _ in out))
        self.assertEqual(back["received"], sum(b["sent"] for _, b, _, _ in out))
        self.assertGreater(there["lost"], 10 * SECONDS)
        for name, bench, link_of, total in out:
            # sent = arrived, in time or behind later ones, + gaps in the numbers, but for what was
            # lost behind the last that came
            missing = total["out"] - bench["data_in"] - bench["data_reordered"] - bench["data_lost"]
            self.assertGreaterEqual(missing, 0, name)
            self.assertLess(missing, 10, name)
            missing = bench["data_out"] - total["in"] - link_of["reordered"] - link_of["lost"]
            self.assertGreaterEqual(missing, 0, name)
            self.assertLess(missing, 10, name)
        lost = sum(b["data_lost"] for _, b, _, _ in out)
        self.assertLessEqual(lost, there["lost"])  # which has lost requests, too
        self.assertGreater(lost, 0.8 * there["lost"])
        twice = sum(b["data_duplicates"] for _, b, _, _ in out)
        self.assertLessEqual(twice, there["duplicated"])
        self.assertGreater(twice, 0.8 * there["duplicated"])


def load_tests(loader, tests, pattern):
    return Beside(loader.loadTestsFromTestCase(Minute))


if __name__ == "__main__":
    unittest.main()

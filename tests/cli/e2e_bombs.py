"""Small files that claim to be large: each ends with a sentence, in bounded memory and time."""

import os
import struct
import subprocess
import unittest
import zipfile
import zlib

from e2e import CARDAN, EndToEnd, fmu

MOST_MB = 700  # of resident memory; sanitizers take their share of it
SSD = ('<s:SystemStructureDescription xmlns:s="http://ssp-standard.org/SSP1/SystemStructureDescription"'
       ' version="1.0" name="x"><s:System name="r"><s:Elements>%s</s:Elements></s:System>'
       '</s:SystemStructureDescription>')
MAT_HEAD = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def array_head(kind, rows, columns, name):
    return (element(6, struct.pack("<II", kind, 0)) + element(5, struct.pack("<2i", rows, columns)) +
            element(1, name))


def packed(data):
    deflated = zlib.compress(data, 9)
    return struct.pack("<II", 15, len(deflated)) + deflated


def cells_in_cells(depth):
    """Levels are made from the inside, each tag with the length of what is in it."""
    head = array_head(1, 1, 1, b"n")
    inner = element(14, array_head(6, 1, 1, b"") + element(9, bytes(8)))
    tags, length = [], len(inner)
    for _ in range(depth):
        tags.append(struct.pack("<II", 14, len(head) + length) + head)
        length += 8 + len(head)
    return b"".join(reversed(tags)) + inner


class Bombs(EndToEnd):
    def refused(self, *arguments, says, **environment):
        """Exit code 2 with this sentence, in little memory, nothing left behind."""
        process = subprocess.Popen([CARDAN, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env=dict(self.environment(), **environment))
        said = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 2, said)
        self.assertIn(says, said)
        self.assertLess(usage.ru_maxrss / 1024, MOST_MB, said)
        self.assertLess(usage.ru_utime + usage.ru_stime, 60, said)
        self.assertEqual(os.listdir(self.unpack), [])

    def bytes(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def test_matlab_cells_in_cells(self):
        deep = cells_in_cells(200000)
        for name, data in (("packed", packed(deep)), ("plain", deep)):
            self.bytes(name + ".mat", MAT_HEAD + data)
            self.refused("info", name + ".mat", says="more than 32 deep in each other")

    def test_matlab_cells_without_number(self):
        empty = struct.pack("<II", 14, 0) * 1000000
        self.bytes("cells.mat", MAT_HEAD + packed(element(14, array_head(1, 1000000, 1, b"c") + empty)))
        self.refused("info", "cells.mat", says="cells or fields in a file of")

    def test_matlab_zeros(self):
        n = 10000000
        zeros = [packed(element(14, array_head(6, n, 1, name) + element(1, bytes(n))))
                 for name in (b"time", b"x", b"y", b"z")]
        self.bytes("zeros.mat", MAT_HEAD + b"".join(zeros))
        self.refused("info", "zeros.mat", says="brings the values to")

    def test_matlab_dimensions_that_nothing_stands_behind(self):
        self.bytes("claim.mat", MAT_HEAD + element(14, array_head(1, 2**31 - 1, 4, b"c")))
        self.refused("info", "claim.mat", says="fewer cells or fields than its dimensions say")
        self.bytes("old.mat", struct.pack("<5i", 0, 2**30, 2**30, 0, 5) + b"time\0" + bytes(64))
        self.refused("info", "old.mat", says="old.mat: offset 0: the file is cut off")

    def test_an_fmu_that_grows(self):
        with zipfile.ZipFile(fmu("lo_mono")) as good, \
                zipfile.ZipFile(self.path("large.fmu"), "w", zipfile.ZIP_DEFLATED) as z:
            for name in good.namelist():
                z.writestr(name, good.read(name))
            for i in range(12):
                z.writestr(f"resources/{i}", (os.urandom(256) + bytes(65280)) * 1600)
        says = "unpacks to more than the limit of 1073741824 bytes (at entry 'resources/10'); to allow more"
        self.refused("run", "large.fmu", says=says)
        self.refused("run", "large.fmu", "--stop-time", "x", says="expected", CARDAN_MAX_UNPACKED="2G")
        self.refused("run", "large.fmu", says="than the limit of 1048576 bytes", CARDAN_MAX_UNPACKED="1M")
        self.refused("run", "large.fmu",
                     says="CARDAN_MAX_UNPACKED (--max-unpacked) = '1 T', expected",
                     CARDAN_MAX_UNPACKED="1 T")
        for command in ("run", "check", "info", "build", "analyze"):
            self.refused(command, "large.fmu", "--max-unpacked", "1M", says="than the limit of 1048576 bytes",
                         CARDAN_MAX_UNPACKED="2G")
        self.refused("run", "large.fmu", "--max-unpacked", "2G", "--stop-time", "x", says="expected")
        self.refused("info", "large.fmu", "--max-unpacked", "many", says="(--max-unpacked) = 'many', expected")

    def test_packages_in_packages(self):
        def package(name, components, members):
            with zipfile.ZipFile(self.path(name), "w", zipfile.ZIP_DEFLATED) as z:
                z.writestr("SystemStructure.ssd", SSD % components)
                for path, data in members:
                    z.writestr(path, data)

        package("inner.ssp", "", [("resources/zero", (os.urandom(99) + bytes(64000)) * 1500)])
        with open(self.path("inner.ssp"), "rb") as f:
            inner = f.read()
        package("outer.ssp", "".join(
            f'<s:Component name="c{k}" type="application/x-ssp-package" source="resources/{k}.ssp"/>'
            for k in range(3)), [(f"resources/{k}.ssp", inner) for k in range(3)])
        self.refused("check", "outer.ssp", says="to allow more", CARDAN_MAX_UNPACKED="150M")

    def test_structures_in_structures(self):
        os.mkdir(self.path("fan"))
        for i in range(8):
            parts = "".join(f'<s:Component name="c{k}" type="application/x-ssp-definition" '
                            f'source="s{i + 1}.ssd"/>' for k in range(10))
            self.write("fan/" + (f"s{i}.ssd" if i else "SystemStructure.ssd"), SSD % parts)
        self.write("fan/s8.ssd", SSD % "")
        self.refused("check", "fan", says="more than 131072 components")

    def test_subcircuits_in_subcircuits(self):
        lines = ["bomb", "V1 in 0 1", ".subckt s0 a b", "R1 a b 1k", ".ends"]
        for i in range(1, 8):
            lines += [f".subckt s{i} a b", *(f"X{k} a b s{i - 1}" for k in range(10)), ".ends"]
        self.write("bomb.cir", "\n".join(lines + ["X1 in 0 s7", ".tran 1m 1m", ".end", ""]))
        self.refused("info", "bomb.cir", says="its subcircuits expand to 3.22e+07 parts and copies")

    def test_texts_that_refer_to_themselves(self):
        self.write("laugh.yaml", "cardan: 1\nunits: &u\n  a: {fmu: x.fmu, parameters: *u}\n")
        self.refused("check", "laugh.yaml", says="anchors are not read here")
        os.mkdir(self.path("laugh"))
        self.write("laugh/SystemStructure.ssd", '<!DOCTYPE l [<!ENTITY a "x">]>' + SSD % "")
        self.refused("check", "laugh", says="a DOCTYPE, which is refused")
        self.write("deep.yaml", "cardan: 1\nunits: " + "[" * 200000 + "]" * 200000 + "\n")
        self.refused("check", "deep.yaml", says="nested deeper than 32 levels")

    def test_a_table_of_nothing_but_columns(self):
        self.write("wide.csv", "time" + ",x" * 4000000 + "\n")
        self.refused("info", "wide.csv", says="wide.csv:1: 4000001 columns, expected at most 1000000")

    def test_a_capture_that_claims(self):
        self.bytes("a.pcap", struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 2**32 - 1, 1) +
                   struct.pack("<IIII", 0, 0, 2**32 - 16, 2**32 - 16) + bytes(100))
        self.refused("dcp", "log", "a.pcap", says="a packet of more than 16 MiB")


if __name__ == "__main__":
    unittest.main()

"""Installs into a scratch prefix and uses what is there as somebody else would."""

import csv
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
OUTSIDE = os.path.join(HERE, "outside")
BUILD = os.environ["CARDAN_BUILD"]
SOURCE = os.environ["CARDAN_SOURCE"]
VERSION = os.environ["CARDAN_VERSION"]
LIBDIR = os.environ["CARDAN_LIBDIR"]
CMAKE = os.environ["CMAKE"]
CC = os.environ["CC"]

# What a user may count on, below the prefix.
INSTALLED = [
    "bin/cardan",
    f"{LIBDIR}/libcardan.so", f"{LIBDIR}/libcardan.so.0", f"{LIBDIR}/libcardan.a",
    f"{LIBDIR}/pkgconfig/cardan.pc",
    f"{LIBDIR}/cmake/cardan/cardan-config.cmake",
    f"{LIBDIR}/cmake/cardan/cardan-config-version.cmake",
    *[f"include/cardan/{h}" for h in os.listdir(os.path.join(SOURCE, "include", "cardan"))
      if h != "web.h"],  # of the command, not of the library
    "share/man/man1/cardan.1",
    "share/bash-completion/completions/cardan",
    "share/zsh/site-functions/_cardan",
    "share/cardan/cardan.schema.json", "share/cardan/dcp.lua",
    "share/cardan/CardanFmu.cmake", "share/cardan/export/fmi2.c", "share/cardan/export/fmi3.c",
    "share/cardan/fmus/fmi2/lo_mono.fmu", "share/cardan/fmus/fmi3/lo_mono.fmu",
]


def run(*command, **options):
    environment = dict(os.environ, **options.pop("env", {}))
    done = subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True,
                          timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n"
                             f"{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="install_", dir=os.environ["CARDAN_TMP"])
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = os.path.join(cls.folder, "prefix")
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.cardan = cls.at("bin/cardan")
        cls.libdir = cls.at(LIBDIR)

    @classmethod
    def at(cls, name):
        return os.path.join(cls.prefix, name)

    def scratch(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def pkg_config(self, *arguments):
        return run("pkg-config", *arguments, "cardan",
                   env={"PKG_CONFIG_PATH": os.path.join(self.libdir, "pkgconfig")}).split()

    def check_drive(self, program, **env):
        """The program runs the oscillator as the command does."""
        fmu = self.at("share/cardan/fmus/fmi3/lo_mono.fmu")
        # With the library inside nobody knows where it was installed to, other than its default prefix.
        said = run(program, fmu, "x1", env={"CARDAN_WORKER": self.at("libexec/cardan/cardan-worker"), **env})
        found = re.fullmatch(r"cardan (\S+): x1 = (\S+)\n", said)
        self.assertTrue(found, said)
        self.assertEqual(found[1], VERSION)
        self.assertEqual(float(found[2]), float(self.last_row(fmu)["x1"]))

    def last_row(self, fmu, *options):
        results = os.path.join(self.folder, "results.csv")
        run(self.cardan, "run", fmu, "--quiet", "--output", results, *options)
        with open(results, encoding="utf-8", newline="") as f:
            return list(csv.DictReader(f))[-1]

    def needed(self, program):
        return run("readelf", "-d", program)

    def test_everything_is_there(self):
        missing = [f for f in INSTALLED if not os.path.exists(self.at(f))]
        self.assertEqual(missing, [])
        self.assertEqual(run(self.cardan, "--version").splitlines()[0], f"cardan {VERSION}")
        for version in "fmi2", "fmi3":
            self.assertEqual(sorted(os.listdir(os.path.join(BUILD, "fmus", version))),
                             sorted(os.listdir(self.at(f"share/cardan/fmus/{version}"))))

    def test_no_file_names_the_folder_it_was_built_in(self):
        leaks = []
        for where, _, names in os.walk(self.prefix):
            for name in names:
                path = os.path.join(where, name)
                with open(path, "rb") as f:
                    data = f.read()
                text = b"\0" not in data
                if text and any(p.encode() in data for p in (SOURCE, BUILD, self.prefix)):
                    leaks.append(path)
        self.assertEqual(leaks, [])

    def test_nothing_but_the_interface_is_exported(self):
        names = [line.split()[-1].split("@")[0] for line in
                 run("nm", "-D", "--defined-only", self.at(f"{LIBDIR}/libcardan.so")).splitlines()]
        self.assertIn("crd_master_run", names)
        self.assertEqual([n for n in names if not re.match(r"crdi?_", n)], [])

    def test_what_is_installed_is_hardened(self):
        run(sys.executable, os.path.join(SOURCE, "tests/layers/hardening.py"), self.at("bin/cardan"),
            self.at("libexec/cardan/cardan-worker"), self.at(f"{LIBDIR}/libcardan.so"))

    def test_pkg_config_links_the_shared_library(self):
        program = os.path.join(self.scratch("shared"), "drive")
        run(CC, "-std=c17", "-Wall", "-Wextra", "-Werror", os.path.join(OUTSIDE, "drive.c"), "-o",
            program, *self.pkg_config("--cflags", "--libs"))
        self.assertIn("libcardan.so.0", self.needed(program))
        self.check_drive(program, LD_LIBRARY_PATH=self.libdir)
        self.assertEqual(self.pkg_config("--modversion"), [VERSION])

    def test_pkg_config_static_links_the_static_library(self):
        program = os.path.join(self.scratch("static"), "drive")
        libs = [{"-lcardan": "-l:libcardan.a"}.get(x, x) for x in self.pkg_config("--static", "--libs")]
        run(CC, "-std=c17", os.path.join(OUTSIDE, "drive.c"), "-o", program,
            *self.pkg_config("--cflags"), *libs)
        self.assertNotIn("libcardan", self.needed(program))
        self.check_drive(program)

    def test_the_cmake_package_links_both_and_exports_fmus_of_outside_models(self):
        build = self.scratch("outside")
        run(CMAKE, "-S", OUTSIDE, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", build)
        self.assertIn("libcardan.so.0", self.needed(os.path.join(build, "drive_shared")))
        self.assertNotIn("libcardan", self.needed(os.path.join(build, "drive_static")))
        self.check_drive(os.path.join(build, "drive_shared"))
        self.check_drive(os.path.join(build, "drive_static"))

        for version in 2, 3:
            fmu = os.path.join(build, "fmus", f"fmi{version}", "tank.fmu")
            row = self.last_row(fmu, "--set", "inflow=0.2", "--set", "k=0.25")
            self.assertEqual(float(row["time"]), 8)
            exact = 0.8 + (2 - 0.8) * math.exp(-0.25 / 4 * 8)  # at rest the outflow is the inflow
            self.assertAlmostEqual(float(row["level"]), exact, delta=1e-13)
            self.assertIn(f"Cardan {VERSION}", run(self.cardan, "info", fmu))

    def test_the_package_can_be_moved(self):
        moved = os.path.join(self.folder, "moved")
        shutil.copytree(self.prefix, moved, symlinks=True)
        self.addCleanup(shutil.rmtree, moved)
        flags = run("pkg-config", "--cflags", "cardan",
                    env={"PKG_CONFIG_PATH": os.path.join(moved, LIBDIR, "pkgconfig")}).strip()
        self.assertEqual(os.path.realpath(flags.removeprefix("-I")),
                         os.path.realpath(os.path.join(moved, "include")))

    def test_destdir_stands_before_the_prefix(self):
        stage = self.scratch("stage")
        run(CMAKE, "--install", BUILD, "--prefix", "/opt/cardan", env={"DESTDIR": stage})
        missing = [f for f in INSTALLED if not os.path.exists(f"{stage}/opt/cardan/{f}")]
        self.assertEqual(missing, [])
        self.assertEqual(os.listdir(stage), ["opt"])
        run(f"{stage}/opt/cardan/bin/cardan", "example", "copy", "oscillator", f"{stage}/copy")
        run(f"{stage}/opt/cardan/bin/cardan", "run", f"{stage}/copy/oscillator.yaml", "-o", "none")

    def test_every_example_runs_from_its_copy(self):
        """The test of the build tree, with the installed command and its FMUs."""
        run(sys.executable, "-B", "-m", "unittest", "e2e_examples.Travelling",
            cwd=os.path.join(SOURCE, "tests", "cli"),
            env={"CARDAN": self.cardan, "CARDAN_FMUS": self.at("share/cardan/fmus"),
                 "CARDAN_TMP": self.folder, "LD_LIBRARY_PATH": ""})

    @unittest.skipUnless(shutil.which("groff"), "groff is not here")
    def test_the_man_page_renders_without_a_warning(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-c",
                               self.at("share/man/man1/cardan.1")],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        for section in "NAME", "SYNOPSIS", "EXIT":
            self.assertRegex(re.sub(".\b", "", done.stdout), rf"(?m)^{section}")

    def complete(self, *words):
        """What bash offers for the last word."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  'complete -p cardan >/dev/null && _cardan && printf "%s\\n" "${COMPREPLY[@]}"')
        return run("bash", "-c", script, "bash", self.at("share/bash-completion/completions/cardan"),
                   *words, cwd=self.at("share/cardan/fmus/fmi2"),
                   env={"PATH": self.at("bin") + ":" + os.environ["PATH"]}).split()

    def test_bash_completes_commands_options_and_files(self):
        run("bash", "-n", self.at("share/bash-completion/completions/cardan"))
        self.assertEqual(self.complete("cardan", "ru"), ["run"])
        self.assertEqual(self.complete("cardan", "run", "--stop"), ["--stop-time"])
        self.assertEqual(self.complete("cardan", "run", "--scheme", "gau"), ["gauss-seidel"])
        self.assertEqual(self.complete("cardan", "run", "lo_mo"), ["lo_mono.fmu"])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not here")
    def test_zsh_reads_its_completion(self):
        run("zsh", "-n", self.at("share/zsh/site-functions/_cardan"))


if __name__ == "__main__":
    unittest.main()

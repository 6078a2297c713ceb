"""cardan compare --richardson: errors from runs with smaller and smaller steps."""

from e2e import EndToEnd, fmu


class Richardson(EndToEnd):
    def euler(self, name, step, *more):
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "1", "--step", step, "--set",
                    "solver=semi_implicit", *more, "-o", name)
        return name

    def signal(self, j, name):
        return next(s for s in j["signals"] if s["name"] == name)

    def test_the_estimate_is_the_error_against_the_exact_solution(self):
        files = [self.euler(f"{i}.csv", h) for i, h in enumerate(("4 ms", "2 ms", "1 ms"))]
        self.cardan("run", fmu("lo_mono"), "-q", "--stop-time", "1", "--step", "4 ms", "-o",
                    "exact.csv")
        j = self.cardan_json("compare", *files, "--richardson")
        self.assertEqual(j["ratios"], [2, 2])
        for name in ("x1", "x2"):  # positions are of second order: the kick is half a step late
            s = self.signal(j, name)
            self.assertEqual((s["state"], s["rows"]), ("good", 251))
            self.assertAlmostEqual(s["observed"], 2, delta=0.02)
            exact = self.column("exact.csv", name)
            for i, file in enumerate(files):
                got = self.column(file, name)[::1 << i]
                errors = [abs(a - b) for a, b in zip(got, exact)]
                self.assertAlmostEqual(s["errors"][i]["max"] / max(errors), 1, delta=0.03)
            self.assertAlmostEqual(s["extrapolated"], exact[-1], delta=max(errors) / 10)

    def test_coupling_by_hold_is_of_first_order(self):
        system = self.oscillator()
        files = ["2ms.mf4", "1ms.mf4", "0.5ms.mf4"]
        for file, step in zip(files, ("2 ms", "1 ms", "0.5 ms")):
            self.cardan("run", system, "-q", "--predict", "hold", "--stop-time", "1", "--step",
                        step, "-o", file)
        j = self.cardan_json("compare", *files, "--richardson", "--variables", "*.x*",
                             "--variables", "*.v*")
        self.assertEqual(len(j["signals"]), 4)
        for s in j["signals"]:
            self.assertAlmostEqual(s["observed"], 1, delta=0.1, msg=s["name"])
        two = self.cardan_json("compare", *files[:2], "--richardson")
        x = self.signal(two, "second.x2")["errors"][1]["rms"]
        self.assertAlmostEqual(x / self.signal(j, "second.x2")["errors"][1]["rms"], 1, delta=0.1)

    def test_variable_steps_meet_at_the_rows_of_an_interval_only(self):
        system = self.oscillator()
        for name, tolerance in (("a.mf4", "1e-3"), ("b.mf4", "1e-4")):
            self.cardan("run", system, "-q", "--control", tolerance, "--stop-time", "0.1",
                        "--interval", "10 ms", "-o", name)
        done = self.cardan("compare", "a.mf4", "b.mf4", "--richardson", "--ratio", "2", says=(
            "a.mf4 ran with a variable step", "b.mf4 ran with a variable step"))
        self.assertIn("11 of 11 rows over 0 s to 0.1 s", done.stdout)
        for name, tolerance, stop in (("a.mf4", "1e-3", "0.1"), ("b.mf4", "1e-4", "0.0973")):
            self.cardan("run", system, "-q", "--control", tolerance, "--stop-time", stop,
                        "-o", name)
        self.cardan("compare", "a.mf4", "b.mf4", "--richardson", "--ratio", "2", code=2, says=(
            "a.mf4 ran with a variable step", "b.mf4 ran with a variable step",
            "in b.mf4 as well, expected at least 3"))

    def test_files_that_say_their_steps_give_the_ratio(self):
        a, b = self.euler("a.mf4", "4 ms", "--interval", "20 ms"), self.euler("b.mf4", "2 ms")
        d = self.euler("d.mf4", "1 ms", "--interval", "20 ms")
        done = self.cardan("compare", a, b, "--richardson", "--order", "2")
        self.assertIn("a.mf4 (step 0.004 s), B = b.mf4 (step 0.002 s); ratio of steps 2, errors "
                      "for order 2", done.stdout)
        self.assertIn("51 of 51 rows over 0 s to 1 s", done.stdout)
        self.assertEqual(done.stderr, "")
        j = self.cardan_json("compare", a, b, d, "--richardson")
        self.assertEqual([r["step"] for r in j["runs"]], [0.004, 0.002, 0.001])
        self.assertAlmostEqual(self.signal(j, "x2")["observed"], 2, delta=0.02)
        self.cardan("compare", a, d, "--richardson", says="a ratio of 4 and not of 2")
        self.cardan("compare", a, b, "--richardson", "--ratio", "3", says="the estimate takes 3")
        self.cardan("compare", b, a, "--richardson", code=2, says="the coarser run comes first")

    def test_rows_that_do_not_show_the_ratio_need_it(self):
        a = self.euler("a.csv", "4 ms", "--interval", "20 ms")
        b = self.euler("b.csv", "2 ms", "--interval", "20 ms")
        self.cardan("compare", a, b, "--richardson", code=2,
                    says="the ratio of their steps has to be given")
        j = self.cardan_json("compare", a, b, "--richardson", "--ratio", "2")
        self.assertEqual(self.signal(j, "x1")["rows"], 51)

    def test_a_limit_is_an_exit_code(self):
        a, b = self.euler("a.csv", "4 ms"), self.euler("b.csv", "2 ms")
        self.cardan("compare", a, b, "--richardson", "--max-error", "0.1")
        self.cardan("compare", a, b, "--richardson", "--max-error", "0.001", code=3,
                    says=("b.csv: the estimated error of v2 is 0.0297 of its scale",
                          "expected at most 0.001"))
        j = self.cardan_json("compare", a, b, "--richardson", "--max-error", "0.001", code=3)
        self.assertEqual((j["kept"], j["worst"], j["max_error"]), (False, "v2", 0.001))
        self.cardan("compare", a, b, "--richardson", "--max-error", "0.001", "--order", "2",
                    "--variables", "x1")

    def test_orders_that_make_no_sense_are_unknown(self):
        self.write("a.csv", "time,x,c\n0,1,1\n1,1,1\n2,1,1\n")
        self.write("b.csv", "time,x,c\n0,1.1,1\n.5,0,1\n1,1.1,1\n1.5,0,1\n2,1.1,1\n")
        rows = "".join(f"{t / 4},{0 if t % 4 else 1.3},1\n" for t in range(9))
        self.write("c.csv", "time,x,c\n" + rows)
        done = self.cardan("compare", "a.csv", "b.csv", "c.csv", "--richardson")
        self.assertIn("no order explains the differences, errors are unknown: x\n", done.stdout)
        self.assertIn("runs agree to rounding: c\n", done.stdout)
        self.assertRegex(done.stdout, r"x +unknown( +-)+\n")
        self.assertNotRegex(done.stdout, r"(?m)^c ")
        done = self.cardan("compare", "a.csv", "b.csv", "c.csv", "--richardson", "--all")
        self.assertRegex(done.stdout, r"(?m)^c +unknown +0 ")
        self.cardan("compare", "a.csv", "b.csv", "c.csv", "--richardson", "--max-error", "1",
                    code=3, says="c.csv: the error of x is unknown (the runs do not converge")
        j = self.cardan_json("compare", "a.csv", "b.csv", "c.csv", "--richardson")
        self.assertEqual([s["state"] for s in j["signals"]], ["irregular", "agree"])
        self.assertIsNone(j["signals"][0]["observed"])
        self.assertIsNone(j["signals"][0]["errors"][2]["max"])

    def test_rows_without_numbers_are_told(self):
        self.write("a.csv", "time,x,y\n0,1,1\n1,nan,1\n2,1,nan\n3,1,nan\n")
        rows = "".join(f"{t / 2},1.5,1\n" for t in range(7))
        self.write("b.csv", "time,x,y\n" + rows)
        done = self.cardan("compare", "a.csv", "b.csv", "--richardson")
        self.assertIn("without the rows where a run has no finite number: x\n", done.stdout)
        self.assertIn("fewer than 3 rows with numbers: y\n", done.stdout)
        self.assertIn("3 of 4 rows", done.stdout)
        self.cardan("compare", "a.csv", "b.csv", "--richardson", "--max-error", "9", code=3,
                    says="b.csv: the error of y is unknown (too few rows)")

    def test_times_have_to_coincide(self):
        self.write("a.csv", "time,x,u [m]\n0,1,1\n1,1,1\n2,1,1\n3,1,1\n4,1,1\n5,1,1\n6,1,1\n")
        self.write("b.csv", "time,x\n0,1\n.4,1\n.9,1\n1.4,1\n2,1\n2.6,1\n3.1,1\n")
        self.cardan("compare", "a.csv", "b.csv", "--richardson", code=2,
                    says="2 of the 7 times of a.csv are in b.csv as well, expected at least 3")
        self.write("b.csv", "time,x,w\n0,1,1\n.4,1,1\n.9,1,1\n1.4,1,1\n2,1,1\n2.6,1,1\n3,1,1\n")
        done = self.cardan("compare", "a.csv", "b.csv", "--richardson", "--ratio", "2",
                           says="x: only 3 of 7 times of a.csv are in the other file as well")
        self.assertIn("not in all files: u, w\n", done.stdout)

    def test_wrong_calls_exit_with_2(self):
        self.write("a.csv", "time,x\n0,1\n1,1\n2,1\n")
        for option in ("--order", "--ratio", "--max-error"):
            self.cardan("compare", "a.csv", "a.csv", option, "2", code=2,
                        says=option + " needs --richardson")
        self.cardan("compare", "a.csv", "a.csv", "a.csv", code=2,
                    says="3 files, expected 2; --richardson takes a third one")
        self.cardan("compare", "a.csv", "a.csv", "--richardson", "--order", "0", code=2,
                    says="expected > 0")
        self.cardan("compare", "a.csv", "a.csv", "--richardson", "--ratio", "1", code=2,
                    says="expected > 1")
        self.cardan("compare", *["a.csv"] * 4, "--richardson", code=2, says="A B [C]")

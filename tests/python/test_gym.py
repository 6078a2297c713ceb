"""cardan.gym: what gymnasium's own check says, episodes against the recursion that the system is, many at once against one
by one.

    python test_gym.py
"""
import doctest
import math
import os
import sys
import unittest
import warnings

import numpy as np

try:
    import gymnasium
    from gymnasium.utils.env_checker import check_env
except ImportError:
    print("gymnasium is not installed")
    sys.exit(0)
import cardan
import cardan.gym

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@cardan.unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})
class Lag:
    """T y' = u - y by explicit Euler."""

    def initialize(self, t):
        self.y = 0.0

    def step(self, t, h):
        if self.u == 13:
            raise ArithmeticError("thirteen")
        self.y += h * (self.u - self.y) / self.T


def lag():
    return cardan.System().add("lag", Lag).options(step=0.1, stop=1)


KEYS = {"observations": {"lag.y": (-5, 5)}, "actions": {"lag.u": (-1, 1)}, "reward": lambda v: -abs(v["lag.y"] - 0.5)}


class Environments(unittest.TestCase):
    def test_examples_in_docstrings(self):
        self.assertEqual(doctest.testmod(cardan.gym).failed, 0)

    def test_gymnasium_finds_nothing(self):
        for dtype in (np.float64, np.float32):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", message=".*alternative render modes.*")
                check_env(cardan.gym.Env(lag(), dtype=dtype, **KEYS))
        env = gymnasium.make("cardan.gym:Cardan-v0", system=lag(), **KEYS)
        check_env(env.unwrapped, skip_render_check=True)
        env.close()

    def test_an_episode_is_the_recursion_and_ends_with_the_run(self):
        env = cardan.gym.Env(lag(), steps=2, also=["lag.T"], start=lambda rng: {"lag.T": 0.25}, **KEYS)
        for _ in range(2):
            o, _ = env.reset(seed=3)
            y = 0.0
            self.assertEqual(o.tolist(), [0.0])
            for k in range(5):
                a = 0.1 * k
                o, r, terminated, truncated, info = env.step([a])
                for _ in range(2):
                    y += 0.1 * (a - y) / 0.25
                self.assertEqual(o.tolist(), [y])
                self.assertEqual(r, -abs(y - 0.5))
                self.assertEqual((terminated, truncated), (False, k == 4))
            self.assertEqual(info, {"ended": "stop time"})
        o, _ = env.reset(options={"set": {"lag.T": 1.0}})
        self.assertAlmostEqual(env.step([1.0])[0][0], 0.19)
        env.close()

    def test_many_are_one_by_one_the_same(self):
        rng = np.random.default_rng(27)
        n = 5
        for threads in (1, 2):
            envs = cardan.gym.VectorEnv(lag(), n, threads=threads, terminated=lambda v: v["lag.y"] > 0.4, **KEYS)
            singles = [cardan.gym.Env(lag(), terminated=lambda v: v["lag.y"] > 0.4, **KEYS) for _ in range(n)]
            o, _ = envs.reset(seed=1)
            over = [False] * n
            for e in singles:
                e.reset(seed=1)
            ended = 0
            for _ in range(60):
                a = rng.uniform(-1, 3, (n, 1))
                o, r, terminated, truncated, info = envs.step(a)
                for i, e in enumerate(singles):
                    if over[i]:
                        expected = (e.reset()[0].tolist(), 0.0, False, False)
                    else:
                        x = e.step(a[i])
                        expected = (x[0].tolist(), x[1], x[2], x[3])
                    self.assertEqual((o[i].tolist(), r[i], bool(terminated[i]), bool(truncated[i])), expected)
                    over[i] = expected[2] or expected[3]
                    ended += over[i]
            self.assertGreater(ended, 20)
            envs.close()
            for e in singles:
                e.close()

    def test_fmus_that_are_unpacked_once_step_as_in_a_run_of_their_own(self):
        fmus = os.path.join(os.environ.get("CARDAN_BUILD", os.path.join(ROOT, "build")), "fmus", "fmi2")
        s = cardan.System().add("first", fmu=os.path.join(fmus, "lo_fd1.fmu"), isolate="none")
        s.add("second", fmu=os.path.join(fmus, "lo_fd2.fmu"), isolate="none").options(step=0.001, stop=0.02)
        s.connect("second.x2", "first.x2").connect("second.v2", "first.v2").connect("first.f", "second.f")
        whole = s.run()["second.v2"]
        envs = cardan.gym.VectorEnv(s, 3, observations=["second.v2"])
        folder = envs._batch._folder
        self.assertEqual(sorted(os.listdir(folder)), ["0", "1"])
        envs.reset(seed=0)
        for k in range(1, 21):
            o, _, _, truncated, _ = envs.step(np.zeros((3, 0)))
            self.assertEqual(o[:, 0].tolist(), [whole[k]] * 3)
        self.assertTrue(truncated.all())
        envs.close()
        self.assertFalse(os.path.exists(folder))

    def test_over_processes_and_by_make_vec(self):
        envs = gymnasium.vector.AsyncVectorEnv([lambda: cardan.gym.Env(lag(), **KEYS)] * 2)
        envs.reset(seed=1)
        o = envs.step(np.array([[1.0], [0.5]]))[0]
        self.assertTrue(np.allclose(o, [[0.2], [0.1]], atol=1e-15))
        envs.close()
        envs = gymnasium.make_vec("cardan.gym:Cardan-v0", num_envs=2, system=lag(), **KEYS)
        envs.reset(seed=1)
        self.assertEqual(envs.step([[1.0], [0.5]])[0].tolist(), o.tolist())
        envs.close()

    def test_all_outputs_are_observed_where_none_are_named(self):
        env = cardan.gym.Env(os.path.join(ROOT, "examples", "oscillator", "oscillator.yaml"), stop=0.005, reward="first.energy")
        o, _ = env.reset(seed=0)
        self.assertEqual(env.observation_space.shape, o.shape)
        whole = cardan.System(os.path.join(ROOT, "examples", "oscillator", "oscillator.yaml")).run(stop=0.005)
        for k in range(1, 6):
            o, r, _, truncated, _ = env.step([])
            self.assertEqual(r, whole["first.energy"][k])
            self.assertEqual(o.tolist(), [whole[n][k] for n in whole.names])
        self.assertTrue(truncated)
        env.close()

    def test_a_failing_unit_ends_the_run_or_the_episode(self):
        env = cardan.gym.Env(lag(), **KEYS)
        env.reset()
        with self.assertRaises(cardan.UnitError) as caught:
            env.step([13])
        self.assertIsInstance(caught.exception.__cause__, ArithmeticError)
        self.assertEqual(env.reset()[0].tolist(), [0.0])  # opened again
        env.step([1.0])
        envs = cardan.gym.VectorEnv(lag(), 3, failed="end", **KEYS)
        envs.reset()
        _, _, terminated, _, info = envs.step([[0], [13], [0]])
        self.assertEqual(terminated.tolist(), [False, True, False])
        self.assertEqual(info["ended"].tolist(), ["", "failed", ""])
        o, _, terminated, _, _ = envs.step([[1], [1], [1]])
        self.assertEqual(terminated.tolist(), [False, False, False])
        self.assertEqual(o.tolist(), [[0.2], [0.0], [0.2]])
        envs.close()
        env.close()
        # Nobody records it: what a learner reads is looked at all the same.
        env = cardan.gym.Env(lag(), **KEYS)
        env.reset()
        env.step([math.inf])
        with self.assertRaisesRegex(cardan.UnitError, "unit 'lag' .*'y' is not a number"):
            env.step([-math.inf])
        env.close()

    def test_mistakes_are_sentences(self):
        def fails(kind, part, f):
            with self.assertRaises(kind) as caught:
                f()
            self.assertIn(part, str(caught.exception))

        make = cardan.gym.Env
        fails(cardan.NotFound, "variable 'z'", lambda: make(lag(), observations=["lag.z"]))
        fails(cardan.RangeError, "low < high", lambda: make(lag(), actions={"lag.u": (1, 0)}))
        fails(TypeError, "(low, high)", lambda: make(lag(), actions={"lag.u": "ab"}))
        fails(TypeError, "a text", lambda: make(lag(), observations="lag.y"))
        fails(cardan.RangeError, "failed", lambda: make(lag(), failed="no"))
        fails(cardan.RangeError, "steps", lambda: make(lag(), steps=0))
        for env in (make(lag()), cardan.gym.VectorEnv(lag(), 2)):
            fails(cardan.Unsupported, "run.show()", env.render)
            env.close()
        fails(cardan.RangeError, "dtype is int32", lambda: make(lag(), dtype=np.int32))
        fails(cardan.RangeError, "num_envs", lambda: cardan.gym.VectorEnv(lag(), 0))
        fails(cardan.NotFound, "nowhere.yaml", lambda: make("nowhere.yaml"))
        env = make(lag(), reward=lambda v: v["lag.q"], **{k: v for k, v in KEYS.items() if k != "reward"})
        env.reset()
        fails(cardan.NotFound, "also=", lambda: env.step([0]))
        fails(cardan.RangeError, "shape", lambda: env.step([0, 1]))
        fails(TypeError, "numbers", lambda: env.step(["x"]))
        fails(cardan.RangeError, "nan", lambda: env.step([float("nan")]))
        fails(cardan.RangeError, "'set'", lambda: env.reset(options={"x": 1}))
        env.close()
        env.close()
        fails(cardan.StateError, "closed", lambda: env.step([0]))
        fails(cardan.StateError, "closed", env.reset)


if __name__ == "__main__":
    unittest.main(verbosity=1)

"""Gymnasium environments over any system: observations, actions and rewards by names or functions.

>>> import cardan, cardan.gym
>>> sys = cardan.System().add("lag", cardan.unit(inputs=["u"], outputs=["y"], parameters={"T": 0.5})(cardan.gym._Lag))
>>> env = Env(sys.options(step=0.1, stop=1), observations=["lag.y"], actions={"lag.u": (-1, 1)},
...           reward=lambda v: -abs(v["lag.y"] - 0.5))
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step([1.0])
>>> float(observation[0]), float(reward)
(0.2, -0.3)
>>> env.close()

`VectorEnv` is many of them in one process, each step one call of the library, on several threads if wanted. Over processes
run `gymnasium.vector.AsyncVectorEnv([lambda: cardan.gym.Env(...)] * 4)`, which units in Python profit from.
"""
from __future__ import annotations

import copy
import ctypes as c
import math
import os
import queue
import tempfile
import threading
import weakref
import zipfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _lib, _optional
from ._lib import lib
from ._run import _ENDS, Run, numbers
from ._system import Path, System

_optional.need("gymnasium", "cardan.gym")
import gymnasium  # noqa: E402
from gymnasium.vector import AutoresetMode  # noqa: E402
from gymnasium.vector.utils import batch_space  # noqa: E402

Bounds = Union[Tuple[float, float], Sequence[float]]
Names = Union[Sequence[str], Mapping[str, Bounds]]
Formula = Union[str, Callable[["Values"], Any]]
_STOP_TIME, _UNIT = 1, 2


class _Lag:
    """Of the example above."""
    u: float
    y: float
    T: float

    def step(self, t: float, h: float) -> None:
        self.y += h * (self.u - self.y) / self.T


class _BatchStruct(c.Structure):
    _fields_ = [("runs", c.c_void_p), ("count", c.c_int), ("set", c.c_void_p), ("set_count", c.c_int),
                ("get", c.c_void_p), ("get_count", c.c_int), ("ticks", c.c_int64), ("skip", c.c_void_p),
                ("values", c.c_void_p), ("out", c.c_void_p), ("ends", c.c_void_p)]


_lib.STRUCTS["crd_batch"] = _BatchStruct
_lib.declare({"crd_master_advance_batch": (c.c_int, [c.POINTER(_BatchStruct)]),
              "crd_master_signal_count": (c.c_int, [c.c_void_p]),
              "crd_master_signal_name": (c.c_char_p, [c.c_void_p, c.c_int])})


class Values(Dict[str, Any]):
    """What functions of reward and termination get: observations, actions and `also` by name, and the time "t". Of one
    environment numbers, of many an array with one for each."""

    def __init__(self, runs: List[Run], one: bool) -> None:
        super().__init__()
        self._runs, self._one = runs, one

    def __missing__(self, name: str) -> Any:
        if name == "t":
            t = [r.time for r in self._runs]
            return t[0] if self._one else np.array(t)
        raise _lib.NotFound(f"'{name}' is neither observed nor an action, expected one of {', '.join(self)}, t; "
                            "also=[...] makes more of them known")


class _Shares:
    """Threads that make a part of the step each."""

    def __init__(self, parts: Sequence[Callable[[], None]]) -> None:
        self._parts = parts
        self._done: "queue.SimpleQueue[None]" = queue.SimpleQueue()
        self._ask: List["queue.SimpleQueue[bool]"] = [queue.SimpleQueue() for _ in parts[1:]]
        for part, ask in zip(parts[1:], self._ask):
            threading.Thread(target=self._work, args=(part, ask), daemon=True).start()

    def _work(self, part: Callable[[], None], ask: "queue.SimpleQueue[bool]") -> None:
        while ask.get():
            part()
            self._done.put(None)

    def __call__(self) -> None:
        for ask in self._ask:
            ask.put(True)
        self._parts[0]()
        for _ in self._ask:
            self._done.get()

    def close(self) -> None:
        for ask in self._ask:
            ask.put(False)


class _Batch:
    """So many runs of a system, what is set and read in them, and what that means to a learner."""

    def __init__(self, system: Union[System, Path], count: int, observations: Optional[Names], actions: Names,
                 reward: Optional[Formula], terminated: Optional[Formula], also: Sequence[str], steps: int,
                 start: Optional[Callable[[np.random.Generator], Mapping[str, Any]]], failed: str, threads: int,
                 dtype: Any, options: Mapping[str, Any], one: bool) -> None:
        self.system = system if isinstance(system, System) else System(system)
        self.count, self.start, self.failed, self.one = count, start, failed, one
        self.options = {str(k): v for k, v in options.items()}
        if np.dtype(dtype).kind != "f":
            raise _lib.RangeError(f"dtype is {np.dtype(dtype)}, expected float64 or another type of floating numbers")
        if failed not in ("raise", "end"):
            raise _lib.RangeError(f"failed is {failed!r}, expected 'raise' or 'end'")
        for what, number in (("num_envs", count), ("steps", steps), ("threads", threads)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise _lib.RangeError(f"{what} is {number!r}, expected a whole number from 1")
        self.runs: List[Run] = []
        self._folder: Optional[str] = None
        self.process = os.getpid()
        self._shares: Optional[_Shares] = None
        self.gate = _lib.Gate("environment")
        try:
            self.runs = [self._open()]
            if observations is None:
                observations = self._recorded(self.runs[0])
            self.bounds = [self._bounds("observations", observations), self._bounds("actions", actions)]
            formulas = [f for f in (reward, terminated) if isinstance(f, str)]
            read = list(dict.fromkeys([*self.bounds[0], *also, *formulas]))
            self._names = (list(self.bounds[1]), read)
            layout = [self._look_up(self.runs[0], names) for names in self._names]
            if count > 1:
                self._unpack_once()
            self.runs += [self._open() for _ in range(1, count)]
            for run in self.runs[1:]:
                for names in self._names:
                    self._look_up(run, names)
        except BaseException:
            self.close()
            raise
        self._python = bool(self.runs[0]._instances)
        self.can_save = lib.crd_master_can_save(self.runs[0]._master) >= 0 and self.runs[0]._no_start is None
        (self._set, set_sizes), (self._get, get_sizes) = layout
        self.values = np.zeros((count, sum(set_sizes)))
        self.read = np.zeros((count, sum(get_sizes)))
        self.ends = np.zeros(count, np.int32)
        self.skip = np.zeros(count, np.bool_)
        self._masters = (c.c_void_p * count)()
        self._fresh()
        self.known = Values(self.runs, one)
        self.sizes = set_sizes, get_sizes[:len(self.bounds[0])]
        for names, sizes, room in ((self._names[1], get_sizes, self.read), (self._names[0], set_sizes, self.values)):
            at = 0
            for name, size in zip(names, sizes):
                part = room[0 if one else slice(None), at:at + size]
                self.known[name] = part if size > 1 else part.reshape(()) if one else part[:, 0]
                at += size
        self.observed = sum(self.sizes[1])
        self._reward, self._terminated = self._formula(reward), self._formula(terminated)
        edges = [count * i // threads for i in range(threads + 1)]
        parts = [self._part(steps, a, b) for a, b in zip(edges, edges[1:]) if b > a]
        self._step: Callable[[], None] = parts[0]
        if len(parts) > 1:
            self._shares = _Shares(parts)
            self._step = self._shares
        self._look = self._part(0, 0, count)

    # ---- runs ------------------------------------------------------------------------------------

    def _open(self) -> Run:
        return Run(self.system, self.options, True, record=False)

    def _unpack_once(self) -> None:
        """FMUs that were opened once, and so are what they should be, are opened from one folder by all other runs: then their
        code is one in memory and in the caches, which makes a step of many three times as fast."""
        units = {name: dict(spec) for name, spec in self.system._units.items()}
        for name, spec in units.items():
            path = spec.get("fmu")
            if isinstance(path, str) and zipfile.is_zipfile(path):
                if self._folder is None:
                    self._folder = tempfile.mkdtemp(prefix="cardan-gym-")
                    weakref.finalize(self, _lib.drop, self._folder, self.process)
                spec["fmu"] = os.path.join(self._folder, str(len(os.listdir(self._folder))))
                with zipfile.ZipFile(path) as z:
                    z.extractall(spec["fmu"])
        self.system = copy.copy(self.system)
        self.system._units = units

    def _fresh(self) -> None:
        for i, run in enumerate(self.runs):
            self._masters[i] = run._master or 0

    @staticmethod
    def _recorded(run: Run) -> List[str]:
        return [lib.crd_master_signal_name(run._master, i).decode()
                for i in range(lib.crd_master_signal_count(run._master))]

    @staticmethod
    def _bounds(what: str, names: Names) -> Dict[str, Tuple[float, float]]:
        if isinstance(names, str):
            raise TypeError(f"{what} is a text, expected a list of names, or a mapping to (low, high)")
        if not isinstance(names, Mapping):
            return {n: (-math.inf, math.inf) for n in names}
        found: Dict[str, Tuple[float, float]] = {}
        for name, pair in names.items():
            try:
                low, high = (float(x) for x in pair)
            except (TypeError, ValueError):
                raise TypeError(f"{what}: {name} has {pair!r}, expected (low, high)") from None
            if not low < high:
                raise _lib.RangeError(f"{what}: {name} has {pair!r}, expected low < high")
            found[name] = (low, high)
        return found

    @staticmethod
    def _look_up(run: Run, names: Sequence[str]) -> Tuple[Any, List[int]]:
        found = [run._handle(n) for n in names]
        return (c.c_int * max(1, len(found)))(*[f[0] for f in found]), [int(f[2]) for f in found]

    def _part(self, steps: int, begin: int, end: int) -> Callable[[], None]:
        def at(array: "np.ndarray[Any, Any]") -> int:
            return int(array.ctypes.data + begin * array.strides[0])
        b = _BatchStruct(runs=c.addressof(self._masters) + begin * c.sizeof(c.c_void_p), count=end - begin,
                         set=c.addressof(self._set), set_count=len(self._names[0]), get=c.addressof(self._get),
                         get_count=len(self._names[1]), ticks=steps, skip=at(self.skip), values=at(self.values),
                         out=at(self.read), ends=at(self.ends))
        where, advance = c.byref(b), lib.crd_master_advance_batch

        def part() -> None:
            advance(where)
        return part

    # ---- a learner's words -----------------------------------------------------------------------

    def _formula(self, f: Optional[Formula]) -> Optional[Callable[[Values], Any]]:
        if f is None or callable(f):
            return f
        return lambda v: v[f]

    def space(self, what: int, dtype: Any) -> gymnasium.spaces.Box:
        """Of observations (0) or actions (1)."""
        sizes = self.sizes[1 - what]
        low, high = (np.repeat([b[i] for b in self.bounds[what].values()], sizes).astype(dtype) for i in (0, 1))
        return gymnasium.spaces.Box(low, high, dtype=dtype)

    def observation(self) -> Any:
        return self.read[:, :self.observed].copy()

    def reset(self, which: Sequence[int], rngs: Sequence[np.random.Generator], values: Mapping[str, Any]) -> None:
        """To the beginning, without opening anything again where that can be."""
        with self.gate:
            self._reset(which, rngs, values)

    def _alive(self) -> None:
        if not self.runs:
            raise _lib.StateError("the environment is closed")
        if os.getpid() != self.process:
            raise _lib.StateError("the environment belongs to the process that this one was forked from, expected one that was "
                                  "made here")

    def _reset(self, which: Sequence[int], rngs: Sequence[np.random.Generator], values: Mapping[str, Any]) -> None:
        self._alive()
        for i in which:
            run = self.runs[i]
            if not self.can_save or self.ends[i] < 0:
                run.close()
                self.runs[i] = run = self._open()
                self._masters[i] = run._master or 0
                for names in self._names:
                    self._look_up(run, names)
            else:
                run.reset()
            given = dict(self.start(rngs[i]) if self.start is not None else {})
            for name, value in {**given, **values}.items():
                run.set(name, value)
        self.skip[:] = True
        self.skip[list(which)] = False
        self._look()
        self.skip[:] = False
        self.values[list(which)] = 0
        self._complain()

    def step(self, actions: Any) -> Tuple[Any, Any, Any]:
        """Reward, terminated, truncated."""
        with self.gate:
            self._alive()
            self.values[:] = actions
            self._step()
            self._complain()
        ends = self.ends
        terminated = ends == _UNIT
        if self._terminated is not None:
            terminated = terminated | np.asarray(self._terminated(self.known), np.bool_)
        truncated = (ends != 0) & (ends != _UNIT)
        if self.failed == "end":
            terminated, truncated = terminated | (ends < 0), truncated & (ends >= 0)
        reward = 0.0 if self._reward is None else self._reward(self.known)
        return reward, terminated, truncated

    def _complain(self) -> None:
        for i, run in enumerate(self.runs if self._python else ()):
            if run._error is not None and (self.failed == "raise" or not isinstance(run._error, Exception)):
                run._check(-7)
            self.ends[i] = -7 if run._error is not None else self.ends[i]
        if self.ends.min() >= 0 or self.failed == "end":
            return
        i = int(np.argmin(np.where(self.skip, 0, self.ends)))
        if self.ends[i] < 0 and not self.skip[i]:
            try:
                self.runs[i]._check(int(self.ends[i]))
            except _lib.CardanError as e:
                if self.count > 1:
                    e.args = (f"environment {i}: {e.args[0]}",)
                raise

    def ended(self, i: int) -> str:
        return _ENDS[self.ends[i]] if self.ends[i] >= 0 else "failed"

    def close(self) -> None:
        with self.gate:
            shares, self._shares = self._shares, None
            if shares is not None:
                shares.close()
            runs, self.runs[:] = list(self.runs), []
            for run in runs if os.getpid() == self.process else ():
                run.close()
            folder, self._folder = self._folder, None
        if folder is not None:
            _lib.drop(folder, self.process)


class Env(gymnasium.Env[Any, Any]):
    """One run of a system as an environment.

    `observations` and `actions` are names of variables, or a mapping from names to (low, high); without observations all
    recorded outputs. An action holds until the next one. `reward` and `terminated` are a name, or a function of a mapping
    that knows observations, actions, the names in `also`, and "t". An episode is truncated where the run ends
    (`stop=`, the guard) and terminated where a unit wishes the end. `steps` are macro steps of one action; `start(rng)`
    gives inputs and tunable parameters to begin with, as `reset(options={"set": {...}})` does; `failed="end"` makes a
    failing unit the end of the episode. What else is named are options of the run: `step=`, `stop=` ...
    """
    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(self, system: Union[System, Path], *, observations: Optional[Names] = None, actions: Names = (),
                 reward: Optional[Formula] = None, terminated: Optional[Formula] = None, also: Sequence[str] = (),
                 steps: int = 1, start: Optional[Callable[[np.random.Generator], Mapping[str, Any]]] = None,
                 failed: str = "raise", dtype: Any = np.float64, render_mode: Optional[str] = None,
                 **options: Any) -> None:
        if render_mode is not None:
            raise _lib.Unsupported(f"render_mode is {render_mode!r}, expected None: look at a run with run.show()")
        self._batch = _Batch(system, 1, observations, actions, reward, terminated, also, steps, start, failed, 1,
                             dtype, options, True)
        self.observation_space, self.action_space = (self._batch.space(i, dtype) for i in (0, 1))
        self._dtype = dtype

    def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        """The first observation. `options={"set": {name: value}}` gives inputs and parameters."""
        super().reset(seed=seed)
        self._batch.reset([0], [self.np_random], _given(options))
        return self._batch.observation()[0].astype(self._dtype), {}

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """Observation, reward, terminated, truncated, and in the last step why it ended."""
        b = self._batch
        reward, terminated, truncated = b.step(_checked(action, (b.values.shape[1],)))
        over = bool(terminated) or bool(truncated)
        return (b.observation()[0].astype(self._dtype), float(reward), bool(terminated), bool(truncated),
                {"ended": b.ended(0)} if over else {})

    def render(self) -> Any:
        """Not drawn: look at a run with `run.show()`."""
        raise _lib.Unsupported("an environment is not drawn: look at a run with run.show()")

    def close(self) -> None:
        """Frees the run."""
        if "_batch" in self.__dict__:  # else it was never made
            self._batch.close()


class VectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """`num_envs` runs of a system in this process, side by side on `threads` threads.

    Arguments are those of `Env`; functions get arrays with a number for each environment. An environment that has ended is
    reset by the next step, whose action it does not see (gymnasium's AutoresetMode.NEXT_STEP).

    >>> import cardan
    >>> sys = cardan.System().add("twice", cardan.unit(lambda u: 2 * u)).options(step=0.1, stop=1)
    >>> envs = VectorEnv(sys, 3, observations=["twice.y"], actions=["twice.u"], reward="twice.y")
    >>> _ = envs.reset()
    >>> observations, rewards, _, _, _ = envs.step([[1.0], [2.0], [3.0]])
    >>> rewards.tolist()
    [2.0, 4.0, 6.0]
    >>> envs.close()
    """
    metadata: Dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, system: Union[System, Path], num_envs: int, *, observations: Optional[Names] = None,
                 actions: Names = (), reward: Optional[Formula] = None, terminated: Optional[Formula] = None,
                 also: Sequence[str] = (), steps: int = 1,
                 start: Optional[Callable[[np.random.Generator], Mapping[str, Any]]] = None, failed: str = "raise",
                 threads: int = 1, dtype: Any = np.float64, **options: Any) -> None:
        self._batch = _Batch(system, num_envs, observations, actions, reward, terminated, also, steps, start, failed,
                             threads, dtype, options, False)
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = (self._batch.space(i, dtype) for i in (0, 1))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._dtype = dtype
        self._over = np.zeros(num_envs, np.bool_)
        self._rngs: List[np.random.Generator] = []

    def reset(self, *, seed: Any = None, options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        """First observations of all. A seed gives environment i the seed + i, as does a list."""
        if seed is not None or not self._rngs:
            if isinstance(seed, (int, np.integer)):
                seed = [int(seed) + i for i in range(self.num_envs)]
            seeds = [None] * self.num_envs if seed is None else list(seed)
            if len(seeds) != self.num_envs:
                raise _lib.RangeError(f"seed has {len(seeds)} numbers, expected {self.num_envs}")
            self._rngs = [np.random.default_rng(s) for s in seeds]
        self._batch.reset(range(self.num_envs), self._rngs, _given(options))
        self._over[:] = False
        return self._batch.observation().astype(self._dtype, copy=False), {}

    def step(self, actions: Any) -> Tuple[Any, Any, Any, Any, Dict[str, Any]]:
        """Of each: observation, reward, terminated, truncated."""
        b, over = self._batch, self._over
        again = np.flatnonzero(over)
        actions = _checked(actions, b.values.shape)
        b.skip[:] = over
        reward, terminated, truncated = b.step(actions)
        reward = np.array(np.broadcast_to(np.asarray(reward, np.float64), (self.num_envs,)))
        if again.size:
            b.reset([int(i) for i in again], self._rngs, {})
            reward[again], terminated[again], truncated[again] = 0, False, False
        np.logical_or(terminated, truncated, out=over)
        infos: Dict[str, Any] = {}
        if over.any():
            infos = {"ended": np.array([b.ended(i) if o else "" for i, o in enumerate(over)]), "_ended": over.copy()}
        return b.observation().astype(self._dtype, copy=False), reward, terminated, truncated, infos

    def render(self) -> Any:
        """Not drawn: look at a run with `run.show()`."""
        raise _lib.Unsupported("an environment is not drawn: look at a run with run.show()")

    def close_extras(self, **_: Any) -> None:
        """Frees the runs."""
        if "_batch" in self.__dict__:
            self._batch.close()


def _given(options: Optional[Dict[str, Any]]) -> Mapping[str, Any]:
    unknown = [k for k in options or {} if k != "set"]
    if unknown:
        raise _lib.RangeError(f"reset has no option {unknown[0]!r}, expected 'set': a mapping of names to values")
    found: Mapping[str, Any] = (options or {}).get("set") or {}
    return found


def _checked(action: Any, shape: Tuple[int, ...]) -> Any:
    try:
        a = numbers("the action", action)
    except (TypeError, ValueError):
        raise TypeError(f"the action is {action!r}, expected numbers in the shape {shape}") from None
    if np.isnan(a).any():
        raise _lib.RangeError(f"the action is {action!r}, expected numbers")
    if a.shape != shape:
        raise _lib.RangeError(f"the action has the shape {a.shape}, expected {shape}")
    return a


if "Cardan-v0" not in gymnasium.registry:  # gymnasium.make("cardan.gym:Cardan-v0", system=..., ...)
    gymnasium.register("Cardan-v0", entry_point="cardan.gym:Env", vector_entry_point="cardan.gym:VectorEnv")

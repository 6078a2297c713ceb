"""How systems and runs look: in a notebook, in a browser, in a terminal."""
from __future__ import annotations

import atexit
import ctypes as c
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time as clock
import webbrowser
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from . import _lib, _optional
from ._command import command
from ._lib import lib

if TYPE_CHECKING:
    from ._run import Run
    from ._system import System

_PANELS, _CURVES, _ADVICE = 6, 7, 3  # of a run in a notebook
_COLOURS = {"good": "#2e8b57", "doubtful": "#d68910", "unknown": "#7f8c8d", "bad": "#c0392b"}


class _Series(c.Structure):
    _fields_ = [("label", c.c_char_p), ("x", c.c_void_p), ("y", c.c_void_p), ("count", c.c_int64), ("dashed", c.c_bool),
                ("points", c.c_bool), ("right", c.c_bool)]


class _Panel(c.Structure):
    _fields_ = [("title", c.c_char_p), ("y_label", c.c_char_p), ("series", c.POINTER(_Series)), ("series_count", c.c_int),
                ("right_label", c.c_char_p)]


class _Attachment(c.Structure):
    _fields_ = [("name", c.c_char_p), ("mime", c.c_char_p), ("data", c.c_char_p), ("length", c.c_size_t)]


class _ReportRun(c.Structure):
    _fields_ = [("recording", c.c_void_p), ("label", c.c_char_p), ("what", c.c_char_p), ("verdict", c.c_char_p),
                ("reference", c.c_bool)]


class _ReportOptions(c.Structure):
    _fields_ = [("format", c.c_int), ("title", c.c_char_p), ("patterns", c.c_void_p), ("pattern_count", c.c_int),
                ("points", c.c_int)]


_lib.STRUCTS.update({"crd_plot_series": _Series, "crd_plot_panel": _Panel, "crd_attachment": _Attachment,
                     "crd_report_run": _ReportRun, "crd_report_options": _ReportOptions})
_lib.declare({
    "crd_report_drawing": (c.c_int, [c.c_void_p, c.c_char_p, c.c_size_t, c.c_void_p]),
    "crd_plot_svg": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.POINTER(_Panel), c.c_int]),
    "crd_recording_open": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "crd_recording_close": (None, [c.c_void_p]),
    "crd_report_write": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(_ReportRun), c.c_int, c.POINTER(_ReportOptions)]),
})


# ---- drawings ----------------------------------------------------------------------------------

def drawing(run: "Run") -> str:
    """Units and connections as SVG, "" if there is too little or too much to draw."""
    what = run._text(lib.crd_master_describe_run).encode()
    with run._inside():
        ctx = run._alive()
        svg = ctx.text(lambda t: lib.crd_report_drawing(ctx.handle, what, len(what), t))
    # several drawings stand in one notebook: each has arrow heads of its own
    return re.sub(r'(id="|#)(tip(?:-back)?)\b', rf"\1\2-{clock.monotonic_ns():x}", svg)


def _panels(run: "Run", names: Sequence[str]) -> List[List[str]]:
    """Signals of one physical unit share a panel."""
    units = run.units
    found: Dict[str, List[str]] = {}
    for name in names:
        found.setdefault(units.get(name, ""), []).append(name)
    return list(found.values())


def plot_svg(run: "Run", names: Sequence[str], title: str = "") -> str:
    """Signals as SVG, those of one physical unit in one panel."""
    keep: List[Any] = []
    groups = _panels(run, names)
    panels = (_Panel * len(groups))()
    for panel, group in zip(panels, groups):
        series = (_Series * len(group))()
        for s, name in zip(series, group):
            t, y = run.times(name), run[name]
            keep += [t, y]
            s.label, s.x, s.y, s.count = name.encode(), t.ctypes.data, y.ctypes.data, len(y)
        keep.append(series)
        panel.title, panel.y_label = b"", run.units.get(group[0], "").encode()
        panel.series, panel.series_count = series, len(group)
    with tempfile.TemporaryDirectory() as folder, run._inside():
        ctx = run._alive()
        path = os.path.join(folder, "plot.svg")
        ctx.check(lib.crd_plot_svg(ctx.handle, path.encode(), title.encode(), b"time [s]", panels, len(groups)))
        with open(path, encoding="utf-8") as f:
            svg = f.read()
    return re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>", "", svg)


_BOX = ('<div style="border-left:4px solid {0};padding:2px 0 2px 10px;margin:4px 0;font-family:sans-serif;font-size:13px">'
        '{1}</div>')


def system_html(system: "System") -> str:
    """The system as it would run, or what is wrong with it."""
    from ._run import Run
    try:
        run = Run(system, {}, False, initialize=False, record=False)
    except Exception as e:
        return (f"<pre>{html.escape(repr(system))}</pre>"
                + _BOX.format("#c0392b", html.escape(f"{type(e).__name__}: {e}")))
    try:
        return drawing(run) or f"<pre>{html.escape(repr(system))}</pre>"
    finally:
        run.close()


def run_html(run: "Run") -> str:
    """Verdict, advice and plots of a run."""
    if run._ctx is None:
        return f"<pre>{html.escape(repr(run))}</pre>"
    verdict = run.verdict
    guard = verdict.get("guard")
    said = [f"<b>{html.escape(repr(run)[1:-1])}</b>: {html.escape(repr(verdict)[len('<cardan.Verdict '):-1])}"]
    if isinstance(guard, dict) and guard.get("text"):
        said.append(html.escape(str(guard["text"])))
    said += [html.escape(str(a)) for a in (verdict.get("advice") or [])[:_ADVICE if verdict.state != "good" else 0]]
    rows = "".join(f"<tr><td>{html.escape(str(f['from']))} → {html.escape(str(f['to']))}</td>"
                   + "".join(f"<td>{html.escape(_number(f.get(k)))}</td>" for k in ("defect_rms", "defect_max"))
                   + f"<td>{html.escape(str(f.get('unit') or ''))}</td><td>{html.escape(_percent(f.get('relative')))}</td></tr>"
                   for f in verdict.get("flows") or [] if isinstance(f, dict))
    table = ("<table><tr><th>connection</th><th>defect RMS</th><th>max</th><th>unit</th><th>of scale</th></tr>"
             f"{rows}</table>") if rows else ""
    panels = _panels(run, run.names)
    shown = [n for group in panels[:_PANELS] for n in group[:_CURVES]]
    more = len(run.names) - len(shown)
    note = f"<p>{more} more signals: run.names, run.plot(...), run.show()</p>" if more else ""
    plots = plot_svg(run, shown) if shown and len(run["t"]) > 1 else ""
    return _BOX.format(_COLOURS[verdict.state], "<br>".join(said)) + table + plots + note


def _number(x: Any) -> str:
    return "" if not isinstance(x, (int, float)) else f"{x:.3g}"


def _percent(x: Any) -> str:
    return "" if not isinstance(x, (int, float)) else f"{100 * x:.2g} %"


# ---- files, report, page -----------------------------------------------------------------------

def write(run: "Run", path: str) -> None:
    """What was recorded as a result file."""
    files = (_Attachment * 2)()
    for file, name, text in ((files[0], b"cardan-run.json", run._text(lib.crd_master_describe_run)),
                             (files[1], b"cardan-verdict.json", run._text(lib.crd_master_describe_verdict))):
        data = text.encode()
        file.name, file.mime, file.data, file.length = name, b"application/json", data, len(data)
    with run._inside():
        ctx = run._alive()
        ctx.check(lib.crd_table_write(ctx.handle, c.cast(lib.crd_master_table(run._master), c.c_void_p),
                                      _lib.encode(path, "path"), files, 0 if path.lower().endswith(".csv") else 2))


def report(run: "Run", path: str) -> None:
    """The report as one page."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "run.mf4")
        write(run, file)
        recording = c.c_void_p()
        ctx = _lib.Context()
        ctx.check(lib.crd_recording_open(ctx.handle, file.encode(), c.byref(recording)))
        try:
            runs = (_ReportRun * 1)(_ReportRun(recording=recording, label=b"run"))
            ctx.check(lib.crd_report_write(ctx.handle, _lib.encode(path, "path"), runs, 1, c.byref(_ReportOptions())))
        finally:
            lib.crd_recording_close(recording)
            ctx.close()


def show(run: "Run", path: Optional[str], browser: bool) -> str:
    """The report, opened."""
    if path is None:
        folder = tempfile.mkdtemp(prefix="cardan-report-")
        atexit.register(_lib.drop, folder, os.getpid())
        path = os.path.join(folder, "report.html")
    report(run, path)
    if browser:
        webbrowser.open("file://" + os.path.abspath(path))
    return path


class Live:
    """A run that the command makes and shows on a page: `url`, `wait()`, `stop()`."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, folder: str) -> None:
        self._process, self.url, self._folder = process, url, folder

    def wait(self, timeout: Optional[float] = None) -> int:
        """Until the run and its page have ended; the command's exit code."""
        return self._process.wait(timeout)

    def stop(self) -> int:
        """Ends run and page, as Ctrl-C does."""
        if self._process.poll() is None:
            self._process.send_signal(2)
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
        if self._process.stderr is not None:
            self._process.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        return self._process.wait()

    def _repr_html_(self) -> str:
        return f'<a href="{html.escape(self.url)}" target="_blank">{html.escape(self.url)}</a>'

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<cardan.Live {self.url}>"


_OPTIONS = {"start": "--start-time", "stop": "--stop-time", "step": "--step", "scheme": "--scheme",
            "predict": "--predict", "pace": "--pace"}


def _end(process: "subprocess.Popen[str]", of: int) -> None:
    if os.getpid() == of:
        process.terminate()


def live(system: "System", options: Mapping[str, Any], browser: bool, wait: bool) -> Live:
    """The run by the command, with its page."""
    if system._models:
        raise _lib.Unsupported(f"units.{next(iter(system._models))} is in Python, which the page's run cannot have: "
                               "expected units that a description can name")
    options = {**system._options, **options}
    folder = tempfile.mkdtemp(prefix="cardan-live-")
    arguments = [command(), "run"]
    if system.file is None:
        text, _ = system._description({k: v for k, v in options.items() if v is not None})
        file = os.path.join(folder, "system.yaml")
        with open(file, "w", encoding="utf-8") as f:
            f.write('{ "cardan": 1,\n' + text[1:])
        arguments.append(file)
    else:
        if system._units or system._connections or system._bonds or system._record:
            raise _lib.Unsupported(f"{system.file} has additions by calls, which the page's run cannot have: expected all "
                                   "in the file, or all by calls")
        arguments.append(system.file)
        for key, value in options.items():
            if key not in _OPTIONS:
                raise _lib.Unsupported(f"run.{key} cannot be given to the page's run of a file, expected one of "
                                       + ", ".join(_OPTIONS))
            arguments += [_OPTIONS[key], value if isinstance(value, str) else json.dumps(value)]
    for name, value in system._values:
        arguments += ["--set", f"{name}={value}"]
    arguments += ["--ui", "--ui-keep", "-o", "none"] + (["--ui-wait"] if wait else [])
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                               start_new_session=True)
    said: List[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"https?://\S+", line)
        if found:
            atexit.register(_end, process, os.getpid())
            if browser:
                webbrowser.open(found.group(0))
            return Live(process, found.group(0), folder)
        said.append(line)
    process.wait()
    process.stderr.close()
    shutil.rmtree(folder, ignore_errors=True)
    text = next((x for x in said if x.startswith("cardan: ")), "cardan: the page was not served")
    raise _lib.failure(-2 if process.returncode == 2 else -9, text[8:].strip())


# ---- other packages ----------------------------------------------------------------------------

def to_xarray(run: "Run") -> Any:
    """A Dataset over time."""
    xarray = _optional.need("xarray", "Run.to_xarray")
    units = run.units
    columns: Dict[str, Any] = {}
    for name in run.names:
        t = run.times(name)
        dim = "time" if t.shape == run["t"].shape and (t == run["t"]).all() else f"time of {name}"
        columns[name] = xarray.DataArray(run[name], dims=[dim], coords={dim: t},
                                         attrs={"units": units[name]} if units[name] else {})
    return xarray.Dataset(columns)


def plot(run: "Run", names: Sequence[str], axes: Any) -> Any:
    """Axes of matplotlib, one for each physical unit."""
    pyplot = _optional.need("matplotlib.pyplot", "Run.plot")
    groups = _panels(run, [n for n in names] or run.names)
    if axes is None:
        _, axes = pyplot.subplots(len(groups), sharex=True, squeeze=False, figsize=(8, 1.2 + 2 * len(groups)))
    flat = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(flat) < len(groups):
        raise _lib.RangeError(f"there are {len(flat)} axes, expected {len(groups)}: one for each physical unit")
    for ax, group in zip(flat, groups):
        for name in group:
            ax.plot(run.times(name), run[name], label=name)
        ax.set_ylabel(run.units.get(group[0], ""))
        ax.legend(loc="best", fontsize="small")
        ax.grid(alpha=0.3)
    flat[len(groups) - 1].set_xlabel("time [s]")
    return flat[0] if len(groups) == 1 else flat


# ---- progress ----------------------------------------------------------------------------------

class Bar:
    """A line on a terminal, a bar in a notebook; nothing before a second has gone, and nothing where neither is."""

    def __init__(self, wanted: Optional[bool]) -> None:
        self.begun = self.told = clock.monotonic()
        self.handle: Any = None
        self.notebook = _in_notebook()
        self.on = wanted if wanted is not None else self.notebook or sys.stderr.isatty()
        self.least = 0.0 if wanted else 1.0

    def due(self) -> bool:
        """Whether it is time to say something."""
        now = clock.monotonic()
        return self.on and now - self.begun >= self.least and (now - self.told >= 0.2 or self.told == self.begun)

    def tell(self, share: Optional[float], text: str, done: bool = False) -> None:
        self.told = clock.monotonic()
        if self.notebook:
            from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]
            bar = "" if share is None else f'<progress value="{share:.4f}" max="1" style="width:24em"></progress> '
            if self.handle is None:
                self.handle = display(HTML(bar + text), display_id=True)  # type: ignore[no-untyped-call,unused-ignore]
            else:
                self.handle.update(HTML(bar + text))  # type: ignore[no-untyped-call,unused-ignore]
        else:
            sys.stderr.write("\r\x1b[K" + ("" if done else text))
            sys.stderr.flush()


class Progress(Bar):
    """Of a run."""

    def __init__(self, run: "Run", wanted: Optional[bool]) -> None:
        super().__init__(wanted)
        self.run, self.start = run, run.time
        self.stop = float("nan")

    def __call__(self, time: float) -> None:
        if self.due():
            if self.told == self.begun:
                self.stop = float(self.run.description["run"].get("stop") or "nan")
            self._tell(time, False)

    def _tell(self, time: float, done: bool) -> None:
        took = clock.monotonic() - self.begun
        share = (time - self.start) / (self.stop - self.start) if self.start < self.stop < float("inf") else None
        left = took * (1 - share) / share if share and not done else 0.0
        text = f"t = {time:.4g} s" + (f" of {self.stop:g} s" if share is not None else "") + f", {took:.1f} s" + (
            f", {left:.0f} s to go" if left else "")
        self.tell(share, text, done)

    def close(self) -> None:
        """The line goes, the bar stays."""
        if self.told != self.begun:
            self._tell(self.run.time, True)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    found = shell.get_ipython()
    return found is not None and hasattr(found, "kernel")

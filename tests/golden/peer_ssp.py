#!/usr/bin/env python3
"""SSP packages of `cardan export ssp` in other tools.

FMPy loads and simulates them: its master is Jacobi with one step size, but begins with inputs of
zero where Cardan begins with the outputs, so the system here starts with outputs of zero; its row
at t shows the outputs at t + step. FMPy sets the start values by name and does not convert units.
Tolerance 1e-12 of the largest value: both call the same FMUs in the same order, but FMPy adds up
its times. The documents are checked against the schemas that FMPy (1.0) and pyssp-standard (2.0)
bring. OMSimulator runs the same package where it can be imported.
"""

import io
import os
import zipfile

import numpy as np
from fmpy.ssp.simulation import simulate_ssp
from fmpy.ssp.ssd import read_ssd, read_ssv
from lxml import etree

from golden import TMP, Checks, cardan, fmu, parse

STEP, STOP = 0.001, 0.2
OSCILLATOR = """cardan: 1
title: two masses
units:
  first: {{ fmu: {first}, parameters: {{ m1: 2000 g, kc: 120, c1: 0.5 }} }}
  second: {{ fmu: {second}, parameters: {{ m2: 3, v2: 0, k2: 1 N/mm }} }}
connections:
  - {{ from: second.x2, to: first.x2 }}
  - {{ from: second.v2, to: first.v2 }}
  - {{ from: first.f, to: second.f }}
run: {{ step: 1 ms, stop: 0.2 s, scheme: jacobi }}
"""

POSITIONS = """cardan: 1
units:
  first: {{ fmu: {first}, parameters: {{ m1: 2000 g, kc: 120, c1: 0.5 }} }}
  second: {{ fmu: {second}, parameters: {{ m2: 3, kc: 120, k2: 1 N/mm }} }}
connections:
  - second.x2 -> first.x2
  - second.v2 -> first.v2
  - first.x1 -> second.x1
  - first.v1 -> second.v1
run: {{ step: 1 ms, stop: 0.2 s }}
"""

# The first one with the second mass two systems down, as somebody may have drawn it.
NESTED = """<?xml version="1.0"?>
<SystemStructureDescription xmlns="http://ssp-standard.org/SSP1/SystemStructureDescription"
    xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon"
    xmlns:v="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" name="nested">
  <System name="nested">
    <ParameterBindings><ParameterBinding><ParameterValues>
      <v:ParameterSet version="1.0" name="p"><v:Parameters>
        <v:Parameter name="first.m1"><v:Real value="2"/></v:Parameter>
        <v:Parameter name="outer.inner.second.v2"><v:Real value="0"/></v:Parameter>
      </v:Parameters></v:ParameterSet></ParameterValues></ParameterBinding></ParameterBindings>
    <Elements>
      <Component name="first" source="lo_fd1.fmu"><Connectors>
        <Connector name="f" kind="output"><c:Real/></Connector>
        <Connector name="x2" kind="input"><c:Real/></Connector>
        <Connector name="v2" kind="input"><c:Real/></Connector></Connectors></Component>
      <System name="outer"><Connectors>
          <Connector name="force" kind="input"><c:Real/></Connector>
          <Connector name="x" kind="output"><c:Real/></Connector>
          <Connector name="v" kind="output"><c:Real/></Connector></Connectors>
        <Elements><System name="inner"><Connectors>
            <Connector name="a" kind="input"><c:Real/></Connector>
            <Connector name="b" kind="output"><c:Real/></Connector>
            <Connector name="c" kind="output"><c:Real/></Connector></Connectors>
          <Elements><Component name="second" source="lo_fd2.fmu"><Connectors>
            <Connector name="f" kind="input"><c:Real/></Connector>
            <Connector name="x2" kind="output"><c:Real/></Connector>
            <Connector name="v2" kind="output"><c:Real/></Connector></Connectors></Component></Elements>
          <Connections>
            <Connection startConnector="a" endElement="second" endConnector="f"/>
            <Connection startElement="second" startConnector="x2" endConnector="b"/>
            <Connection startElement="second" startConnector="v2" endConnector="c"/>
          </Connections></System></Elements>
        <Connections>
          <Connection startConnector="force" endElement="inner" endConnector="a"/>
          <Connection startElement="inner" startConnector="b" endConnector="x"/>
          <Connection startElement="inner" startConnector="c" endConnector="v"/>
        </Connections></System>
    </Elements>
    <Connections>
      <Connection startElement="first" startConnector="f" endElement="outer" endConnector="force"/>
      <Connection startElement="outer" startConnector="x" endElement="first" endConnector="x2"/>
      <Connection startElement="outer" startConnector="v" endElement="first" endConnector="v2"/>
    </Connections>
  </System>
  <DefaultExperiment startTime="0" stopTime="0.2"/>
</SystemStructureDescription>
"""

# All kinds of connectors, start values and changes in one package.
EVERYTHING = """cardan: 1
units:
  t: {{ fmu: {types}, parameters: {{ in_b: false, in_e: 3, in_s: "<&>", in_f64: 3 }} }}
  u: {{ fmu: {types} }}
  push: {{ signals: {{ a: {{ shape: sine, frequency: 1 Hz }}, b: {{ shape: step, start: 0.1 }} }} }}
connections:
  - {{ from: t.out_f64, to: u.in_f64, gain: 2, offset: 1 }}
  - {{ from: t.out_b, to: u.in_b, map: {{ true: false, false: true }} }}
  - {{ from: t.out_i32, to: u.in_i32, map: {{ 1: 2 }} }}
  - {{ from: push.a, to: t.in_f32, predict: linear }}
run: {{ step: 10 ms, stop: 0.1, scheme: gauss-seidel }}
results: {{ variables: ["u.*"], unit_row: true }}
"""


def write(name, text):
    path = os.path.join(TMP, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def ours(what, *options):
    cardan("run", what, "-q", "-o", "ours.csv", "--step", STEP, "--predict", "hold", *options)
    return parse(os.path.join(TMP, "ours.csv"))


def parameters(package):
    """What is bound to the root system; FMPy reads it but leaves it to its user to apply it."""
    bindings = read_ssd(package).system.parameterBindings
    return bindings[0].parameterValues[0] if bindings else None


def fmpy(checks, name, package, expected, signals):
    rows = simulate_ssp(package, stop_time=STOP - STEP / 2, step_size=STEP,
                        parameter_set=parameters(package))
    count = round(STOP / STEP)
    checks.true(f"{name}: FMPy makes {count} steps", len(rows) == count, str(len(rows)))
    compared = 0
    for signal, values in expected.items():
        if signal == "time" or signal not in rows.dtype.names:
            continue
        compared += 1
        scale = max(1.0, np.max(np.abs(values)))
        worst = np.max(np.abs(rows[signal] - values[1:])) / scale
        checks.true(f"{name}: {signal} in FMPy and in Cardan", worst < 1e-12, f"{worst:.2g}")
        checks.true(f"{name}: {signal} moves", np.ptp(values) > 1e-3, f"{np.ptp(values):.3g}")
    checks.true(f"{name}: signals compared", compared == signals, str(compared))


def simulated(checks):
    system = write("osc.yaml", OSCILLATOR.format(first=fmu("lo_fd1"), second=fmu("lo_fd2")))
    expected = ours(system)
    for signals, options in ((7, []), (3, ["--only-used"])):
        cardan("export", "ssp", system, "-o", "osc.ssp", *options)
        fmpy(checks, " ".join(["two masses", *options]), os.path.join(TMP, "osc.ssp"), expected,
             signals)
    again = ours("osc.ssp")
    checks.true("two masses: Cardan runs the package as it runs the description",
                list(again) == list(expected) and
                all(np.array_equal(again[n], expected[n]) for n in expected), "")

    write("nested/SystemStructure.ssd", NESTED)
    for name in ("lo_fd1", "lo_fd2"):
        with open(fmu(name), "rb") as f, open(os.path.join(TMP, "nested", name + ".fmu"), "wb") as g:
            g.write(f.read())
    expected = ours("nested/SystemStructure.ssd")
    cardan("export", "ssp", "nested/SystemStructure.ssd", "-o", "nested.ssp")
    checks.true("nested: the systems are there again",
                len(list(etree.fromstring(zipfile.ZipFile(os.path.join(TMP, "nested.ssp")).read(
                    "SystemStructure.ssd")).iter("{*}System"))) == 3, "")
    fmpy(checks, "nested", os.path.join(TMP, "nested.ssp"), expected, 7)


def schema_of_two():
    """The folder with the schemas of SSP 2.0, None if there is none here."""
    try:
        from pyssp_standard.standard import ModelicaStandard
    except ImportError:
        return None
    return str(ModelicaStandard.schemas["ssd2"].parent)


def validated(checks):
    files = {"osc.yaml": write("osc.yaml", OSCILLATOR.format(first=fmu("lo_fd1"),
                                                             second=fmu("lo_fd2")))}
    for version in "23":
        files["types" + version] = write(f"types{version}.yaml",
                                         EVERYTHING.format(types=fmu("types", version)))
    folder = schema_of_two()
    if not folder:
        print("pyssp-standard cannot be imported: SSP 2.0 is not checked against its schema")
    for name, path in files.items():
        cardan("export", "ssp", path, "-o", "v1.ssp")
        package = os.path.join(TMP, "v1.ssp")
        read_ssd(package)  # raises with the line unless its schema is kept
        with zipfile.ZipFile(package) as z:
            ssv = [n for n in z.namelist() if n.endswith(".ssv")]
            read_ssv(io.BytesIO(z.read(ssv[0])))
        checks.true(f"{name}: FMPy's schema of SSP 1.0 is kept", len(ssv) == 1, "")
        cardan("check", "v1.ssp")
        cardan("export", "ssp", path, "-o", "v2.ssp", "--ssp-version", "2")
        cardan("check", "v2.ssp")
        if not folder:
            continue
        with zipfile.ZipFile(os.path.join(TMP, "v2.ssp")) as z:
            for entry in z.namelist():
                kind = {".ssd": "Description", ".ssv": "ParameterValues"}.get(entry[-4:])
                if not kind:
                    continue
                schema = etree.XMLSchema(file=os.path.join(folder, f"SystemStructure{kind}.xsd"))
                good = schema.validate(etree.fromstring(z.read(entry)))
                checks.true(f"{name}: the schema of SSP 2.0 is kept by {entry}", good,
                            str(schema.error_log))


def oms_simulate(model, result):
    """One run of OMSimulator 3; its results as arrays without the name of the system in front.
    At an exchange it writes a row before and one after: the one after counts."""
    run = model.instantiate()
    run.setStopTime(STOP)
    run.setFixedStepSize(STEP)
    run.setResultFile(result)
    run.initialize()
    run.simulate()
    run.terminate()
    run.delete()
    with open(result, encoding="utf-8") as f:
        names = [n.strip().strip('"') for n in f.readline().split(",")]
        rows = np.array([[float(x) for x in line.split(",")] for line in f])
    last = np.append(np.diff(rows[:, 0]) > 0, True)
    return {n.split(".", 1)[-1]: rows[last, i] for i, n in enumerate(names)}


def oms_compare(checks, what, theirs, expected):
    """Both hold the inputs over a step and call the same FMUs; OMSimulator prints 12 digits."""
    compared = 0
    for signal, values in expected.items():
        if signal == "time" or signal not in theirs:
            continue
        at = np.interp(expected["time"], theirs["time"], theirs[signal])
        worst = np.max(np.abs(at - values)) / max(1.0, np.max(np.abs(values)))
        checks.true(f"{what}: {signal}", worst < 1e-10, f"{worst:.2g}")
        compared += 1
    checks.true(f"{what}: all signals are there", compared == len(expected) - 1, str(compared))


def omsimulator(checks):
    """A package of ours there, and a package of theirs here. Its pip package fetches a binary from
    outside of PyPI, so it is not among the tools of the tests. Without direct feedthrough, which
    the two masters treat differently at a communication point, the results are the same."""
    try:
        from OMSimulator import SSP, CRef
    except ImportError as error:
        print(f"OMSimulator 3 cannot be imported ({error}): left out")
        return
    system = write("dd.yaml", POSITIONS.format(first=fmu("lo_dd1"), second=fmu("lo_dd2")))
    cardan("export", "ssp", system, "-o", "osc.ssp")
    oms_compare(checks, "a package of Cardan in OMSimulator",
                oms_simulate(SSP(os.path.join(TMP, "osc.ssp")), os.path.join(TMP, "oms.csv")),
                ours(system))
    model = SSP()
    for name, unit in (("lo_dd1", "first"), ("lo_dd2", "second")):
        model.addResource(fmu(name), new_name=f"resources/{name}.fmu")
        model.addComponent(CRef("default", unit), f"resources/{name}.fmu")
    for unit, other, signals in (("first", "second", ("x1", "v1")), ("second", "first", ("x2", "v2"))):
        for signal in signals:
            model.addConnection(CRef("default", unit, signal), CRef("default", other, signal))
    model.setValue(CRef("default", "first", "kc"), 120.0)
    model.setValue(CRef("default", "second", "v2"), 0.0)
    model.export(os.path.join(TMP, "theirs.ssp"))
    expected = ours("theirs.ssp", "--stop-time", STOP)
    oms_compare(checks, "a package of OMSimulator in Cardan",
                oms_simulate(model, os.path.join(TMP, "theirs.csv")), expected)
    # Its value of the parameter arrived: without it the result is another one.
    other = ours("theirs.ssp", "--stop-time", STOP, "--set", "first.kc=100")
    checks.true("a package of OMSimulator in Cardan: its parameters count",
                np.max(np.abs(other["second.x2"] - expected["second.x2"])) > 1e-6, "")
    oms_nested(checks)


def oms_nested(checks):
    """A package of theirs with the second mass in a system of its own, parameters from three SSVs:
    one of the outermost system, through an SSM, and two of the inner system. No value is there on
    two levels: OMSimulator takes the inner one then, the standard the outer one."""
    from OMSimulator import SSM, SSP, SSV, Causality, Connector, CRef, SignalType

    def values(name, **content):
        ssv = SSV()
        for key, value in content.items():
            ssv.setValue(key.replace("__", "."), value)
        ssv.export(os.path.join(TMP, name))

    values("outer.ssv", stiffness=120.0, mass=3.0, unused=7.0)
    values("inner.ssv", second__kc=120.0, second__v2=0.0)
    values("own.ssv", second__k2=15.0)
    ssm = SSM()
    ssm.mapParameter("stiffness", "first.kc")
    ssm.mapParameter("mass", "box.second.m2")
    ssm.export(os.path.join(TMP, "outer.ssm"))
    model = SSP()
    for name in ("outer.ssv", "outer.ssm", "inner.ssv", "own.ssv"):
        model.addResource(os.path.join(TMP, name), new_name=f"resources/{name}")
    for name in ("lo_dd1", "lo_dd2"):
        model.addResource(fmu(name), new_name=f"resources/{name}.fmu")
    model.addSystem(CRef("default", "box"))
    box = model.activeVariant.system.elements[CRef("box")]
    for name, causality in (("x", "input"), ("v", "input"), ("xo", "output"), ("vo", "output")):
        box.addConnector(Connector(name, getattr(Causality, causality), SignalType.Real))
    model.addComponent(CRef("default", "first"), "resources/lo_dd1.fmu")
    model.addComponent(CRef("default", "box", "second"), "resources/lo_dd2.fmu")
    for a, b in ((("first", "x1"), ("box", "x")), (("first", "v1"), ("box", "v")),
                 (("box", "xo"), ("first", "x2")), (("box", "vo"), ("first", "v2"))):
        model.addConnection(CRef("default", *a), CRef("default", *b))
    box.addConnection("", "x", "second", "x1")
    box.addConnection("", "v", "second", "v1")
    box.addConnection("second", "x2", "", "xo")
    box.addConnection("second", "v2", "", "vo")
    model.addSSVReference(CRef("default"), "resources/outer.ssv", "resources/outer.ssm")
    model.addSSVReference(CRef("default", "box"), "resources/inner.ssv")
    model.addSSVReference(CRef("default", "box"), "resources/own.ssv")
    model.export(os.path.join(TMP, "deep.ssp"))
    expected = ours("deep.ssp", "--stop-time", STOP)
    theirs = oms_simulate(model, os.path.join(TMP, "deep.csv"))
    oms_compare(checks, "nested, with SSV and SSM, of OMSimulator in Cardan", theirs, expected)
    cardan("export", "ssp", "deep.ssp", "-o", "deep2.ssp")
    oms_compare(checks, "that package as Cardan writes it, in OMSimulator",
                oms_simulate(SSP(os.path.join(TMP, "deep2.ssp")), os.path.join(TMP, "deep2.csv")),
                expected)
    # The same by hand, in a flat system.
    plain = write("flat.yaml", POSITIONS.format(first=fmu("lo_dd1"), second=fmu("lo_dd2")))
    said = {"first.m1": 1, "first.c1": 0, "second.v2": 0, "second.k2": 15}
    ssm = SSM()
    for source, target in (("stiffness", "first.kc"), ("stiffness", "second.kc"), ("mass", "second.m2")):
        ssm.mapParameter(source, target)
    ssm.export(os.path.join(TMP, "flat.ssm"))
    flat = ours(plain, "--parameters", "outer.ssv:flat.ssm",
                *(x for k, v in said.items() for x in ("--set", f"{k}={v}")))
    checks.true("nested, with SSV and SSM: equal to a flat system with the same numbers",
                all(np.array_equal(flat[n.replace("box.", "")], expected[n]) for n in expected), "")


def main():
    checks = Checks("SSP packages in FMPy, OMSimulator, and against the schemas")
    simulated(checks)
    validated(checks)
    omsimulator(checks)
    checks.end()


if __name__ == "__main__":
    main()

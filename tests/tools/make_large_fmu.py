#!/usr/bin/env python3
"""Write an .fmu that holds nothing but a large modelDescription.xml.

    make_large_fmu.py --version 3 --variables 100000 large.fmu
"""

import argparse
import zipfile

CAUSALITIES = ("input", "output", "parameter", "local", "local", "local", "local", "local")
UNITS = ("N", "m", "m/s", "rad", "rad/s", "N.m", "kg", "s")


def name_of(i):
    return f"plant.section{i // 1000}.component{i // 10 % 100}.signal[{i}]"


def head(version, identifier):
    token = "{8c4e810f-3df3-4a00-8276-176fa3c9f000}"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    if version == 2:
        yield f'<fmiModelDescription fmiVersion="2.0" modelName="{identifier}" guid="{token}"'
        yield ' numberOfEventIndicators="0">\n'
    else:
        yield f'<fmiModelDescription fmiVersion="3.0" modelName="{identifier}"'
        yield f' instantiationToken="{token}">\n'
    yield f'  <CoSimulation modelIdentifier="{identifier}"'
    yield ' canHandleVariableCommunicationStepSize="true"/>\n  <UnitDefinitions>\n'
    for unit in UNITS:
        yield f'    <Unit name="{unit}"><BaseUnit m="1" s="-1"/></Unit>\n'
    yield "  </UnitDefinitions>\n"
    yield '  <DefaultExperiment startTime="0" stopTime="10" stepSize="0.001"/>\n'
    yield "  <ModelVariables>\n"


def attributes(i):
    """The causality with what must stand beside it."""
    causality = CAUSALITIES[i % len(CAUSALITIES)]
    text = f'causality="{causality}"'
    if causality == "parameter":
        text += ' variability="fixed"'
    start = f' start="{0.125 * (i % 17)}"' if causality in ("input", "parameter") else ""
    return text, start


def variable(version, i):
    causality, start = attributes(i)
    common = f'name="{name_of(i)}" valueReference="{i}" description="signal {i} of the plant"'
    quantity = f'unit="{UNITS[i % len(UNITS)]}" nominal="10" min="-1000" max="1000"{start}'
    if version == 2:
        return (
            f"    <ScalarVariable {common} {causality}>\n"
            f"      <Real {quantity}/>\n"
            "    </ScalarVariable>\n"
        )
    return f"    <Float64 {common} {causality} {quantity}/>\n"


def tail(version, count):
    yield "  </ModelVariables>\n  <ModelStructure>\n"
    outputs = [i for i in range(count) if CAUSALITIES[i % len(CAUSALITIES)] == "output"]
    if version == 2:
        for section in ("Outputs", "InitialUnknowns"):
            yield f"    <{section}>\n"
            for i in outputs:
                yield f'      <Unknown index="{i + 1}" dependencies="{i}"/>\n'
            yield f"    </{section}>\n"
    else:
        for element in ("Output", "InitialUnknown"):
            for i in outputs:
                yield f'    <{element} valueReference="{i}" dependencies="{i - 1}"/>\n'
    yield "  </ModelStructure>\n</fmiModelDescription>\n"


def describe(version, count, identifier):
    yield from head(version, identifier)
    last = count
    if version == 3:  # which wants its independent variable
        last -= 1
        yield f'    <Float64 name="time" valueReference="{last}" causality="independent"/>\n'
    for i in range(last):
        yield variable(version, i)
    yield from tail(version, last)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="the .fmu to write")
    parser.add_argument("--version", type=int, choices=(2, 3), default=2, help="of FMI")
    parser.add_argument("--variables", type=int, default=100000)
    parser.add_argument("--xml", help="write the bare modelDescription.xml here, too")
    args = parser.parse_args()
    xml = "".join(describe(args.version, args.variables, "Large")).encode()
    with zipfile.ZipFile(args.file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", xml)
    if args.xml:
        with open(args.xml, "wb") as out:
            out.write(xml)


if __name__ == "__main__":
    main()

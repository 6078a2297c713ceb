"""cardan build, and runs of FMUs that have sources only."""

import os
import shutil
import unittest
import zipfile

from e2e import EndToEnd, fmu

MODEL2 = """<?xml version="1.0" encoding="ISO-8859-1"?>
<fmiModelDescription fmiVersion="2.0" modelName="ramp" guid="x">
  <CoSimulation modelIdentifier="ramp" canHandleVariableCommunicationStepSize="true">FILES</CoSimulation>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.25"/>
  <ModelVariables>
    <ScalarVariable name="y" valueReference="0" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="1"/></Outputs></ModelStructure>
</fmiModelDescription>
"""

MODEL3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="3.0" modelName="ramp" instantiationToken="x">
  <CoSimulation modelIdentifier="ramp" canHandleVariableCommunicationStepSize="true"/>
  <DefaultExperiment startTime="0" stopTime="1" stepSize="0.25"/>
  <ModelVariables>
    <Float64 name="y" valueReference="0" causality="output"/>
  </ModelVariables>
  <ModelStructure><Output valueReference="0"/></ModelStructure>
</fmiModelDescription>
"""

# y = SLOPE t, and nothing that is not needed. Headers come from whoever compiles it.
RAMP2 = """
#include <stdlib.h>
#include "fmi2Functions.h"
#ifndef SLOPE
#define SLOPE 3
#endif
const char* fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char* fmi2GetVersion(void) { return fmi2Version; }
fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String where,
                              const fmi2CallbackFunctions* f, fmi2Boolean visible, fmi2Boolean log)
{ return calloc(1, sizeof(fmi2Real)); }
void fmi2FreeInstance(fmi2Component c) { free(c); }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real t, fmi2Boolean d, fmi2Real e)
{ *(fmi2Real*)c = t; return fmi2OK; }
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[])
{ for (size_t i = 0; i < n; i++) v[i] = SLOPE * *(fmi2Real*)c; return fmi2OK; }
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Real v[])
{ return fmi2OK; }
fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean b)
{ *(fmi2Real*)c = t + h; return fmi2OK; }
"""

RAMP3 = """
#include <stdlib.h>
#include "inner/slope.h"
#include "fmi3Functions.h"
EXTERN const char* fmi3GetVersion(void) { return fmi3Version; }
EXTERN fmi3Instance fmi3InstantiateCoSimulation(fmi3String a, fmi3String b, fmi3String c, fmi3Boolean d, fmi3Boolean e,
    fmi3Boolean f, fmi3Boolean g, const fmi3ValueReference h[], size_t i, fmi3InstanceEnvironment j,
    fmi3LogMessageCallback k, fmi3IntermediateUpdateCallback l)
{ return calloc(1, sizeof(fmi3Float64)); }
EXTERN void fmi3FreeInstance(fmi3Instance c) { free(c); }
EXTERN fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean a, fmi3Float64 b, fmi3Float64 t, fmi3Boolean d, fmi3Float64 e)
{ *(fmi3Float64*)c = t; return fmi3OK; }
EXTERN fmi3Status fmi3ExitInitializationMode(fmi3Instance c) { return fmi3OK; }
EXTERN fmi3Status fmi3Terminate(fmi3Instance c) { return fmi3OK; }
EXTERN fmi3Status fmi3GetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, fmi3Float64 v[], size_t m)
{ for (size_t i = 0; i < m; i++) v[i] = SLOPE * FACTOR * *(fmi3Float64*)c; return fmi3OK; }
EXTERN fmi3Status fmi3SetFloat64(fmi3Instance c, const fmi3ValueReference r[], size_t n, const fmi3Float64 v[], size_t m)
{ return fmi3OK; }
EXTERN fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean a, fmi3Boolean* b,
    fmi3Boolean* d, fmi3Boolean* e, fmi3Float64* last)
{ *(fmi3Float64*)c = t + h; *b = *d = *e = fmi3False; *last = t + h; return fmi3OK; }
"""

BUILD3 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="ramp" platform="x86_64-windows">
    <SourceFileSet><SourceFile name="windows.c"/></SourceFileSet>
  </BuildConfiguration>
  <BuildConfiguration modelIdentifier="ramp">
    <SourceFileSet LANGUAGE>
      <SourceFile name="NAME"/>
      <PreprocessorDefinition name="FACTOR" value="2"/>
      <IncludeDirectory name="include"/>
    </SourceFileSet>
    <Library name="m" external="true"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""
SLOPE3 = """
#define SLOPE 2.5
#ifdef __cplusplus
#define EXTERN extern "C"
#else
#define EXTERN
#endif
"""


MODEL1 = """<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="1.0" modelName="ramp" modelIdentifier="ramp" guid="x"
    numberOfContinuousStates="0" numberOfEventIndicators="0">
  <DefaultExperiment startTime="0" stopTime="1"/>
  <ModelVariables>
    <ScalarVariable name="y" valueReference="0" causality="output"><Real/></ScalarVariable>
  </ModelVariables>
  <Implementation><CoSimulation_StandAlone>
    <Capabilities canHandleVariableCommunicationStepSize="true"/></CoSimulation_StandAlone></Implementation>
</fmiModelDescription>
"""

RAMP1 = """
#include <stdlib.h>
#define MODEL_IDENTIFIER ramp
#include "fmiFunctions.h"
const char* fmiGetTypesPlatform(void) { return fmiPlatform; }
const char* fmiGetVersion(void) { return fmiVersion; }
fmiComponent fmiInstantiateSlave(fmiString a, fmiString b, fmiString c, fmiString d, fmiReal e, fmiBoolean f,
    fmiBoolean g, fmiCallbackFunctions h, fmiBoolean i) { return calloc(1, sizeof(fmiReal)); }
void fmiFreeSlaveInstance(fmiComponent c) { free(c); }
fmiStatus fmiInitializeSlave(fmiComponent c, fmiReal t, fmiBoolean a, fmiReal b) { *(fmiReal*)c = t; return fmiOK; }
fmiStatus fmiTerminateSlave(fmiComponent c) { return fmiOK; }
fmiStatus fmiSetReal(fmiComponent c, const fmiValueReference r[], size_t n, const fmiReal v[]) { return fmiOK; }
fmiStatus fmiGetReal(fmiComponent c, const fmiValueReference r[], size_t n, fmiReal v[])
{ for (size_t i = 0; i < n; i++) v[i] = 3 * *(fmiReal*)c; return fmiOK; }
fmiStatus fmiDoStep(fmiComponent c, fmiReal t, fmiReal h, fmiBoolean b) { *(fmiReal*)c = t + h; return fmiOK; }
"""


class Build(EndToEnd):
    def setUp(self):
        super().setUp()
        self.cache = self.path("cache")

    def environment(self, leaks=False):
        return dict(super().environment(leaks), XDG_CACHE_HOME=self.cache, **getattr(self, "more", {}))

    def pack(self, name, files):
        with zipfile.ZipFile(self.path(name), "w") as z:
            for entry, data in files.items():
                z.writestr(entry, data)
        return name

    def ramp2(self, files="", name="ramp.fmu", **sources):
        listed = f"<SourceFiles>{files}</SourceFiles>" if files else ""
        sources = {"sources/" + n.replace("__", "/").replace("_c", ".c").replace("_h", ".h"): text
                   for n, text in (sources or {"ramp_c": RAMP2}).items()}
        return self.pack(name, {"modelDescription.xml": MODEL2.replace("FILES", listed), **sources})

    def ramp3(self, source="ramp.c", language='language="C99"', build=BUILD3):
        build = build.replace("NAME", source).replace("LANGUAGE", language)
        return self.pack("ramp3.fmu", {"modelDescription.xml": MODEL3,
                                       "sources/buildDescription.xml": build,
                                       "sources/" + source: RAMP3,
                                       "sources/include/inner/slope.h": SLOPE3})

    def slope(self, *arguments, says=()):
        self.cardan("run", *arguments, "-o", "out.csv", says=says)
        t, y = self.table("out.csv")[1]
        self.assertEqual(t, [0, 0.25, 0.5, 0.75, 1])
        self.assertEqual([v / u for u, v in zip(t[1:], y[1:])], [y[-1]] * 4)
        return y[-1]

    def stored(self):
        folder = os.path.join(self.cache, "cardan", "fmus")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


class OnDemand(Build):
    def test_a_run_compiles_once_and_finds_it_again(self):
        said = "ramp.fmu: compiled from its sources for "
        self.ramp2()
        done = self.cardan("run", "ramp.fmu", "-o", "none", says=said)
        self.assertNotIn("(cached)", done.stderr)
        self.assertEqual(done.stderr.count("compiled"), 1)
        self.assertEqual(len(self.stored()), 1)
        self.assertEqual(self.slope("ramp.fmu", says="(cached)"), 3)
        self.assertEqual(len(self.stored()), 1)

    def test_other_sources_are_another_binary(self):
        self.ramp2()
        self.assertEqual(self.slope("ramp.fmu"), 3)
        self.ramp2(ramp_c=RAMP2.replace("SLOPE 3", "SLOPE 4"))
        self.assertEqual(self.slope("ramp.fmu"), 4)
        # a header that is included counts, too
        self.ramp2(ramp_c='#include "s.h"\n' + RAMP2, s_h="#define SLOPE 5\n")
        self.assertEqual(self.slope("ramp.fmu"), 5)
        self.ramp2(ramp_c='#include "s.h"\n' + RAMP2, s_h="#define SLOPE 6\n")
        self.assertEqual(self.slope("ramp.fmu"), 6)

    def test_what_others_could_write_is_not_taken_from_the_store(self):
        self.ramp2()
        self.slope("ramp.fmu")
        stored = os.path.join(self.cache, "cardan", "fmus", self.stored()[0])
        os.chmod(stored, 0o666)
        done = self.cardan("run", "ramp.fmu", "-o", "none", says="compiled from its sources")
        self.assertNotIn("(cached)", done.stderr)
        self.assertEqual(os.stat(stored).st_mode & 0o777, 0o600)

    def test_a_list_says_what_is_compiled(self):
        self.ramp2('<File name="ramp.c"/>', ramp_c=RAMP2, broken_c="this is no C\n")
        self.assertEqual(self.slope("ramp.fmu"), 3)

    def test_all_c_includes_the_rest(self):
        self.ramp2(all_c='#define SLOPE 7\n#include "ramp.c"\n', ramp_c=RAMP2)
        self.assertEqual(self.slope("ramp.fmu"), 7)

    def test_functions_with_a_prefix_get_their_names(self):
        # as sources that bring an old header have it
        prefixed = RAMP2.replace('#include "fmi2Functions.h"', '#include "fmi2FunctionTypes.h"\n'
                                 '#define fmi2Version "2.0"')
        for name in ("GetTypesPlatform", "GetVersion", "Instantiate", "FreeInstance", "SetupExperiment",
                     "EnterInitializationMode", "ExitInitializationMode", "Terminate", "Reset",
                     "GetReal", "SetReal", "DoStep"):
            prefixed = prefixed.replace(f"fmi2{name}(", f"ramp_fmi2{name}(")
        self.ramp2(ramp_c=prefixed)
        self.assertEqual(self.slope("ramp.fmu"), 3)

    def test_fmi_1(self):
        self.pack("ramp1.fmu", {"modelDescription.xml": MODEL1, "sources/ramp.c": RAMP1})
        self.assertEqual(self.slope("ramp1.fmu", "--step", "0.25"), 3)

    def test_build_descriptions_of_fmi_3(self):
        self.ramp3()
        self.assertEqual(self.slope("ramp3.fmu"), 5)

    def test_cpp(self):
        if not any(shutil.which(c) for c in ("c++", "g++", "clang++")):
            self.skipTest("no C++ compiler")
        self.ramp3("ramp.cpp", 'language="C++11"')
        self.assertEqual(self.slope("ramp3.fmu"), 5)

    def test_an_unpacked_folder_stays_as_it_is(self):
        os.makedirs(self.path("folder/sources"))
        self.write("folder/modelDescription.xml", MODEL2.replace("FILES", ""))
        self.write("folder/sources/ramp.c", RAMP2)
        self.assertEqual(self.slope("folder"), 3)
        self.assertEqual(sorted(os.listdir(self.path("folder"))), ["modelDescription.xml", "sources"])

    def test_our_own_fmus_give_the_same_bits(self):
        for version in (2, 3):
            self.bend(fmu("lo_mono", version), "bare.fmu", remove=["binaries/"])
            self.cardan("run", fmu("lo_mono", version), "--stop-time", "0.5", "-o", "a.csv")
            self.cardan("run", "bare.fmu", "--stop-time", "0.5", "-o", "b.csv",
                        says="compiled from its sources")
            self.assertEqual(self.table("a.csv")[1], self.table("b.csv")[1])

    def test_what_was_compiled_runs_in_a_worker(self):
        self.ramp2()
        self.assertEqual(self.slope("ramp.fmu", "--isolate", "all"), 3)
        os.makedirs(self.path("folder/sources"))
        self.write("folder/modelDescription.xml", MODEL2.replace("FILES", ""))
        self.write("folder/sources/ramp.c", RAMP2)
        self.assertEqual(self.slope("folder", "--isolate", "all", says="(cached)"), 3)

    def test_two_units_of_one_fmu_compile_once(self):
        self.ramp2()
        self.write("two.yaml", "cardan: 1\nunits: {a: {fmu: ramp.fmu}, b: {fmu: ramp.fmu}}\n"
                               "run: {step: 0.25, stop: 1}\n")
        done = self.cardan("run", "two.yaml", "-o", "none")
        self.assertEqual(done.stderr.count("compiled from its sources"), 1)

    def test_info_tells_of_sources(self):
        self.ramp2()
        self.assertTrue(self.cardan_json("info", "ramp.fmu")["sources"])
        self.assertEqual(self.stored(), [])


class Command(Build):
    def test_an_fmu_with_its_binary(self):
        self.ramp2()
        made = self.cardan_json("build", "ramp.fmu", "-o", "new.fmu")
        self.assertEqual([b["interface"] for b in made["binaries"]], ["Co-Simulation"])
        with zipfile.ZipFile(self.path("new.fmu")) as z:
            self.assertIn(made["binaries"][0]["library"], z.namelist())
            self.assertEqual(z.read("sources/ramp.c").decode(), RAMP2)
        done = self.cardan("run", "new.fmu", "-o", "out.csv")
        self.assertNotIn("compiled", done.stderr)
        self.assertEqual(self.column("out.csv", self.table("out.csv")[0][1])[-1], 3)

    def test_what_is_there_is_replaced(self):
        self.cardan("build", fmu("lo_mono"), "-o", "new.fmu")
        with zipfile.ZipFile(self.path("new.fmu")) as z:
            self.assertEqual(len(z.namelist()), len(set(z.namelist())))
        self.cardan("run", "new.fmu", "--stop-time", "0.1", "-o", "none")

    def test_the_store_is_cleaned(self):
        self.ramp2()
        self.cardan("build", "ramp.fmu")
        self.assertEqual(len(self.stored()), 1)
        self.assertEqual(self.cardan_json("build", "--clean-cache")["removed"], 1)
        self.assertEqual(self.stored(), [])
        self.assertEqual(self.cardan_json("build", "--clean-cache")["removed"], 0)

    def test_nothing_to_do(self):
        self.cardan("build", code=2, says="wants an FMU")
        self.bend(fmu("lo_mono"), "bare.fmu", remove=["sources/"])
        self.cardan("build", "bare.fmu", code=2, says="no sources")


class Bad(Build):
    def test_errors_of_the_compiler_name_file_and_line(self):
        self.ramp2(ramp_c=RAMP2 + "int x = y;\n")
        line = RAMP2.count("\n") + 1
        self.cardan("run", "ramp.fmu", "-o", "none", code=1,
                    says=["its sources cannot be compiled", f"ramp.c:{line}:"])
        self.assertEqual(self.stored(), [])

    def test_a_header_that_is_not_there(self):
        self.ramp2(ramp_c='#include "vendor.h"\n' + RAMP2)
        self.cardan("build", "ramp.fmu", code=1, says=["ramp.c:1:", "vendor.h"])

    def test_a_function_that_is_not_there(self):
        self.ramp2(ramp_c=RAMP2 + "void vendor(void); void f(void) { vendor(); }\n")
        self.cardan("build", "ramp.fmu", code=1, says=["cannot be linked", "vendor"])

    def test_only_the_first_errors_are_shown(self):
        self.ramp2(ramp_c="".join(f"int a{i} = b{i};\n" for i in range(50)))
        said = self.cardan("build", "ramp.fmu", code=1).stderr
        self.assertEqual(said.count("error:"), 3)

    def test_a_file_that_is_not_in_the_fmu(self):
        self.ramp2('<File name="other.c"/>', ramp_c=RAMP2)
        self.cardan("build", "ramp.fmu", code=2, says=["sources/other.c", "modelDescription.xml"])

    def test_paths_that_leave_the_folder(self):
        self.write("evil.c", RAMP2)
        for name in ("../../evil.c", "a/../../evil.c", "..\\evil.c", self.path("evil.c"), "C:/evil.c",
                     "-fplugin=evil.so.c", "@evil.c"):
            self.ramp2(f'<File name="{name}"/>', ramp_c=RAMP2)
            self.cardan("build", "ramp.fmu", code=2, says="modelDescription.xml:3: ")
            self.pack("ramp3.fmu", {"modelDescription.xml": MODEL3, "sources/ramp.c": RAMP3,
                                    "sources/buildDescription.xml": BUILD3.replace("NAME", name)
                                    .replace("LANGUAGE", "")})
            self.cardan("build", "ramp3.fmu", code=2, says="sources/buildDescription.xml:8: ")

    def test_the_compiler_cannot_read_what_is_outside(self):
        secret = self.write("secret.h", "#define SLOPE 9\n")
        self.ramp2(ramp_c=f'#include "{secret}"\n' + RAMP2)
        self.cardan("build", "ramp.fmu", code=1, says="ramp.c:1:")
        self.ramp2(ramp_c=RAMP2 + f'__asm__(".incbin \\"{secret}\\"");\n')
        self.cardan("build", "ramp.fmu", code=1, says="cannot be compiled")
        self.ramp2(ramp_c='#include "../modelDescription.xml"\n' + RAMP2)
        self.cardan("build", "ramp.fmu", code=1, says="ramp.c:1:")

    def test_sources_that_want_too_much(self):
        self.ramp2(ramp_c=RAMP2 + "char a[8ull << 30] = {1};\n")  # a file of 8 GB
        self.cardan("build", "ramp.fmu", code=1, says="cannot be compiled")
        self.ramp2(ramp_c="#include __FILE__\n" + RAMP2)
        self.cardan("build", "ramp.fmu", code=1, says="ramp.c:1:")

    def test_no_compiler(self):
        self.ramp2()
        self.more = {"CC": "no-such-compiler"}
        self.cardan("run", "ramp.fmu", "-o", "none", code=2, says=["no-such-compiler", "$CC"])
        self.more = {"PATH": self.path("nothing"), "CC": ""}
        self.cardan("run", "ramp.fmu", "-o", "none", code=2, says=["no C compiler", "apt install gcc"])

    def test_build_descriptions_that_make_no_sense(self):
        for text, code, says in (
                ("<fmiBuildDescription/>", 2, "no BuildConfiguration of 'ramp'"),
                ("<other/>", 2, "expected <fmiBuildDescription>"),
                ("<fmiBuildDescription><BuildConfiguration modelIdentifier='ramp'/></fmiBuildDescription>", 2,
                 "no source file"),
                (BUILD3.replace('name="m"', 'name="m -Wl,-rpath"').replace("NAME", "ramp.c")
                 .replace("LANGUAGE", ""), 2, "no name of a library"),
                (BUILD3.replace('name="FACTOR"', 'name="A B"').replace("NAME", "ramp.c")
                 .replace("LANGUAGE", ""), 2, "'A B'"),
                (BUILD3.replace("NAME", "ramp.c").replace("LANGUAGE", 'language="Fortran"'), 2, "'Fortran'"),
                ("<fmiBuildDescription>", 2, "buildDescription.xml:1")):
            self.pack("ramp3.fmu", {"modelDescription.xml": MODEL3, "sources/ramp.c": RAMP3,
                                    "sources/buildDescription.xml": text})
            self.cardan("build", "ramp3.fmu", code=code, says=says)

    def test_options_that_name_programs_are_left_out(self):
        build = BUILD3.replace("LANGUAGE", 'compilerOptions="-O1 -fplugin=x.so -wrapper -B/tmp"')
        self.ramp3(build=build)
        self.cardan("build", "ramp3.fmu", says=["'-fplugin=x.so' is left out", "'-wrapper' is left out"])

    def test_windows_only(self):
        self.bend(fmu("lo_mono"), remove=["sources/", "binaries/"], add={"binaries/win64/lo_mono.dll": "MZ"})
        self.cardan("run", "bent.fmu", "-o", "none", code=2,
                    says=["binaries/linux64/lo_mono.so", "the FMU has binaries for: win64", "export it for Linux"])
        self.cardan("info", "bent.fmu")


# dx/dt = u - x, y = x, for Model Exchange; each evaluation changes x' a little for good.
NOSY_MODEL = MODEL2.replace("<CoSimulation modelIdentifier=\"ramp\" canHandleVariableCommunicationStepSize=\"true\">FILES"
                            "</CoSimulation>", "<ModelExchange modelIdentifier=\"ramp\"/>").replace(
    "</ModelVariables>", """<ScalarVariable name="u" valueReference="1" causality="input"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="x" valueReference="2"><Real/></ScalarVariable>
    <ScalarVariable name="der(x)" valueReference="3"><Real derivative="3"/></ScalarVariable>
  </ModelVariables>""").replace("</Outputs>", "</Outputs><Derivatives><Unknown index=\"4\"/></Derivatives>")
NOSY = RAMP2.split("fmi2Component fmi2Instantiate", 1)[0] + """
static double t, x = 1, u, evaluations;
static int fresh;
static void evaluate(void) { evaluations += !fresh; fresh = 1; }
static void change(double* a, double b) { if (*a != b) fresh = 0; *a = b; }
fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String where,
                              const fmi2CallbackFunctions* f, fmi2Boolean visible, fmi2Boolean log) { return &x; }
void fmi2FreeInstance(fmi2Component c) {}
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean a, fmi2Real b, fmi2Real s, fmi2Boolean d, fmi2Real e) { return fmi2OK; }
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2GetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, fmi2Real v[])
{ evaluate(); for (size_t i = 0; i < n; i++) v[i] = r[i] == 3 ? u - x : r[i] == 1 ? u : x; return fmi2OK; }
fmi2Status fmi2SetReal(fmi2Component c, const fmi2ValueReference r[], size_t n, const fmi2Real v[]) { change(&u, v[0]); return fmi2OK; }
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real s) { change(&t, s); return fmi2OK; }
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real v[], size_t n) { change(&x, v[0]); return fmi2OK; }
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real v[], size_t n) { v[0] = x; return fmi2OK; }
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real v[], size_t n) { v[0] = 1; return fmi2OK; }
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real v[], size_t n) { evaluate(); v[0] = u - x + 1e-9 * evaluations; return fmi2OK; }
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real v[], size_t n) { return fmi2OK; }
fmi2Status fmi2EnterEventMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { return fmi2OK; }
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo* e)
{ e->newDiscreteStatesNeeded = e->terminateSimulation = e->nominalsOfContinuousStatesChanged = e->valuesOfContinuousStatesChanged
  = e->nextEventTimeDefined = fmi2False; return fmi2OK; }
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean a, fmi2Boolean* e, fmi2Boolean* s) { *e = *s = fmi2False; return fmi2OK; }
"""

# Models that some masters stumble over. STEP is what happens in a step of h from t, before y = SLOPE (t + h).
STRICT = """
#include <math.h>
#include <stdio.h>
#include <string.h>
static fmi2Real strict_stop = 1e300;
static char strict_folder[4096];
"""


class Particular(Build):
    """FMUs made on the spot that insist on something."""

    def model(self, step, name="ramp.fmu"):
        head, tail = RAMP2.split("const char* fmi2GetTypesPlatform", 1)
        code = head + STRICT + "const char* fmi2GetTypesPlatform" + tail
        code = code.replace("{ *(fmi2Real*)c = t; return", "{ if (d) strict_stop = e; *(fmi2Real*)c = t; return")
        code = code.replace("{ return calloc(", "{ snprintf(strict_folder, sizeof strict_folder, \"%s\", where); return calloc(")
        code = code.replace("{ *(fmi2Real*)c = t + h; return", "{ " + step + " *(fmi2Real*)c = t + h; return")
        return self.ramp2(name=name, ramp_c=code)

    def test_no_step_ends_behind_the_stop_that_the_fmu_was_told(self):
        self.model("if (t + h > strict_stop) return fmi2Error;")
        for start, step, n in ((0, 0.1, 3), (0.1, 0.1, 10), (1 / 3, 1 / 7, 49), (-0.7, 0.01, 171), (1e6, 1e-3, 77),
                               (100.1, 0.7, 11), (0, 1e-3, 1000)):
            with self.subTest(start=start, step=step):
                stop = start + n * step
                for last in (stop, float(f"{stop:.12g}")):
                    self.cardan("run", "ramp.fmu", "-q", "-o", "out.csv", "--start-time", repr(start), "--stop-time",
                                repr(last), "--step", repr(step), "--isolate", "none")
                    self.assertAlmostEqual(self.column("out.csv", "time")[-1], last, delta=1e-9 * max(1, abs(last)))
        # and the FMU is not told a stop that a step could be added to
        self.model("if (strict_stop - 1 > 1e-9) return fmi2Error;")
        for step in ("0.25", "0.3"):
            self.cardan("run", "ramp.fmu", "-q", "-o", "none", "--stop-time", "1", "--step", step)

    def test_resources_can_be_written_in_a_worker_but_not_in_a_folder_of_the_user(self):
        self.model("""char path[5000]; snprintf(path, sizeof path, "%s/note.txt", strict_folder + 7);
                      FILE* f = fopen(path, "w"); if (f) { fputs("was here", f); fclose(f); }
                      f = fopen(path, "r"); if (!f) return fmi2Error; fclose(f);""")
        with zipfile.ZipFile(self.path("ramp.fmu"), "a") as z:
            z.writestr("resources/a.txt", "a")
        self.cardan("build", "ramp.fmu", "--output", "whole.fmu")
        for isolate in ("none", "all"):
            self.cardan("run", "whole.fmu", "-q", "-o", "none", "--isolate", isolate)
        with zipfile.ZipFile(self.path("whole.fmu")) as z:
            z.extractall(self.path("whole"))
        self.cardan("run", "whole", "-q", "-o", "none", "--isolate", "all", code=1, says="fmi2DoStep")
        self.assertEqual(os.listdir(self.path("whole/resources")), ["a.txt"])

    def test_what_is_not_finite_at_the_end_is_no_success(self):
        """The last value meets no step any more: without the guard it is still told."""
        shutil.copy(fmu("lo_fd2"), self.folder)
        self.write("two.yaml", """cardan: 1
units: { a: { fmu: ramp.fmu }, b: { fmu: lo_fd2.fmu } }
connections: [ { from: a.y, to: b.f } ]
run: { step: 0.25 s, stop: 1 s, predict: hold }
""")
        for bad, code, says in (("NAN", 1, "output 'y' is not a number (NaN) after the step"),
                                ("INFINITY", 0, "the defect of a.y -> b.f is not a number")):
            self.model(f"if (t + h > 0.99) {{ *(fmi2Real*)c = {bad}; return fmi2OK; }}")
            for options in ((), ("--guard", "off")):
                with self.subTest(bad=bad, options=options):
                    self.cardan("run", "two.yaml", "-o", "out.csv", *options, code=code, says=says)

    def test_a_worker_reads_no_more_than_a_run_in_process(self):
        """What is fetched for nothing would change what such a model does."""
        self.pack("nosy.fmu", {"modelDescription.xml": NOSY_MODEL, "sources/ramp.c": NOSY})
        self.pack("nosy2.fmu", {"modelDescription.xml": NOSY_MODEL, "sources/ramp.c": NOSY + "/* another library */"})
        self.write("loop.yaml", """cardan: 1
units: { a: { fmu: nosy.fmu }, b: { fmu: nosy2.fmu } }
connections: [ { from: a.y, to: b.u }, { from: b.y, to: a.u } ]
run: { step: 10 ms, stop: 1 s }
""")
        for options in ((), ("--predict", "hold"), ("--interval", "30 ms")):
            for isolate in ("none", "all"):
                self.cardan("run", "loop.yaml", "-q", "-o", isolate + ".csv", "--isolate", isolate, *options)
            self.assertEqual(self.table("none.csv"), self.table("all.csv"), options)

    def test_an_output_of_fmi_1_that_is_an_alias_of_an_input(self):
        """Both have what the input is set to, from the start on, also in a worker."""
        model = MODEL1.replace('causality="output"><Real/>', 'causality="output" alias="alias"><Real/>').replace(
            "<ModelVariables>", '<ModelVariables><ScalarVariable name="u" valueReference="0" causality="input">'
            '<Real start="0"/></ScalarVariable>')
        code = RAMP1.replace("fmiReal v[])", "fmiReal v[])", 1).replace(
            "const fmiReal v[]) { return fmiOK; }", "const fmiReal v[]) { *(fmiReal*)c = v[0]; return fmiOK; }").replace(
            "3 * *(fmiReal*)c", "*(fmiReal*)c").replace("{ *(fmiReal*)c = t; return", "{ return").replace(
            "{ *(fmiReal*)c = t + h; return", "{ return")
        self.pack("same.fmu", {"modelDescription.xml": model, "sources/ramp.c": code})
        self.write("chain.yaml", """cardan: 1
units: { s: { signal: { shape: constant, value: 35 } }, a: { fmu: same.fmu }, b: { fmu: same.fmu } }
connections: [ { from: s.y, to: a.u }, { from: a.y, to: b.u } ]
run: { step: 0.25 s, stop: 1 s }
""")
        for isolate in ("none", "all"):
            self.cardan("run", "chain.yaml", "-q", "-o", "out.csv", "--isolate", isolate)
            for signal in ("a.y", "b.y"):
                self.assertEqual(self.column("out.csv", signal), [35] * 5, (isolate, signal))
        # and as components of an SSP
        connector = '<s:Connector name="%s" kind="%s"><c:Real/></s:Connector>'
        connectors = "<s:Connectors>" + connector % ("u", "input") + connector % ("y", "output") + "</s:Connectors>"
        self.pack("chain.ssp", {"SystemStructure.ssd": f"""<s:SystemStructureDescription version="1.0" name="chain"
    xmlns:s="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:c="http://ssp-standard.org/SSP1/SystemStructureCommon"
    xmlns:v="http://ssp-standard.org/SSP1/SystemStructureParameterValues">
  <s:System name="chain"><s:Elements>
    <s:Component name="a" type="application/x-fmu-sharedlibrary" source="resources/same.fmu">{connectors}
      <s:ParameterBindings><s:ParameterBinding><s:ParameterValues><v:ParameterSet version="1.0" name="p"><v:Parameters>
        <v:Parameter name="u"><v:Real value="35"/></v:Parameter></v:Parameters></v:ParameterSet></s:ParameterValues>
      </s:ParameterBinding></s:ParameterBindings></s:Component>
    <s:Component name="b" type="application/x-fmu-sharedlibrary" source="resources/same.fmu">{connectors}</s:Component>
  </s:Elements><s:Connections>
    <s:Connection startElement="a" startConnector="y" endElement="b" endConnector="u"/>
  </s:Connections></s:System></s:SystemStructureDescription>"""})
        with zipfile.ZipFile(self.path("chain.ssp"), "a") as z:
            z.write(self.path("same.fmu"), "resources/same.fmu")
        self.cardan("check", "chain.ssp")
        for isolate in ("none", "all"):
            self.cardan("run", "chain.ssp", "-q", "-o", "out.csv", "--isolate", isolate, "--step", "0.25", "--stop-time", "1")
            for signal in ("a.y", "b.y"):
                self.assertEqual(self.column("out.csv", signal), [35] * 5, (isolate, signal))


if __name__ == "__main__":
    unittest.main()

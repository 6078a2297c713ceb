// What `cardan help TOPIC` says: the things that belong to no single command.
#include "cli/cli.h"

#include <string.h>

const crdi_topic crdi_topics[] = {
    {"start", "from two FMUs to a result",
     "From two FMUs to a result, in four commands:\n"
     "\n"
     "  cardan new motor.fmu load.fmu -o drive.yaml   propose how they are connected\n"
     "  cardan check drive.yaml                       is it right?\n"
     "  cardan run drive.yaml                         results, and their errors\n"
     "  cardan view drive.csv                         look at them in the browser\n"
     "\n"
     "Without FMUs at hand: 'cardan example list', 'cardan example copy oscillator .'\n"
     "One FMU needs no description: 'cardan run model.fmu --stop-time 10'.\n"
     "More: docs/tutorial/fmus.md\n"},
    {"coupling", "signals that come late",
     "A signal that comes over a network is old when it is used. Held until the next\n"
     "one comes, it makes what is coupled lag, or swing up. A coupling element\n"
     "estimates what the signal is now. 'coupling: auto' on a connection uses one that\n"
     "needs to be told nothing. Before that, on a recording:\n"
     "\n"
     "  cardan coupling compensate run.csv --signal torque --latency 6\n"
     "      what each algorithm would have been worth, six steps late\n"
     "  cardan coupling link design run.csv --signal torque --latency 57ms -o e.yaml\n"
     "      an element for this signal over this link\n"
     "  cardan coupling analyze e.yaml\n"
     "      what it does to each frequency\n"
     "\n"
     "More: docs/tutorial/late-link.md, docs/explanation/coupling.md\n"},
    {"benches", "test benches, emulated and real",
     "A bench is a unit of a system like any other: a slave of the Distributed\n"
     "Co-Simulation Protocol (DCP) with limits, conditioning and a safe stop. Emulated\n"
     "ones are there to try everything with:\n"
     "\n"
     "  cardan bench em --write-description em.dcpx   an electric machine, at UDP 8080\n"
     "  cardan bench desk em.dcpx                     operate it by hand, in a page\n"
     "  cardan dcp scan em.dcpx                       is it there, and in which state?\n"
     "  cardan guard stop                             bring the benches of a run down\n"
     "\n"
     "More: docs/tutorial/bench.md, docs/how-to/benches.md, docs/explanation/safety.md\n"},
    {"formats", "which files are read and written",
     "By the ending, else by the content:\n"
     "\n"
     "  .yaml                system description, coupling element, layout of datagrams\n"
     "  .fmu, folder         FMU of FMI 1.0, 2.0, 3.0\n"
     "  .ssp .ssd .ssv .ssm  SSP package, its structure, parameters, mapping\n"
     "  .csv .mf4 .mat       results and recordings (also of Modelica tools)\n"
     "  .cir .ckt .net .sp   netlist in SPICE's words\n"
     "  .dcpx .dcp           description of a DCP slave\n"
     "  .dbc                 messages of a CAN bus\n"
     "\n"
     "The ending of --output chooses the format of the result. '-' is standard input\n"
     "or output. 'cardan info FILE' shows what is in a file, and runs nothing of it.\n"
     "More: docs/reference/formats.md\n"},
    {"units", "units of a system, units of measure",
     "A unit is a part of a system: an FMU, a recording, a signal generator, a\n"
     "circuit, a twin, a bench. Its variables are called unit.variable, such as\n"
     "'motor.torque'. A single FMU needs no unit's name. Patterns take * and ?:\n"
     "--variables 'motor.*'.\n"
     "\n"
     "Values carry units of measure, and are converted: --step '10 ms',\n"
     "--set 'm2=500 g', 'speed: 3000 1/min'. A time without one is in s, a value in\n"
     "the variable's own unit. What does not fit is refused: '1 m' is a length.\n"
     "More: docs/reference/units.md, docs/reference/system.md\n"},
    {"exit-codes", "what the exit code says",
     "\n"
     "One sentence on standard error says why: 'cardan: file:line: what is wrong, and\n"
     "what would be right'. Warnings do not change the exit code.\n"
     "More: docs/reference/errors.md\n"},
    {"environment", "variables of the environment",
     "  NO_COLOR             messages have no colours\n"
     "  TMPDIR               where FMUs are unpacked; /tmp unless set\n"
     "  XDG_CACHE_HOME       where compiled sources of FMUs are kept; else ~/.cache\n"
     "  CARDAN_MAX_UNPACKED  what an FMU or SSP may unpack to, as --max-unpacked\n"
     "  CARDAN_ISOLATE       which FMUs run in worker processes, as --isolate\n"
     "  CARDAN_WORKER        the executable of these workers, where it is not found\n"
     "  CARDAN_GUARD         the executable that guards benches, where it is not found\n"
     "  CARDAN_LIBPYTHON     the libpython for FMUs that need one\n"},
    {"commands", "all commands, a line each", ""},
    {NULL, NULL, NULL},
};

const crdi_topic* crdi_find_topic(const char* name)
{
    for (int i = 0; crdi_topics[i].name; i++) {
        if (strcmp(crdi_topics[i].name, name) == 0) { return &crdi_topics[i]; }
    }
    return NULL;
}

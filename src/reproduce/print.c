// What became of printed values: errors of the papers, and what cannot be compared, in one table.
#include "reproduce/reproduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Agreement: within 5 % of the print, or within half a unit of its last digit.
#define AGREES 0.05

typedef enum reading {
    DIFFERS,      // where ours does not agree the print is refuted, for this reason
    NOT_THE_SAME, // where ours does not agree it is another thing than what was printed
    REFUTED,      // whatever the number
    INCOMPARABLE, // likewise
} reading;

typedef struct remark {
    const char *paper, *rows; // the first that fits counts
    reading how;
    const char* why; // NULL: the remark of the row says it
} remark;

static const remark remarks[] = {
    {"baumann2024", "fig5.ratio", INCOMPARABLE,
     "the signal is not published; ours was chosen to give this ratio"},
    {"baumann2024", "fig9.eros.*", REFUTED,
     "a local maximum; the largest gain is 20.93 at 225.0 rad/s"},
    {"baumann2024", "fig9.ffnn.*", INCOMPARABLE, NULL},
    {"baumann2024", "design.gain", INCOMPARABLE,
     "printed of the measured torque (Table 2), ours of the phase error of the design"},
    {"baumann2024", "table2.*.switch.*", INCOMPARABLE,
     "the measured torque is not published; in ours the shift is filtered and nothing is detected, "
     "so that switching changes nothing"},
    {"baumann2024", "table2.*", INCOMPARABLE,
     "the measured torque is not published; ours is a sum of sines whose amplitudes were chosen to "
     "come near"},
    {"glumac2023", "order.program.*", DIFFERS,
     "the published program holds in its first step, so that fitted orders are not the theorem's, "
     "mostly 1.5"},
    {"rodriguez2021-ch3", "text.3.6.1.1.order", DIFFERS, NULL},
    {"rodriguez2021-ch3", "table3.14.bdf2.v", DIFFERS, NULL},
    {"rodriguez2021-ch3", "table3.15.tr.v", DIFFERS, NULL},
    {"rodriguez2021-ch3", "table3.17.*.t", NOT_THE_SAME, NULL},
    {"rodriguez2021-ch3", "table3.18.*.t", NOT_THE_SAME, NULL},
    {"rodriguez2021-ch4", "table4.5.*", INCOMPARABLE,
     "printed is where the published filter ceases to converge; ours is another method, and was "
     "tried up to a factor of 1000"},
    {"rodriguez2021-ch4", "table4.7.*", INCOMPARABLE,
     "printed is where the published filter ceases to converge; ours is another method, and was "
     "tried up to a factor of 1000"},
    {"rodriguez2021-ch4", "table4.6.thesis.*", NOT_THE_SAME,
     "the thesis's noise is not published; with ours its filter misses the true value"},
    {"rodriguez2021-ch5", "text.5.5.3", DIFFERS, NULL},
    {"rodriguez2021-ch5", "mu.*.measured", NOT_THE_SAME,
     "printed is the formula, which leaves out a term of what is measured"},
};

// Half a unit in the last digit of a number with a fraction; whole numbers are exact.
static double half_a_digit(double x)
{
    char text[40];
    double unit;
    for (int digits = 1; digits <= 15; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) { break; }
    }
    if (!strchr(text, '.') && !strchr(text, 'e')) { return 0; }
    crdi_printed(text, &unit);
    return unit / 2;
}

static bool agrees(const crdi_claim* c, bool rounded)
{
    const double off = fabs(c->ours - c->published), print = fabs(c->published);
    const bool bound = c->rule == CRDI_CLAIM_AT_MOST || c->rule == CRDI_CLAIM_AT_LEAST;
    if (print == 0 || (bound && isnan(c->reference))) { return c->ok; } // 0, or printed as a bound
    const double digit = rounded ? half_a_digit(c->published) * (1 + 1e-9) : 0;
    return off <= fmax(AGREES * print, digit);
}

void crdi_claim_read_print(const char* paper, crdi_claim* c)
{
    const remark* r = NULL;
    for (size_t i = 0; i < sizeof remarks / sizeof *remarks && !r; i++) {
        const remark* one = &remarks[i];
        if (paper && strcmp(one->paper, paper) == 0 && crdi_glob(one->rows, c->id)) { r = one; }
    }
    const bool time = c->rule == CRDI_CLAIM_SHOWN && !r;
    c->why = "";
    c->print = CRDI_PRINT_NONE;
    if (isnan(c->published)) { return; }
    if (time) {
        c->print = CRDI_PRINT_INCOMPARABLE;
        c->why = "a time of another machine";
    } else if ((!r || r->how == DIFFERS || r->how == NOT_THE_SAME) &&
               agrees(c, !r || r->how == DIFFERS)) {
        c->print = CRDI_PRINT_AGREES;
    } else {
        const bool other = r && (r->how == NOT_THE_SAME || r->how == INCOMPARABLE);
        c->print = other ? CRDI_PRINT_INCOMPARABLE : CRDI_PRINT_REFUTED;
        c->why = r ? (r->why ? r->why : c->remark) : "";
    }
}

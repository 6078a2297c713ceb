// Metrics are lines that Prometheus can read.
#include "show_help.h"

#include <ctype.h>

static crd_text out;

static void write_metrics(crd_context* ctx, const sample* s)
{
    crd_text_init(&out, ctx);
    crdi_web_metrics(&out, s ? &s->info : NULL, s ? &s->status : NULL, 4, 2);
    check(!out.failed);
}

static void has_line(const char* line)
{
    const char* p = strstr(out.data, line);
    if (!p || (p != out.data && p[-1] != '\n') || p[strlen(line)] != '\n') {
        fail_msg("no line \"%s\" in\n%s", line, out.data);
    }
}

static void the_lines_say_what_the_status_says(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    sample s;
    make_sample(&s);
    write_metrics(ctx, &s);
    has_line("# TYPE cardan_cycles_total counter");
    has_line("cardan_cycles_total 500");
    has_line("cardan_run_state{state=\"running\"} 1");
    has_line("cardan_run_state{state=\"ended\"} 0");
    has_line("cardan_time_seconds 0.5");
    has_line("cardan_overruns_total 30");
    has_line("# TYPE cardan_cycle_lateness_seconds summary");
    has_line("cardan_cycle_lateness_seconds{quantile=\"0.9999\"} NaN"); // of 100 cycles
    has_line("cardan_cycle_lateness_seconds{quantile=\"1\"} 0.0001");
    has_line("cardan_cycle_lateness_seconds_count 100");
    has_line("cardan_cycle_lateness_seconds_sum 0.00505");
    has_line("cardan_unit_late_total{unit=\"motor\"} 1");
    has_line("cardan_unit_messages_lost_total{unit=\"motor\"} 2");
    has_line("cardan_link_age_seconds{from=\"motor.t\",to=\"mass1.F\"} 0.002");
    has_line("cardan_link_latency_steps{from=\"motor.t\",to=\"mass1.F\"} 2");
    has_line("cardan_link_lost_total{from=\"motor.t\",to=\"mass1.F\"} 3");
    has_line("cardan_link_fault{from=\"mass1.v\",to=\"motor.\\\"n\\\\\\n\\\"\"} 0");
    has_line("cardan_pair_tank_joules{pair=\"axle\",output=\"motor.t\"} -0.25");
    has_line("cardan_pair_dumped_joules_total{pair=\"axle\",output=\"mass1.v\"} 2");
    has_line("cardan_pair_predicted_total{pair=\"axle\",output=\"mass1.v\"} 12");
    check(!strstr(out.data, "cardan_pair_predicted_total{pair=\"axle\",output=\"motor.t\"}"));
    has_line("cardan_live_rows_lost_total 4");
    has_line("cardan_live_readers 2");
    check(!strstr(out.data, "cardan_unit_round_trip_seconds")); // nobody knows it
    check(!strstr(out.data, "cardan_unit_messages_total{unit=\"mass1\"}"));
    crd_text_clear(&out);
    crd_context_destroy(ctx);
}

// name{labels} value, where each name was announced right before by HELP and TYPE, once.
static void every_line_has_the_format(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    sample s;
    make_sample(&s);
    write_metrics(ctx, &s);
    char family[100] = "";
    check(out.data[out.length - 1] == '\n');
    for (char* line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            sscanf(line + 7, "%99s", family);
            check(strncmp(family, "cardan_", 7) == 0);
            continue;
        }
        if (strncmp(line, "# TYPE ", 7) == 0) {
            check(strncmp(line + 7, family, strlen(family)) == 0);
            continue;
        }
        check(strncmp(line, family, strlen(family)) == 0);
        const char* p = line + strlen(family);
        if (*p == '_') { p += strspn(p, "_sumcont"); }
        if (*p == '{') {
            for (bool quoted = false; *p != '}' || quoted; p++) {
                check(*p);
                if (*p == '\\') {
                    p++;
                } else if (*p == '"') {
                    quoted = !quoted;
                }
            }
            p++;
        }
        check(*p == ' ');
        double x = 0;
        if (!crdi_parse_double(p + 1, strlen(p + 1), &x)) { fail_msg("%s", line); }
    }
    crd_text_clear(&out);
    crd_context_destroy(ctx);
}

static void before_the_run_is_ready_there_is_little_to_say(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    write_metrics(ctx, NULL);
    has_line("cardan_run_state{state=\"starting\"} 1");
    has_line("cardan_live_readers 2");
    crd_text_clear(&out);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lines_say_what_the_status_says),
        cmocka_unit_test(every_line_has_the_format),
        cmocka_unit_test(before_the_run_is_ready_there_is_little_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

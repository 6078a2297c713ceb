// Who may talk to the server: addresses, tokens, hosts and origins.
#include "check.h"

#include "web/web.h"

static crdi_web_access access_at(const char* address, bool tls)
{
    crdi_web_access g = {.tls = tls, .machine = "bench7"};
    crd_context* ctx = crd_context_create(NULL);
    check_ok(crdi_web_address_parse(ctx, address, &g.bound));
    crd_context_destroy(ctx);
    return g;
}

static void addresses_are_read(void** state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        int port;
        bool given, v6, loopback, any;
    } rows[] = {
        {NULL, "127.0.0.1", 8421, false, false, true, false},
        {"", "127.0.0.1", 8421, false, false, true, false},
        {":0", "127.0.0.1", 8421, false, false, true, false},
        {":9000", "127.0.0.1", 9000, true, false, true, false},
        {"9000", "127.0.0.1", 9000, true, false, true, false},
        {"localhost", "127.0.0.1", 8421, false, false, true, false},
        {"127.3.2.1:80", "127.3.2.1", 80, true, false, true, false},
        {"[::1]:8421", "::1", 8421, true, true, true, false},
        {"[0:0::1]", "::1", 8421, false, true, true, false},
        {"::1", "::1", 8421, false, true, true, false},
        {"0.0.0.0:1", "0.0.0.0", 1, true, false, false, true},
        {"[::]:1", "::", 1, true, true, false, true},
        {"192.168.1.7", "192.168.1.7", 8421, false, false, false, false},
    };
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        crdi_web_address a;
        check_ok(crdi_web_address_parse(ctx, rows[i].text, &a));
        check_text(a.host, rows[i].host);
        check_int(a.port, rows[i].port);
        check_int(a.given, rows[i].given);
        check_int(a.v6, rows[i].v6);
        check_int(a.loopback, rows[i].loopback);
        check_int(a.any, rows[i].any);
    }
    static const char* const wrong[] = {"127.0.0.1:x", "127.0.0.1:65536", "[::1",       "[::1]x",
                                        "example.org", "256.0.0.1",       "1.2.3.4:-1", "a b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        crdi_web_address a;
        check_status(crdi_web_address_parse(ctx, wrong[i], &a), CRD_E_RANGE);
        check_contains(crd_error_text(ctx), wrong[i]);
    }
    crd_context_destroy(ctx);
}

static void a_page_on_this_machine_has_its_own_hosts_only(void** state)
{
    (void)state;
    const crdi_web_access g = access_at("127.0.0.1:8421", false);
    check(crdi_web_host_allowed(&g, "127.0.0.1:8421"));
    check(crdi_web_host_allowed(&g, "localhost:8421"));
    check(crdi_web_host_allowed(&g, "LocalHost:8421"));
    check(crdi_web_host_allowed(&g, "[::1]:8421"));
    static const char* const foreign[] = {NULL,
                                          "",
                                          "127.0.0.1",
                                          "127.0.0.1:80",
                                          "127.0.0.1:8421,evil.org",
                                          "evil.org:8421",
                                          "localhost.evil.org:8421",
                                          "bench7:8421",
                                          "192.168.1.7:8421",
                                          "localhost:8421x",
                                          "localhost:08421 "};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        if (crdi_web_host_allowed(&g, foreign[i])) { fail_msg("%s", foreign[i]); }
    }
}

static void an_open_page_knows_numbers_and_its_machine(void** state)
{
    (void)state;
    const crdi_web_access any = access_at("0.0.0.0:80", false);
    check(crdi_web_host_allowed(&any, "192.168.1.7"));
    check(crdi_web_host_allowed(&any, "192.168.1.7:80"));
    check(crdi_web_host_allowed(&any, "bench7"));
    check(!crdi_web_host_allowed(&any, "evil.org"));
    const crdi_web_access one = access_at("192.168.1.7:9000", false);
    check(crdi_web_host_allowed(&one, "192.168.1.7:9000"));
    check(!crdi_web_host_allowed(&one, "192.168.1.8:9000"));
    check(!crdi_web_host_allowed(&one, "evil.org:9000"));
    const crdi_web_access tls =
        access_at("192.168.1.7:443", true); // the certificate knows its names
    check(crdi_web_host_allowed(&tls, "bench.example.org"));
    check(!crdi_web_host_allowed(&tls, "bench.example.org:80"));
}

static void origins_are_the_host_itself(void** state)
{
    (void)state;
    crdi_web_access g = access_at("127.0.0.1:8421", false);
    check(crdi_web_origin_allowed(&g, "localhost:8421", NULL));
    check(crdi_web_origin_allowed(&g, "localhost:8421", "http://localhost:8421"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", "http://localhost:8422"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", "http://127.0.0.1:8421"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", "https://localhost:8421"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", "http://localhost:8421.evil.org"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", "null"));
    check(!crdi_web_origin_allowed(&g, "localhost:8421", ""));
    g.tls = true;
    check(crdi_web_origin_allowed(&g, "localhost:8421", "https://localhost:8421"));
}

static void tokens_are_long_random_and_compared_whole(void** state)
{
    (void)state;
    crd_context* ctx = crd_context_create(NULL);
    char a[33], b[33];
    check_ok(crdi_web_token_make(ctx, a));
    check_ok(crdi_web_token_make(ctx, b));
    check_int(strlen(a), 32);
    check(strcmp(a, b) != 0);
    check_ok(crdi_web_token_check(ctx, a, false));
    check(crdi_web_token_equal(a, a));
    check(!crdi_web_token_equal(a, b));
    check(!crdi_web_token_equal(a, ""));
    check(!crdi_web_token_equal("abc", "ab"));
    check(!crdi_web_token_equal("abc", "abcd"));
    check(!crdi_web_token_equal("aaa", "a"));
    check_ok(crdi_web_token_check(ctx, "Az09-._~", true));
    check_status(crdi_web_token_check(ctx, "Az09-._~", false), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "expected 16");
    check_status(crdi_web_token_check(ctx, "short", true), CRD_E_RANGE);
    check_status(crdi_web_token_check(ctx, "with a space", true), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "byte 0x20 at place 5");
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read),
        cmocka_unit_test(a_page_on_this_machine_has_its_own_hosts_only),
        cmocka_unit_test(an_open_page_knows_numbers_and_its_machine),
        cmocka_unit_test(origins_are_the_host_itself),
        cmocka_unit_test(tokens_are_long_random_and_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

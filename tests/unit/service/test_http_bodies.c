/* Every route of the table with a body that is not there: refused with words, and the service goes on. */
#include "service/http/routes.h"
#include "tests/unit/service/http_site.h"

static int set_up(void **state) {
    static struct site site;
    site = (struct site){.service_options.open = true};
    site_start(&site, "bodies");
    *state = &site;
    return 0;
}

static int tear_down(void **state) {
    site_stop(*state);
    return 0;
}

/* The pattern's parameters become words: "/sessions/{session}:stop" is asked as "/sessions/1:stop". */
static void fill_path(const char *pattern, char *out) {
    while (*pattern) {
        if (*pattern != '{') {
            *out++ = *pattern++;
            continue;
        }
        *out++ = '1';
        pattern = strchr(pattern, '}') + 1;
    }
    *out = '\0';
}

struct emptiness {
    const char *name, *headers, *after;
};

static const struct emptiness emptinesses[] = {
    {"chunked, zero bytes", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"},
    {"no body", "", ""},
    {"a length of zero", "Content-Length: 0\r\n", ""},
    {"a body of one blank", "Content-Length: 1\r\n", " "},
    {"chunked, one blank", "Transfer-Encoding: chunked\r\n", "1\r\n \r\n0\r\n\r\n"},
};

static struct reply *ask_empty(const struct site *site, const struct route *route, const struct emptiness *e) {
    static struct reply reply;
    char path[256], text[1024];
    fill_path(route->pattern, path);
    snprintf(text, sizeof text,
             "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nOrigin: %s\r\nConnection: close\r\n"
             "Content-Type: %s\r\n%s\r\n%s",
             route->method, path, site_port(site), server_url(site->server),
             route->flags & ROUTE_UPLOAD ? "multipart/form-data; boundary=b"
             : route->flags & ROUTE_FORM ? "application/x-www-form-urlencoded"
                                         : "application/json",
             e->headers, e->after);
    int fd = site_connect(site);
    site_say(fd, text);
    site_hear(fd, NULL, 20, reply.text, sizeof reply.text, NULL);
    close(fd);
    site_parse(&reply);
    return &reply;
}

static void a_body_that_is_needed_and_empty_is_refused_on_every_route(void **state) {
    size_t n, asked = 0;
    const struct route *routes = routes_list(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof emptinesses / sizeof *emptinesses && routes[i].request; k++, asked++) {
            print_message("%s %s: %s\n", routes[i].method, routes[i].pattern, emptinesses[k].name);
            assert_problem(ask_empty(*state, &routes[i], &emptinesses[k]), 400,
                           routes[i].flags & ROUTE_UPLOAD ? "bad-request" : "bad-json");
        }
    assert_true(asked >= 50);
    assert_int_equal(site_get(*state, "/healthz")->status, 200);
}

static void a_form_or_a_change_without_a_body_withstands_an_empty_one(void **state) {
    size_t n, asked = 0;
    const struct route *routes = routes_list(&n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof emptinesses / sizeof *emptinesses; k++) {
            if (routes[i].request || !strcmp(routes[i].method, "GET"))
                continue;
            const int status = ask_empty(*state, &routes[i], &emptinesses[k])->status;
            print_message("%s %s: %s: %d\n", routes[i].method, routes[i].pattern, emptinesses[k].name, status);
            assert_in_range(status, 200, 499);
            asked++;
        }
    assert_true(asked >= 20);
    assert_int_equal(site_get(*state, "/healthz")->status, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_body_that_is_needed_and_empty_is_refused_on_every_route, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_form_or_a_change_without_a_body_withstands_an_empty_one, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which addresses count as one where connections are limited. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "service/http/transport/subnet.h"
#include "tests/support/check.h"

static struct subnet subnet(const char *text) {
    struct subnet out;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(1)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(2), .sin6_flowinfo = 3};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        subnet_of((const struct sockaddr *)&v4, &out);
    else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
        subnet_of((const struct sockaddr *)&v6, &out);
    else
        fail_msg("%s is no address", text);
    return out;
}

static bool same(const char *a, const char *b) {
    const struct subnet first = subnet(a), second = subnet(b);
    assert_int_equal(subnet_same(&first, &second), subnet_same(&second, &first));
    return subnet_same(&first, &second);
}

static void an_ipv6_network_of_64_bits_is_one(void **state) {
    (void)state;
    assert_true(same("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_true(same("::1", "::2"));
    assert_false(same("2001:db8:1:2::1", "2001:db8:1:3::1"));
    assert_false(same("2001:db8::1", "2001:db9::1"));
}

static void an_ipv4_address_is_one_however_it_comes(void **state) {
    (void)state;
    assert_true(same("192.0.2.1", "192.0.2.1"));
    assert_false(same("192.0.2.1", "192.0.2.2"));
    assert_true(same("::ffff:192.0.2.1", "192.0.2.1"));
    assert_false(same("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
    assert_false(same("192.0.2.1", "c000:201::")); /* the same bytes */
}

static void another_family_is_none_of_these(void **state) {
    (void)state;
    const struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = "x"};
    struct subnet other, zero = subnet("0.0.0.0");
    subnet_of((const struct sockaddr *)&here, &other);
    assert_false(subnet_same(&other, &zero));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ipv6_network_of_64_bits_is_one),
        cmocka_unit_test(an_ipv4_address_is_one_however_it_comes),
        cmocka_unit_test(another_family_is_none_of_these),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

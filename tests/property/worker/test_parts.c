/* The parts that devices have of a message (trial-runner/worker/parts.h), against a plain reading of random messages:
 * elements are dealt to device after device, as many to each as the first one gets, and every sample is brought and
 * wanted as that says. */
#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/layout.h"
#include "trial-runner/worker/parts.h"

enum { INSTANCES = 2000, MOST_DEVICES = 20 };

/* Of all devices the one whose part has the element; parts end where the next begins. */
static uint32_t find_owner(const struct message *message, uint64_t element, uint32_t n) {
    uint32_t owner = n;
    uint64_t at = 0;
    for (uint32_t device = 0; device < n; device++) {
        const struct part part = part_of_device(message, device, n);
        assert_int_equal(part.begin, at);
        assert_true(part.end - part.begin <= part_elements(message, n));
        assert_true(part.end - part.begin == part_elements(message, n) ||
                    part.end == message->bytes / dtype_bytes(message->dtype));
        if (element >= part.begin && element < part.end)
            owner = device;
        at = part.end;
    }
    assert_int_equal(at, message->bytes / dtype_bytes(message->dtype));
    return owner;
}

static void check_sample(const struct message *message, uint32_t k, uint32_t n) {
    const uint32_t owner = find_owner(message, layout_element(message, k), n);
    const bool gathers = message_gathers_parameters(message);
    assert_true(owner < n);
    for (uint32_t device = 0; device < n; device++) {
        assert_int_equal(part_is_brought(message, k, device, n), !gathers || device == owner);
        const uint32_t sum = !message_is_of_shards(message) || device == owner ? KERNEL_ALL : KERNEL_NOBODY;
        assert_int_equal(part_wanted(message, k, device, n), gathers ? owner : sum);
    }
}

static void parts_are_equal_runs_and_samples_are_their_owners(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < INSTANCES; i++) {
        const uint32_t n = 1 + (uint32_t)rng_below(&rng, MOST_DEVICES);
        const uint64_t elements = 1 + rng_below(&rng, rng_below(&rng, 2) ? 40 : 100000);
        struct message message = {.dtype = (enum dtype)rng_below(&rng, DTYPE_COUNT),
                                  .half = (enum half)rng_below(&rng, 3),
                                  .other = rng_below(&rng, 2) ? NO_MESSAGE : 1};
        message.bytes = elements * dtype_bytes(message.dtype);
        for (uint32_t k = 0; k < layout_sample_count(&message); k++)
            check_sample(&message, k, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_equal_runs_and_samples_are_their_owners)};
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}

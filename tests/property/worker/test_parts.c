/* The parts that devices have of a message (trial-runner/worker/parts.h), against a plain reading of random messages:
 * elements are dealt to device after device, as many to each as the first one gets, in each shard group anew; every
 * sample is brought and wanted as that says. */
#include <string.h>

#include "base/rng.h"
#include "tests/support/check.h"
#include "trial-runner/worker/layout.h"
#include "trial-runner/worker/parts.h"

/* Release builds alone run all; those under sanitizers or without optimization fewer. */
#ifdef NDEBUG
enum { INSTANCES = 3000 };
#else
enum { INSTANCES = 600 };
#endif
enum { MOST_DEVICES = 20 };

/* Among n devices, in groups of `shards` consecutive ones. */
struct instance {
    struct message message;
    uint32_t n, shards;
};

/* Whether the device has the element in its part. */
static bool owns(const struct instance *i, uint64_t element, uint32_t device) {
    const uint64_t elements = i->message.bytes / dtype_bytes(i->message.dtype);
    uint64_t each = 1;
    while (each * i->shards < elements)
        each++;
    return element / each == device % i->shards;
}

static bool is_in_group(const struct instance *i, uint32_t a, uint32_t b) {
    return message_is_of_replicas(&i->message) ? a % i->shards == b % i->shards : a / i->shards == b / i->shards;
}

/* Whether the sum that `device` wants has the value of `other` in it. */
static bool wants(const struct instance *i, uint64_t element, uint32_t device, uint32_t other) {
    const struct message *m = &i->message;
    if (message_gathers_parameters(m))
        return is_in_group(i, device, other) && owns(i, element, other);
    if (message_is_of_replicas(m))
        return owns(i, element, device);
    return !message_is_of_shards(m) || (owns(i, element, device) && is_in_group(i, device, other));
}

static bool is_among(const struct kernel_devices *devices, uint32_t device) {
    for (uint32_t i = 0; i < devices->n; i++)
        if (devices->first + i * devices->stride == device)
            return true;
    return false;
}

static void check_sample(const struct instance *i, uint32_t k) {
    const uint64_t element = layout_element(&i->message, k);
    for (uint32_t device = 0; device < i->n; device++) {
        const struct part part = part_of_device(&i->message, device, i->n);
        const struct kernel_devices wanted = part_wanted(&i->message, k, device, i->n);
        assert_int_equal(element >= part.begin && element < part.end, owns(i, element, device));
        assert_true(part.end - part.begin <= part_elements(&i->message, i->n));
        assert_int_equal(part_is_brought(&i->message, k, device, i->n),
                         !message_gathers_parameters(&i->message) || owns(i, element, device));
        for (uint32_t other = 0; other < i->n; other++)
            assert_int_equal(is_among(&wanted, other), wants(i, element, device, other));
    }
}

static void check_groups(const struct instance *i) {
    for (uint32_t device = 0; device < i->n; device++) {
        const struct kernel_devices group = part_group(&i->message, device, i->n);
        for (uint32_t other = 0; other < i->n; other++) {
            assert_int_equal(is_among(&group, other), is_in_group(i, device, other));
            if (is_among(&group, other))
                assert_int_equal(group.first + part_place(&group, other) * group.stride, other);
        }
    }
}

static void draw(struct rng *rng, struct instance *out) {
    const uint64_t elements = 1 + rng_below(rng, rng_below(rng, 2) ? 40 : 100000);
    out->shards = 1 + (uint32_t)rng_below(rng, MOST_DEVICES);
    out->n = out->shards * (1 + (uint32_t)rng_below(rng, 3));
    out->message = (struct message){.dtype = (enum dtype)rng_below(rng, DTYPE_COUNT),
                                    .half = (enum half)rng_below(rng, 4),
                                    .other = rng_below(rng, 2) ? NO_MESSAGE : 1};
    struct message *m = &out->message;
    m->bytes = elements * dtype_bytes(m->dtype);
    if (message_is_of_replicas(m)) {
        m->other = 1;
        m->ranks = out->n / out->shards;
        m->stride = out->shards;
    } else if (message_is_of_shards(m) && out->n > out->shards) {
        m->ranks = out->shards;
        m->stride = 1;
    } else {
        out->shards = out->n;
    }
}

static void parts_are_equal_runs_and_samples_are_their_owners(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int n = 0; n < INSTANCES; n++) {
        struct instance i;
        draw(&rng, &i);
        check_groups(&i);
        for (uint32_t k = 0; k < layout_sample_count(&i.message); k++)
            check_sample(&i, k);
    }
}

/* A half whose gradients are used, sum and are kept in three types of floats. */
static void check_types(enum dtype own, enum carried in_use, enum dtype travels, uint32_t n_devices) {
    struct variable variable = {.dtype = own};
    struct model model = {.variables = &variable, .n_variables = 1};
    struct piece piece = {0};
    struct message message = {
        .half = HALF_scatter, .other = NO_MESSAGE, .in_use = in_use, .dtype = travels, .n_pieces = 1};
    const struct plan plan = {.model = &model, .messages = &message, .n_messages = 1, .pieces = &piece, .n_pieces = 1};
    const uint32_t through[] = {own, message_dtype_in_use(&message, &variable), travels};
    for (uint32_t k = 0; k < LAYOUT_SAMPLES; k++) {
        const uint32_t sum = kernel_sum_over((struct kernel_devices){0, 1, n_devices}, n_devices, 1, 0, k,
                                             layout_narrowest(&plan, &message));
        assert_true(sum > 0);
        for (size_t i = 0; i < sizeof through / sizeof *through; i++) {
            const uint64_t bits = kernel_bits(through[i], sum); /* little endian, as the machines */
            _Alignas(8) char bytes[sizeof bits];
            memcpy(bytes, &bits, sizeof bits);
            assert_true(kernel_float_at(bytes, through[i], 0) == (double)sum);
        }
    }
}

static void sums_are_exact_in_all_types_that_they_pass_through(void **state) {
    static const enum dtype floats[] = {DTYPE_f32, DTYPE_f16, DTYPE_bf16, DTYPE_f64};
    static const enum carried carried[] = {CARRIED_own, CARRIED_f16, CARRIED_bf16};
    (void)state;
    for (uint32_t n_devices = 1; n_devices < 1000; n_devices = 2 * n_devices + 5)
        for (size_t own = 0; own < 4; own++)
            for (size_t in_use = 0; in_use < 3; in_use++)
                for (size_t travels = 0; travels < 4; travels++)
                    check_types(floats[own], carried[in_use], floats[travels], n_devices);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_equal_runs_and_samples_are_their_owners),
        cmocka_unit_test(sums_are_exact_in_all_types_that_they_pass_through),
    };
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}

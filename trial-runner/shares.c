/* A round of small messages: alone they take M, beside computing M'. Computing alone takes C, beside them C'. Since it
 * outlasts them, it loses C' - C while they are there:
 *   traffic = M / M'      compute = 1 - (C' - C) / M'
 * A large message starts up as a small one does, and then its bytes move. So as many small ones as there are large ones
 * are subtracted from each time of the same round, and what is left is the transfer. */
#include "trial-runner/shares.h"

#include <math.h>
#include <string.h>

#include "base/statistics.h"

static const double LEAST_SHARE = 0.01;
static const double LEAST_EFFECT = 0.02;   /* what is nearer to a share of 1 is none */
static const double LEAST_TRANSFER = 0.25; /* of the time of a large message, or it says nothing of transfers */

/* What one round says. */
struct found {
    double compute, traffic;
};

const char *shares_part_name(enum shares_part part) {
    static const char *const names[SHARES_PARTS] = {"startup", "transfer"};
    return names[part];
}

static bool take_time(const cJSON *line, const char *name, double *out) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, name);
    if (!cJSON_IsNumber(value) || !(value->valuedouble > 0) || !isfinite(value->valuedouble))
        return false;
    *out = value->valuedouble;
    return true;
}

void shares_add(struct shares_rounds *rounds, const cJSON *line) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "part"));
    struct shares_times t;
    if (!name || !take_time(line, "messages", &t.messages) || !take_time(line, "compute_us", &t.compute_us) ||
        !take_time(line, "messages_us", &t.messages_us) || !take_time(line, "both_us", &t.both_us) ||
        !take_time(line, "beside_us", &t.beside_us))
        return;
    for (int part = 0; part < SHARES_PARTS; part++)
        if (strcmp(name, shares_part_name((enum shares_part)part)) == 0 && rounds->n[part] < SHARES_ROUNDS)
            rounds->times[part][rounds->n[part]++] = t;
}

static double lost_us(const struct shares_times *t) {
    return t->both_us - t->compute_us;
}

/* Messages that outlast computing are partly alone, so that their round says nothing. */
static bool outlasted(const struct shares_times *t) {
    return t->beside_us <= t->both_us;
}

static bool find_startup(const struct shares_times *t, struct found *out) {
    if (!outlasted(t))
        return false;
    *out = (struct found){.compute = 1 - lost_us(t) / t->beside_us, .traffic = t->messages_us / t->beside_us};
    return true;
}

static bool find_transfer(const struct shares_times *small, const struct shares_times *large, struct found *out) {
    const double scale = large->messages / small->messages;
    const double alone_us = large->messages_us - scale * small->messages_us;
    const double beside_us = large->beside_us - scale * small->beside_us;
    if (!outlasted(small) || !outlasted(large) || alone_us < LEAST_TRANSFER * large->messages_us ||
        beside_us < LEAST_TRANSFER * large->beside_us)
        return false;
    *out = (struct found){.compute = 1 - (lost_us(large) - scale * lost_us(small)) / beside_us,
                          .traffic = alone_us / beside_us};
    return true;
}

static struct share share_of(size_t n, double *values) {
    struct share share = {.rounds = n, .known = n >= SHARES_LEAST_ROUNDS};
    if (n == 0)
        return share;
    const struct summary s = summary_of(n, values);
    share.value = s.median_us;
    share.low = s.low_us;
    share.high = s.high_us;
    share.kept = share.known && share.high < 1 - LEAST_EFFECT;
    share.clamped = share.known && share.low > 1 + LEAST_EFFECT;
    return share;
}

struct shares shares_fit(const struct shares_rounds *rounds) {
    struct shares shares;
    for (int part = 0; part < SHARES_PARTS; part++) {
        double compute[SHARES_ROUNDS], traffic[SHARES_ROUNDS];
        size_t n = 0;
        for (size_t i = 0; i < rounds->n[part] && i < rounds->n[SHARES_STARTUP]; i++) {
            const struct shares_times *small = &rounds->times[SHARES_STARTUP][i], *t = &rounds->times[part][i];
            struct found found;
            if (part == SHARES_STARTUP ? !find_startup(t, &found) : !find_transfer(small, t, &found))
                continue;
            compute[n] = found.compute;
            traffic[n++] = found.traffic;
        }
        shares.parts[part].compute = share_of(n, compute);
        shares.parts[part].traffic = share_of(n, traffic);
    }
    return shares;
}

static bool write_share(const struct share *share, const char *name, cJSON *at) {
    return !share->kept || cJSON_AddNumberToObject(at, name, fmax(round(share->value * 1000) / 1000, LEAST_SHARE));
}

bool shares_write(const struct shares *shares, cJSON *cluster) {
    cJSON *interference = NULL;
    for (int part = 0; part < SHARES_PARTS; part++) {
        const struct share *compute = &shares->parts[part].compute, *traffic = &shares->parts[part].traffic;
        if (!compute->kept && !traffic->kept)
            continue;
        if (!interference && !(interference = cJSON_AddObjectToObject(cluster, "interference")))
            return false;
        cJSON *at = cJSON_AddObjectToObject(interference, shares_part_name((enum shares_part)part));
        if (!at || !write_share(compute, "compute", at) || !write_share(traffic, "traffic", at))
            return false;
    }
    return true;
}

/* Which way of training at which memory: what `syncopate advise --json` prints. */
#include "tuner/predict/advice.h"

#include "base/json.h"
#include "service/http/api/api.h"
#include "service/http/api/references.h"

#define MOST_MEMORY (UINT64_C(1) << 53)

static enum status read_budgets(const struct json_at *body, const struct cluster *cluster, struct budgets *out,
                                struct error *err) {
    struct json_at list;
    uint64_t bytes;
    size_t n;
    *out = (struct budgets){0};
    if (json_has(body, "memory_bytes", &list)) {
        enum status st = json_array(body, "memory_bytes", MOST_BUDGETS, &list, &n, err);
        for (struct json_at e = json_first(&list); e.node && !st; e = json_next(&e)) {
            st = json_integer_at(&e, 1, MOST_MEMORY, &bytes, err);
            if (!st)
                budgets_add(out, bytes, NULL);
        }
        if (st)
            return st;
    }
    budgets_complete(out, cluster);
    return ST_OK;
}

enum status api_advice_create(struct request *rq, struct response *rs, struct error *err) {
    static const char *const known[] = {"model", "cluster", "memory_bytes", NULL};
    const struct json_at body = request_body(rq);
    struct prepared_domain *domain;
    struct budgets budgets;
    struct advice advice;
    struct change changes[ADVICE_RATES];
    bool whole;
    enum status st = json_expect_object(&body, known, err);
    if (!st)
        st = reference_domain(rq, &body, &domain, err);
    if (st)
        return st;
    st = read_budgets(&body, domain->cluster, &budgets, err);
    if (!st)
        st = advice_init(&advice, domain->model, domain->cluster, &budgets, err);
    if (!st) {
        st = advice_add_between(&advice, err);
        if (!st)
            st = advice_changes(&advice, &budgets, changes, err);
        cJSON *json = st ? NULL : advice_json(&advice, &budgets, changes, &whole);
        if (!st)
            st = response_json(rs, 200, json, whole, err);
        advice_release(&advice);
    }
    prepared_domain_drop(domain);
    return st;
}

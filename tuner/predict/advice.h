/* Which way of data-parallel training at which memory: plain data parallel, servers, ZeRO, HSDP or FSDP. Each way is
 * predicted once on the cluster as it is, and FSDP wrapped for each memory; then, for the front of time against memory,
 * wrapped for some between the smallest and the largest that any way can use. At other rates of the NICs all of that is
 * predicted again, so that answers differ by the rates alone.
 * Units: microseconds (_us), bytes. Threads: a struct advice belongs to one thread at a time. */
#ifndef TUNER_PREDICT_ADVICE_H
#define TUNER_PREDICT_ADVICE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "strategy/cluster.h"
#include "strategy/model.h"
#include "strategy/strategy.h"
#include "tuner/predict/front.h"
#include "tuner/predict/simulation.h"

#define ADVICE_TIE 0.001 /* times that differ by no more are equal to whoever asks */

enum { MOST_BUDGETS = 8, MOST_CANDIDATES = 32, ADVICE_RATES = 5 };

struct budget {
    uint64_t bytes; /* UINT64_MAX: no limit */
    char words[32]; /* as somebody named it: "24GB" */
};

struct budgets {
    size_t n;
    struct budget of[MOST_BUDGETS]; /* rising */
};

struct advised {
    const char *kind;     /* what people call it: "ZeRO-1" */
    uint64_t wrapped_for; /* of "fsdp-optimal": the memory that it had to fit into; UINT64_MAX: any; 0: the least */
    bool between;         /* wrapped for a memory that nobody asked about */
    struct strategy strategy;
    struct row row;
};

/* All candidates of one model and cluster. */
struct advice {
    struct simulation simulation;
    struct advised candidates[MOST_CANDIDATES];
    size_t n;
};

/* The answer for each memory, where the rate of each NIC is another. */
struct change {
    double factor;           /* of each rate; 1: nothing is changed */
    double slowest, fastest; /* NIC of a node with devices, in Gbit/s */
    const char *kind[MOST_BUDGETS];
    char name[MOST_BUDGETS][64]; /* of its strategy, for advice_strategy, as the next */
    uint64_t wrapped_for[MOST_BUDGETS];
    double us[MOST_BUDGETS]; /* INFINITY: nothing fits */
};

/* The memories of a list, "24GB,80GB"; NULL: as budgets_complete. Fails: ST_USAGE (more than MOST_BUDGETS), as
 * units_parse_memory. */
enum status budgets_read(const char *list, const struct cluster *cluster, struct budgets *out, struct error *err);

/* Add one; words may be NULL. There is room. */
void budgets_add(struct budgets *budgets, uint64_t bytes, const char *words);

/* Where none is named: what the cluster's description says, and any. Then in order. */
void budgets_complete(struct budgets *budgets, const struct cluster *cluster);

/* A memory as somebody named it, and in the binary units that needs are in: "80GB (74.51 GiB)", "24GiB". */
const char *budget_words(const struct budget *budget, char *out, size_t room);

/* All ways, the fastest first, of equal times what needs less memory, and what is over last. FSDP also wrapped for each
 * of the memories, and as small as possible. The model and the cluster are borrowed. Release with advice_release.
 * Fails: as simulation_predict; ST_CANCELLED. */
enum status advice_init(struct advice *out, const struct model *model, const struct cluster *cluster,
                        const struct budgets *budgets, struct error *err);
void advice_release(struct advice *advice);

/* Add FSDP wrapped for memories between the smallest and the largest that any candidate needs. Fails: as advice_init.
 */
enum status advice_add_between(struct advice *advice, struct error *err);

/* Build the strategy of a candidate again. Fails: ST_NOT_FOUND (no such baseline), and as baselines_build and
 * fsdp_optimal_within. */
enum status advice_strategy(const char *name, uint64_t wrapped_for, const struct model *model,
                            const struct cluster *cluster, struct strategy *out, struct error *err);

/* Whether a server of it needs more than its node has (memory_check), whatever devices may hold. No answer, smallest
 * memory or point is of such a candidate. */
bool advised_is_over(const struct advised *advised);

/* Of those that fit, as memory_check says, and take at most ADVICE_TIE longer than the fastest of them, what needs the
 * least memory; NULL: none fits. With more memory it is never slower. */
const struct advised *advice_best_within(const struct advice *advice, uint64_t bytes);

/* Whether a table shows the candidate. A wrapping between memories has a row where a sentence names it; every other
 * candidate has one. */
bool advice_has_row(const struct advice *advice, const struct budgets *budgets, const struct advised *advised);

/* The one that needs least memory, and of these the fastest; there is one without servers. */
const struct advised *advice_smallest(const struct advice *advice);

/* All candidates that are not over as points of time against memory, sorted (tuner/predict/front.h). Returns how many;
 * the texts are the advice's. */
size_t advice_points(const struct advice *advice, struct front_point out[MOST_CANDIDATES]);

/* The most that a device holds at once. */
uint64_t advised_bytes(const struct advised *advised);

/* What an iteration takes: in weather the mean that is expected. */
double advised_us(const struct advised *advised);
bool advice_in_weather(const struct advice *advice);

/* The candidate with this id; NULL: there is none. */
const struct advised *advice_find(const struct advice *advice, const char *id);

/* The answer in sentences, for people: before, figures and after, one behind the other. The figures are those of `of`;
 * without it they are empty. Write the i-th, from 0; false after the last. */
struct advice_sentence {
    char before[192], figures[192], after[256];
    const struct advised *of;
};
bool advice_sentence(const struct advice *advice, const struct budgets *budgets, size_t i, struct advice_sentence *out);

/* Of "fsdp-optimal" what it was wrapped for: "24GB", "any memory", "the least"; "" of others. */
const char *advised_wrapped_for(const struct advised *advised, const struct budgets *budgets, char *out, size_t room);

/* The least of the candidates' bounds, which no way beats: replicas (HSDP) have a lower one than the others. */
double advice_bound_us(const struct advice *advice);

/* How much longer than that a candidate takes, in percent. */
double advised_over_bound(const struct advice *advice, const struct advised *advised);

/* What limits it, for people: computing, messages that computing does not hide, or that it does not fit. */
const char *advised_limit(const struct advised *advised, char *out, size_t room);

/* "0.5", or "0.5 to 5" where NICs differ. */
const char *change_rates(const struct change *change, char *out, size_t room);

/* The answers where NICs are slower and faster, by rising rate; at the cluster's own rates those of the advice. All
 * have wrappings between (advice_add_between), so the advice must too. Fails: as sweep_apply, advice_init and
 * advice_add_between. */
enum status advice_changes(const struct advice *advice, const struct budgets *budgets, struct change out[ADVICE_RATES],
                           struct error *err);

/* The i-th of these alone. */
enum status advice_change(const struct advice *advice, const struct budgets *budgets, size_t i, struct change *out,
                          struct error *err);

/* What answers at other rates leave out that those of the advice have, for people: measured times of the cluster. NULL:
 * nothing. */
const char *changes_caveat(const struct advice *advice);

/* A change of which nothing but the rates is known yet. */
struct change change_begin(const struct cluster *cluster, double factor);

/* syncopate.advice/1; *whole says that nothing is missing for want of memory. */
cJSON *advice_json(const struct advice *advice, const struct budgets *budgets, const struct change *changes,
                   bool *whole);

/* Read what advice_json wrote of the same model, cluster and budgets: all but the strategies themselves, of which there
 * are name, id and number of groups, and of changes the names. Model, cluster and the JSON's texts are borrowed; there
 * is nothing to release. Fails: ST_INVALID. */
enum status advice_read(const struct json_at *root, const struct model *model, const struct cluster *cluster,
                        const struct budgets *budgets, struct advice *out, struct change changes[ADVICE_RATES],
                        struct error *err);

#endif

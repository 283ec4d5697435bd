/* See inputs.h. Shipped descriptions are looked for beside the program: examples/ of a build tree, or share/syncopate
 * of an installation. */
#include "cli/inputs.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simulator/tuned.h"
#include "strategy/baselines/baselines.h"
#include "strategy/memory.h"
#include "strategy/plan.h"

static const char *const places[] = {"../share/syncopate", "../../../examples"};

/* The folder two levels above the program's own, in `out`. */
static bool program_folder(char *out, size_t n) {
    ssize_t length = readlink("/proc/self/exe", out, n - 1);
    if (length <= 0)
        return false;
    out[length] = 0;
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = 0;
    return slash;
}

enum status inputs_find(const char *word, const char *kind, char *out, size_t n, struct error *err) {
    char folder[PATH_MAX];
    snprintf(out, n, "%s", word);
    if (!strcmp(word, "-") || strchr(word, '/') || !access(word, F_OK))
        return ST_OK;
    bool named = !strchr(word, '.') && program_folder(folder, sizeof folder);
    for (size_t i = 0; named && i < sizeof places / sizeof *places; i++) {
        int length = snprintf(out, n, "%s/%s/%s/%s.json", folder, places[i], kind, word);
        if (length > 0 && (size_t)length < n && !access(out, R_OK))
            return ST_OK;
    }
    return error_at(err, ST_NOT_FOUND, word, "no such file, and no description of that name is shipped under %s/",
                    kind);
}

/* List the shipped files of a kind, from the first folder that has any. */
static bool find_shipped(const char *kind, glob_t *out) {
    char folder[PATH_MAX], pattern[PATH_MAX + 64];
    if (!program_folder(folder, sizeof folder))
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(pattern, sizeof pattern, "%s/%s/%s/*.json", folder, places[i], kind);
        if (!glob(pattern, 0, NULL, out))
            return true;
        globfree(out);
    }
    return false;
}

enum status inputs_shipped(const char *kind, char *out, size_t n, struct error *err) {
    glob_t files;
    size_t used = 0;
    if (!find_shipped(kind, &files))
        return error_set(err, ST_NOT_FOUND, "no descriptions are shipped under %s/", kind);
    for (size_t i = 0; i < files.gl_pathc && used < n; i++) {
        const char *name = strrchr(files.gl_pathv[i], '/') + 1;
        used +=
            (size_t)snprintf(out + used, n - used, "%s%.*s", i ? "," : "", (int)(strlen(name) - strlen(".json")), name);
    }
    globfree(&files);
    return used < n ? ST_OK : error_set(err, ST_TOO_LARGE, "too many descriptions under %s/", kind);
}

enum status inputs_read(const char *model, const char *cluster, struct inputs *out, struct error *err) {
    *out = (struct inputs){0};
    enum status st = inputs_find(model, "models", out->model_path, sizeof out->model_path, err);
    if (!st)
        st = inputs_find(cluster, "clusters", out->cluster_path, sizeof out->cluster_path, err);
    if (!st)
        st = model_read_file(out->model_path, &out->model, err);
    if (!st)
        st = cluster_read_file(out->cluster_path, &out->cluster, err);
    if (st)
        inputs_release(out);
    return st;
}

void inputs_release(struct inputs *inputs) {
    model_release(&inputs->model);
    cluster_release(&inputs->cluster);
}

static enum status build_strategy(const struct inputs *inputs, const char *path, const char *baseline,
                                  uint64_t memory_bytes, struct strategy *out, struct error *err) {
    if (!path == !baseline)
        return error_set(err, ST_USAGE, "give either --strategy FILE or --baseline NAME");
    if (path)
        return strategy_read_file(path, &inputs->model, &inputs->cluster, out, err);
    const struct baseline *row = baselines_find(baseline);
    if (!row)
        return error_set(err, ST_USAGE, "there is no baseline \"%s\"; \"syncopate baselines\" lists them", baseline);
    return tuned_build_for(row, &inputs->model, &inputs->cluster, memory_bytes, out, err);
}

static enum status check_memory(const struct inputs *inputs, const struct strategy *strategy, uint64_t memory_bytes,
                                struct error *err) {
    struct plan plan;
    struct memory memory;
    struct error over;
    enum status st = plan_lower(&inputs->model, &inputs->cluster, strategy, &plan, err);
    if (st)
        return st;
    st = memory_of_plan(&plan, &memory, err);
    plan_release(&plan);
    if (st)
        return error_prefix(err, st, "%s", strategy->name);
    if (memory_check(&memory, &inputs->cluster, memory_bytes, &over))
        st = error_set(err, ST_INFEASIBLE, "%s %s", strategy->name, ERROR_TEXT(&over));
    return st;
}

enum status inputs_strategy(const struct inputs *inputs, const char *path, const char *baseline, uint64_t memory_bytes,
                            struct strategy *out, struct error *err) {
    struct strategy built;
    enum status st = build_strategy(inputs, path, baseline, memory_bytes, &built, err);
    if (st)
        return st;
    if (memory_bytes > 0)
        st = check_memory(inputs, &built, memory_bytes, err);
    if (st)
        strategy_release(&built);
    else
        *out = built;
    return st;
}

enum status inputs_strategy_word(const struct inputs *inputs, const char *word, uint64_t memory_bytes,
                                 struct strategy *out, struct error *err) {
    bool baseline = baselines_find(word);
    return inputs_strategy(inputs, baseline ? NULL : word, baseline ? word : NULL, memory_bytes, out, err);
}

/* Names of files differ between forms, so all lie beside each other. */
#include "trial-runner/job_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

enum { MAX_VARIABLES = 64, MAX_SAME = 10000 };

/* ---- the folder ---- */

static enum status refuse(const char *path, struct error *err) {
    return error_at(err, ST_ENVIRONMENT, path, "cannot make this folder: %s", strerror(errno));
}

enum status job_folder_make(const char *logs, uint64_t number, char out[JOB_PATH], struct error *err) {
    char root[PATH_MAX];
    if ((mkdir(logs, 0777) && errno != EEXIST) || !realpath(logs, root))
        return refuse(logs, err);
    for (int same = 1; same < MAX_SAME; same++) {
        char again[16] = "";
        if (same > 1)
            snprintf(again, sizeof again, ".%d", same);
        if (snprintf(out, JOB_PATH, "%s/trial-%lu%s", root, (unsigned long)number, again) >= JOB_PATH)
            return error_at(err, ST_ENVIRONMENT, logs, "the path is too long");
        if (!mkdir(out, 0777))
            return ST_OK;
        if (errno != EEXIST)
            break;
    }
    return refuse(out, err);
}

/* ---- its files ---- */

static enum status write_file(const char *folder, const char *name, const char *text, size_t n, struct error *err) {
    char path[JOB_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return file_write_plain(path, n, text, err);
}

static enum status write_strategy(const char *folder, const struct strategy *strategy, const struct model *model,
                                  const struct cluster *cluster, struct error *err) {
    cJSON *json = strategy_write(strategy, model, cluster);
    char *text = json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    enum status status = text ? write_file(folder, "strategy.json", text, strlen(text), err) : error_no_memory(err);
    free(text);
    return status;
}

static enum status write_export(const char *folder, const struct export *export, struct error *err) {
    enum status status = ST_OK;
    for (uint32_t k = 0; k < export->n_files && !status; k++)
        status = write_file(folder, export->files[k].name, export->files[k].text, export->files[k].n, err);
    return status;
}

enum status job_folder_write(const char *folder, const struct export_limits *limits, const struct strategy *strategy,
                             const struct model *model, const struct cluster *cluster, struct error *err) {
    size_t n;
    const struct exporter *forms = exporters_list(&n);
    enum status status = write_strategy(folder, strategy, model, cluster, err);
    for (size_t i = 0; i < n && !status; i++) {
        struct export export;
        status = export_build(&forms[i], strategy, model, cluster, &export, err);
        if (status)
            break;
        if (!export.changes_memory || (limits && export_limits_include(limits, &forms[i])))
            status = write_export(folder, &export, err);
        export_release(&export);
    }
    return status;
}

/* ---- the environment ---- */

struct variables {
    struct arena *arena;
    size_t n;
    bool no_memory;
    const char **texts; /* MAX_VARIABLES and a NULL */
};

__attribute__((format(printf, 2, 3))) static void add(struct variables *v, const char *format, ...) {
    char text[JOB_PATH + 128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *copy = arena_strdup(v->arena, text);
    v->no_memory |= !copy;
    if (copy && v->n < MAX_VARIABLES)
        v->texts[v->n++] = copy;
}

/* One line of an .env file: "NAME=value"; others are words for people. */
static void add_line(struct variables *v, const char *folder, const struct export *export, const char *line, size_t n) {
    const char *equals = memchr(line, '=', n);
    if (!equals || *line == '#')
        return;
    const char *value = equals + 1;
    const size_t length = n - (size_t)(value - line);
    for (uint32_t i = 0; i < export->n_files; i++)
        if (strlen(export->files[i].name) == length && !memcmp(export->files[i].name, value, length)) {
            add(v, "%.*s=%s/%.*s", (int)(equals - line), line, folder, (int)length, value);
            return;
        }
    add(v, "%.*s", (int)n, line);
}

static void add_file(struct variables *v, const char *folder, const struct export *export,
                     const struct export_file *file) {
    const char *dot = strrchr(file->name, '.');
    if (!dot || strcmp(dot, ".env") != 0)
        return;
    for (const char *line = file->text; line < file->text + file->n;) {
        const size_t left = (size_t)(file->text + file->n - line);
        const char *end = memchr(line, '\n', left);
        const size_t n = end ? (size_t)(end - line) : left;
        add_line(v, folder, export, line, n);
        line += n + 1;
    }
}

enum status job_environment(const struct job_facts *facts, size_t n_forms, const struct exporter *const *forms,
                            const struct export_limits *limits, const struct strategy *strategy,
                            const struct model *model, const struct cluster *cluster, struct arena *arena,
                            const char *const **out, struct error *err) {
    struct variables v = {.arena = arena, .texts = arena_alloc(arena, MAX_VARIABLES + 1, sizeof(char *))};
    if (!v.texts)
        return error_no_memory(err);
    add(&v, "SYNCOPATE_TRIAL_DIR=%s", facts->folder);
    add(&v, "SYNCOPATE_TRIAL_STRATEGY=%s/strategy.json", facts->folder);
    add(&v, "SYNCOPATE_TRIAL_TIMES=%s/times.jsonl", facts->folder);
    add(&v, "SYNCOPATE_TRIAL_NUMBER=%lu", (unsigned long)facts->number);
    add(&v, "SYNCOPATE_TRIAL_ITERATIONS=%lu", (unsigned long)facts->iterations);
    add(&v, "SYNCOPATE_TRIAL_WARMUP=%lu", (unsigned long)facts->warmup);
    enum status status = ST_OK;
    for (size_t i = 0; i < n_forms && !status; i++) {
        struct export export;
        status = export_build(forms[i], strategy, model, cluster, &export, err);
        if (status)
            break;
        if (!(limits && export_limits_include(limits, forms[i])))
            status = export_check_memory(forms[i], &export, strategy, model, cluster, err);
        for (uint32_t k = 0; k < export.n_files && !status; k++)
            add_file(&v, facts->folder, &export, &export.files[k]);
        export_release(&export);
    }
    if (!status && v.no_memory)
        status = error_no_memory(err);
    if (!status)
        *out = v.texts;
    return status;
}

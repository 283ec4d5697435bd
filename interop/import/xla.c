/* XLA's flags, in a file of flags or in the line that sets XLA_FLAGS: the thresholds up to which its GPU compiler
 * combines collectives (strategy/baselines/xla.h). A threshold that is not there is XLA's default. Other flags are
 * passed over.
 *
 * No flag says what is sharded. Where there is a threshold of all-reduces gradients are taken to be all-reduced, else
 * parameters to be sharded. */
#include "strategy/baselines/xla.h"

#include <string.h>

#include "interop/import/strategy_kinds.h"

static const char PREFIX[] = "--xla_gpu_", SUFFIX[] = "_combine_threshold_bytes";

bool xla_is(const struct source *source) {
    const char *at = strstr(source->text, PREFIX);
    return at && strstr(at, SUFFIX);
}

struct reading {
    struct lines lines;
    uint64_t threshold_bytes[XLA_COLLECTIVES]; /* 0: not there */
};

static enum status read_word(struct reading *r, const char *word, struct error *err) {
    const char *flag = strstr(word, PREFIX);
    for (int c = 0; c < XLA_COLLECTIVES && flag; c++) {
        const char *name = xla_collective_name((enum xla_collective)c), *at = flag + strlen(PREFIX);
        if (strncmp(at, name, strlen(name)) != 0 || strncmp(at + strlen(name), SUFFIX, strlen(SUFFIX)) != 0)
            continue;
        at += strlen(name) + strlen(SUFFIX);
        if (*at != '=')
            return lines_fail(&r->lines, err, "%s%s%s without a number", PREFIX, name, SUFFIX);
        return lines_integer(&r->lines, name, at + 1, 1, UINT64_C(1) << 53, &r->threshold_bytes[c], err);
    }
    return ST_OK;
}

static enum status read_lines(struct reading *r, struct error *err) {
    static const char blanks[] = " \t\\\"'()";
    enum status st = ST_OK;
    char *rest;
    for (char *line = lines_next(&r->lines); line && !st; line = st ? NULL : lines_next(&r->lines)) {
        line[strcspn(line, "#")] = 0;
        for (char *word = strtok_r(line, blanks, &rest); word && !st; word = strtok_r(NULL, blanks, &rest))
            st = read_word(r, word, err);
    }
    return st;
}

enum status xla_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                     struct strategy *out, struct error *err) {
    struct arena arena = {0};
    struct reading r = {.threshold_bytes = {0}};
    struct xla_settings settings;
    enum status st = lines_init(&r.lines, source, &arena) ? read_lines(&r, err) : error_no_memory(err);
    const bool sums = r.threshold_bytes[XLA_ALL_REDUCE] > 0;
    settings.sharded = sums ? SHARDED_none : SHARDED_parameters;
    for (int c = 0; c < XLA_COLLECTIVES; c++)
        settings.threshold_bytes[c] = r.threshold_bytes[c] > 0 ? r.threshold_bytes[c] : XLA_THRESHOLD_BYTES;
    if (!st &&
        !notes_add(notes, "no flag says what is sharded; with%s a threshold of all-reduces %s", sums ? "" : "out",
                   sums ? "gradients are all-reduced (but HSDP has one too)"
                        : "parameters are sharded, and gathered once (but ZeRO-1 has none either)"))
        st = error_no_memory(err);
    if (!st)
        st = xla_build(wanted->model, wanted->cluster, &settings, wanted->name, out, err);
    arena_release(&arena);
    return st;
}

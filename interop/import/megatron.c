/* Megatron-LM's command line, or a part of it: the arguments of its data parallelism (strategy/baselines/megatron.h).
 * Without --overlap-grad-reduce there is one bucket a dtype. All other arguments are passed over. */
#include "strategy/baselines/megatron.h"

#include <string.h>

#include "interop/import/strategy_kinds.h"

bool megatron_is(const struct source *source) {
    return strstr(source->text, "--overlap-grad-reduce") || strstr(source->text, "--use-distributed-optimizer") ||
           strstr(source->text, "--ddp-bucket-size");
}

struct reading {
    struct lines lines;
    struct megatron_settings settings;
    bool overlap_grad_reduce, wants_size, has_size;
};

static enum status read_word(struct reading *r, char *word, struct error *err) {
    static const char size[] = "--ddp-bucket-size";
    const size_t n = sizeof size - 1;
    if (r->wants_size) {
        r->wants_size = false;
        r->has_size = true;
        return lines_integer(&r->lines, size, word, 1, UINT64_C(1) << 53, &r->settings.bucket_size, err);
    }
    if (!strncmp(word, size, n) && (!word[n] || word[n] == '=')) {
        r->wants_size = true;
        return word[n] ? read_word(r, word + n + 1, err) : ST_OK;
    }
    if (!strcmp(word, "--use-megatron-fsdp") || !strcmp(word, "--use-torch-fsdp2"))
        return lines_fail(&r->lines, err, "%s shards parameters by modules of Megatron, which a model here has not",
                          word);
    r->settings.distributed_optimizer |= !strcmp(word, "--use-distributed-optimizer");
    r->settings.overlap_param_gather |= !strcmp(word, "--overlap-param-gather");
    r->overlap_grad_reduce |= !strcmp(word, "--overlap-grad-reduce");
    return ST_OK;
}

static enum status read_lines(struct reading *r, struct error *err) {
    enum status st = ST_OK;
    char *rest;
    for (char *line = lines_next(&r->lines); line && !st; line = st ? NULL : lines_next(&r->lines)) {
        line[strcspn(line, "#")] = 0;
        for (char *word = strtok_r(line, " \t\\\"'()", &rest); word && !st; word = strtok_r(NULL, " \t\\\"'()", &rest))
            st = read_word(r, word, err);
    }
    if (!st && r->wants_size)
        return lines_fail(&r->lines, err, "--ddp-bucket-size without a number");
    if (!st && r->settings.overlap_param_gather && !(r->settings.distributed_optimizer && r->overlap_grad_reduce))
        return lines_fail(&r->lines, err,
                          "--overlap-param-gather needs --use-distributed-optimizer and --overlap-grad-reduce");
    return st;
}

enum status megatron_read(const struct source *source, const struct strategy_for *wanted, struct notes *notes,
                          struct strategy *out, struct error *err) {
    struct arena arena = {0};
    struct reading r = {.settings.bucket_size = megatron_bucket_size(wanted->cluster)};
    enum status st = lines_init(&r.lines, source, &arena) ? read_lines(&r, err) : error_no_memory(err);
    if (!st && !r.overlap_grad_reduce) {
        if (r.has_size && !notes_add(notes, "--ddp-bucket-size counts with --overlap-grad-reduce alone"))
            st = error_no_memory(err);
        r.settings.bucket_size = UINT64_MAX;
    }
    if (!st)
        st = megatron_build(wanted->model, wanted->cluster, &r.settings, wanted->name, out, err);
    arena_release(&arena);
    return st;
}

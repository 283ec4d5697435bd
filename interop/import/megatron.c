/* Megatron-LM's command line, or a part of it: the arguments of its data parallelism (strategy/baselines/megatron.h).
 * Without --overlap-grad-reduce there is one bucket a dtype. Micro-batches follow from --micro-batch-size and
 * --global-batch-size, and gradients are summed in the last. All other arguments are passed over. */
#include "strategy/baselines/megatron.h"

#include <string.h>

#include "interop/import/batches.h"

bool megatron_is(const struct source *source) {
    return strstr(source->text, "--overlap-grad-reduce") || strstr(source->text, "--use-distributed-optimizer") ||
           strstr(source->text, "--ddp-bucket-size");
}

struct reading {
    struct lines lines;
    struct megatron_settings settings;
    struct batches batches;
    bool overlap_grad_reduce, has_size;
    const char *wants; /* the argument whose number comes next; NULL: none */
};

static const char SIZE[] = "--ddp-bucket-size", MICRO[] = "--micro-batch-size", GLOBAL[] = "--global-batch-size";

static enum status read_number(struct reading *r, const char *word, struct error *err) {
    const char *key = r->wants;
    uint64_t *out = key == MICRO    ? &r->batches.micro_batch
                    : key == GLOBAL ? &r->batches.global_batch
                                    : &r->settings.bucket_size;
    r->wants = NULL;
    r->has_size |= key == SIZE;
    return lines_integer(&r->lines, key, word, 1, UINT64_C(1) << (key == SIZE ? 53 : 32), out, err);
}

static enum status read_word(struct reading *r, char *word, struct error *err) {
    static const char *const numbers[] = {SIZE, MICRO, GLOBAL};
    if (r->wants)
        return read_number(r, word, err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const size_t n = strlen(numbers[i]);
        if (strncmp(word, numbers[i], n) != 0 || (word[n] && word[n] != '='))
            continue;
        r->wants = numbers[i];
        return word[n] ? read_number(r, word + n + 1, err) : ST_OK;
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
    if (!st && r->wants)
        return lines_fail(&r->lines, err, "%s without a number", r->wants);
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
    if (!st)
        st = batches_apply(&r.batches, SYNCHRONIZE_last, source->name, wanted, notes, out, err);
    arena_release(&arena);
    return st;
}

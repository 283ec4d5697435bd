/* O(n). */
#include "interop/import/weights.h"

#include <math.h>
#include <string.h>

enum status weights_check(const struct source *source, const struct import_settings *settings, struct error *err) {
    if (settings->tflops > 0 && settings->batch > 0 && settings->positions > 0)
        return ST_OK;
    return error_at(err, ST_USAGE, source->name,
                    "the file has no times; give --batch, --positions and --tflops to estimate them");
}

bool weights_note(const struct source *source, const struct import_settings *settings, struct notes *notes) {
    return notes_add(notes,
                     "%s: the file has no times: 2 operations an element and position forward, 4 backward, at %g "
                     "TFLOP/s, batch %g, %g positions",
                     source->name, settings->tflops, settings->batch, settings->positions);
}

/* How much of the name is the module: "h.0.attn" of "h.0.attn.weight". */
static size_t module_length(const struct weight *weight, char separator) {
    const char *end = strrchr(weight->name, separator);
    return end ? (size_t)(end - weight->name) : strlen(weight->name);
}

static bool same_module(const struct weight *a, const struct weight *b, char separator) {
    const size_t n = module_length(a, separator);
    return a->lookup == b->lookup && n == module_length(b, separator) && !strncmp(a->name, b->name, n);
}

static double operations(const struct weight *weight) {
    double elements = weight->shape.rank >= 2 && !weight->lookup ? 2 : 0;
    for (uint32_t i = 0; i < weight->shape.rank; i++)
        elements *= (double)weight->shape.sizes[i];
    return elements;
}

void weights_draft(struct model_draft *draft, const struct weight *weights, size_t n, char separator,
                   const struct import_settings *settings) {
    const double us_per_operation = settings->batch * settings->positions / settings->tflops / 1e6;
    const char **names = arena_alloc(draft->arena, n, sizeof *names);
    draft->ok = draft->ok && names;
    for (size_t i = 0, k; i < n && draft->ok; i = k) {
        double forward_us = 0;
        for (k = i; k < n && same_module(&weights[i], &weights[k], separator); k++) {
            names[k - i] = weights[k].name;
            model_draft_variable(draft, weights[k].name, &weights[k].shape, weights[k].dtype, 0);
            forward_us += operations(&weights[k]) * us_per_operation;
        }
        forward_us = round(forward_us * 1e3) / 1e3;
        const char *name = arena_printf(draft->arena, "%s layer", weights[i].name);
        draft->ok = draft->ok && name;
        if (draft->ok)
            model_draft_layer(draft, name, forward_us, 2 * forward_us, k - i, names);
    }
}

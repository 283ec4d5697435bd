/* Names that begin with the same path lie together in the order of names. */
#include "strategy/baselines/blocks.h"

#include <string.h>

size_t block_length(const char *name) {
    for (const char *module = name; *module;) {
        const size_t n = strcspn(module, ".");
        if (n && module[n] && strspn(module, "0123456789") == n)
            return (size_t)(module - name) + n;
        module += n + (module[n] == '.');
    }
    return 0;
}

uint32_t blocks_find(const struct model *model, uint32_t *block) {
    uint32_t n = 0;
    const char *last = NULL; /* a variable of block n */
    for (uint32_t i = 0; i < model->n_variables; i++) {
        const uint32_t v = model->names.sorted[i];
        const char *name = model->variables[v].name;
        const size_t length = block_length(name);
        if (length && !(last && block_length(last) == length && !memcmp(last, name, length)))
            n++;
        block[v] = length ? n : 0;
        last = length ? name : last;
    }
    return n;
}

/* See variable.h. */
#include "strategy/variable.h"

#include <stddef.h>

#define X(name, bytes) #name,
const char *const dtype_words[] = {DTYPE_TABLE(X) NULL};
#undef X

const char *dtype_name(enum dtype dtype) {
    return dtype_words[dtype];
}

uint64_t dtype_bytes(enum dtype dtype) {
#define X(name, bytes) bytes,
    static const uint64_t sizes[] = {DTYPE_TABLE(X)};
#undef X
    return sizes[dtype];
}

bool dtype_is_float(enum dtype dtype) {
    return dtype == DTYPE_f32 || dtype == DTYPE_f64 || dtype == DTYPE_f16 || dtype == DTYPE_bf16;
}

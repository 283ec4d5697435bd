/* A trainable tensor, and the types of elements. */
#ifndef STRATEGY_VARIABLE_H
#define STRATEGY_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, bytes an element) */
#define DTYPE_TABLE(X) X(f32, 4) X(f16, 2) X(bf16, 2) X(f64, 8) X(i32, 4) X(i64, 8) X(u8, 1)

enum dtype {
#define X(name, bytes) DTYPE_##name,
    DTYPE_TABLE(X)
#undef X
        DTYPE_COUNT
};

extern const char *const dtype_words[]; /* their names in the order of the enum, and NULL */
const char *dtype_name(enum dtype dtype);
uint64_t dtype_bytes(enum dtype dtype);
bool dtype_is_float(enum dtype dtype);

struct variable {
    const char *name;
    uint32_t rank;         /* number of axes; 0 is a scalar */
    const uint64_t *shape; /* rank sizes, each at least 1 */
    enum dtype dtype;
    uint64_t elements;
    uint64_t bytes;
    uint64_t sparse_rows; /* rows of axis 0 that one iteration touches; 0 = dense */
    uint32_t producer;    /* the backward operator that makes its gradient */
};

#endif

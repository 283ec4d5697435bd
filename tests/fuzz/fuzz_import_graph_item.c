/* Bytes as an AutoDist GraphItem. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "graph-item", 0);
}

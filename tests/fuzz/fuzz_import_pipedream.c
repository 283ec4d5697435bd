/* Bytes as a PipeDream profile. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "pipedream", 0);
}

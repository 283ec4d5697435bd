/* Bytes as tables of the OSU micro-benchmarks. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "osu", 1);
}

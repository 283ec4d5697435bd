/* Bytes as the JSON of nccl-tests. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "nccl-tests-json", 1);
}

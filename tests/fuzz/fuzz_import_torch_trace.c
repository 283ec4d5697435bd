/* Bytes as a PyTorch profiler's trace. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "torch-trace", 0);
}

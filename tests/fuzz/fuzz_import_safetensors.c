/* Bytes as a safetensors file. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "safetensors", 0);
}

/* Bytes as what nvidia-smi prints of a topology. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "topology", 1);
}

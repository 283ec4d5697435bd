/* Bytes as AutoDist's resource_spec.yml. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    return fuzz_import(data, n, "resource-spec", 1);
}

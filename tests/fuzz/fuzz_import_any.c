/* Bytes as a file whose kind its contents tell, of a model and of a cluster. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_import(data, n, NULL, 0);
    return fuzz_import(data, n, NULL, 1);
}

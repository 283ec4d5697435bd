/* Sizes and times as people write them, and the formatters on whatever was read. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    char out[64];
    uint64_t bytes;
    double us;
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    if (units_parse_bytes(text, &bytes, &err) == ST_OK) {
        require(strlen(units_format_bytes(bytes, out, sizeof out)) <= 10, "a size is short");
    } else {
        require(err.status == ST_USAGE && err.message[0], "a refused size says why");
    }
    if (units_parse_time(text, &us, &err) == ST_OK) {
        require(isfinite(us) && us >= 0, "a time is finite and not negative");
        require(strlen(units_format_time(us, out, sizeof out)) < sizeof out - 1, "a time fits");
    } else {
        require(err.status == ST_USAGE && err.message[0], "a refused time says why");
    }
    free(text);
    return 0;
}

/* The text of --sweep: what is read is rising and within the axis' range, what is refused says why. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/require.h"
#include "tuner/predict/sweep.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct error err = {0};
    struct sweep sweep;
    char *text = malloc(n + 1);
    if (!text)
        return 0;
    memcpy(text, data, n);
    text[n] = '\0';
    if (sweep_parse(text, &sweep, &err) == ST_OK) {
        require(sweep.axis < SWEEP_AXES && sweep.n > 0 && sweep.n <= SWEEP_MAX_POINTS, "an axis with some values");
        for (size_t i = 0; i < sweep.n; i++) {
            require(isfinite(sweep.values[i]) && sweep.values[i] > 0, "a value is a positive number");
            require(i == 0 || sweep.values[i] > sweep.values[i - 1], "values rise");
            require(sweep.axis != SWEEP_WORKERS || sweep.values[i] == floor(sweep.values[i]), "devices are whole");
        }
    } else {
        require(err.status == ST_USAGE && err.message[0], "a refused sweep says why");
    }
    free(text);
    return 0;
}

/* Uploads as clients send them, by the boundary "b": each part lies within the body, in order, and none holds the mark
 * at which it should have ended. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/http/transport/multipart.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct arena arena = {0};
    struct error err = {0};
    struct part *parts;
    size_t n_parts;
    char *body = malloc(n ? n : 1); /* as long as the body, for the sanitizer */
    require(body != NULL, "memory");
    memcpy(body, data, n);
    const char *end = body + n, *last = body;
    if (!multipart_read("multipart/form-data; boundary=b", body, n, 16, &arena, &parts, &n_parts, &err))
        for (size_t i = 0; i < n_parts; i++) {
            const struct part *p = &parts[i];
            require(p->text >= last && p->text + p->n <= end, "a part lies within the body, behind the one before");
            require(!p->n || !memmem(p->text, p->n, "\r\n--b", 5), "a part ends at the first mark");
            require(strlen(p->name) < 256 && strlen(p->file) < 256, "names are short");
            last = p->text + p->n;
        }
    else
        require(*err.message != 0, "a refusal says why");
    free(body);
    arena_release(&arena);
    return 0;
}

/* SHA-256 by OpenSSL's EVP interface. Cost: O(n). */
#include "base/id.h"

#include <openssl/evp.h>

enum status id_of(const void *data, size_t n, struct id *out, struct error *err) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (!EVP_Digest(n ? data : "", n, digest, &length, EVP_sha256(), NULL) || length * 2 != ID_LENGTH)
        return error_no_memory(err);
    for (size_t i = 0; i < length; i++) {
        out->hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        out->hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    out->hex[ID_LENGTH] = '\0';
    return ST_OK;
}

/* See certificates.h. GnuTLS borrows a chain and its key for as long as a handshake lasts, and does not say when it has
 * ended; so what was replaced is kept until the server ends. That is a few kilobytes each time a certificate is
 * renewed.
 */
#include "service/http/transport/certificates.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PEM_BYTES = 1 << 20, MAX_CHAIN = 16, MAX_KEY_ID = 64 };

struct chain {
    struct chain *older;
    unsigned n;
    gnutls_pcert_st certificates[MAX_CHAIN];
    gnutls_privkey_t key;
};

struct certificates {
    char *chain_path, *key_path;
    pthread_mutex_t mutex;
    struct chain *newest;
};

static enum status read_pem(const char *path, gnutls_datum_t *out, struct error *err) {
    FILE *from = fopen(path, "re");
    if (!from)
        return error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
    char *text = malloc(MAX_PEM_BYTES + 1);
    size_t n = text ? fread(text, 1, MAX_PEM_BYTES, from) : 0;
    const bool whole = !ferror(from) && n < MAX_PEM_BYTES;
    fclose(from);
    if (!text)
        return error_no_memory(err);
    text[n] = '\0';
    if (!whole || strlen(text) != n || !strstr(text, "-----BEGIN")) {
        free(text);
        return error_at(err, ST_INVALID, path, "not a PEM file");
    }
    *out = (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)n};
    return ST_OK;
}

static void wipe(gnutls_datum_t *text) {
    if (text->data)
        explicit_bzero(text->data, text->size);
    free(text->data);
}

static void chain_free(struct chain *c) {
    if (!c)
        return;
    for (unsigned i = 0; i < c->n; i++)
        gnutls_pcert_deinit(&c->certificates[i]);
    if (c->key)
        gnutls_privkey_deinit(c->key);
    free(c);
}

static bool key_id(gnutls_pubkey_t key, unsigned char out[MAX_KEY_ID], size_t *n) {
    *n = MAX_KEY_ID;
    return gnutls_pubkey_get_key_id(key, 0, out, n) >= 0;
}

/* Whether the key's public half is that of the first certificate. */
static bool belong_together(const struct chain *c) {
    unsigned char ours[MAX_KEY_ID], theirs[MAX_KEY_ID];
    size_t n = 0, m = 0;
    gnutls_pubkey_t public;
    if (gnutls_pubkey_init(&public))
        return false;
    const bool same = gnutls_pubkey_import_privkey(public, c->key, 0, 0) >= 0 && key_id(public, ours, &n) &&
                      key_id(c->certificates[0].pubkey, theirs, &m) && n == m && !memcmp(ours, theirs, n);
    gnutls_pubkey_deinit(public);
    return same;
}

static enum status parse(struct certificates *c, const gnutls_datum_t *chain, const gnutls_datum_t *key,
                         struct chain *out, struct error *err) {
    unsigned n = MAX_CHAIN;
    int code = gnutls_privkey_init(&out->key);
    if (code >= 0)
        code = gnutls_privkey_import_x509_raw(out->key, key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (code < 0)
        return error_at(err, ST_INVALID, c->key_path,
                        "no key can be read from it; do certificate and key belong together? (%s)",
                        gnutls_strerror(code));
    code =
        gnutls_pcert_list_import_x509_raw(out->certificates, &n, chain, GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_SORT);
    if (code < 0)
        return error_at(err, ST_INVALID, c->chain_path, "no certificates can be read from it: %s",
                        gnutls_strerror(code));
    out->n = n;
    if (!belong_together(out))
        return error_set(err, ST_INVALID, "%s and %s: do certificate and key belong together?", c->chain_path,
                         c->key_path);
    return ST_OK;
}

static enum status read_chain(struct certificates *c, struct chain **out, struct error *err) {
    gnutls_datum_t chain = {0}, key = {0};
    struct chain *made = calloc(1, sizeof *made);
    if (!made)
        return error_no_memory(err);
    enum status st = read_pem(c->key_path, &key, err);
    if (!st)
        st = read_pem(c->chain_path, &chain, err);
    if (!st)
        st = parse(c, &chain, &key, made, err);
    wipe(&key);
    wipe(&chain);
    if (st)
        chain_free(made);
    else
        *out = made;
    return st;
}

enum status certificates_reload(struct certificates *c, struct error *err) {
    struct chain *chain = NULL;
    enum status st = read_chain(c, &chain, err);
    if (st)
        return st;
    pthread_mutex_lock(&c->mutex);
    chain->older = c->newest;
    c->newest = chain;
    pthread_mutex_unlock(&c->mutex);
    return ST_OK;
}

enum status certificates_open(const char *chain, const char *key, struct certificates **out, struct error *err) {
    struct certificates *c = calloc(1, sizeof *c);
    if (!c)
        return error_no_memory(err);
    pthread_mutex_init(&c->mutex, NULL);
    c->chain_path = strdup(chain);
    c->key_path = strdup(key);
    enum status st = c->chain_path && c->key_path ? certificates_reload(c, err) : error_no_memory(err);
    if (st)
        certificates_free(c);
    else
        *out = c;
    return st;
}

void certificates_free(struct certificates *c) {
    if (!c)
        return;
    for (struct chain *chain = c->newest; chain;) {
        struct chain *older = chain->older;
        chain_free(chain);
        chain = older;
    }
    pthread_mutex_destroy(&c->mutex);
    free(c->chain_path);
    free(c->key_path);
    free(c);
}

void certificates_offer(struct certificates *c, gnutls_session_t session) {
    gnutls_session_set_ptr(session, c);
}

int certificates_retrieve(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
                          const gnutls_pk_algorithm_t *algorithms, int n_algorithms, gnutls_pcert_st **certificates,
                          unsigned *n, gnutls_privkey_t *key) {
    (void)names, (void)n_names, (void)algorithms, (void)n_algorithms;
    struct certificates *c = gnutls_session_get_ptr(session);
    if (!c)
        return -1;
    pthread_mutex_lock(&c->mutex);
    struct chain *chain = c->newest;
    pthread_mutex_unlock(&c->mutex);
    *certificates = chain->certificates;
    *n = chain->n;
    *key = chain->key;
    return 0;
}

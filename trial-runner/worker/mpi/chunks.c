/* Without a limit a chunk is as large as one MPI call takes. */
#include "trial-runner/worker/mpi/chunks.h"

#include <limits.h>

uint64_t chunks_bytes(uint64_t eager_bytes) {
    return eager_bytes > 0 && eager_bytes < INT_MAX ? eager_bytes : INT_MAX;
}

static uint32_t count(uint64_t bytes, uint64_t chunk) {
    return bytes > chunk ? (uint32_t)((bytes + chunk - 1) / chunk) : 1;
}

static int length(uint64_t left, uint64_t chunk) {
    return (int)(left < chunk ? left : chunk);
}

uint32_t chunks_send(const char *data, uint64_t bytes, uint64_t chunk, const struct chunks_peer *to,
                     struct requests *requests) {
    const uint32_t n = count(bytes, chunk);
    for (uint64_t i = 0; i < n; i++)
        MPI_Isend(data + i * chunk, length(bytes - i * chunk, chunk), MPI_BYTE, to->rank, to->tag, to->comm,
                  requests_add(requests, to->done));
    return n;
}

uint32_t chunks_receive(char *data, uint64_t bytes, uint64_t chunk, const struct chunks_peer *from,
                        struct requests *requests) {
    const uint32_t n = count(bytes, chunk);
    for (uint64_t i = 0; i < n; i++)
        MPI_Irecv(data + i * chunk, length(bytes - i * chunk, chunk), MPI_BYTE, from->rank, from->tag, from->comm,
                  requests_add(requests, from->done));
    return n;
}

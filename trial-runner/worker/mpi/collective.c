/* Open MPI's libnbc component chooses the algorithm of MPI_Iallreduce from a control variable that it reads at each
 * call, and MPI_T may write that variable at run time: so each message gets the algorithm that its group asks for. All
 * ranks write the same value before the same call. hierarchical runs its stage between nodes as a ring, the choice of
 * least bytes for the narrow links there. */
#include "trial-runner/worker/mpi/collective.h"

#include <limits.h>
#include <string.h>

#include "trial-runner/worker/mpi/half.h"
#include "trial-runner/worker/report.h"

static MPI_T_cvar_handle algorithm_switch;
static int algorithm_now = -1;
static MPI_Op sum_f16, sum_bf16;

/* libnbc's own choice depends on how it is called: in place it always takes the binomial tree, which at 1 Gbit/s is
 * three times slower than a ring and which no library would choose. `auto` is what it chooses out of place. */
enum { AUTO_RING_BYTES = 65536, AUTO_RING_RANKS = 4 };

static enum algorithm resolve(enum algorithm algorithm, uint64_t bytes, int ranks) {
    if (algorithm != ALGORITHM_auto)
        return algorithm;
    return ranks < AUTO_RING_RANKS || bytes < AUTO_RING_BYTES ? ALGORITHM_tree : ALGORITHM_ring;
}

/* libnbc's numbers, -1 where it has none. */
static int libnbc_number(enum algorithm algorithm) {
    switch (algorithm) {
    case ALGORITHM_ring:
    case ALGORITHM_hierarchical:
        return 1;
    case ALGORITHM_tree:
        return 2;
    case ALGORITHM_halving_doubling:
        return 3;
    case ALGORITHM_recursive_doubling:
        return 4;
    default:
        return -1;
    }
}

static bool variable_has_name(int index, const char *wanted) {
    char name[128];
    int n = sizeof name, verbosity, binding, scope;
    MPI_Datatype type;
    return MPI_T_cvar_get_info(index, name, &n, &verbosity, &type, NULL, NULL, NULL, &binding, &scope) == MPI_SUCCESS &&
           strcmp(name, wanted) == 0;
}

static void add_f16(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    half_add_f16(to, from, (size_t)*count);
}

static void add_bf16(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    half_add_bf16(to, from, (size_t)*count);
}

enum status collective_init(struct error *err) {
    static const char name[] = "coll_libnbc_iallreduce_algorithm";
    int provided, n, count;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS || MPI_T_cvar_get_num(&n) != MPI_SUCCESS)
        return error_set(err, ST_ENVIRONMENT, "this MPI has no tools interface (MPI_T)");
    MPI_Op_create(add_f16, 1, &sum_f16);
    MPI_Op_create(add_bf16, 1, &sum_bf16);
    for (int i = 0; i < n; i++) {
        int automatic = 0;
        if (!variable_has_name(i, name))
            continue;
        if (MPI_T_cvar_handle_alloc(i, NULL, &algorithm_switch, &count) == MPI_SUCCESS &&
            MPI_T_cvar_write(algorithm_switch, &automatic) == MPI_SUCCESS)
            return ST_OK;
    }
    return error_set(err, ST_ENVIRONMENT, "this MPI does not let a program set %s; Open MPI 4.1 does", name);
}

/* Whether this MPI has the algorithm. The caller builds the hierarchical one from the others. */
static bool collective_has(enum algorithm algorithm) {
    return algorithm == ALGORITHM_auto || algorithm == ALGORITHM_all_gather || libnbc_number(algorithm) >= 0;
}

static enum status check_message(const struct plan *plan, uint32_t i, uint64_t max_tag, struct error *err) {
    const struct message *message = &plan->messages[i];
    if (message->kind == SYNC_ALL_REDUCE && !collective_has(message->algorithm))
        return error_set(err, ST_INFEASIBLE, "all-reduce algorithm %s is not in this MPI",
                         algorithm_name(message->algorithm));
    if (i > max_tag)
        return error_set(err, ST_INFEASIBLE, "%u messages need more tags than this MPI's %llu", plan->n_messages,
                         (unsigned long long)max_tag + 1);
    if ((message->encoder ? message->unencoded_bytes : message->bytes) % dtype_bytes(message->dtype) != 0)
        return error_set(err, ST_INFEASIBLE, "message %u of %llu bytes is not whole %s elements", i,
                         (unsigned long long)message->bytes, dtype_name(message->dtype));
    if (message_elements(message) > INT_MAX)
        return error_set(err, ST_INFEASIBLE, "message %u of %llu bytes has more elements than one MPI call takes", i,
                         (unsigned long long)message->bytes);
    return ST_OK;
}

enum status collective_check_plan(const struct plan *plan, struct error *err) {
    int *upper, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found);
    enum status status = ST_OK;
    for (uint32_t i = 0; i < plan->n_messages && !status; i++)
        status = check_message(plan, i, found ? (uint64_t)*upper : 32767, err);
    return status;
}

MPI_Datatype collective_type(enum dtype dtype) {
    switch (dtype) {
    case DTYPE_f32:
        return MPI_FLOAT;
    case DTYPE_f64:
        return MPI_DOUBLE;
    case DTYPE_f16:
    case DTYPE_bf16:
        return MPI_UINT16_T;
    case DTYPE_i32:
        return MPI_INT32_T;
    case DTYPE_i64:
        return MPI_INT64_T;
    default:
        return MPI_UINT8_T;
    }
}

MPI_Op collective_sum(enum dtype dtype) {
    return dtype == DTYPE_f16 ? sum_f16 : dtype == DTYPE_bf16 ? sum_bf16 : MPI_SUM;
}

int collective_count(uint64_t bytes, enum dtype dtype) {
    return (int)(bytes / dtype_bytes(dtype));
}

void collective_start(void *data, int count, enum dtype dtype, enum algorithm algorithm, MPI_Comm comm,
                      MPI_Request *request) {
    int ranks;
    MPI_Comm_size(comm, &ranks);
    int number = libnbc_number(resolve(algorithm, (uint64_t)count * dtype_bytes(dtype), ranks));
    if (number != algorithm_now && MPI_T_cvar_write(algorithm_switch, &number) != MPI_SUCCESS)
        report_abort(ST_ENVIRONMENT, "cannot choose all-reduce algorithm %s", algorithm_name(algorithm));
    algorithm_now = number;
    MPI_Iallreduce(MPI_IN_PLACE, data, count, collective_type(dtype), collective_sum(dtype), comm, request);
}

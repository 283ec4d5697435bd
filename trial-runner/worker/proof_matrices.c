/* One small matrix has the rows and columns of all samples of a message. Those of different variables share none, and
 * are made orthogonal apart. The row of a sample has the number of the first sample in that row; columns likewise. */
#include "trial-runner/worker/proof_matrices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/encoder.h"
#include "trial-runner/worker/elements.h"
#include "trial-runner/worker/low_rank_rules.h"
#include "trial-runner/worker/report.h"

enum { SIDE = LAYOUT_SAMPLES };

/* What f32 may be off, of a sum, after thousands of iterations. */
static const double ROUNDING = 1e-5;

struct proof_matrices {
    const struct plan *plan;
    uint32_t m, n, rank; /* message, samples */
    /* [n] the variable of each sample, and the first samples in its row and in its column; its column in full */
    uint32_t variable[SIDE], row[SIDE], column[SIDE];
    uint64_t full_column[SIDE];
    double (*left)[SIDE][SIDE];    /* [n_devices] what each device has not sent yet */
    double sum[SIDE][SIDE];        /* of all of these, and then what comes back */
    double (*q)[SIDE], (*p)[SIDE]; /* [rank] by column; by row */
    double off;                    /* by how much an element that comes back may be off */
};

/* Sample k is element `at` of the message. */
static void locate(struct proof_matrices *x, uint32_t k, uint64_t at, uint64_t rows[SIDE]) {
    const struct message *message = &x->plan->messages[x->m];
    const struct piece *piece = x->plan->pieces + message->first_piece;
    const uint64_t width = dtype_bytes(message->dtype);
    for (; at >= piece->bytes / width; piece++)
        at -= piece->bytes / width;
    const struct encoder_matrix shape = encoder_matrix(&x->plan->model->variables[piece->variable]);
    x->variable[k] = piece->variable;
    rows[k] = shape.columns ? at / shape.columns : at;
    x->full_column[k] = shape.columns ? at % shape.columns : at;
    x->row[k] = x->column[k] = k;
    for (uint32_t j = k; j-- > 0;) {
        if (x->variable[j] == x->variable[k] && rows[j] == rows[k])
            x->row[k] = j;
        if (x->variable[j] == x->variable[k] && x->full_column[j] == x->full_column[k])
            x->column[k] = j;
    }
}

struct proof_matrices *proof_matrices_new(const struct plan *plan, uint32_t m) {
    const struct message *message = &plan->messages[m];
    struct proof_matrices *x = report_alloc(1, sizeof *x);
    uint64_t rows[SIDE];
    *x = (struct proof_matrices){
        .plan = plan, .m = m, .n = layout_sample_count(message), .rank = (uint32_t)message->figure};
    for (uint32_t k = 0; k < x->n; k++)
        locate(x, k, layout_element(message, k), rows);
    x->left = report_alloc(plan->cluster->n_devices, sizeof *x->left);
    x->q = report_alloc(x->rank, sizeof *x->q);
    x->p = report_alloc(x->rank, sizeof *x->p);
    return x;
}

void proof_matrices_free(struct proof_matrices *x) {
    if (!x)
        return;
    free(x->p);
    free(x->q);
    free(x->left);
    free(x);
}

static bool is_matrix(const struct proof_matrices *x, uint32_t k) {
    return encoder_matrix(&x->plan->model->variables[x->variable[k]]).columns > 0;
}

static double value(const struct proof_matrices *x, uint32_t device, uint32_t iteration, uint32_t k) {
    return kernel_value(device, x->plan->cluster->n_devices, iteration, x->m, k, x->plan->messages[x->m].dtype);
}

/* Each device adds its gradient to what it has; the sum over all of them. */
static void add_gradients(struct proof_matrices *x, uint32_t iteration) {
    memset(x->sum, 0, sizeof x->sum);
    for (uint32_t device = 0; device < x->plan->cluster->n_devices; device++) {
        for (uint32_t k = 0; k < x->n; k++)
            x->left[device][x->row[k]][x->column[k]] += value(x, device, iteration, k);
        for (uint32_t a = 0; a < x->n; a++)
            for (uint32_t b = 0; b < x->n; b++)
                x->sum[a][b] += x->left[device][a][b];
    }
}

/* Inner product of columns j and k of P, in the rows of one variable. */
static double inner(const struct proof_matrices *x, uint32_t variable, uint32_t j, uint32_t k) {
    double sum = 0;
    for (uint32_t a = 0; a < x->n; a++)
        sum += x->variable[a] == variable ? x->p[j][a] * x->p[k][a] : 0;
    return sum;
}

/* Returns the length that was left. */
static double make_orthogonal(struct proof_matrices *x, uint32_t variable, uint32_t k) {
    const double before = sqrt(inner(x, variable, k, k));
    for (uint32_t j = 0; j < k; j++) {
        const double common = inner(x, variable, j, k);
        for (uint32_t a = 0; a < x->n; a++)
            x->p[k][a] -= x->variable[a] == variable ? common * x->p[j][a] : 0;
    }
    const double after = sqrt(inner(x, variable, k, k));
    const bool stays = after > LOW_RANK_LEAST * before;
    for (uint32_t a = 0; a < x->n; a++)
        if (x->variable[a] == variable)
            x->p[k][a] = stays ? x->p[k][a] / after : 0;
    return stays ? after : INFINITY;
}

static double size_of(const struct proof_matrices *x, uint32_t variable, double matrix[SIDE][SIDE]) {
    double sum = 0;
    for (uint32_t a = 0; a < x->n; a++)
        for (uint32_t b = 0; b < x->n; b++)
            sum += x->variable[a] == variable ? matrix[a][b] * matrix[a][b] : 0;
    return sqrt(sum);
}

/* M of all devices is rounded, and so is M times column k of Q, of which so much is left when it is orthogonal: the new
 * column points elsewhere by as much, and a part of M comes back that is not the one here. */
static void may_be_off(struct proof_matrices *x, uint32_t variable, uint32_t k, double left) {
    double all = 0, column = 0;
    for (uint32_t device = 0; device < x->plan->cluster->n_devices; device++)
        all += size_of(x, variable, x->left[device]);
    for (uint32_t b = 0; b < x->n; b++)
        column += x->variable[b] == variable ? x->q[k][b] * x->q[k][b] : 0;
    x->off = fmax(x->off, ROUNDING * (all + all * sqrt(column) / left * size_of(x, variable, x->sum)));
}

/* Column k of Q of one variable, anew where it is zero. */
static void begin_column(struct proof_matrices *x, uint32_t variable, uint32_t k) {
    bool zero = true;
    for (uint32_t b = 0; b < x->n; b++)
        zero &= x->variable[b] != variable || x->q[k][b] == 0;
    for (uint32_t b = 0; b < x->n && zero; b++)
        if (x->variable[b] == variable)
            x->q[k][b] = (double)low_rank_drawn(variable, k, x->full_column[b]);
}

/* P = M Q, made orthogonal; Q = M^T P; what comes back is P Q^T, in the rows and columns of one variable. */
static void send(struct proof_matrices *x, uint32_t variable) {
    for (uint32_t k = 0; k < x->rank; k++) {
        begin_column(x, variable, k);
        for (uint32_t a = 0; a < x->n; a++)
            if (x->variable[a] == variable) {
                x->p[k][a] = 0;
                for (uint32_t b = 0; b < x->n; b++)
                    x->p[k][a] += x->sum[a][b] * x->q[k][b];
            }
        may_be_off(x, variable, k, make_orthogonal(x, variable, k));
    }
    for (uint32_t k = 0; k < x->rank; k++)
        for (uint32_t b = 0; b < x->n; b++)
            if (x->variable[b] == variable) {
                x->q[k][b] = 0;
                for (uint32_t a = 0; a < x->n; a++)
                    x->q[k][b] += x->sum[a][b] * x->p[k][a];
            }
    for (uint32_t a = 0; a < x->n; a++)
        for (uint32_t b = 0; b < x->n; b++)
            if (x->variable[a] == variable && x->variable[b] == variable) {
                x->sum[a][b] = 0;
                for (uint32_t k = 0; k < x->rank; k++)
                    x->sum[a][b] += x->p[k][a] * x->q[k][b];
            }
}

/* Samples share rows and columns: zero all but the first. */
static void leave_one_of_each(const struct proof_matrices *x, double back[SIDE][SIDE]) {
    for (uint32_t a = 0; a < x->n; a++)
        for (uint32_t b = 0; b < x->n; b++)
            if (x->row[a] != a || x->column[b] != b)
                back[a][b] = 0;
}

/* Each device keeps what did not come back, and the next Q is one that makes what came back. */
static void take(struct proof_matrices *x, double back[SIDE][SIDE]) {
    const uint32_t n_devices = x->plan->cluster->n_devices;
    for (uint32_t device = 0; device < n_devices; device++)
        for (uint32_t a = 0; a < x->n; a++)
            for (uint32_t b = 0; b < x->n; b++)
                x->left[device][a][b] = is_matrix(x, a) ? x->left[device][a][b] - back[a][b] / n_devices : 0;
    for (uint32_t k = 0; k < x->rank; k++)
        for (uint32_t b = 0; b < x->n; b++) {
            x->q[k][b] = 0;
            for (uint32_t a = 0; a < x->n; a++)
                x->q[k][b] += back[a][b] * x->p[k][a];
        }
}

uint32_t proof_matrices_find_wrong(struct proof_matrices *x, uint32_t iteration, double back[SIDE][SIDE]) {
    uint32_t wrong = x->n;
    x->off = 0;
    add_gradients(x, iteration);
    leave_one_of_each(x, back);
    for (uint32_t k = 0; k < x->n; k++)
        if (is_matrix(x, k) && (k == 0 || x->variable[k] != x->variable[k - 1]))
            send(x, x->variable[k]);
    for (uint32_t a = x->n; a-- > 0;)
        for (uint32_t b = 0; b < x->n; b++)
            if (!(fabs(back[a][b] - x->sum[a][b]) <= x->off))
                wrong = a;
    take(x, back);
    return wrong;
}

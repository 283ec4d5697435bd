/* The places nearest to the wanted ones that keep a gap, by pooling adjacent violators. O(n). */
#include "report/placing.h"

#include <math.h>

static double mean_of(double sum, size_t n) {
    return sum / (double)n;
}

void placing_spread(size_t n, const double *wanted, double gap, double room, double *out) {
    struct {
        double sum;
        size_t n;
    } pools[PLACING_MOST];
    size_t n_pools = 0, at = 0;
    if (n > 1 && gap * (double)(n - 1) > room)
        gap = room / (double)(n - 1);
    /* With i * gap taken off, "at least a gap apart" becomes "not falling". */
    for (size_t i = 0; i < n; i++) {
        pools[n_pools].sum = wanted[i] - gap * (double)i;
        pools[n_pools++].n = 1;
        while (n_pools > 1 && mean_of(pools[n_pools - 2].sum, pools[n_pools - 2].n) >
                                  mean_of(pools[n_pools - 1].sum, pools[n_pools - 1].n)) {
            pools[n_pools - 2].sum += pools[n_pools - 1].sum;
            pools[n_pools - 2].n += pools[n_pools - 1].n;
            n_pools--;
        }
    }
    const double most = n > 0 ? fmax(room - gap * (double)(n - 1), 0) : 0;
    for (size_t p = 0; p < n_pools; p++)
        for (size_t k = 0; k < pools[p].n; k++, at++)
            out[at] = fmin(fmax(mean_of(pools[p].sum, pools[p].n), 0), most) + gap * (double)at;
}

size_t placing_ticks(double low, double high, size_t most, double *out) {
    static const double mantissas[] = {1, 2, 5};
    if (!(high > low) || most < 2) {
        out[0] = low;
        return 1;
    }
    double decade = pow(10, floor(log10((high - low) / (double)most)));
    for (size_t k = 0;; k++) {
        const size_t tens = k / 3;
        double step = mantissas[k % 3] * decade * pow(10, (double)tens);
        double first = ceil(low / step - 1e-9), last = floor(high / step + 1e-9);
        if (last - first >= (double)most)
            continue;
        for (size_t i = 0; i <= (size_t)(last - first); i++)
            out[i] = (first + (double)i) * step;
        return (size_t)(last - first) + 1;
    }
}

size_t placing_log_ticks(double low, double high, size_t most, double *out) {
    static const double mantissas[] = {1, 2, 5};
    const double decades = log10(high / low);
    const size_t each = decades > 4 ? 1 : 3;
    const int stride = each == 1 ? (int)ceil(decades / (double)most) : 1;
    const int last = (int)ceil(log10(high));
    size_t n = 0;
    if (decades < 0.7)
        return placing_ticks(low, high, 6, out);
    for (int e = (int)floor(log10(low)); e <= last; e += stride)
        for (size_t m = 0; m < each; m++) {
            double tick = mantissas[m] * pow(10, e);
            if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9) && n < most)
                out[n++] = tick;
        }
    return n;
}

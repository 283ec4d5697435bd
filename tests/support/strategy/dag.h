/* PACE's graph (§IV-A): computation operators, messages between them, and what each message's window is.
 *
 * A message is there when all operators that make it have ended, and every operator that waits for it may start only
 * when it has arrived. The paper has one maker a message and at most one message an operator; here both may be several.
 * Computation is ideal (equation 5): an operator starts when what it waits for is done, there are devices enough. No
 * message lies before a maker of a message, which is the condition of the paper's lemma 1. Then
 *
 *   release   longest computation path to the end of the last maker
 *   tail      longest computation path from the start of an operator that waits for it to the end of all
 *   makespan  max(longest computation path, one_machine_value of the windows)          (theorem 1)
 *
 * and the best schedule is one_machine_schedule's.
 * Units: any one unit of time. Threads: a const struct dag may be shared. */
#ifndef TESTS_SUPPORT_STRATEGY_DAG_H
#define TESTS_SUPPORT_STRATEGY_DAG_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "strategy/exact/one_machine.h"
#include "strategy/model.h"

/* Lists are runs of one array: row i is item[first[i]] .. item[first[i + 1] - 1]. */
struct dag_lists {
    const uint32_t *first; /* rows + 1, first[0] = 0 */
    const uint32_t *item;  /* operators */
};

struct dag {
    uint32_t n_operators, n_messages;
    const double *time;       /* of each operator, not negative */
    struct dag_lists before;  /* by operator: those that must end first */
    struct dag_lists makers;  /* by message: at least one */
    struct dag_lists readers; /* by message: at least one operator that waits for it */
};

/* Numbers of scratch that dag_windows needs, of each kind. */
#define DAG_SCRATCH(n_operators) (2 * (size_t)(n_operators))

/* Check the graph and fill jobs[n_messages] with release and tail, leaving work as it is; *path gets the longest
 * computation path. O(operators + edges); allocates nothing. Fails: ST_INVALID (a cycle, a number that names nothing, a
 * message without a maker or a reader, a message before a maker); jobs[] is then untouched. */
enum status dag_windows(const struct dag *dag, uint32_t *scratch, double *times, struct machine_job *jobs, double *path,
                        struct error *err);

/* What one device does in an iteration: the backward pass, then the next forward pass, with one message a variable in
 * the model's order. The readers of a variable wait for its message; if no operator reads it, the last operator that
 * reads any variable waits, as in plan_lower. Which operators wait for which:
 *   - DAG_IDEAL, the paper's: operators wait only for their `after` and their variables. Forward work that a backward
 *     operator comes after belongs to the iteration before: it is done at time 0.
 *   - DAG_ONE_STREAM, what our timeline runs: one operator after another in model->order. The windows are those of
 *     gradients_list. */
enum dag_reading { DAG_IDEAL, DAG_ONE_STREAM };

/* Build it in `arena`; operators are numbered in the order in which the stream runs them, times are multiplied by
 * `scale`. O(operators + edges + reads). Fails: ST_NO_MEMORY. */
enum status dag_from_model(const struct model *model, enum dag_reading reading, double scale, struct arena *arena,
                           struct dag *out, struct error *err);

#endif

/* Limit a search to strategies that a framework's form can say without a loss.
 *
 * Where there are several forms, each must say everything, with one exception: the form "nccl" says only the
 * algorithms, and beside it the other forms need not say these. A loss can be accepted when the job does that part by
 * itself: for example a communication hook of PyTorch that makes exact groups.
 * Threads: functions have no state; a const struct export_limits may be shared. */
#ifndef INTEROP_EXPORT_LIMITS_H
#define INTEROP_EXPORT_LIMITS_H

#include "interop/export/export.h"
#include "strategy/space/space.h"

enum { EXPORT_LIMITS_MAX = 16, EXPORT_LIMITS_ROOM = 256 }; /* all forms; their names with commas between, and a NUL */

struct export_limits {
    size_t n;
    const struct exporter *forms[EXPORT_LIMITS_MAX];
    uint32_t accepted; /* set of 1u << EXPORT_LOSS_... */
};

/* Forms and losses by their names, with commas between; `accepted` may be NULL. Fails: ST_USAGE. */
enum status export_limits_parse(const char *forms, const char *accepted, struct export_limits *out, struct error *err);

/* "sharded,groups" as a set of 1u << EXPORT_LOSS_... Fails: ST_USAGE. */
enum status export_losses_parse(const char *words, uint32_t *out, struct error *err);

/* The forms' names, "horovod,nccl"; out is returned. */
const char *export_limits_names(const struct export_limits *limits, char out[EXPORT_LIMITS_ROOM]);

/* Whether the limits name the form, or one that it goes beside. */
bool export_limits_include(const struct export_limits *limits, const struct exporter *form);

/* The losses that do not matter in a form that the limits include: those accepted, since the job does by itself what
 * they name, and what another of their forms says. 0 for others. */
uint32_t export_limits_accepted(const struct export_limits *limits, const struct exporter *form);

/* As export_check_memory, without regard to losses that are `accepted` (a set of 1u << EXPORT_LOSS_...). */
enum status export_check_accepted(const struct exporter *exporter, const struct export *built, uint32_t accepted,
                                  const struct strategy *strategy, const struct model *model,
                                  const struct cluster *cluster, struct error *err);

/* ST_OK when the forms say all of the strategy that is not accepted; else ST_INFEASIBLE, with what is lost. Fails: as
 * export_build. As costly as the exports. */
enum status export_limits_check(const struct export_limits *limits, const struct strategy *strategy,
                                const struct model *model, const struct cluster *cluster, struct error *err);

/* Take out of the options what the forms can never say. Each property is tried by exporting one strategy that has it.
 * The options that are left may still allow strategies that export_limits_check refuses (groups that no knob makes).
 * Fails: ST_INFEASIBLE (nothing is left), ST_NO_MEMORY, as export_build. */
enum status export_limits_narrow(const struct export_limits *limits, const struct model *model,
                                 const struct cluster *cluster, struct space_options *options, struct error *err);

#endif

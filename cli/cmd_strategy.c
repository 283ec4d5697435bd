/* syncopate strategy: look at strategy files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/options.h"
#include "cli/table.h"
#include "strategy/consistency_text.h"
#include "strategy/encoder.h"
#include "strategy/plan.h"

struct looked_at {
    struct inputs inputs;
    struct strategy strategy;
    struct plan plan;
};

static void looked_at_release(struct looked_at *l) {
    plan_release(&l->plan);
    strategy_release(&l->strategy);
    inputs_release(&l->inputs);
}

static enum status look(const struct arguments *arguments, const char *path, const char *baseline,
                        uint64_t memory_bytes, struct looked_at *out, struct error *err) {
    *out = (struct looked_at){0};
    enum status st = inputs_read(arguments->items[0], arguments->items[1], &out->inputs, err);
    if (!st)
        st = inputs_strategy(&out->inputs, path, baseline, memory_bytes, &out->strategy, err);
    if (!st)
        st = plan_lower(&out->inputs.model, &out->inputs.cluster, &out->strategy, &out->plan, err);
    return st;
}

static const char *policy_text(const struct strategy *s, char *out, size_t n) {
    if (s->policy != POLICY_preemptive)
        return policy_name(s->policy);
    snprintf(out, n, "%s in %u slices", policy_name(s->policy), s->n_slices);
    return out;
}

static const char *credit_text(uint64_t bytes, char *out, size_t n) {
    if (bytes == CREDIT_UNLIMITED)
        return "no limit";
    return bytes ? units_format_bytes(bytes, out, n) : "one message at a time";
}

enum { NAME_ROOM = 120 };

/* "conv1.weight", or "conv1.weight[2]" for shard 2 with a synchronizer of its own. */
static const char *part_name(const struct looked_at *l, uint32_t v, uint32_t k, char out[NAME_ROOM]) {
    const char *name = l->inputs.model.variables[v].name;
    if (l->strategy.variables[v].each)
        snprintf(out, NAME_ROOM, "%.100s[%u]", name, k);
    else
        snprintf(out, NAME_ROOM, "%s", name);
    return out;
}

/* "conv1.weight" or "conv1.weight .. fc.bias (12)" */
static void describe_members(const struct looked_at *l, uint32_t group, char *out, size_t size, uint64_t *bytes) {
    const struct model *model = &l->inputs.model;
    char first[NAME_ROOM], last[NAME_ROOM];
    uint32_t n = 0;
    *bytes = 0;
    for (uint32_t v = 0; v < model->n_variables; v++) {
        const struct variable_sync *sync = &l->strategy.variables[v];
        for (uint32_t k = 0; k < sync_parts(sync); k++) {
            const struct variable_sync *part = sync_part(sync, k);
            if (part->kind != SYNC_ALL_REDUCE || part->group != group)
                continue;
            part_name(l, v, k, n++ ? last : first);
            *bytes += plan_part_bytes(&l->strategy, &model->variables[v], sync, k);
        }
    }
    if (n == 1)
        snprintf(out, size, "%s", first);
    else
        snprintf(out, size, "%s .. %s (%u)", first, last, n);
}

/* How a group is cut: into its slices under preemptive, else by its partition size. */
static const char *cut_text(const struct strategy *s, uint32_t group, char *out, size_t size) {
    uint32_t n = 0;
    if (s->policy != POLICY_preemptive)
        return s->groups[group].partition_bytes ? units_format_bytes(s->groups[group].partition_bytes, out, size)
                                                : "whole";
    for (uint32_t i = 0; i < s->n_slices; i++)
        n += s->slices[i].group == group;
    snprintf(out, size, "%u", n);
    return out;
}

static const char *plain_sharded_text(const struct group *group, char *out, size_t size) {
    static const char *const words[SHARDED_COUNT] = {
        [SHARDED_none] = "",
        [SHARDED_optimizer] = ", in halves",
        [SHARDED_gradients] = ", in halves, sharded gradients",
        [SHARDED_parameters] = ", sharded parameters",
    };
    if (group->reshard_ranks > 0) {
        snprintf(out, size, ", sharded parameters, kept in parts among %u", group->reshard_ranks);
        return out;
    }
    return group->keeps_gathered ? ", sharded parameters, kept" : words[group->sharded];
}

enum { SHARDED_TEXT = 96 };

static const char *sharded_text(const struct group *group, char *out, size_t size) {
    const bool gathers = group->gathered_as, sums = group->summed_as;
    char plain[64];
    snprintf(out, size, "%s%s%s%s%s", plain_sharded_text(group, plain, sizeof plain), gathers ? ", gathered as " : "",
             gathers ? carried_name(group->gathered_as) : "", sums ? ", summed as " : "",
             sums ? carried_name(group->summed_as) : "");
    return out;
}

/* How a group's messages go: by an encoder, which all members have, or by an algorithm. */
static const char *way_text(const struct strategy *s, uint32_t group, char *out, size_t size) {
    for (uint32_t v = 0; v < s->n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&s->variables[v]); k++) {
            const struct variable_sync *part = sync_part(&s->variables[v], k);
            if (part->kind == SYNC_ALL_REDUCE && part->group == group && encoding_is_encoder(part->encoding))
                return encoder_text(part->encoding, part->figure, out, size);
        }
    char sharded[SHARDED_TEXT];
    snprintf(out, size, "%s%s", algorithm_name(s->groups[group].algorithm),
             sharded_text(&s->groups[group], sharded, sizeof sharded));
    return out;
}

static void show_groups(const struct looked_at *l) {
    if (!l->strategy.n_groups)
        return;
    struct table table;
    char members[256], size[32], cut[32], way[128];
    const char *cut_head = l->strategy.policy == POLICY_preemptive ? ">SLICES" : ">PARTITION";
    table_init(&table, (const char *const[]){">GROUP", "ALGORITHM", ">BYTES", cut_head, "VARIABLES", NULL});
    for (uint32_t g = 0; g < l->strategy.n_groups; g++) {
        uint64_t bytes;
        describe_members(l, g, members, sizeof members, &bytes);
        table_cell(&table, "%u", g);
        table_cell(&table, "%s", way_text(&l->strategy, g, way, sizeof way));
        table_cell(&table, "%s", units_format_bytes(bytes, size, sizeof size));
        table_cell(&table, "%s", cut_text(&l->strategy, g, cut, sizeof cut));
        table_cell(&table, "%s", members);
    }
    text_print(stdout, "\nAll-reduce:\n");
    table_print(&table, stdout);
    table_release(&table);
}

static void show_served_part(const struct looked_at *l, uint32_t v, uint32_t k, struct table *table) {
    const struct variable_sync *sync = &l->strategy.variables[v], *part = sync_part(sync, k);
    const uint64_t bytes = plan_part_bytes(&l->strategy, &l->inputs.model.variables[v], sync, k);
    char name[NAME_ROOM], size[32], partition[32], servers[256] = "";
    for (uint32_t i = 0; i < part->n_servers && strlen(servers) + 80 < sizeof servers; i++)
        snprintf(servers + strlen(servers), sizeof servers - strlen(servers), "%s%s", i ? " " : "",
                 l->inputs.cluster.nodes[part->servers[i]].name);
    table_cell(table, "%s", part_name(l, v, k, name));
    table_cell(table, "%s", units_format_bytes(bytes, size, sizeof size));
    table_cell(table, "%u", sync->each ? 1 : sync->shards);
    table_cell(table, "%s", sync->shards > 1 ? (char[]){(char)('0' + sync->axis), 0} : "");
    table_cell(table, "%s",
               part->partition_bytes ? units_format_bytes(part->partition_bytes, partition, sizeof partition)
                                     : "whole");
    table_cell(table, "%s", servers);
}

static void show_served(const struct looked_at *l) {
    if (!l->plan.any_server)
        return;
    struct table table;
    table_init(&table, (const char *const[]){"VARIABLE", ">BYTES", ">SHARDS", "AXIS", ">PARTITION", "SERVERS", NULL});
    for (uint32_t v = 0; v < l->strategy.n_variables; v++)
        for (uint32_t k = 0; k < sync_parts(&l->strategy.variables[v]); k++)
            if (sync_part(&l->strategy.variables[v], k)->kind == SYNC_PARAMETER_SERVER)
                show_served_part(l, v, k, &table);
    text_print(stdout, "\nParameter server:\n");
    table_print(&table, stdout);
    table_release(&table);
}

/* Of whole updates there is nothing to schedule. */
static void show_schedule(const struct strategy *s) {
    char policy[64], credit[32];
    if (!consistency_is_plain(&s->consistency))
        return;
    text_print(stdout, "schedule: %s%s, credit %s, %s\n", policy_text(s, policy, sizeof policy),
               s->pulls_by_priority ? ", pulls too" : "", credit_text(s->credit_bytes, credit, sizeof credit),
               s->cross_iteration ? "communication runs on into the next forward pass" : "barrier between iterations");
    if (strategy_sharded_parameters(s))
        text_print(stdout, "groups gathered ahead: %u in the forward pass, %u in the backward pass\n",
                   s->forward_prefetch, s->backward_prefetch);
    if (s->micro_batches > 1)
        text_print(stdout, "micro-batches: %u an iteration, gradients summed in %s\n", s->micro_batches,
                   s->synchronize == SYNCHRONIZE_last   ? "the last"
                   : s->synchronize == SYNCHRONIZE_each ? "each"
                                                        : "each, by replicas in the last");
    if (s->shard_ranks)
        text_print(stdout, "shards: among %u devices each, whose sums their replicas add up\n", s->shard_ranks);
    for (uint32_t g = 0; g < s->n_groups; g++)
        if (s->groups[g].reshard_ranks) {
            text_print(stdout, "kept in parts between the passes: among %u devices\n", s->groups[g].reshard_ranks);
            break;
        }
}

static void show_consistency(const struct looked_at *l) {
    char *text = consistency_is_plain(&l->strategy.consistency)
                     ? NULL
                     : consistency_text(&l->strategy.consistency, &l->inputs.cluster);
    if (text)
        text_print(stdout, "consistency: %s\n", text);
    free(text);
}

static enum status print_json(const struct looked_at *l, struct error *err) {
    cJSON *json = strategy_write(&l->strategy, &l->inputs.model, &l->inputs.cluster);
    char *text = json ? json_pretty(json) : NULL;
    cJSON_Delete(json);
    enum status st = text ? json_write_file("-", text, err) : error_no_memory(err);
    free(text);
    return st;
}

static enum status strategy_show(int argc, char **argv, struct error *err) {
    const char *path = NULL, *baseline = NULL;
    uint64_t memory_bytes = 0;
    bool json = false;
    const struct option options[] = {
        {"strategy", OPTION_TEXT, &path, "FILE", "the strategy to show"},
        {"baseline", OPTION_TEXT, &baseline, "BASELINE", "or the baseline"},
        STRATEGY_MEMORY_OPTION(memory_bytes),
        {"json", OPTION_FLAG, &json, NULL, "print the whole description, as a file that can be edited and given back"},
        {0}};
    const struct command_line line = {
        .usage = "strategy show MODEL CLUSTER (--strategy FILE | --baseline BASELINE)",
        .about = "What a strategy does with this model on this cluster: schedule, merge groups, servers.",
        .examples = "  syncopate strategy show resnet50 lab-4x1g --baseline pytorch-ddp\n"
                    "  syncopate strategy show bert-large v100-16x10g --baseline fsdp-optimal --memory 500MB",
        .options = options,
        .min_arguments = 2,
        .max_arguments = 2};
    struct arguments arguments;
    struct looked_at l;
    char total[32], largest[32];
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    st = look(&arguments, path, baseline, memory_bytes, &l, err);
    if (!st && json) {
        st = print_json(&l, err);
    } else if (!st) {
        text_print(stdout, "%s (%.12s) for %s on %s\n", l.strategy.name, l.strategy.id.hex, l.inputs.model.name,
                   l.inputs.cluster.name);
        show_schedule(&l.strategy);
        show_consistency(&l);
        text_print(stdout, "messages: %u an iteration, %s in all, the largest %s\n", l.plan.n_messages,
                   units_format_bytes(plan_moved_bytes(&l.plan), total, sizeof total),
                   units_format_bytes(l.plan.max_bytes, largest, sizeof largest));
        show_groups(&l);
        show_served(&l);
    }
    looked_at_release(&l);
    return st;
}

static enum status strategy_check_command(int argc, char **argv, struct error *err) {
    const struct option options[] = {{0}};
    const struct command_line line = {.usage = "strategy check MODEL CLUSTER FILE",
                                      .about =
                                          "Is FILE a valid strategy for this model and cluster? Says which rule it\n"
                                          "breaks and where, with exit status 2; prints its id when it is valid.",
                                      .options = options,
                                      .min_arguments = 3,
                                      .max_arguments = 3};
    struct arguments arguments;
    struct looked_at l;
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (st)
        return st;
    st = look(&arguments, arguments.items[2], NULL, 0, &l, err);
    if (!st)
        text_print(stdout, "%s\n", l.strategy.id.hex);
    looked_at_release(&l);
    return st;
}

static void describe_part(const struct variable_sync *part, const struct strategy *strategy,
                          const struct cluster *cluster, FILE *text) {
    const struct group *group = part->kind == SYNC_ALL_REDUCE ? &strategy->groups[part->group] : NULL;
    uint64_t partition = group ? group->partition_bytes : part->partition_bytes;
    char sharded[SHARDED_TEXT];
    if (group)
        fprintf(text, "%s in group %u by %s%s",
                group->algorithm == ALGORITHM_all_gather ? "touched rows" : "all-reduce", part->group,
                algorithm_name(group->algorithm), sharded_text(group, sharded, sizeof sharded));
    else
        fprintf(text, "server%s", part->local_reduction ? "" : " (each device)");
    for (uint32_t i = 0; i < part->n_servers; i++)
        fprintf(text, " %s", cluster->nodes[part->servers[i]].name);
    if (part->push)
        fprintf(text, " in push %u", part->push);
    if (partition)
        fprintf(text, ", partitions of %lu", (unsigned long)partition);
    char encoding[64];
    if (part->encoding != ENCODING_none)
        fprintf(text, ", as %s", encoder_text(part->encoding, part->figure, encoding, sizeof encoding));
}

/* "2 shards of axis 0: server n1" or "2 shards of axis 0: [0] server n1; [1] all-reduce in group 3 by ring" */
static void describe_sync(const struct variable_sync *sync, const struct strategy *strategy,
                          const struct cluster *cluster, char *out, size_t size) {
    FILE *text = fmemopen(out, size, "w");
    if (!text)
        return;
    if (sync->shards > 1)
        fprintf(text, "%u shards of axis %u: ", sync->shards, sync->axis);
    for (uint32_t k = 0; k < sync_parts(sync); k++) {
        if (sync->each)
            fprintf(text, "%s[%u] ", k ? "; " : "", k);
        describe_part(sync_part(sync, k), strategy, cluster, text);
    }
    fclose(text);
}

/* The first slice that differs, of two schedules that both have slices. */
static void diff_slices(const struct strategy *a, const struct strategy *b, struct table *table) {
    uint32_t i = 0, n = a->n_slices < b->n_slices ? a->n_slices : b->n_slices;
    while (i < n && a->slices[i].group == b->slices[i].group && a->slices[i].bytes == b->slices[i].bytes)
        i++;
    if (i == n)
        return;
    table_cell(table, "slice %u", i);
    table_cell(table, "%lu bytes of group %u", (unsigned long)a->slices[i].bytes, a->slices[i].group);
    table_cell(table, "%lu bytes of group %u", (unsigned long)b->slices[i].bytes, b->slices[i].group);
}

static void diff_consistency(const struct strategy *a, const struct strategy *b, const struct cluster *cluster,
                             struct table *table) {
    char *x = consistency_text(&a->consistency, cluster), *y = consistency_text(&b->consistency, cluster);
    if (x && y && strcmp(x, y) != 0) {
        table_cell(table, "consistency");
        table_cell(table, "%s", x);
        table_cell(table, "%s", y);
    }
    free(x);
    free(y);
}

static void diff_number(const char *what, uint32_t a, uint32_t b, struct table *table) {
    if (a == b)
        return;
    table_cell(table, "%s", what);
    table_cell(table, "%u", a);
    table_cell(table, "%u", b);
}

static void diff_shard_ranks(const struct strategy *a, const struct strategy *b, struct table *table) {
    if (a->shard_ranks == b->shard_ranks)
        return;
    table_cell(table, "shard_ranks");
    table_cell(table, a->shard_ranks ? "%u" : "all", a->shard_ranks);
    table_cell(table, b->shard_ranks ? "%u" : "all", b->shard_ranks);
}

static void diff_accumulation(const struct strategy *a, const struct strategy *b, struct table *table) {
    if (a->micro_batches != b->micro_batches) {
        table_cell(table, "micro_batches");
        table_cell(table, "%u", a->micro_batches);
        table_cell(table, "%u", b->micro_batches);
    }
    if (a->synchronize != b->synchronize) {
        table_cell(table, "synchronize");
        table_cell(table, "%s", synchronize_name(a->synchronize));
        table_cell(table, "%s", synchronize_name(b->synchronize));
    }
}

static void diff_schedule(const struct strategy *a, const struct strategy *b, struct table *table) {
    char x[64], y[64];
    if (a->policy != b->policy || a->n_slices != b->n_slices) {
        table_cell(table, "policy");
        table_cell(table, "%s", policy_text(a, x, sizeof x));
        table_cell(table, "%s", policy_text(b, y, sizeof y));
    }
    diff_slices(a, b, table);
    if (a->pulls_by_priority != b->pulls_by_priority) {
        table_cell(table, "pulls");
        table_cell(table, "%s", a->pulls_by_priority ? "by priority" : "at once");
        table_cell(table, "%s", b->pulls_by_priority ? "by priority" : "at once");
    }
    if (a->credit_bytes != b->credit_bytes) {
        table_cell(table, "credit");
        table_cell(table, "%s", credit_text(a->credit_bytes, x, sizeof x));
        table_cell(table, "%s", credit_text(b->credit_bytes, y, sizeof y));
    }
    if (a->cross_iteration != b->cross_iteration) {
        table_cell(table, "cross_iteration");
        table_cell(table, "%s", a->cross_iteration ? "yes" : "no");
        table_cell(table, "%s", b->cross_iteration ? "yes" : "no");
    }
    diff_number("forward_prefetch", a->forward_prefetch, b->forward_prefetch, table);
    diff_number("backward_prefetch", a->backward_prefetch, b->backward_prefetch, table);
    diff_shard_ranks(a, b, table);
    diff_accumulation(a, b, table);
    if (a->n_groups != b->n_groups) {
        table_cell(table, "groups");
        table_cell(table, "%u", a->n_groups);
        table_cell(table, "%u", b->n_groups);
    }
}

static void print_differences(const struct inputs *inputs, const struct strategy *pair) {
    struct table table;
    char text[2][1024];
    table_init(&table, (const char *const[]){"", pair[0].name, pair[1].name, NULL});
    diff_schedule(&pair[0], &pair[1], &table);
    diff_consistency(&pair[0], &pair[1], &inputs->cluster, &table);
    for (uint32_t v = 0; v < inputs->model.n_variables; v++) {
        for (int i = 0; i < 2; i++)
            describe_sync(&pair[i].variables[v], &pair[i], &inputs->cluster, text[i], sizeof text[i]);
        if (!strcmp(text[0], text[1]))
            continue;
        table_cell(&table, "%s", inputs->model.variables[v].name);
        table_cell(&table, "%s", text[0]);
        table_cell(&table, "%s", text[1]);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static enum status strategy_diff(int argc, char **argv, struct error *err) {
    const struct option options[] = {{0}};
    const struct command_line line = {.usage = "strategy diff MODEL CLUSTER A B",
                                      .about = "Where two strategies differ. A and B are files or names of baselines.\n"
                                               "Exit status 0 when they are the same, 1 when they differ.",
                                      .examples = "  syncopate strategy diff resnet50 lab-4x1g pytorch-ddp best.json",
                                      .options = options,
                                      .min_arguments = 4,
                                      .max_arguments = 4};
    struct arguments arguments;
    struct inputs inputs = {0};
    struct strategy pair[2] = {0};
    enum status st = options_parse(&line, argc, argv, &arguments, err);
    if (!st)
        st = inputs_read(arguments.items[0], arguments.items[1], &inputs, err);
    for (int i = 0; i < 2 && !st; i++)
        st = inputs_strategy_word(&inputs, arguments.items[2 + i], 0, &pair[i], err);
    bool differ = !st && memcmp(&pair[0].id, &pair[1].id, sizeof pair[0].id);
    if (differ)
        print_differences(&inputs, pair);
    strategy_release(&pair[0]);
    strategy_release(&pair[1]);
    inputs_release(&inputs);
    if (differ) {
        fflush(stdout);
        exit(1);
    }
    return st;
}

enum status cmd_strategy(int argc, char **argv, struct error *err) {
    static const struct command rows[] = {
        {"show", strategy_show, "show what a strategy does, for people or as JSON"},
        {"check", strategy_check_command, "check that a strategy is valid for a model and a cluster"},
        {"diff", strategy_diff, "show where two strategies differ"},
        {"export", strategy_export, "write a strategy in the form that a training framework takes"},
        {0}};
    return commands_run(rows, "strategy", "Look at strategy files.", argc, argv, err);
}

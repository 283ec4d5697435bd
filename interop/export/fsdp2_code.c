/* PyTorch code that calls fully_shard as fsdp2.json says (fsdp2.c), for who wants no package of ours: fsdp2.py with one
 * function, shard(model).
 *
 * fully_shard takes modules, and of these the strategy knows names. A name's parts up to its last point are the modules
 * around the variable. A group's variable stands for the outermost of these whose variables are all in the group. A
 * module all of whose members are numbers may be a list, which is never called and cannot be sharded, so its members
 * stand for themselves. Where the module of a variable itself has other groups inside, it stands for the group all the
 * same: fully_shard takes what earlier calls left, so what lies inside goes first. */
#include <stdlib.h>
#include <string.h>

#include "interop/export/export_internal.h"
#include "interop/export/fsdp2.h"

enum { LONGEST_LINE = 118 };

/* A module as names tell of it. Modules are in the order of `compare_modules`, each once. */
struct module {
    const char *name; /* of its first variable; the module's own name is `length` of it, 0: the model */
    size_t length;
    uint32_t group; /* of its variables */
    bool mixed;     /* several groups */
    bool named;     /* some member is no number */
    bool is_unit;   /* fully_shard is called on it, for `unit_of` */
    uint32_t unit_of;
};

struct page {
    struct form *form;
    cJSON *groups;
    uint32_t n_groups;
    struct module *modules;
    size_t n_modules;
    uint32_t *level; /* by group: calls go by levels, from 0 */
};

static int compare_modules(const void *a, const void *b) {
    const struct module *x = a, *y = b;
    const int order = memcmp(x->name, y->name, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* ---- modules ---- */

/* The end of the module inside `length` of a name's first characters; the own module's length is the last one. */
static size_t next_end(const char *name, size_t length, size_t own) {
    const char *point = length < own ? memchr(name + length + 1, '.', own - length - 1) : NULL;
    return point ? (size_t)(point - name) : own;
}

static bool is_number(const char *name, size_t from, size_t to) {
    from += name[from] == '.';
    for (size_t i = from; i < to; i++)
        if (name[i] < '0' || name[i] > '9')
            return false;
    return to > from;
}

/* Count the modules around all variables or, where there is room for them, put them down. */
static size_t list_modules(struct page *p, struct module *into) {
    size_t n = 0;
    uint32_t g = 0;
    for (const cJSON *group = p->groups->child; group; group = group->next, g++)
        for (const cJSON *v = cJSON_GetObjectItem(group, "variables")->child; v; v = v->next) {
            const char *name = v->valuestring;
            const size_t own = fsdp2_module_length(p->form, name);
            for (size_t length = 0;; length = next_end(name, length, own)) {
                const bool named = !length || length == own || !is_number(name, length, next_end(name, length, own));
                if (into)
                    into[n] = (struct module){.name = name, .length = length, .group = g, .named = named};
                n++;
                if (length == own)
                    break;
            }
        }
    return n;
}

static size_t merge_equal(struct module *m, size_t n) {
    size_t last = 0;
    for (size_t i = 1; i < n; i++) {
        if (compare_modules(&m[last], &m[i])) {
            m[++last] = m[i];
            continue;
        }
        m[last].mixed |= m[last].group != m[i].group;
        m[last].named |= m[i].named;
    }
    return n ? last + 1 : 0;
}

static bool find_modules(struct page *p) {
    const size_t n = list_modules(p, NULL);
    p->modules = arena_alloc(p->form->arena, n, sizeof *p->modules);
    if (!p->modules)
        return false;
    list_modules(p, p->modules);
    qsort(p->modules, n, sizeof *p->modules, compare_modules);
    p->n_modules = merge_equal(p->modules, n);
    return true;
}

static struct module *module_of(const struct page *p, const char *name, size_t length) {
    const struct module key = {.name = name, .length = length};
    return bsearch(&key, p->modules, p->n_modules, sizeof key, compare_modules);
}

/* The module that stands for a variable of group g. */
static struct module *unit_for(const struct page *p, const char *name) {
    const size_t own = fsdp2_module_length(p->form, name);
    for (size_t length = 0;; length = next_end(name, length, own)) {
        struct module *m = module_of(p, name, length);
        if (length == own || (!m->mixed && m->named))
            return m;
    }
}

/* Whether the next unit around this one is of the same group, so that its call takes this one, too. */
static bool lies_in_its_group(const struct page *p, const struct module *unit) {
    const struct module *next = NULL;
    for (size_t length = 0; length < unit->length; length = next_end(unit->name, length, unit->length)) {
        const struct module *around = module_of(p, unit->name, length);
        next = around->is_unit ? around : next;
    }
    return next && next->unit_of == unit->unit_of;
}

static void choose_units(struct page *p) {
    uint32_t g = 0;
    for (const cJSON *group = p->groups->child; group; group = group->next, g++)
        for (const cJSON *v = cJSON_GetObjectItem(group, "variables")->child; v; v = v->next) {
            struct module *unit = unit_for(p, v->valuestring);
            unit->is_unit = true;
            unit->unit_of = g;
        }
    for (size_t i = p->n_modules; i-- > 0;) /* what lies inside comes later in this order */
        p->modules[i].is_unit = p->modules[i].is_unit && !lies_in_its_group(p, &p->modules[i]);
}

/* ---- the order of calls ---- */

/* Put the groups of all units around this one above its own group. Returns whether any rose. */
static bool raise_around(struct page *p, const struct module *unit) {
    bool rose = false;
    for (size_t length = 0; length < unit->length; length = next_end(unit->name, length, unit->length)) {
        const struct module *around = module_of(p, unit->name, length);
        if (!around->is_unit || around->unit_of == unit->unit_of || p->level[around->unit_of] > p->level[unit->unit_of])
            continue;
        p->level[around->unit_of] = p->level[unit->unit_of] + 1;
        rose = true;
    }
    return rose;
}

/* False when memory is out. Groups that lie in each other have no order, and that is noted. */
static bool order_calls(struct page *p) {
    p->level = arena_alloc(p->form->arena, p->n_groups, sizeof *p->level);
    if (!p->level)
        return false;
    memset(p->level, 0, p->n_groups * sizeof *p->level);
    bool rose = true;
    for (uint32_t pass = 0; pass <= p->n_groups && rose; pass++) {
        rose = false;
        for (size_t i = 0; i < p->n_modules; i++)
            if (p->modules[i].is_unit)
                rose |= raise_around(p, &p->modules[i]);
    }
    if (rose)
        form_note(p->form, EXPORT_LOSS_GROUPS,
                  "the modules of two groups lie in each other, which fully_shard cannot do");
    return true;
}

/* ---- the page ---- */

static const char imports[] = "import torch.distributed as dist\n"
                              "from torch.distributed.device_mesh import init_device_mesh\n"
                              "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard\n\n";

static const char head[] =
    "\ndef shard(model, shard_ranks=%s, policy=%s):\n"
    "    \"\"\"Shards the model in place and returns it; make the optimizer afterwards. All ranks have the same "
    "parameters\n"
    "    before, and torch.distributed is initialized.\n\n"
    "    shard_ranks: so many consecutive ranks share the shards, and replicas of these all-reduce (HSDP); None: all "
    "do.\n"
    "    policy: types that travel, as MixedPrecisionPolicy(param_dtype=torch.bfloat16, "
    "reduce_dtype=torch.float32).\"\"\"\n"
    "    device, ranks = next(model.parameters()).device.type, dist.get_world_size()\n"
    "    share = shard_ranks or ranks\n"
    "    if ranks %% share:\n"
    "        raise ValueError(f\"shard_ranks is {share}, which does not divide the {ranks} ranks\")\n"
    "    mesh = init_device_mesh(device, (ranks,))\n"
    "    if share < ranks:\n"
    "        mesh = init_device_mesh(device, (ranks // share, share), mesh_dim_names=(\"replicate\", \"shard\"))\n"
    "    of = model.get_submodule\n";

static const char *torch_type(enum dtype dtype) {
    return dtype == DTYPE_f64    ? "torch.float64"
           : dtype == DTYPE_f16  ? "torch.float16"
           : dtype == DTYPE_bf16 ? "torch.bfloat16"
                                 : "torch.float32";
}

/* The page up to the groups, with one policy for all of them. fully_shard sums in param_dtype where it is not told. */
static void write_head(struct form *f, FILE *file) {
    enum carried gathered, summed;
    const enum dtype own = form_sharded_dtype(f);
    const bool alike = form_carried(f, &gathered, &summed) && (own != DTYPE_COUNT || summed || !gathered);
    if (!alike)
        form_note_carried(f);
    const bool says = alike && (gathered || summed);
    fputs(says ? "import torch\n" : "", file);
    fputs(imports, file);
    if (says) {
        fprintf(file, "POLICY = MixedPrecisionPolicy(");
        if (gathered)
            fprintf(file, "param_dtype=%s, ", torch_type(carried_dtype(gathered, own)));
        fprintf(file, "reduce_dtype=%s)\n\n", torch_type(carried_dtype(summed, own)));
    }
    const char *ranks = f->strategy->shard_ranks ? arena_printf(f->arena, "%u", f->strategy->shard_ranks) : "None";
    f->no_memory |= !ranks;
    fprintf(file, head, ranks ? ranks : "", says ? "POLICY" : "MixedPrecisionPolicy()");
}

/* `of("blocks.0")`, or `model`, after what has `column` characters; returns the column behind. */
static size_t write_unit(struct form *f, FILE *file, const struct module *unit, bool first, size_t column) {
    if (!unit->length) {
        fprintf(file, first ? "model" : ", model");
        return column + 7;
    }
    const char *name = arena_printf(f->arena, "%.*s", (int)unit->length, unit->name);
    cJSON *string = name ? cJSON_CreateString(name) : NULL;
    char *quoted = string ? cJSON_PrintUnformatted(string) : NULL; /* as Python writes strings, too */
    const size_t size = quoted ? strlen(quoted) + strlen(", of()") : 0;
    const bool wraps = !first && column + size > LONGEST_LINE;
    f->no_memory |= !quoted;
    fprintf(file, "%sof(%s)", first ? "" : wraps ? ",\n          " : ", ", quoted ? quoted : "");
    cJSON_free(quoted);
    cJSON_Delete(string);
    return wraps ? 8 + size : column + size;
}

static void write_groups(struct page *p, FILE *file) {
    uint32_t g = 0;
    fprintf(file, "    groups = [  # in the order of the forward pass: modules, and reshard_after_forward\n");
    for (const cJSON *group = p->groups->child; group; group = group->next, g++) {
        bool first = true;
        size_t column = 10;
        fprintf(file, "        ([");
        for (const cJSON *v = cJSON_GetObjectItem(group, "variables")->child; v; v = v->next) {
            struct module *unit = unit_for(p, v->valuestring);
            if (!unit->is_unit)
                continue; /* written before */
            column = write_unit(p->form, file, unit, first, column);
            unit->is_unit = first = false;
        }
        const cJSON *reshard = cJSON_GetObjectItem(group, "reshard_after_forward");
        if (cJSON_IsNumber(reshard))
            fprintf(file, "], %u),\n", (unsigned)reshard->valuedouble);
        else
            fprintf(file, "], %s),\n", cJSON_IsTrue(reshard) ? "True" : "False");
    }
    fprintf(file, "    ]\n");
}

static void write_calls(const struct page *p, FILE *file, bool has_root) {
    uint32_t most = 0;
    for (uint32_t g = 0; g < p->n_groups; g++)
        most = p->level[g] > most ? p->level[g] : most;
    if (!most) {
        fprintf(file, "    for modules, reshard in groups:\n");
    } else {
        fprintf(file, "    for i in (  # what lies inside another module goes before it\n       ");
        size_t column = 7;
        for (uint32_t level = 0; level <= most; level++)
            for (uint32_t g = 0; g < p->n_groups; g++) {
                if (p->level[g] != level)
                    continue;
                column = column > LONGEST_LINE - 12 ? (size_t)fprintf(file, "\n       ") : column;
                column += (size_t)fprintf(file, " %u,", g);
            }
        fprintf(file, "\n    ):\n        modules, reshard = groups[i]\n");
    }
    fprintf(file, "        fully_shard(modules, mesh=mesh, reshard_after_forward=reshard, mp_policy=policy)\n");
    if (!has_root)
        fprintf(file,
                "    fully_shard(model, mesh=mesh, mp_policy=policy)  # the root, which has no parameters left\n");
}

/* fully_shard's own streams gather 2 groups ahead in the forward and 1 in the backward pass. */
static void write_prefetch(const struct page *p, FILE *file) {
    const struct strategy *s = p->form->strategy;
    const uint32_t forward = fsdp2_prefetch(s->forward_prefetch, p->n_groups),
                   backward = fsdp2_prefetch(s->backward_prefetch, p->n_groups);
    if (forward == 2 && backward == 1) {
        fprintf(file,
                "    return model  # fully_shard gathers 2 groups ahead, and 1 in the backward pass, by itself\n");
        return;
    }
    fprintf(file, "    units = [modules[0] for modules, _ in groups]\n    for i, unit in enumerate(units):\n");
    if (forward)
        fprintf(file, "        unit.set_modules_to_forward_prefetch(units[i + 1 : i + %u])\n", forward + 1);
    if (backward)
        fprintf(file, "        before = units[max(i - %u, 0) : i][::-1]\n", backward);
    fprintf(file, "        unit.set_modules_to_backward_prefetch(%s)  # itself: nothing; an empty list: the default\n",
            backward ? "before or [unit]" : "[unit]");
    fprintf(file, "    return model\n");
}

static void write_page(struct page *p) {
    struct form *f = p->form;
    FILE *file = form_open(f);
    if (!file)
        return;
    const bool has_root = module_of(p, "", 0)->is_unit;
    form_write_head(f, file, "for PyTorch's fully_shard (FSDP2): from fsdp2 import shard; model = shard(model)");
    write_head(f, file);
    write_groups(p, file);
    write_calls(p, file, has_root);
    write_prefetch(p, file);
    form_close(f, "fsdp2.py", file);
}

enum status export_fsdp2_code(struct form *f, struct error *err) {
    (void)err;
    struct page page = {.form = f};
    page.groups = fsdp2_groups(f, CAN_CARRY, &page.n_groups);
    if (page.groups && find_modules(&page)) {
        choose_units(&page);
        if (order_calls(&page))
            write_page(&page);
        else
            f->no_memory = true;
    } else {
        f->no_memory = true;
    }
    cJSON_Delete(page.groups);
    return ST_OK;
}

/* Models from PipeDream's, Espresso's and safetensors' files: what is read, what is assumed, what is refused and where.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/rng.h"
#include "interop/import/layer_shapes.h"
#include "tests/support/check.h"
#include "tests/unit/interop/import_notes.h"

static const char profile[] =
    "node1 -- Input0 -- forward_compute_time=600.5, backward_compute_time=0.000, activation_size=4.0, "
    "parameter_size=0.000\n"
    "node10 -- Linear(in_features=6, out_features=3, bias=True) -- forward_compute_time=0.427, "
    "backward_compute_time=1.5, activation_size=[4.0; 8.0], parameter_size=84.000\n"
    "node2 -- Conv2d(3, 2, kernel_size=(5, 5), stride=(1, 1), bias=False) -- forward_compute_time=2.000, "
    "backward_compute_time=3.000, activation_size=8.0, parameter_size=600.000 -- stage_id=0\n"
    "node3 -- ReLU(inplace) -- forward_compute_time=0.1, backward_compute_time=0.2, activation_size=8.0, "
    "parameter_size=0.000\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node10\n\tnode2 -- node10";

static void a_pipedream_profile_is_its_graph_without_the_input(void **state) {
    (void)state;
    struct error err;
    struct model m;
    const struct import_settings settings = {.batch = 64};
    assert_ok(import_model_text(profile, &settings, &notes, &m, &err));
    assert_string_equal(m.name, "file");
    assert_int_equal(m.n_operators, 6);
    assert_close(m.batch_per_device, 64, 0);
    assert_close(m.forward_us, 2527, 1e-12);
    assert_close(m.backward_us, 4700, 1e-12);
    const struct operator* last = & m.operators[2];
    assert_string_equal(last->name, "node10 Linear(in_features=6, out_features=3, bias=True)");
    assert_close(last->time_us, 427, 0);
    assert_int_equal(last->n_after, 2);
    assert_int_equal(last->after[0] + last->after[1], 1);
    const struct operator* first_gradient = & m.operators[m.order[3]];
    assert_string_equal(first_gradient->name, "node10.grad");
    assert_int_equal(first_gradient->n_after, 0);
    assert_true(noted(&notes, "600.5 ms of waiting"));
    assert_false(noted(&notes, "--batch"));
    model_release(&m);
}

static void layers_are_split_into_their_tensors(void **state) {
    (void)state;
    struct error err;
    struct model m;
    assert_ok(import_model_text(profile, &(struct import_settings){0}, &notes, &m, &err));
    assert_int_equal(m.n_variables, 3);
    const struct variable *kernel = &m.variables[model_find_variable(&m, "node2.weight")];
    const uint64_t sizes[] = {2, 3, 5, 5};
    assert_int_equal(kernel->rank, 4);
    assert_memory_equal(kernel->shape, sizes, sizeof sizes);
    assert_int_equal(m.variables[model_find_variable(&m, "node10.weight")].bytes, 72);
    assert_int_equal(m.variables[model_find_variable(&m, "node10.bias")].bytes, 12);
    assert_true(noted(&notes, "give --batch"));
    model_release(&m);
}

static void tensors_follow_from_the_module_or_are_one(void **state) {
    (void)state;
    static const struct {
        const char *words;
        uint64_t elements;
        size_t n;
        const char *last;
    } layers[] = {
        {"Conv2d(3, 64, kernel_size=(3, 3), padding=(1, 1))", 1792, 2, "bias"},
        {"Conv2d(8, 64, kernel_size=(1, 3), groups=4, bias=False)", 384, 1, "weight"},
        {"BatchNorm2d(64, eps=1e-05)", 128, 2, "bias"},
        {"LayerNorm((768,), eps=1e-05)", 1536, 2, "bias"},
        {"Embedding(32320, 1024, padding_idx=0)", 32320 * 1024, 1, "weight"},
        {"LSTM(2048, 1024)", 12591104, 4, "bias_hh"},
        {"Linear(in_features=5, out_features=7, bias=True)", 43, 1, "parameters"},
        {"LSTM(2048, 1024, bidirectional=True)", 25182208, 1, "parameters"},
        {"Conv2d(4294967295, 4294967295, kernel_size=(4294967295, 4294967295))", 8, 1, "parameters"},
        {"Conv2d(3, 64, kernel_size=(3, 3), groups=0)", 8, 1, "parameters"},
        {"Attention()", 12, 1, "parameters"},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct layer_tensor tensors[LAYER_MAX_TENSORS];
        uint64_t sum = 0;
        assert_int_equal(layer_tensors(layers[i].words, layers[i].elements, tensors), layers[i].n);
        assert_string_equal(tensors[layers[i].n - 1].name, layers[i].last);
        for (size_t k = 0; k < layers[i].n; k++) {
            uint64_t elements = 1;
            for (uint32_t a = 0; a < tensors[k].shape.rank; a++)
                elements *= tensors[k].shape.sizes[a];
            sum += elements;
        }
        assert_int_equal(sum, layers[i].elements);
    }
}

static void refused(const char *text, const char *part) {
    struct error err;
    struct model m;
    assert_fails(import_model_text(text, &(struct import_settings){0}, &notes, &m, &err), ST_INVALID, part);
}

#define FIGURES(parameters) "forward_compute_time=1, backward_compute_time=1, parameter_size=" parameters

static void bad_profiles_are_refused_with_their_line(void **state) {
    (void)state;
    refused("node1 -- A -- forward_compute_time=x, backward_compute_time=1, parameter_size=4", "file.txt:1: forward_");
    refused("node1 -- A -- forward_compute_time=1, parameter_size=4", "file.txt:1: a layer needs");
    refused("node1 -- A -- " FIGURES("4") ", speed=3", "file.txt:1: there is no figure \"speed\"");
    refused("node1 -- A -- " FIGURES("5"), "not a multiple of 4");
    refused("node1 -- A -- " FIGURES("-4"), "out of range");
    refused("node1 -- A -- " FIGURES("4") "\nnode1 -- B -- " FIGURES("4"),
            "file.txt:2: \"node1\" again; lines 1 and 2");
    refused("node1 -- A -- " FIGURES("4") "\n\tnode1 -- node2", "file.txt:2: an edge of \"node2\"");
    refused("node1 -- A -- " FIGURES("4") "\n\tnode1 -- node1", "file.txt:2: an edge from \"node1\" to itself");
    refused("node1 -- Input -- " FIGURES("0") "\nnode2 -- A -- " FIGURES("4") "\n\tnode2 -- node1",
            "file.txt:3: an edge into \"node1\"");
    refused("node1 -- A -- " FIGURES("4") "\nnode2 -- A -- " FIGURES("4") "\n\tnode1 -- node2\n\tnode2 -- node1",
            "cycle");
    refused("node1 -- A -- " FIGURES("0"), "at least one variable");
    refused("node1 -- A -- " FIGURES("4") "\nnode2", "file.txt:2: a layer is");
}

/* The profile above without its end, from every edge on: node1, node2 and node3 each feed one that nothing else feeds.
 * The last edge is one of two into node10, and nothing shows that it is missing. */
static void a_profile_without_the_end_of_its_edges_is_refused(void **state) {
    (void)state;
    const char *edge = strchr(profile, '\t');
    for (size_t whole = 0; edge; whole++, edge = strchr(edge + 1, '\t')) {
        char text[sizeof profile];
        snprintf(text, sizeof text, "%.*s", (int)(edge - profile), profile);
        struct error err;
        struct model m;
        static const char *const parts[] = {
            "file.txt:3: of 0 edges none leads to \"node2\", which is no input; the end of the file may be missing",
            "file.txt:4: of 1 edges none leads to \"node3\"", "file.txt:2: of 2 edges none leads to \"node10\""};
        if (whole < 3) {
            refused(text, parts[whole]);
            continue;
        }
        assert_ok(import_model_text(text, &(struct import_settings){0}, &notes, &m, &err));
        model_release(&m);
    }
    /* Without inputs there is one first layer. What computes nothing may stand alone. */
    struct error err;
    struct model m;
    assert_ok(
        import_model_text("a -- A -- " FIGURES("4") "\nb -- B -- " FIGURES(
                              "4") "\n"
                                   "c -- hidden -- forward_compute_time=0, backward_compute_time=0, parameter_size=0\n"
                                   "\ta -- b\n\tc -- b",
                          &(struct import_settings){0}, &notes, &m, &err));
    model_release(&m);
    refused("a -- A -- " FIGURES("4") "\nb -- B -- " FIGURES("4"), "file.txt:2: of 0 edges none leads to \"b\"");
}

static const char table[] = "index,tensor,elements,bytes_fp32,ready_gap_us,ready_us\r\n"
                            "0,b,10,40,0,0\r\n1,a,3,12,70,70\r\n2,e,5,20,30.5,100.5\r\n";

static void a_tensor_table_is_a_chain_in_the_opposite_order(void **state) {
    (void)state;
    struct error err;
    struct model m;
    assert_ok(import_model_text(table, &(struct import_settings){.forward_ratio = 0.4}, &notes, &m, &err));
    assert_string_equal(m.name, "file-estimate");
    assert_int_equal(m.n_operators, 6);
    assert_string_equal(m.operators[m.order[0]].name, "e");
    assert_close(m.operators[m.order[0]].time_us, 12.2, 1e-12);
    assert_string_equal(m.variables[m.operators[m.order[3]].produces[0]].name, "b");
    assert_string_equal(m.variables[m.operators[m.order[5]].produces[0]].name, "e");
    assert_close(m.operators[m.order[5]].time_us, 30.5, 0);
    assert_close(m.backward_us, 100.5, 1e-12);
    assert_true(noted(&notes, "taken to need 0.4 of its backward time"));
    model_release(&m);
}

static void either_column_of_times_is_enough(void **state) {
    (void)state;
    struct error err;
    struct model m;
    assert_ok(import_model_text("ready_us,tensor,elements\n5,a,1\n9,b,2", &(struct import_settings){.name = "n"},
                                &notes, &m, &err));
    assert_string_equal(m.name, "n");
    assert_close(m.backward_us, 9, 0);
    assert_close(m.forward_us, 4.5, 0);
    model_release(&m);
    assert_ok(import_model_text("tensor,elements,ready_gap_us\na,1,5\nb,2,4", &(struct import_settings){0}, &notes, &m,
                                &err));
    assert_close(m.backward_us, 9, 0);
    model_release(&m);
}

static void bad_tables_are_refused_with_their_line(void **state) {
    (void)state;
    refused("tensor,ready_us,speed\n", "file.txt:1: there is no column \"speed\"");
    refused("tensor,ready_us,tensor\n", "file.txt:1: column \"tensor\" twice");
    refused("tensor,ready_us\n", "file.txt:1: needed are");
    refused("tensor,elements,ready_us\n", "a table without tensors");
    refused("tensor,elements,ready_us\na,4\n", "file.txt:2: 2 fields where the first line names 3");
    refused("tensor,elements,ready_us\na,4,1,1\n", "file.txt:2: 4 fields");
    refused("tensor,elements,ready_us\na,4,5\nb,4,4\n", "file.txt:3: ready_us 4 is out of range");
    refused("tensor,elements,ready_us\na,0,5\n", "file.txt:2: elements 0 is out of range");
    refused("tensor,elements,ready_us\n,1,5\n", "file.txt:2: a tensor without a name");
    refused("tensor,elements,ready_us\na,1,nan\n", "file.txt:2: ready_us \"nan\" is not a number");
    refused("tensor,elements,ready_us\na,1,1\nc,1,2\na,1,3\n", "file.txt:4: variable \"a\" again; it stands in line 2");
    refused("tensor,elements,bytes_fp32,ready_us\na,4,8,5\n", "file.txt:2: 4 elements are not 8 bytes");
    refused("tensor,elements,ready_gap_us,ready_us\na,4,8,5\n", "the gaps so far add up to 8");
}

/* The header with its length before it. */
static struct source safetensors_of(const char *header, size_t n_data) {
    const size_t n = strlen(header);
    char *text = arena_alloc(&arena, 8 + n + n_data + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < 8; i++)
        text[i] = (char)(n >> 8 * i & 0xff);
    memcpy(text + 8, header, n);
    return (struct source){.name = "m.safetensors", .text = text, .n = 8 + n + n_data};
}

static void a_safetensors_header_gives_shapes_and_estimated_times(void **state) {
    (void)state;
    const struct source source =
        safetensors_of("{\"__metadata__\":{\"format\":\"pt\"},"
                       "\"h.10.w.weight\":{\"dtype\":\"F16\",\"shape\":[1000,2000],\"data_offsets\":[0,4000000]},"
                       "\"h.2.w.weight\":{\"dtype\":\"F32\",\"shape\":[100,200],\"data_offsets\":[4040400,4120400]},"
                       "\"h.2.w.bias\":{\"dtype\":\"F32\",\"shape\":[100],\"data_offsets\":[4000000,4000400]},"
                       "\"ids\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[4000400,4000400]},"
                       "\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[50,200],\"data_offsets\":[4000400,4040400]}}   ",
                       4120400);
    const struct import_settings settings = {.batch = 4, .positions = 1000, .tflops = 2};
    struct error err;
    struct model m;
    cJSON *json;
    assert_ok(import_model(&source, NULL, &settings, &notes, &json, &err));
    assert_ok(model_read(json, "m", &m, &err));
    assert_true(noted(&notes, "m.safetensors: 1 of 5 tensors are left out: integers"));
    assert_string_equal(m.name, "m-estimate");
    assert_int_equal(m.n_variables, 4);
    assert_string_equal(m.variables[0].name, "wte.weight");
    assert_string_equal(m.variables[1].name, "h.2.w.bias");
    assert_string_equal(m.variables[3].name, "h.10.w.weight");
    assert_int_equal(m.variables[3].dtype, DTYPE_f16);
    assert_int_equal(m.n_operators, 6);
    assert_close(m.operators[m.order[0]].time_us, 0, 0);
    assert_close(m.operators[m.order[2]].time_us, 2e6 * 2 * 4000 / 2e6, 1e-9);
    assert_close(m.backward_us, 2 * m.forward_us, 1e-12);
    model_release(&m);
    cJSON_Delete(json);
}

static void safetensors_need_a_whole_header_and_the_device(void **state) {
    (void)state;
    struct error err;
    cJSON *json;
    const struct import_settings settings = {.batch = 4, .positions = 1000, .tflops = 2};
    const char *header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}";
    struct source source = safetensors_of(header, 12);
    assert_fails(import_model(&source, NULL, &(struct import_settings){.batch = 4}, &notes, &json, &err), ST_USAGE,
                 "--tflops");
    source.n = 20;
    assert_fails(import_model(&source, NULL, &settings, &notes, &json, &err), ST_INVALID, "m.safetensors: byte 0");
    source = safetensors_of("{\"w\":{\"dtype\":\"F31\",\"shape\":[3],\"data_offsets\":[0,12]}}", 0);
    assert_fails(import_model(&source, NULL, &settings, &notes, &json, &err), ST_INVALID, "/w: there is no dtype");
    source = safetensors_of("{\"w\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,12]}}", 0);
    assert_fails(import_model(&source, NULL, &settings, &notes, &json, &err), ST_INVALID, "/w/shape/0");
    source = safetensors_of("{\"ids\":{\"dtype\":\"I64\",\"shape\":[3],\"data_offsets\":[0,24]}}", 0);
    assert_fails(import_model(&source, NULL, &settings, &notes, &json, &err), ST_INVALID, "no tensor");
}

/* "a" and "b", f32 vectors of 3 and 2 elements, and the places of their data. */
static enum status import_places(const char *a, const char *b, size_t n_data, struct error *err) {
    const char *header = arena_printf(&arena,
                                      "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":%s},"
                                      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":%s}}",
                                      a, b);
    const struct source source = safetensors_of(header, n_data);
    cJSON *json = NULL;
    enum status st = import_model(&source, NULL, &(struct import_settings){.batch = 4, .positions = 1, .tflops = 2},
                                  &notes, &json, err);
    cJSON_Delete(json);
    return st;
}

static void places_of_tensors_are_held_against_shapes_and_the_file(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        size_t n_data;
        const char *part;
    } bad[] = {
        {"[0,8]", "[8,16]", 16,
         "m.safetensors: /a/data_offsets: bytes 0 to 8, but shape and dtype make 12 bytes; fetch"},
        {"[12,0]", "[0,8]", 12, "m.safetensors: /a/data_offsets: bytes 12 to 0, but shape and dtype make 12 bytes"},
        {"[0,12]", "[8,16]", 20, "m.safetensors: /b: its data begin at byte 8, inside those of \"a\""},
        {"[12,24]", "[0,8]", 24, "m.safetensors: /a: its data begin at byte 12, and bytes 8 to 12 belong to no tensor"},
        {"[4,16]", "[16,24]", 24, "m.safetensors: /a: its data begin at byte 4, and bytes 0 to 4 belong to no tensor"},
        {"[0,12]", "[12,20]", 19, "m.safetensors: /b: its data end at byte 20, but the file has 19; fetch it again"},
        {"[0,12]", "[12,20]", 23,
         "m.safetensors: the last 3 bytes of data belong to no tensor; fetch or save it again"},
        {"[0,12,0]", "[12,20]", 20, "/a/data_offsets"},
        {"[0]", "[12,20]", 20, "m.safetensors: /a/data_offsets: where the data begin and where they end are 2 numbers"},
        {"[-12,0]", "[0,8]", 8, "m.safetensors: /a/data_offsets/0"},
        {"[0,1.5]", "[12,20]", 20, "m.safetensors: /a/data_offsets/1"},
        {"null", "[12,20]", 20, "/a/data_offsets"},
    };
    struct error err;
    assert_ok(import_places("[0,12]", "[12,20]", 20, &err));
    assert_ok(import_places("[8,20]", "[0,8]", 20, &err));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(import_places(bad[i].a, bad[i].b, bad[i].n_data, &err), ST_INVALID, bad[i].part);
}

/* Random places, valid or nearly so, against a count of the tensors that each byte belongs to. */
static void places_are_right_if_each_byte_belongs_to_one_tensor(void **state) {
    (void)state;
    struct rng rng;
    size_t n_right = 0;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 2000; round++) {
        const uint64_t n_data = rng_below(&rng, 4) ? 20 : 16 + rng_below(&rng, 8), b_first = rng_below(&rng, 2);
        uint64_t begin[2] = {b_first ? 8 : 0, b_first ? 0 : 12}, end[2] = {begin[0] + 12, begin[1] + 8};
        for (size_t i = 0; i < 2; i++) {
            const uint64_t shift = rng_below(&rng, 3) ? 0 : rng_below(&rng, 14);
            begin[i] += shift;
            end[i] += shift + (rng_below(&rng, 8) ? 0 : rng_below(&rng, 3));
        }
        uint64_t owners[64] = {0};
        bool right = end[0] - begin[0] == 12 && end[1] - begin[1] == 8;
        for (size_t i = 0; i < 2; i++)
            for (uint64_t k = begin[i]; k < end[i]; k++)
                owners[k]++;
        for (uint64_t k = 0; k < 64; k++)
            right = right && owners[k] == (k < n_data);
        struct error err = {0};
        const enum status st = import_places(
            arena_printf(&arena, "[%lu,%lu]", (unsigned long)begin[0], (unsigned long)end[0]),
            arena_printf(&arena, "[%lu,%lu]", (unsigned long)begin[1], (unsigned long)end[1]), n_data, &err);
        assert_int_equal(st, right ? ST_OK : ST_INVALID);
        n_right += right;
    }
    assert_true(n_right > 100 && n_right < 1900);
}

/* Of a large file the beginning is read, and its length is asked for. */
static void places_are_held_against_the_length_of_a_large_file(void **state) {
    (void)state;
    static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[20000000],\"data_offsets\":[0,80000000]}}";
    const uint64_t n = sizeof header - 1, n_data = 80000000;
    const struct import_settings settings = {.batch = 4, .positions = 1, .tflops = 2};
    char path[300];
    snprintf(path, sizeof path, "%s/large.safetensors", test_dir());
    for (int missing = 0; missing < 2; missing++) {
        struct error err;
        struct source source;
        cJSON *json = NULL;
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        for (int i = 0; i < 8; i++)
            fputc((int)(n >> 8 * i & 0xff), f);
        assert_int_equal(fwrite(header, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(truncate(path, (off_t)(8 + n + n_data) - missing), 0);
        assert_ok(source_read(path, &arena, &source, &err));
        assert_true(source.cut);
        if (missing)
            assert_fails(import_model(&source, NULL, &settings, &notes, &json, &err), ST_INVALID,
                         "/w: its data end at byte 80000000, but the file has 79999999; fetch it again");
        else
            assert_ok(import_model(&source, NULL, &settings, &notes, &json, &err));
        cJSON_Delete(json);
        json = NULL;
        source.name = "standard input"; /* whose length nobody knows */
        assert_ok(import_model(&source, NULL, &settings, &notes, &json, &err));
        cJSON_Delete(json);
    }
    unlink(path);
}

static void what_is_no_kind_is_refused(void **state) {
    (void)state;
    struct error err;
    cJSON *json;
    const struct import_settings none = {0};
    struct source source = source_of("f", "hello\n");
    assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_INVALID, "pipedream, espresso");
    assert_fails(import_model(&source, "onyx", &none, &notes, &json, &err), ST_USAGE, "there is no kind \"onyx\"");
    assert_fails(import_model(&source, "espresso", &none, &notes, &json, &err), ST_INVALID, "f:1: there is no column");
    assert_fails(import_model(&source, NULL, &(struct import_settings){.batch = -1}, &notes, &json, &err), ST_USAGE,
                 "--batch -1");
    source = source_of("f", "{\"schema\":\"syncopate.model/1\"}");
    assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_INVALID, "a model file already");
    source = (struct source){"f", "tensor,ready_us\n\0", 17, false};
    assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_INVALID, "f: byte 16: not UTF-8");
    source = source_of("f", "tensor,ready_us\n\xc0\xaf");
    assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_INVALID, "f: byte 16: not UTF-8");
    source.cut = true;
    assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_TOO_LARGE, "f: more than");
}

/* Marks of forms that are not text, whether the kind is recognised or forced. */
static void files_of_other_forms_are_told_what_they_are(void **state) {
    (void)state;
    static const struct {
        const char *mark, *model, *cluster;
    } forms[] = {{"\x1f\x8b", "f: byte 0: compressed; gunzip it first", "f: byte 0: compressed; gunzip it first"},
                 {"PAR1",
                  "f: byte 0: a Parquet table, which no kind is; of a table of tensors, write the columns tensor, ",
                  "f: byte 0: a Parquet table, which no kind is; give the logs and host files"},
                 {"PK\3\4", "f: byte 0: a zip archive, as torch.save writes; save the tensors by safetensors.torch",
                  "f: byte 0: a zip archive; unpack it first"}};
    const struct import_settings none = {0};
    struct error err;
    cJSON *json;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[40] = {0};
        strcpy(text, forms[i].mark);
        memcpy(text + 8, "\x15\0tensor\xff\xfe", 10);
        for (int cut = 0; cut < 2; cut++) {
            const struct source source = {"f", text, sizeof text - 1, cut};
            assert_fails(import_model(&source, NULL, &none, &notes, &json, &err), ST_INVALID, forms[i].model);
            assert_fails(import_model(&source, "espresso", &none, &notes, &json, &err), ST_INVALID, forms[i].model);
            assert_fails(import_cluster(1, &source, NULL, &none, &notes, &json, &err), ST_INVALID, forms[i].cluster);
            assert_fails(import_cluster(1, &source, "osu", &none, &notes, &json, &err), ST_INVALID, forms[i].cluster);
        }
    }
    const struct source host = source_of("f", "PAR1 slots=1\nb\n");
    assert_ok(import_cluster(1, &host, NULL, &(struct import_settings){.nic_gbit_per_s = 1}, &notes, &json, &err));
    cJSON_Delete(json);
}

static void options_of_other_kinds_are_refused(void **state) {
    (void)state;
    struct error err;
    cJSON *json;
    struct source source = source_of("t.csv", table);
    assert_fails(import_model(&source, NULL, &(struct import_settings){.tflops = 1}, &notes, &json, &err), ST_USAGE,
                 "t.csv: this kind of file takes no --tflops; it is for safetensors, onnx and graph-item");
    assert_fails(import_model(&source, NULL, &(struct import_settings){.positions = 1}, &notes, &json, &err), ST_USAGE,
                 "--positions; it is for safetensors");
    assert_fails(import_model(&source, NULL, &(struct import_settings){.devices = 1}, &notes, &json, &err), ST_USAGE,
                 "takes no --devices");
    source = source_of("p.txt", profile);
    assert_fails(import_model(&source, NULL, &(struct import_settings){.forward_ratio = 1}, &notes, &json, &err),
                 ST_USAGE, "p.txt: this kind of file takes no --forward-ratio; it is for espresso");
    source = source_of("hosts", "a slots=2\n");
    const struct import_settings devices = {.devices = 2, .nic_gbit_per_s = 1};
    assert_fails(import_cluster(1, &source, NULL, &devices, &notes, &json, &err), ST_USAGE,
                 "hosts: this kind of file takes no --devices; it is for nccl-tests-json, nccl-tests and osu");
}

static void what_comes_from_standard_input_is_told_its_name(void **state) {
    (void)state;
    struct error err;
    struct model m;
    cJSON *json;
    const struct source source = source_of("standard input", table);
    assert_ok(import_model(&source, NULL, &(struct import_settings){0}, &notes, &json, &err));
    assert_ok(model_read(json, "m", &m, &err));
    assert_string_equal(m.name, "imported-estimate");
    assert_true(noted(&notes, "standard input has no name: the description is called \"imported-estimate\"; --name"));
    model_release(&m);
    cJSON_Delete(json);
    notes.first = notes.last = NULL;
    assert_ok(import_model(&source, NULL, &(struct import_settings){.name = "mine"}, &notes, &json, &err));
    assert_false(noted(&notes, "--name"));
    cJSON_Delete(json);
}

/* Every kind of text with a byte order mark is what it is without one. */
static void a_byte_order_mark_is_passed_over(void **state) {
    (void)state;
    static const char trace[] =
        "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"ts\":1,\"dur\":2,\"tid\":1}]";
    static const char rows[] = "{\"bus_bw\": 3}";
    static const char ours[] =
        "{\"schema\":\"syncopate.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"n\",\"devices\":2,"
        "\"device\":\"gpu\",\"nic_gbit_per_s\":1}]}";
    const struct {
        const char *text;
        bool cluster;
    } files[] = {{profile, false}, {table, false}, {trace, false},
                 {rows, true},     {ours, true},   {"a slots=2\nb slots=2\n", true}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct error errors[2] = {0};
        cJSON *json[2] = {NULL};
        enum status st[2];
        for (int marked = 0; marked < 2; marked++) {
            const char *text = arena_printf(&arena, "%s%s", marked ? "\xef\xbb\xbf" : "", files[i].text);
            const struct source source = source_of("f", text);
            const struct import_settings settings = {.nic_gbit_per_s = files[i].text == ours ? 0 : 1};
            st[marked] = files[i].cluster
                             ? import_cluster(1, &source, NULL, &settings, &notes, &json[marked], &errors[marked])
                             : import_model(&source, NULL, &settings, &notes, &json[marked], &errors[marked]);
        }
        assert_int_equal(st[0], st[1]);
        assert_string_equal(ERROR_TEXT(&errors[0]), ERROR_TEXT(&errors[1]));
        assert_null(strstr(ERROR_TEXT(&errors[1]), "known kind"));
        assert_true(cJSON_Compare(json[0], json[1], true) || st[0] != ST_OK);
        cJSON_Delete(json[0]);
        cJSON_Delete(json[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_NOTES(a_pipedream_profile_is_its_graph_without_the_input),
        WITH_NOTES(layers_are_split_into_their_tensors),
        WITH_NOTES(tensors_follow_from_the_module_or_are_one),
        WITH_NOTES(bad_profiles_are_refused_with_their_line),
        WITH_NOTES(a_profile_without_the_end_of_its_edges_is_refused),
        WITH_NOTES(a_tensor_table_is_a_chain_in_the_opposite_order),
        WITH_NOTES(either_column_of_times_is_enough),
        WITH_NOTES(bad_tables_are_refused_with_their_line),
        WITH_NOTES(a_safetensors_header_gives_shapes_and_estimated_times),
        WITH_NOTES(safetensors_need_a_whole_header_and_the_device),
        WITH_NOTES(places_of_tensors_are_held_against_shapes_and_the_file),
        WITH_NOTES(places_are_right_if_each_byte_belongs_to_one_tensor),
        WITH_NOTES(places_are_held_against_the_length_of_a_large_file),
        WITH_NOTES(what_is_no_kind_is_refused),
        WITH_NOTES(files_of_other_forms_are_told_what_they_are),
        WITH_NOTES(options_of_other_kinds_are_refused),
        WITH_NOTES(what_comes_from_standard_input_is_told_its_name),
        WITH_NOTES(a_byte_order_mark_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The NCCL table: what a line may be, what each mistake gets for an answer, and random tables against a plain lookup.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "interop/export/nccl/table.h"
#include "tests/support/check.h"

static enum status read_text(const char *text, struct nccl_table *out, struct error *err) {
    return nccl_table_read(text, strlen(text), "t.csv", out, err);
}

static void comments_blanks_and_the_line_of_columns_are_no_rows(void **state) {
    (void)state;
    struct error err = {0};
    struct nccl_table table;
    assert_ok(read_text("# a table\n\ncollective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks\r\n"
                        "  allreduce , 0,65536,\ttree,any,-1,4,32 # small\r\n"
                        "allgather,1,18446744073709551615,ring,ll128,8,-1,-1",
                        &table, &err));
    assert_int_equal(table.n, 2);
    const struct nccl_row want[] = {
        {NCCL_TABLE_allreduce, NCCL_TABLE_ALGO_tree, NCCL_TABLE_PROTO_any, -1, 4, 32, 0, 65536},
        {NCCL_TABLE_allgather, NCCL_TABLE_ALGO_ring, NCCL_TABLE_PROTO_ll128, 8, -1, -1, 1, UINT64_MAX}};
    assert_memory_equal(table.rows, want, sizeof want);
    nccl_table_release(&table);
    assert_ok(read_text("", &table, &err));
    assert_int_equal(table.n, 0);
    assert_null(nccl_table_find(&table, NCCL_TABLE_allreduce, 0, 1, 1));
    nccl_table_release(&table);
}

static void each_mistake_is_told_with_its_line(void **state) {
    (void)state;
    static const struct {
        const char *row, *says;
    } bad[] = {
        {"allreduce,0,1,ring,any,-1,-1", "t.csv:2: 7 fields"},
        {"allreduce,0,1,ring,any,-1,-1,-1,0", "t.csv:2: more than 8 fields"},
        {"allreduce", "t.csv:2: 1 fields"},
        {"gather,0,1,ring,any,-1,-1,-1", "t.csv:2: collective \"gather\""},
        {"AllReduce,0,1,ring,any,-1,-1,-1", "collective \"AllReduce\""},
        {"allreduce,x,1,ring,any,-1,-1,-1", "min_bytes \"x\" is not a whole number"},
        {"allreduce,,1,ring,any,-1,-1,-1", "min_bytes \"\" is missing"},
        {"allreduce,-1,1,ring,any,-1,-1,-1", "min_bytes \"-1\" is not a whole number"},
        {"allreduce,0,18446744073709551616,ring,any,-1,-1,-1", "max_bytes \"18446744073709551616\" is too large"},
        {"allreduce,2,1,ring,any,-1,-1,-1", "max_bytes \"1\" is less than min_bytes"},
        {"allreduce,0,1,rings,any,-1,-1,-1", "algorithm \"rings\""},
        {"allreduce,0,1,ring,fast,-1,-1,-1", "protocol \"fast\""},
        {"allreduce,0,1,ring,any,0,-1,-1", "channels \"0\""},
        {"allreduce,0,1,ring,any,65,-1,-1", "channels \"65\""},
        {"allreduce,0,1,ring,any,-1,-2,-1", "nodes \"-2\""},
        {"allreduce,0,1,ring,any,-1,-1,2147483648", "ranks \"2147483648\""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {0};
        struct nccl_table table = {0};
        char text[256];
        snprintf(text, sizeof text, "allreduce,0,1,ring,any,-1,-1,-1\n%s\n", bad[i].row);
        assert_fails(read_text(text, &table, &err), ST_INVALID, bad[i].says);
        assert_null(table.rows);
    }
}

static void files_that_are_no_tables_are_refused(void **state) {
    (void)state;
    struct error err = {0};
    struct nccl_table table = {0};
    assert_fails(nccl_table_read_file("/nonexistent/t.csv", &table, &err), ST_NOT_FOUND, "/nonexistent/t.csv: no such");
    assert_fails(nccl_table_read_file(test_dir(), &table, &err), ST_INVALID, "cannot be read");
    char *large = malloc(NCCL_TABLE_MAX_BYTES + 2);
    assert_non_null(large);
    memset(large, '\n', NCCL_TABLE_MAX_BYTES + 1);
    large[NCCL_TABLE_MAX_BYTES + 1] = 0;
    assert_fails(nccl_table_read_file(test_file("large.csv", large), &table, &err), ST_INVALID, "more than");
    free(large);
}

static int any_or(struct rng *rng, uint64_t most) {
    return rng_below(rng, 2) ? NCCL_TABLE_ANY : 1 + (int)rng_below(rng, most);
}

static struct nccl_row random_row(struct rng *rng) {
    struct nccl_row row = {.collective = (int)rng_below(rng, 5),
                           .algorithm = (int)rng_below(rng, 7),
                           .protocol = (int)rng_below(rng, 4) - 1,
                           .channels = any_or(rng, NCCL_TABLE_MAX_CHANNELS),
                           .nodes = any_or(rng, 4),
                           .ranks = any_or(rng, 4)};
    row.min_bytes = rng_below(rng, 100);
    row.max_bytes = rng_below(rng, 20) ? row.min_bytes + rng_below(rng, 50) : UINT64_MAX;
    return row;
}

/* The rows as text that the reader reads back. */
static void write_and_read(uint32_t n, const struct nccl_row *rows, struct nccl_table *out) {
    struct error err = {0};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    nccl_table_write_head(file);
    for (uint32_t i = 0; i < n; i++)
        nccl_table_write_row(file, &rows[i]);
    fclose(file);
    assert_ok(nccl_table_read(text, size, "t.csv", out, &err));
    free(text);
}

static void random_tables_read_back_and_give_the_first_row_that_matches(void **state) {
    (void)state;
    struct rng rng;
    uint32_t found = 0, asked = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct nccl_row rows[40];
        struct nccl_table table;
        rng_split(&rng, test_seed(), i);
        const uint32_t n = (uint32_t)rng_below(&rng, 41);
        for (uint32_t k = 0; k < n; k++)
            rows[k] = random_row(&rng);
        write_and_read(n, rows, &table);
        assert_int_equal(table.n, n);
        for (uint32_t k = 0; k < n; k++)
            assert_memory_equal(&table.rows[k], &rows[k], sizeof rows[k]);
        for (int k = 0; k < 50; k++, asked++) {
            const int collective = (int)rng_below(&rng, 5), nodes = 1 + (int)rng_below(&rng, 4);
            const int ranks = 1 + (int)rng_below(&rng, 4);
            const uint64_t bytes = rng_below(&rng, 160);
            uint32_t want = 0;
            while (want < n && !(rows[want].collective == collective && rows[want].min_bytes <= bytes &&
                                 bytes <= rows[want].max_bytes && (rows[want].nodes < 0 || rows[want].nodes == nodes) &&
                                 (rows[want].ranks < 0 || rows[want].ranks == ranks)))
                want++;
            const struct nccl_row *got = nccl_table_find(&table, collective, bytes, (size_t)nodes, (size_t)ranks);
            assert_ptr_equal(got, want < n ? &table.rows[want] : NULL);
            found += got != NULL;
        }
        nccl_table_release(&table);
    }
    assert_in_range(found, asked / 10, asked - asked / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_blanks_and_the_line_of_columns_are_no_rows),
        cmocka_unit_test(each_mistake_is_told_with_its_line),
        cmocka_unit_test(files_that_are_no_tables_are_refused),
        cmocka_unit_test(random_tables_read_back_and_give_the_first_row_that_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* One pass: a recursive descent that writes SQL as it reads. NOT is carried inwards (De Morgan), so that the texts hold
 * plain comparisons that an index can serve; a comparison that is negated becomes IS NOT or IS NOT TRUE, which makes
 * two values of SQL's three. Names of columns come from a table here, values are only ever bound. Cost: O(length), and
 * a look-up for each named object. */
#include "dataset/filter.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dataset/select_internal.h"
#include "dataset/store_internal.h"

enum type { OBJECT, SHARED, TEXT, STATE, STAMP, NUMBER, SEED };

static const struct {
    const char *name, *sql;
    enum type type;
} columns[] = {
#define X(name, type, sql) {#name, sql, type},
    FILTER_COLUMN_TABLE(X)
#undef X
};

const char filter_column_names[] =
#define X(name, type, sql) " " #name
    FILTER_COLUMN_TABLE(X)
#undef X
    ;

enum token { END, WORD, QUOTED, OPEN, CLOSE, COMMA, EQUAL, UNEQUAL, LESS, AT_MOST, GREATER, AT_LEAST, LIKE };

/* Operators as SQL writes them, by enum token. */
static const char *const operators[] = {
    [EQUAL] = " = ", [UNEQUAL] = " <> ", [LESS] = " < ", [AT_MOST] = " <= ", [GREATER] = " > ", [AT_LEAST] = " >= "};

struct parser {
    struct store *store;
    struct select *select;
    const char *text;
    size_t start, at; /* of the token, and behind it */
    enum token token;
    const char *word; /* of WORD and QUOTED, in the select's arena */
    unsigned depth, values;
    struct error *err;
};

/* The error is about the byte `at`. */
static enum status place(const struct parser *p, size_t at) {
    error_prefix(p->err, ST_USAGE, "filter: at %zu", at + 1);
    if (p->err)
        p->err->position = at + 1;
    return ST_USAGE;
}

static enum status fail_at(const struct parser *p, size_t at, const char *what, const char *word) {
    error_set(p->err, ST_USAGE, "%s%.60s", what, word);
    return place(p, at);
}

static enum status fail(const struct parser *p, const char *what) {
    return fail_at(p, p->start, what, "");
}

static bool is_word(char c) {
    return (unsigned char)c > 127 || isalnum((unsigned char)c) || (c && strchr("._:+-*/@%", c));
}

static enum status take_word(struct parser *p, const char *from, size_t n) {
    p->word = arena_copy(&p->select->texts, from, n);
    return p->word ? ST_OK : error_no_memory(p->err);
}

static enum status read_quoted(struct parser *p) {
    const char quote = p->text[p->start];
    char *out = arena_alloc(&p->select->texts, strlen(p->text + p->start), 1);
    if (!out)
        return error_no_memory(p->err);
    p->word = out;
    for (p->at = p->start + 1; p->text[p->at] != quote; p->at++) {
        if (p->text[p->at] == '\\' && (p->text[p->at + 1] == quote || p->text[p->at + 1] == '\\'))
            p->at++;
        if (!p->text[p->at])
            return fail(p, "a quoted text without its end");
        *out++ = p->text[p->at];
    }
    p->at++;
    p->token = QUOTED;
    return ST_OK;
}

static enum status read_sign(struct parser *p) {
    static const struct {
        const char *text;
        enum token token;
    } signs[] = {{"(", OPEN},      {")", CLOSE}, {",", COMMA}, {"!=", UNEQUAL}, {"<=", AT_MOST},
                 {">=", AT_LEAST}, {"=", EQUAL}, {"<", LESS},  {">", GREATER},  {"~", LIKE}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (!strncmp(p->text + p->start, signs[i].text, strlen(signs[i].text))) {
            p->token = signs[i].token;
            p->at = p->start + strlen(signs[i].text);
            return ST_OK;
        }
    return fail(p, "a character that means nothing here; quote texts that have such");
}

static enum status next(struct parser *p) {
    p->start = p->at + strspn(p->text + p->at, " \t\r\n");
    const char *at = p->text + p->start;
    if (!*at) {
        p->token = END;
        return ST_OK;
    }
    if (*at == '"' || *at == '\'')
        return read_quoted(p);
    if (!is_word(*at))
        return read_sign(p);
    size_t n = 0;
    while (is_word(at[n]))
        n++;
    p->token = WORD;
    p->at = p->start + n;
    return take_word(p, at, n);
}

static bool is_keyword(const struct parser *p, const char *keyword) {
    return p->token == WORD && !strcasecmp(p->word, keyword);
}

/* The token must be a value; counted. */
static enum status expect_value(struct parser *p) {
    if (p->token != WORD && p->token != QUOTED)
        return fail(p, "a value is expected: a word, a number or a quoted text");
    if (++p->values > FILTER_MAX_VALUES)
        return fail(p, "too many comparisons");
    return ST_OK;
}

static enum status parse_number(const struct parser *p, struct sql_value *out) {
    char *end;
    errno = 0;
    const double x = strtod(p->word, &end);
    if (strspn(p->word, "0123456789+-.eE") != strlen(p->word) || end == p->word || *end || !isfinite(x))
        return fail_at(p, p->start, "this column holds numbers, not ", p->word);
    *out = sql_real(x);
    return ST_OK;
}

static enum status parse_seed(const struct parser *p, struct sql_value *out) {
    errno = 0;
    const unsigned long long x = strtoull(p->word, NULL, 10);
    if (!*p->word || strspn(p->word, "0123456789") != strlen(p->word) || errno)
        return fail_at(p, p->start, "a seed is a whole number up to 2^64 - 1, not ", p->word);
    *out = sql_integer((int64_t)x);
    return ST_OK;
}

/* The token as a value of the column. */
static enum status parse_value(struct parser *p, enum filter_column column, struct sql_value *out) {
    enum record_state state;
    enum status status = expect_value(p);
    if (status)
        return status;
    *out = sql_text(p->word);
    switch (columns[column].type) {
    case NUMBER:
        return parse_number(p, out);
    case SEED:
        return parse_seed(p, out);
    case STATE:
        return record_state_parse(p->word, &state)
                   ? ST_OK
                   : fail(p, "a state is one of waiting running complete failed infeasible cancelled");
    case STAMP:
        return *p->word && strspn(p->word, "0123456789-:.TZ") == strlen(p->word)
                   ? ST_OK
                   : fail_at(p, p->start, "a stamp looks like 2026-11-21T08:41:17.123Z or its beginning, not ",
                             p->word);
    default:
        return ST_OK;
    }
}

static enum status check_operator(const struct parser *p, enum filter_column column, enum token sign) {
    const enum type type = columns[column].type;
    const bool ordered = type == STAMP || type == NUMBER, prefix = type == OBJECT || type == TEXT || type == STAMP;
    if (sign == EQUAL || sign == UNEQUAL || (sign == LIKE && prefix))
        return ST_OK;
    if (sign >= LESS && sign <= AT_LEAST && ordered)
        return ST_OK;
    return fail_at(p, p->start,
                   ordered && prefix ? "one of = != < <= > >= ~ IN is expected after "
                   : ordered         ? "one of = != < <= > >= IN is expected after "
                   : prefix          ? "one of = != ~ IN is expected after "
                                     : "one of = != IN is expected after ",
                   columns[column].name);
}

static enum store_kind kind_of(enum filter_column column) {
    return column == FILTER_model ? STORE_MODEL : column == FILTER_cluster ? STORE_CLUSTER : STORE_STRATEGY;
}

static enum status add_object(struct parser *p, enum filter_column column, enum token sign, bool negated) {
    enum status status = expect_value(p);
    if (status)
        return status;
    if (sign == LIKE)
        select_objects_like(p->select, kind_of(column), columns[column].sql, p->word, negated);
    else
        status = select_object(p->store, p->select, kind_of(column), columns[column].sql, p->word,
                               negated != (sign == UNEQUAL), p->err);
    return status;
}

/* Every trial has a value of `shared`, so a negation need not think of NULL. */
static enum status add_sharing(struct parser *p, const char *sql, bool negated) {
    enum status status = expect_value(p);
    if (status)
        return status;
    const bool all = !strcmp(p->word, "all"), named = !all && strcmp(p->word, "team") != 0;
    if (named && !team_is_valid(p->word))
        return fail(p, "all, team or the name of a team is expected");
    const char *kept = named ? arena_printf(&p->select->texts, "|%s|", p->word) : all ? "*" : "";
    if (!kept)
        return error_no_memory(p->err);
    select_add(p->select, named ? "instr(" : "");
    select_add(p->select, sql);
    select_add(p->select, named ? ", " : negated ? " <> " : " = ");
    select_bind(p->select, sql_text(kept));
    select_add(p->select, !named ? "" : negated ? ") = 0" : ") > 0");
    return ST_OK;
}

/* The token as a condition of its own, for columns whose values are more than one comparison. */
static enum status add_condition(struct parser *p, enum filter_column column, enum token sign, bool negated) {
    return columns[column].type == SHARED ? add_sharing(p, columns[column].sql, negated != (sign == UNEQUAL))
                                          : add_object(p, column, sign, negated);
}

static bool has_conditions(enum filter_column column) {
    return columns[column].type == OBJECT || columns[column].type == SHARED;
}

/* t.c >= text AND t.c < what comes behind all that begin with it */
static void add_prefix(struct parser *p, const char *sql, const char *text, bool negated) {
    const char *end = select_prefix_end(p->select, text);
    select_add(p->select, negated ? "((" : "(");
    select_add(p->select, sql);
    if (*text) {
        select_add(p->select, " >= ");
        select_bind(p->select, sql_text(text));
        select_add(p->select, " AND ");
        select_add(p->select, sql);
        select_add(p->select, " < ");
        select_bind(p->select, sql_text(end));
    } else {
        select_add(p->select, " IS NOT NULL");
    }
    select_add(p->select, negated ? ") IS NOT TRUE)" : ")");
}

static void add_plain(struct parser *p, const char *sql, enum token sign, struct sql_value value, bool negated) {
    const bool equality = sign == EQUAL || sign == UNEQUAL, unequal = negated != (sign == UNEQUAL);
    const bool wrapped = negated && !equality;
    select_add(p->select, wrapped ? "((" : "");
    select_add(p->select, sql);
    select_add(p->select, equality && unequal ? " IS DISTINCT FROM " : equality ? " = " : operators[sign]);
    select_bind(p->select, value);
    select_add(p->select, wrapped ? ") IS NOT TRUE)" : "");
}

/* A condition on the median sets its lower bound, its upper bound, or (by =) both. */
static void pin_median(struct parser *p, enum token sign, double us) {
    const bool least = sign == EQUAL || sign == GREATER || sign == AT_LEAST;
    const bool most = sign == EQUAL || sign == LESS || sign == AT_MOST;
    select_pin_median(p->select, least ? us : 0, most ? us : 0);
}

/* Note which columns every trial that fits must have; an OR further up takes that back. */
static void require(struct parser *p, enum filter_column column, enum token sign, bool negated) {
    if (!negated && sign != UNEQUAL)
        p->select->required |= UINT32_C(1) << (column == FILTER_median_us ? FILTER_measured_us : column);
}

void select_require_state(struct select *select, const char *state) {
    const uint32_t measured = UINT32_C(1) << FILTER_measured_us;
    if (!strcmp(state, record_state_word(RECORD_COMPLETE)))
        select->required |= measured;
    else
        select->absent |= measured;
}

static enum status parse_in(struct parser *p, enum filter_column column, bool negated) {
    const bool object = has_conditions(column);
    const struct pins pins = p->select->pins;
    enum status status = next(p);
    if (!status && p->token != OPEN)
        return fail(p, "\"(\" is expected after IN");
    require(p, column, EQUAL, negated);
    select_add(p->select, object ? "(" : "((");
    if (!object)
        select_add(p->select, columns[column].sql);
    select_add(p->select, object ? "" : " IN (");
    for (bool first = true; !status && (first || p->token == COMMA); first = false) {
        struct sql_value value;
        if (!first)
            select_add(p->select, !object ? ", " : negated ? " AND " : " OR ");
        status = next(p);
        if (!status && object) {
            status = add_condition(p, column, EQUAL, negated);
        } else if (!status) {
            status = parse_value(p, column, &value);
            if (!status)
                select_bind(p->select, value);
        }
        if (!status)
            status = next(p);
    }
    if (!status && p->token != CLOSE)
        return fail(p, "\",\" or \")\" is expected");
    p->select->pins = pins;
    select_add(p->select, object ? ")" : negated ? ")) IS NOT TRUE)" : ")))");
    return !status ? next(p) : status;
}

static enum status parse_comparison(struct parser *p, bool negated) {
    enum filter_column column = 0;
    while (column < FILTER_COLUMN_COUNT && strcmp(columns[column].name, p->word) != 0)
        column++;
    if (column == FILTER_COLUMN_COUNT) {
        error_set(p->err, ST_USAGE, "no such column '%.60s'; columns:%s", p->word, filter_column_names);
        return place(p, p->start);
    }
    enum status status = next(p);
    if (status)
        return status;
    if (is_keyword(p, "in"))
        return parse_in(p, column, negated);
    const enum token sign = p->token;
    status = check_operator(p, column, sign);
    if (!status)
        status = next(p);
    if (status)
        return status;
    require(p, column, sign, negated);
    struct sql_value value = sql_text(NULL);
    if (has_conditions(column))
        status = add_condition(p, column, sign, negated);
    else
        status = parse_value(p, column, &value);
    if (status)
        return status;
    if (!has_conditions(column) && !negated && sign == EQUAL)
        p->select->pins.columns |= UINT32_C(1) << column;
    if ((column == FILTER_measured_us || column == FILTER_median_us) && !negated)
        pin_median(p, sign, value.real);
    if (column == FILTER_state && !negated && sign == EQUAL)
        select_require_state(p->select, p->word);
    if (!has_conditions(column) && sign == LIKE)
        add_prefix(p, columns[column].sql, p->word, negated);
    else if (!has_conditions(column))
        add_plain(p, columns[column].sql, sign, value, negated);
    return next(p);
}

static enum status parse_any(struct parser *p, bool negated);

static enum status parse_one(struct parser *p, bool negated) {
    enum status status;
    if (++p->depth > FILTER_MAX_DEPTH)
        return fail(p, "nested too deep");
    if (is_keyword(p, "not")) {
        status = next(p);
        if (!status)
            status = parse_one(p, !negated);
    } else if (p->token == OPEN) {
        status = next(p);
        if (!status)
            status = parse_any(p, negated);
        if (!status && p->token != CLOSE)
            status = fail(p, "AND, OR or \")\" is expected");
        if (!status)
            status = next(p);
    } else {
        status = p->token == WORD ? parse_comparison(p, negated) : fail(p, "a column is expected");
    }
    p->depth--;
    return status;
}

/* Operands joined by `keyword`. Under a NOT the SQL has the other keyword (De Morgan). */
static enum status parse_level(struct parser *p, const char *keyword, const char *sql, bool alternatives,
                               enum status (*operand)(struct parser *, bool), bool negated) {
    const uint32_t required = p->select->required, absent = p->select->absent;
    const struct pins pins = p->select->pins;
    bool several = false;
    select_add(p->select, "(");
    enum status status = operand(p, negated);
    while (!status && is_keyword(p, keyword)) {
        several = true;
        select_add(p->select, sql);
        status = next(p);
        if (!status)
            status = operand(p, negated);
    }
    select_add(p->select, ")");
    if (several && alternatives) {
        p->select->required = required;
        p->select->absent = absent;
        p->select->pins = pins;
    }
    return status;
}

static enum status parse_all(struct parser *p, bool negated) {
    return parse_level(p, "and", negated ? " OR " : " AND ", negated, parse_one, negated);
}

static enum status parse_any(struct parser *p, bool negated) {
    return parse_level(p, "or", negated ? " AND " : " OR ", !negated, parse_all, negated);
}

enum status filter_compile(struct store *store, const char *text, struct select *select, struct error *err) {
    struct parser p = {.store = store, .select = select, .text = text, .err = err};
    if (strlen(text) > FILTER_MAX_BYTES)
        return error_at(err, ST_USAGE, "filter", "longer than %d bytes", FILTER_MAX_BYTES);
    enum status status = next(&p);
    if (!status)
        status = parse_any(&p, false);
    if (!status && p.token != END)
        status = fail(&p, "AND, OR or the end is expected");
    return status;
}

enum status filter_check(const char *text, struct error *err) {
    struct select select = {0};
    enum status status = filter_compile(NULL, text, &select, err);
    if (!status && select.no_memory)
        status = error_no_memory(err);
    select_release(&select);
    return status;
}

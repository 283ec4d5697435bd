/* A start tag stays open until content or its end comes, so that an element without content can close
 * itself. Texts are copied a character at a time: O(length). */
#include "report/markup.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"

/* ---- bytes ---- */

static void put(struct markup *m, const char *bytes, size_t n) {
    if (m->failed)
        return;
    if (!GROW(&m->text, &m->room, m->length + n + 1)) {
        m->failed = true;
        return;
    }
    memcpy(m->text + m->length, bytes, n);
    m->length += n;
    m->text[m->length] = '\0';
}

static void put_word(struct markup *m, const char *word) {
    put(m, word, strlen(word));
}

/* The length of the character at `text` if it may stand there, else 0. Two characters are clean (text.h) and still not
 * allowed in XML. */
static size_t character(const char *text) {
    if (*text == '\t' || *text == '\n')
        return 1;
    return !strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3)
               ? 0
               : text_character(text, strnlen(text, 4));
}

static void put_escaped(struct markup *m, const char *text) {
    char shown[TEXT_SHOWN];
    for (const char *p = text; *p;) {
        size_t n = character(p);
        if (!n)
            put_word(m, "\xef\xbf\xbd");
        else if (*p == '<')
            put_word(m, "&lt;");
        else if (*p == '>')
            put_word(m, "&gt;");
        else if (*p == '&')
            put_word(m, "&amp;");
        else if (*p == '"')
            put_word(m, "&quot;");
        else
            put(m, p, n);
        p += n ? n : text_show(p, strnlen(p, 4), shown);
    }
}

/* ---- elements ---- */

static void close_tag(struct markup *m) {
    if (m->in_tag)
        put(m, ">", 1);
    m->in_tag = false;
}

void markup_begin(struct markup *m, const char *name) {
    close_tag(m);
    assert(m->depth < MARKUP_DEPTH);
    m->open[m->depth++] = name;
    put(m, "<", 1);
    put_word(m, name);
    m->in_tag = true;
}

static bool closes_itself(const struct markup *m) {
    static const char *const voids[] = {"meta", "link", "br", "hr", "img", "input", "col"};
    for (size_t i = 0; i < sizeof voids / sizeof *voids; i++)
        if (!strcmp(m->open[m->depth - 1], voids[i]))
            return true;
    for (size_t i = 0; i < m->depth; i++)
        if (!strcmp(m->open[i], "svg"))
            return true;
    return false;
}

void markup_end(struct markup *m) {
    assert(m->depth);
    if (m->in_tag && closes_itself(m)) {
        put(m, "/>", 2);
        m->in_tag = false;
    } else {
        close_tag(m);
        put(m, "</", 2);
        put_word(m, m->open[m->depth - 1]);
        put(m, ">", 1);
    }
    m->depth--;
}

void markup_text(struct markup *m, const char *text) {
    close_tag(m);
    put_escaped(m, text);
}

void markup_leaf(struct markup *m, const char *name, const char *text) {
    markup_begin(m, name);
    markup_text(m, text);
    markup_end(m);
}

/* ---- attributes ---- */

void markup_attribute_begin(struct markup *m, const char *name) {
    assert(m->in_tag);
    put(m, " ", 1);
    put_word(m, name);
    put(m, "=\"", 2);
}

void markup_piece(struct markup *m, const char *text) {
    put_escaped(m, text);
}

void markup_piece_number(struct markup *m, double x) {
    char text[32];
    const double tenths = round(x * 10);
    if (!isfinite(x) || fabs(tenths) > 1e12)
        snprintf(text, sizeof text, "0");
    else if (fmod(tenths, 10) == 0)
        snprintf(text, sizeof text, "%.0f", tenths / 10 + 0.0);
    else
        snprintf(text, sizeof text, "%.1f", tenths / 10);
    put_word(m, text);
}

void markup_attribute_end(struct markup *m) {
    put(m, "\"", 1);
}

void markup_attribute(struct markup *m, const char *name, const char *value) {
    markup_attribute_begin(m, name);
    markup_piece(m, value);
    markup_attribute_end(m);
}

void markup_attribute_number(struct markup *m, const char *name, double x) {
    markup_attribute_begin(m, name);
    markup_piece_number(m, x);
    markup_attribute_end(m);
}

/* ---- formatted ---- */

static void put_formatted(struct markup *m, const char *format, va_list values) {
    char *text = NULL;
    if (m->failed)
        return;
    if (vasprintf(&text, format, values) < 0) {
        m->failed = true;
        return;
    }
    put_escaped(m, text);
    free(text);
}

void markup_attributef(struct markup *m, const char *name, const char *format, ...) {
    va_list values;
    va_start(values, format);
    markup_attribute_begin(m, name);
    put_formatted(m, format, values);
    markup_attribute_end(m);
    va_end(values);
}

void markup_textf(struct markup *m, const char *format, ...) {
    va_list values;
    va_start(values, format);
    markup_textv(m, format, values);
    va_end(values);
}

void markup_textv(struct markup *m, const char *format, va_list values) {
    close_tag(m);
    put_formatted(m, format, values);
}

/* ---- whole documents ---- */

void markup_doctype(struct markup *m) {
    assert(!m->length && !m->depth);
    put_word(m, "<!DOCTYPE html>\n");
}

void markup_style(struct markup *m, const char *css) {
    assert(!strpbrk(css, "<&"));
    markup_begin(m, "style");
    close_tag(m);
    put_word(m, css);
    markup_end(m);
}

enum status markup_take(struct markup *m, char **out, size_t *length, struct error *err) {
    assert(m->failed || !m->depth);
    put(m, "", 0);
    if (m->failed) {
        markup_release(m);
        return error_no_memory(err);
    }
    *out = m->text;
    if (length)
        *length = m->length;
    *m = (struct markup){0};
    return ST_OK;
}

void markup_release(struct markup *m) {
    free(m->text);
    *m = (struct markup){0};
}

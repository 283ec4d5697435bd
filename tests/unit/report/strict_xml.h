/* A strict reader of XML for tests: it says where a text is not well-formed, and what its elements hold.
 *
 * One root, tags that match, attributes that are quoted and not given twice, no references but the five of XML, no
 * character that XML forbids, no '<' in values. A document type in front is allowed. */
#ifndef TESTS_UNIT_REPORT_STRICT_XML_H
#define TESTS_UNIT_REPORT_STRICT_XML_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

enum { XML_DEPTH = 64, XML_NAME = 32, XML_ATTRIBUTES = 16 };

struct xml_reader {
    const char *text, *at;
    char open[XML_DEPTH][XML_NAME];
    size_t depth, roots, elements;
};

static inline void xml_fail(const struct xml_reader *r, const char *why) {
    print_error("not well-formed at byte %zu: %s: %.60s\n", (size_t)(r->at - r->text), why, r->at);
    fail();
}

/* One character, or a reference, of content or of a value. */
static inline void xml_character(struct xml_reader *r) {
    static const char *const references[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&apos;"};
    const unsigned char c = (unsigned char)*r->at;
    if (c == '&') {
        for (size_t i = 0; i < 5; i++)
            if (!strncmp(r->at, references[i], strlen(references[i]))) {
                r->at += strlen(references[i]);
                return;
            }
        xml_fail(r, "unknown reference");
    }
    size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || (c >= 0x80 && c < 0xc2) || c > 0xf4)
        xml_fail(r, "forbidden character");
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)r->at[i] & 0xc0) != 0x80)
            xml_fail(r, "broken character");
    if ((c == 0xed && (unsigned char)r->at[1] > 0x9f) || (c == 0xe0 && (unsigned char)r->at[1] < 0xa0) ||
        (c == 0xf0 && (unsigned char)r->at[1] < 0x90) || !strncmp(r->at, "\xef\xbf\xbe", 3) ||
        !strncmp(r->at, "\xef\xbf\xbf", 3))
        xml_fail(r, "forbidden character");
    r->at += n;
}

static inline void xml_name(struct xml_reader *r, char out[XML_NAME]) {
    size_t n = 0;
    while ((isalnum((unsigned char)*r->at) || *r->at == '-' || *r->at == '_' || *r->at == ':') && n + 1 < XML_NAME)
        out[n++] = *r->at++;
    out[n] = '\0';
    if (!n || !isalpha((unsigned char)out[0]))
        xml_fail(r, "no name");
}

static inline void xml_attributes(struct xml_reader *r) {
    char names[XML_ATTRIBUTES][XML_NAME];
    size_t n = 0;
    while (*r->at == ' ') {
        r->at++;
        if (n == XML_ATTRIBUTES)
            xml_fail(r, "too many attributes");
        xml_name(r, names[n]);
        for (size_t i = 0; i < n; i++)
            if (!strcmp(names[i], names[n]))
                xml_fail(r, "attribute given twice");
        n++;
        if (strncmp(r->at, "=\"", 2))
            xml_fail(r, "value without quotes");
        for (r->at += 2; *r->at != '"'; xml_character(r))
            if (*r->at == '<' || !*r->at)
                xml_fail(r, "value does not end");
        r->at++;
    }
}

static inline void xml_tag(struct xml_reader *r) {
    char name[XML_NAME];
    r->at++;
    if (*r->at == '/') {
        r->at++;
        xml_name(r, name);
        if (!r->depth || strcmp(r->open[r->depth - 1], name) || *r->at != '>')
            xml_fail(r, "end tag of another element");
        r->depth--;
        r->at++;
        return;
    }
    xml_name(r, name);
    r->roots += r->depth == 0;
    r->elements++;
    xml_attributes(r);
    if (*r->at == '/')
        r->at++;
    else if (r->depth == XML_DEPTH)
        xml_fail(r, "too deep");
    else
        memcpy(r->open[r->depth++], name, sizeof name);
    if (*r->at++ != '>')
        xml_fail(r, "tag does not end");
}

/* The whole text is well-formed; returns how many elements it has. */
static inline size_t expect_strict_xml(const char *text) {
    static const char doctype[] = "<!DOCTYPE html>\n";
    struct xml_reader r = {.text = text, .at = text};
    if (!strncmp(text, doctype, strlen(doctype)))
        r.at += strlen(doctype);
    while (*r.at)
        if (*r.at == '<')
            xml_tag(&r);
        else if (r.depth)
            xml_character(&r);
        else
            xml_fail(&r, "text outside of the root");
    if (r.depth || r.roots != 1)
        xml_fail(&r, "not one whole root");
    return r.elements;
}

static inline size_t count_of(const char *text, const char *part) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

#endif

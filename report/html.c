/* The style sheet as one text, and tables that are written cell by cell. */
#include "report/html.h"

#include <assert.h>
#include <stdarg.h>

#define LIGHT                                                                                                          \
    "--bg:#fff;--fg:#1c2127;--soft:#5a6470;--line:#dde2e7;--panel:#f5f7f9;--accent:#0b5fa5;--good:#00694f;"            \
    "--dot:#0072b2;--baseline:#b35c00;--final:#1c2127;--failed:#c0360c;--best:#00795a;--bound:#7a4a8a;"                \
    "--forward:#a9bccb;--backward:#7890a3;--slow:#b0307e;--waiting:#e8703a;--lane:#f1f4f6;"                            \
    "--m0:#440154;--m1:#3b528b;--m2:#21918c;--m3:#5ec962;--m4:#e3cb13;--bar:#9fc5e3;--part:#0b5fa5;"                   \
    "--band:#0072b21f"
#define DARK                                                                                                           \
    "--bg:#0f1317;--fg:#e7ebef;--soft:#9ca7b3;--line:#2a323a;--panel:#171d23;--accent:#6cb6f5;--good:#4fd1a5;"         \
    "--dot:#56b4e9;--baseline:#f0a33a;--final:#e7ebef;--failed:#ff7a52;--best:#3fcf9f;--bound:#d29be3;"                \
    "--forward:#5b7387;--backward:#3f5466;--slow:#e879b8;--waiting:#e8703a;--lane:#151b21;"                            \
    "--m0:#b791e6;--m1:#7c9fe6;--m2:#35b8b2;--m3:#7bd86f;--m4:#fdea5a;--bar:#2f5778;--part:#6cb6f5;"                   \
    "--band:#56b4e926"

static const char SHEET[] =
    ":root{color-scheme:light dark;" LIGHT "}@media screen and (prefers-color-scheme:dark){:root{" DARK "}}"
    /* pages */
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}"
    "main{max-width:1180px;margin:0 auto;padding:28px 20px 56px}"
    "h1{font-size:1.75rem;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;line-height:1.3;margin:44px 0 4px}"
    "p{margin:6px 0 12px;max-width:76ch}.soft{color:var(--soft)}"
    "a{color:var(--accent)}a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:2px solid "
    "var(--accent);outline-offset:2px}"
    ".answer{background:var(--panel);border:1px solid var(--line);border-left:5px solid var(--good);border-radius:8px;"
    "padding:18px 22px;margin:20px 0}"
    ".answer.open{border-left-color:var(--baseline)}"
    ".answer p{margin:0 0 6px}.answer .verdict{font-size:1.3rem;line-height:1.35;font-weight:600;max-width:none;"
    "overflow-wrap:anywhere}"
    ".figures{display:flex;flex-wrap:wrap;gap:14px 40px;margin:16px 0 14px}"
    ".figures div{min-width:7em}.figures dt{color:var(--soft);font-size:.82rem}"
    ".figures dd{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".figures small{display:block;font-size:.82rem;font-weight:400;color:var(--soft)}"
    "pre{margin:8px 0;padding:9px 12px;background:var(--bg);border:1px solid var(--line);border-radius:6px;overflow-x:"
    "auto;white-space:pre-wrap;overflow-wrap:anywhere}"
    "code,pre{font:.86rem/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    ".pair{display:grid;grid-template-columns:minmax(0,9fr) minmax(0,5fr);gap:28px;align-items:start}"
    ".even{display:grid;grid-template-columns:1fr 1fr;gap:28px 48px;align-items:start}"
    "figure{margin:12px 0 0}figcaption{color:var(--soft);font-size:.9rem;margin-top:6px}"
    ".scroll{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;width:100%}"
    "caption{text-align:left;color:var(--soft);padding:4px 0}"
    "th{text-align:left;font-weight:600;color:var(--soft);font-size:.82rem;white-space:nowrap}"
    "th,td{padding:5px 14px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}"
    ".n{text-align:right;white-space:nowrap}tr.best td{font-weight:600}tr.bad td{color:var(--soft)}"
    ".tight td:not(:last-child){white-space:nowrap}"
    "details{margin:8px 0}summary{color:var(--soft);font-size:.88rem;cursor:pointer}"
    /* charts */
    "svg.chart{display:block;width:100%;height:auto;font-size:12px}"
    ".chart text{fill:var(--fg)}.chart .tick,.chart .note,.chart .label{fill:var(--soft)}"
    ".chart .heading,.chart .node{font-weight:600}.chart .heading{font-size:14px}"
    ".chart path{fill:none}.chart .grid{stroke:var(--line);stroke-width:1}"
    ".dot{fill:var(--dot);fill-opacity:.75;stroke:var(--bg);stroke-width:.75}"
    ".dot.baseline{fill:none;stroke:var(--baseline);stroke-width:2}"
    ".dot.final{fill:var(--final);fill-opacity:1}.dot:hover{stroke:var(--fg);stroke-width:2}"
    ".chart .failed{stroke:var(--failed);stroke-width:2}"
    ".chart .best{stroke:var(--best);stroke-width:2.5;stroke-linejoin:round}"
    ".chart path.bound{stroke:var(--bound);stroke-width:1.5;stroke-dasharray:6 4}.chart text.bound{fill:var(--bound)}"
    ".chart path.reference{stroke:var(--baseline);stroke-width:1.5;stroke-dasharray:2 3}"
    ".chart text.reference{fill:var(--baseline)}"
    ".chart text.bound,.chart text.reference,.chart .heading{paint-order:stroke;stroke:var(--bg);stroke-width:4px;"
    "stroke-linejoin:round}"
    ".chart .band{fill:var(--band)}.chart .diagonal{stroke:var(--soft);stroke-width:1}"
    ".bar{fill:var(--bar)}.bar.part{fill:var(--part)}"
    ".chart .forward{fill:var(--forward)}.chart .backward{fill:var(--backward)}.chart .waiting{fill:var(--waiting)}"
    ".chart .updating{fill:var(--part)}.chart .whole{fill:var(--backward)}.chart .slow{fill:var(--slow)}.chart "
    ".rate{fill:var(--bar)}"
    ".chart path.start{stroke:var(--fg);stroke-width:1;stroke-dasharray:2 3}"
    ".chart .m0{fill:var(--m0)}.chart .m1{fill:var(--m1)}.chart .m2{fill:var(--m2)}.chart .m3{fill:var(--m3)}"
    ".chart .m4{fill:var(--m4)}.lane{fill:var(--lane)}"
    ".chart path.end{stroke:var(--fg);stroke-width:2}.chart text.end{font-weight:600}"
    ".chart path:hover{opacity:.75}"
    /* phones and paper */
    "@media(max-width:760px){main{padding:18px 16px 40px}h1{font-size:1.4rem}h2{margin-top:34px}"
    ".pair,.even{grid-template-columns:minmax(0,1fr)}.answer{padding:14px 16px}.answer .verdict{font-size:1.12rem}"
    ".figures{gap:12px 28px}.chart.wide{font-size:20px}.chart.mid{font-size:17px}.wide .dot{r:7px}.wide "
    ".dot.final{r:5px}.chart.timeline{min-width:820px}}"
    "@media print{main{max-width:none;padding:0}body{font-size:11pt}figure,tr,.answer{break-inside:avoid}"
    ".scroll{overflow:visible}summary{display:none}}";

const char *html_stylesheet(void) {
    return SHEET;
}

void html_page_open(struct markup *m, const char *title, const char *sheet) {
    markup_doctype(m);
    markup_begin(m, "html");
    markup_attribute(m, "lang", "en");
    markup_begin(m, "head");
    html_begin(m, "meta", NULL);
    markup_attribute(m, "charset", "utf-8");
    markup_end(m);
    html_begin(m, "meta", NULL);
    markup_attribute(m, "name", "viewport");
    markup_attribute(m, "content", "width=device-width, initial-scale=1");
    markup_end(m);
    markup_leaf(m, "title", title);
    if (sheet) {
        html_begin(m, "link", NULL);
        markup_attribute(m, "rel", "stylesheet");
        markup_attribute(m, "href", sheet);
        markup_end(m);
    } else {
        markup_style(m, SHEET);
    }
    markup_end(m);
    markup_begin(m, "body");
}

void html_page_begin(struct markup *m, const char *title, const char *sheet) {
    html_page_open(m, title, sheet);
    markup_begin(m, "main");
}

void html_page_end(struct markup *m) {
    markup_end(m);
    markup_end(m);
    markup_end(m);
}

void html_section(struct markup *m, const char *id, const char *title) {
    markup_begin(m, "section");
    markup_attribute(m, "aria-labelledby", id);
    markup_begin(m, "h2");
    markup_attribute(m, "id", id);
    markup_text(m, title);
    markup_end(m);
}

void html_begin(struct markup *m, const char *name, const char *class) {
    markup_begin(m, name);
    if (class)
        markup_attribute(m, "class", class);
}

void html_leaff(struct markup *m, const char *name, const char *class, const char *format, ...) {
    va_list values;
    va_start(values, format);
    html_begin(m, name, class);
    markup_textv(m, format, values);
    markup_end(m);
    va_end(values);
}

void html_command(struct markup *m, const char *format, ...) {
    va_list values;
    va_start(values, format);
    markup_begin(m, "pre");
    markup_begin(m, "code");
    markup_textv(m, format, values);
    markup_end(m);
    markup_end(m);
    va_end(values);
}

/* ---- tables ---- */

static const char *head_text(const char *head) {
    return head + (*head == '>');
}

void html_table_begin(struct html_table *t, struct markup *m, const char *caption, const char *const *heads) {
    *t = (struct html_table){.m = m, .heads = heads};
    html_begin(m, "div", "scroll");
    markup_attribute(m, "role", "region");
    markup_attribute(m, "tabindex", "0");
    markup_attribute(m, "aria-label", caption);
    markup_begin(m, "table");
    markup_leaf(m, "caption", caption);
    markup_begin(m, "thead");
    markup_begin(m, "tr");
    for (; heads[t->n]; t->n++) {
        html_begin(m, "th", *heads[t->n] == '>' ? "n" : NULL);
        markup_attribute(m, "scope", "col");
        markup_text(m, head_text(heads[t->n]));
        markup_end(m);
    }
    markup_end(m);
    markup_end(m);
    markup_begin(m, "tbody");
}

void html_cell_begin(struct html_table *t) {
    if (!t->at)
        html_begin(t->m, "tr", t->row_class);
    html_begin(t->m, "td", *t->heads[t->at] == '>' ? "n" : NULL);
}

void html_cell_end(struct html_table *t) {
    markup_end(t->m);
    if (++t->at < t->n)
        return;
    markup_end(t->m);
    t->at = 0;
    t->row_class = NULL;
}

void html_cell(struct html_table *t, const char *text) {
    html_cell_begin(t);
    markup_text(t->m, text);
    html_cell_end(t);
}

void html_cellf(struct html_table *t, const char *format, ...) {
    va_list values;
    va_start(values, format);
    html_cell_begin(t);
    markup_textv(t->m, format, values);
    html_cell_end(t);
    va_end(values);
}

void html_table_end(struct html_table *t) {
    assert(!t->at);
    markup_end(t->m);
    markup_end(t->m);
    markup_end(t->m);
}

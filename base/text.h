/* Text that others wrote, made safe for a person's terminal.
 *
 * A name, an id or a reason may come from a file, a dataset or a service of somebody else. Printed as it is, it could
 * move the cursor, hide a line or turn a word around. Clean text is UTF-8 without control characters (U+0000 to U+001F,
 * U+007F to U+009F), without marks that change the direction of what follows (U+061C, U+200E, U+200F, U+202A to U+202E,
 * U+2066 to U+2069) and without line and paragraph separators (U+2028, U+2029).
 *
 * Whoever takes text in refuses what is not clean. Whoever prints, prints by text_print: datasets of earlier versions
 * and other people's services hold what was never refused. `make lint` looks for printf in cli.
 * Threads: any. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Are these n bytes clean? */
bool text_is_clean(const char *text, size_t n);

/* How many of the n bytes, counted from the first, are clean. */
size_t text_clean_length(const char *text, size_t n);

/* How many bytes the first character of the n > 0 bytes has; 0 when it is not clean. */
size_t text_character(const char *text, size_t n);

/* Is it a name: clean, of 1 to `most` bytes? False for NULL. */
bool text_is_name(const char *text, size_t most);

/* Is it a word: a name that cannot be taken for anything else, such as a path or an option? It has 1 to `most` letters,
 * digits and . _ - , the first a letter or a digit. False for NULL. */
bool text_is_word(const char *text, size_t most);

/* Make `text` clean: a line end or a tab becomes a blank, every other byte that is not clean a '?'. For messages, which
 * may have been cut within a character. */
void text_clean(char *text);

/* How the first character of the n > 0 bytes at `text` is shown: as it is if it is clean, else as \x1b, \u009b or
 * \u202e; a byte that is no UTF-8 as \xff. Returns how many bytes of `text` that is. */
enum { TEXT_SHOWN = 8 };
size_t text_show(const char *text, size_t n, char out[TEXT_SHOWN]);

/* How many columns of a terminal the n bytes take as they are shown. */
size_t text_columns(const char *text, size_t n);

/* printf and snprintf, but what %s and %c bring in is shown as text_show has it, line ends included; the format itself
 * goes out as it is. Widths count characters. %n, %p and wide characters are not known. text_format never cuts within a
 * character and returns how many bytes it wrote, less than `room`, which is at least 1. */
void text_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t text_format(char *out, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t text_vformat(char *out, size_t room, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* n bytes of JSON: inside its strings what is not clean becomes \u00xx or \u202x, which means the same; a line end
 * becomes a blank, a tab stays, and a byte that is no UTF-8 becomes \ufffd. */
void text_print_json(FILE *to, const char *json, size_t n);

/* The same for one character of JSON; returns as text_show. */
size_t text_show_json(const char *json, size_t n, char out[TEXT_SHOWN]);

/* A cell of a CSV file that a person opens in a spreadsheet. It is quoted where it must be. What is not clean is shown
 * as text_show has it. A cell that begins with = + - or @ gets a ' before it, because a spreadsheet would take it for a
 * formula. A cell that begins with a ' gets another, so a reader who takes one ' off has the text again. NULL is an
 * empty cell. */
void text_print_csv(FILE *to, const char *text);

#endif

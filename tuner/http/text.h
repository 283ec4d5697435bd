/* What may stand in answers: UTF-8 without control characters. */
#ifndef TUNER_HTTP_TEXT_H
#define TUNER_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Are these n bytes such text? */
bool text_is_clean(const char *text, size_t n);

/* Make it so: every byte that does not belong becomes '?'. For messages, which may have been cut within a character. */
void text_clean(char *text);

#endif

/* The words of interop/export/loss.h. */
#include "interop/export/loss.h"

const char *export_loss_word(enum export_loss loss) {
    static const char *const words[] = {
#define X(name, word) word,
        EXPORT_LOSS_TABLE(X)
#undef X
    };
    return words[loss];
}

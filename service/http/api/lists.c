/* See lists.h. */
#include "service/http/api/lists.h"

void list_begin(struct list_answer *list) {
    list->root = cJSON_CreateObject();
    list->items = list->root ? cJSON_AddArrayToObject(list->root, "items") : NULL;
    list->whole = list->items != NULL;
}

cJSON *list_add(struct list_answer *list) {
    cJSON *item = list->whole ? cJSON_CreateObject() : NULL;
    list->whole = item && cJSON_AddItemToArray(list->items, item);
    return list->whole ? item : NULL;
}

enum status list_end(struct list_answer *list, const char *next, const char *note, struct response *response,
                     struct error *err) {
    bool whole = list->whole && cJSON_AddStringToObject(list->root, "next_page_token", next);
    if (whole && !list->items->child)
        whole = cJSON_AddStringToObject(list->root, "note", note) != NULL;
    return response_json(response, 200, list->root, whole, err);
}

const char *list_note(const char *page_token, bool filtered, const char *none_fits, const char *none_yet) {
    return page_token && *page_token ? "the page before was the last one; nothing follows it"
           : filtered                ? none_fits
                                     : none_yet;
}

enum status list_fault(enum status status, const char *page_token, struct error *err) {
    if (status != ST_INVALID || !page_token)
        return status;
    return error_set(err, ST_USAGE, "query parameter page_token: not of this list");
}

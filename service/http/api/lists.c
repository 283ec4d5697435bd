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

enum status list_end(struct list_answer *list, const char *next, struct response *response, struct error *err) {
    const bool whole = list->whole && cJSON_AddStringToObject(list->root, "next_page_token", next);
    return response_json(response, 200, list->root, whole, err);
}

enum status list_fault(enum status status, const char *page_token, struct error *err) {
    if (status != ST_INVALID || !page_token)
        return status;
    return error_set(err, ST_USAGE, "query parameter page_token: not of this list");
}

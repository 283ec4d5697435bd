/* See launchers.h. The file is read anew each time: it is small, and only a start of the service asks. */
#include "service/launchers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "dataset/store.h"

#define SCHEMA "syncopate.launchers/1"

enum { MOST_PINS = 100000, PATH = 4096 };

/* Read the JSON of the file, or make an empty list of pins where there is no file. */
static enum status read_pins(const char *path, cJSON **out, struct error *err) {
    struct stat at;
    if (stat(path, &at)) {
        if (errno != ENOENT)
            return error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
        *out = cJSON_Parse("{\"schema\":\"" SCHEMA "\",\"pins\":[]}");
        return *out ? ST_OK : error_no_memory(err);
    }
    if (at.st_mode & (S_IWGRP | S_IWOTH))
        return error_at(err, ST_INVALID, path, "others can write it; chmod 600 it, and look at what is in it");
    return json_read_file(path, out, err);
}

static enum status read_pin(const struct json_at *at, const char **name, const char **cluster, struct error *err) {
    static const char *const known[] = {"name", "cluster", "since", NULL};
    const char *since = "";
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, name, err);
    if (!st)
        st = json_get_string(at, "cluster", JSON_REQUIRED, cluster, err);
    if (!st)
        st = json_get_string(at, "since", JSON_OPTIONAL, &since, err);
    if (!st && (strlen(*cluster) != ID_LENGTH || strspn(*cluster, "0123456789abcdef") != ID_LENGTH))
        return json_fail(at, err, "\"cluster\" must be a whole id of %d hex digits", ID_LENGTH);
    return st;
}

static enum status search(const cJSON *json, const char *path, const char *name, bool *found, struct id *out,
                          struct error *err) {
    static const char *const known[] = {"schema", "pins", NULL};
    const struct json_at root = json_root(json, path);
    struct json_at list;
    size_t n;
    *found = false;
    enum status st = json_expect_object(&root, known, err);
    if (!st)
        st = json_expect_schema(&root, SCHEMA, err);
    if (!st)
        st = json_array(&root, "pins", MOST_PINS, &list, &n, err);
    if (st)
        return st;
    for (struct json_at e = json_first(&list); !st && e.node; e = json_next(&e)) {
        const char *one = NULL, *cluster = NULL;
        st = read_pin(&e, &one, &cluster, err);
        if (!st && !strcmp(one, name)) {
            *found = true;
            snprintf(out->hex, sizeof out->hex, "%s", cluster);
        }
    }
    return st;
}

/* Read the pins of a dataset, and give the path of their file. */
static enum status open_pins(const char *dataset, char path[PATH], cJSON **json, struct error *err) {
    enum status st = store_beside(dataset, "launchers", path, PATH, err);
    return st ? st : read_pins(path, json, err);
}

enum status launcher_pin_find(const char *dataset, const char *name, bool *found, struct id *out, struct error *err) {
    char path[PATH];
    cJSON *json;
    enum status st = open_pins(dataset, path, &json, err);
    if (st)
        return st;
    st = search(json, path, name, found, out, err);
    cJSON_Delete(json);
    return st;
}

static bool add_pin(cJSON *json, const char *name, const struct id *cluster) {
    char now[32];
    cJSON *pin = cJSON_CreateObject();
    clock_utc(now, sizeof now);
    if (pin && cJSON_AddStringToObject(pin, "name", name) && cJSON_AddStringToObject(pin, "cluster", cluster->hex) &&
        cJSON_AddStringToObject(pin, "since", now) &&
        cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(json, "pins"), pin))
        return true;
    cJSON_Delete(pin);
    return false;
}

static enum status write_private(const char *path, const cJSON *json, struct error *err) {
    char *text = json_pretty(json);
    if (!text)
        return error_no_memory(err);
    const mode_t mask = umask(077);
    enum status st = json_write_file(path, text, err);
    umask(mask);
    free(text);
    return st;
}

enum status launcher_pin_add(const char *dataset, const char *name, const struct id *cluster, struct error *err) {
    char path[PATH];
    cJSON *json;
    enum status st = open_pins(dataset, path, &json, err);
    if (st)
        return st;
    st = add_pin(json, name, cluster) ? write_private(path, json, err) : error_no_memory(err);
    cJSON_Delete(json);
    return st;
}

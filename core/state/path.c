#include "state/path.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"

static int
check_component(const char *path, const char *at, size_t len)
{
    if (len == 0) {
        return sl_err_set(SL_EINVAL, "path '%s': a component is empty", path);
    }
    if (len > SL_STATE_COMPONENT_MAX) {
        return sl_err_set(SL_EINVAL, "path '%s': a component is longer than %d bytes", path,
                          SL_STATE_COMPONENT_MAX);
    }
    if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.')) {
        return sl_err_set(SL_EINVAL, "path '%s': '.' and '..' are not allowed", path);
    }
    for (size_t i = 0; i < len; i++) {
        if (at[i] < 0x21 || at[i] > 0x7e) {
            return sl_err_set(SL_EINVAL, "path: byte 0x%02x is not allowed", (unsigned char)at[i]);
        }
    }
    return 0;
}

int
sl_state_path_check(const char *path)
{
    if (path == NULL || path[0] != '/') {
        return sl_err_set(SL_EINVAL, "path '%s' does not start with '/'", path != NULL ? path : "");
    }
    if (strlen(path) > SL_STATE_PATH_MAX) {
        return sl_err_set(SL_EINVAL, "path is longer than %d bytes", SL_STATE_PATH_MAX);
    }
    if (path[1] == '\0') {
        return 0;
    }
    const char *at = path + 1;
    for (;;) {
        size_t len = strcspn(at, "/");
        int rc = check_component(path, at, len);
        if (rc != 0) {
            return rc;
        }
        if (at[len] == '\0') {
            return 0;
        }
        at += len + 1;
    }
}

char *
sl_state_path_parent_dup(const char *path)
{
    if (path[1] == '\0') {
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    return slash == path ? sl_strdup("/") : sl_strndup(path, (size_t)(slash - path));
}

const char *
sl_state_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    sl_assert(slash != NULL);
    return slash + 1;
}

char *
sl_state_path_join_dup(const char *parent, const char *name)
{
    return sl_asprintf("%s/%s", parent[1] == '\0' ? "" : parent, name);
}

bool
sl_state_path_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);
    if (len == 1) {
        return true;
    }
    return strncmp(path, above, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

int64_t
sl_state_path_sequence(const char *name)
{
    size_t len = strlen(name);
    if (len < SL_STATE_SEQUENCE_DIGITS) {
        return -1;
    }
    int64_t number = 0;
    for (const char *at = name + len - SL_STATE_SEQUENCE_DIGITS; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            return -1;
        }
        number = number * 10 + (*at - '0');
    }
    return number;
}

char *
sl_state_path_protect_dup(const char *path, const char *guid)
{
    const char *name = sl_state_path_name(path);
    return sl_asprintf("%.*s_c_%s-%s", (int)(name - path), path, guid, name);
}

bool
sl_state_path_has_guid(const char *name, const char *guid)
{
    return strncmp(name, "_c_", 3) == 0 && strncmp(name + 3, guid, SL_STATE_GUID_TEXT) == 0 &&
           name[3 + SL_STATE_GUID_TEXT] == '-';
}

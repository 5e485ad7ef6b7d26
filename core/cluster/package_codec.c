#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "cluster/package.h"
#include "package.pb-c.h"
#include "wire/message.h"

static const struct sl_pb_limit counts[] = {
    {&streamlua__package__descriptor, 3, SL_PACKAGE_FILES_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_PACKAGE_BYTES_MAX,
    .max_fields = 8 * SL_PACKAGE_FILES_MAX,
    SL_PB_COUNTS(counts),
};

/* A path that stays below the folder it is put into, whatever that is. */
static bool
is_safe_path(const char *path)
{
    size_t len = strlen(path);
    if (len == 0 || len > SL_PACKAGE_PATH_MAX) {
        return false;
    }
    for (const char *part = path;;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || (size == 1 && part[0] == '.') ||
            (size == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[size] == '\0') {
            return true;
        }
        part += size + 1;
    }
}

static int
check(const struct sl_package *package, int code)
{
    bool has_script = false;
    for (size_t i = 0; i < package->file_count; i++) {
        const char *path = package->files[i].path;
        if (!is_safe_path(path)) {
            return sl_err_set(code, "a package with the path '%.200s'", path);
        }
        if (i > 0 && strcmp(package->files[i - 1].path, path) >= 0) {
            return sl_err_set(code, "the files of a package are out of order");
        }
        has_script = has_script || strcmp(path, package->script) == 0;
    }
    return has_script ? 0 : sl_err_set(code, "a package without its script");
}

int
sl_package_encode(const struct sl_package *package, struct sl_buf *out)
{
    int rc = check(package, SL_EINVAL);
    if (rc != 0) {
        return rc;
    }
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    Streamlua__Package message = STREAMLUA__PACKAGE__INIT;
    Streamlua__PackageFile *files =
        sl_arena_calloc(&arena, package->file_count + 1, sizeof(*files));
    message.format = SL_PACKAGE_FORMAT;
    message.script = SL_PB_MUTABLE(package->script);
    message.overrides =
        (ProtobufCBinaryData){package->overrides_size, SL_PB_MUTABLE(package->overrides)};
    message.defaults =
        (ProtobufCBinaryData){package->defaults_size, SL_PB_MUTABLE(package->defaults)};
    message.n_files = package->file_count;
    message.files = sl_arena_calloc(&arena, package->file_count + 1, sizeof(void *));
    for (size_t i = 0; i < package->file_count; i++) {
        streamlua__package_file__init(&files[i]);
        files[i].path = SL_PB_MUTABLE(package->files[i].path);
        files[i].content =
            (ProtobufCBinaryData){package->files[i].size, SL_PB_MUTABLE(package->files[i].content)};
        message.files[i] = &files[i];
    }
    size_t size = streamlua__package__get_packed_size(&message);
    if (size > SL_PACKAGE_BYTES_MAX || package->file_count > SL_PACKAGE_FILES_MAX) {
        rc = sl_err_set(SL_ELIMIT,
                        "the script and its modules are %zu files of %zu bytes; the limits are %d "
                        "and %d",
                        package->file_count, size, SL_PACKAGE_FILES_MAX, SL_PACKAGE_BYTES_MAX);
    } else {
        sl_message_pack(&message.base, out);
    }
    sl_arena_destroy(&arena);
    return rc;
}

int
sl_package_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                  struct sl_package *package)
{
    ProtobufCMessage *unpacked;
    int rc =
        sl_message_unpack(&streamlua__package__descriptor, data, size, &limits, arena, &unpacked);
    if (rc != 0) {
        return sl_err_wrap("decode a code package");
    }
    const Streamlua__Package *message = (const Streamlua__Package *)unpacked;
    if (message->format != SL_PACKAGE_FORMAT) {
        return sl_err_set(SL_EPROTO, "code package of format %u; this release reads format %d",
                          message->format, SL_PACKAGE_FORMAT);
    }
    struct sl_package_file *files = sl_arena_calloc(arena, message->n_files + 1, sizeof(*files));
    if (files == NULL) {
        return sl_err_set(SL_ELIMIT, "a code package takes too much memory");
    }
    for (size_t i = 0; i < message->n_files; i++) {
        files[i] =
            (struct sl_package_file){message->files[i]->path, message->files[i]->content.data,
                                     message->files[i]->content.len};
    }
    *package = (struct sl_package){
        .script = message->script,
        .files = files,
        .file_count = message->n_files,
        .overrides = (const char *)message->overrides.data,
        .overrides_size = message->overrides.len,
        .defaults = (const char *)message->defaults.data,
        .defaults_size = message->defaults.len,
    };
    return check(package, SL_EPROTO);
}

#include "cluster/supervisor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/text.h"

enum { WORDS = 11, HASH_DIGITS = 16 };

/* A word without blanks: other bytes are written as %XX, none at all as "-". */
static void
append_word(struct sl_buf *out, const char *text)
{
    if (text[0] == '\0' || strcmp(text, "-") == 0) {
        sl_buf_append_str(out, text[0] == '\0' ? "-" : "%2D");
        return;
    }
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at > ' ' && *at < 127 && *at != '%') {
            sl_buf_append_u8(out, *at);
        } else {
            sl_buf_printf(out, "%%%02X", *at);
        }
    }
}

/* Its reverse, in place. */
static void
decode_word(char *text)
{
    char *to = text;
    if (strcmp(text, "-") == 0) {
        text[0] = '\0';
        return;
    }
    for (const char *at = text; *at != '\0'; at++) {
        char digits[3] = {0};
        if (*at == '%' && at[1] != '\0' && at[2] != '\0') {
            memcpy(digits, at + 1, 2);
            *to++ = (char)strtoul(digits, NULL, 16);
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

void
sl_supervisor_record_encode(const struct sl_supervisor_record *record, const char *boot_id,
                            struct sl_buf *out)
{
    size_t start = out->size;
    sl_buf_printf(out, "%s %s %lld %llu %s %u %llx %d %u ", record->is_master ? "master" : "worker",
                  boot_id, (long long)record->pid, (unsigned long long)record->start_time,
                  record->topology, record->port, (unsigned long long)record->allocation,
                  record->container, record->restarts);
    append_word(out, record->cwd != NULL ? record->cwd : "");
    uint64_t hash = sl_hash_bytes(out->data + start, out->size - start);
    sl_buf_printf(out, " %0*llx\n", HASH_DIGITS, (unsigned long long)hash);
}

static bool
is_hash_right(const char *line, size_t size)
{
    char hash[HASH_DIGITS + 1];
    if (size < HASH_DIGITS + 1 || line[size - HASH_DIGITS - 1] != ' ') {
        return false;
    }
    snprintf(hash, sizeof(hash), "%0*llx", HASH_DIGITS,
             (unsigned long long)sl_hash_bytes(line, size - HASH_DIGITS - 1));
    return memcmp(hash, line + size - HASH_DIGITS, HASH_DIGITS) == 0;
}

/* Splits at single blanks; false unless there are as many words as a line has. */
static bool
split(char *line, char *words[WORDS])
{
    for (int i = 0; i < WORDS; i++) {
        char *blank = strchr(line, ' ');
        if ((blank == NULL) != (i == WORDS - 1) || line == blank) {
            return false;
        }
        words[i] = line;
        if (blank != NULL) {
            *blank = '\0';
            line = blank + 1;
        }
    }
    return true;
}

static bool
read_record(char *words[WORDS], struct sl_supervisor_record *record)
{
    decode_word(words[9]);
    *record = (struct sl_supervisor_record){
        .is_master = strcmp(words[0], "master") == 0,
        .pid = strtoll(words[2], NULL, 10),
        .start_time = strtoull(words[3], NULL, 10),
        .topology = words[4],
        .port = (uint32_t)strtoul(words[5], NULL, 10),
        .allocation = strtoull(words[6], NULL, 16),
        .container = (int32_t)strtol(words[7], NULL, 10),
        .restarts = (uint32_t)strtoul(words[8], NULL, 10),
        .cwd = words[9],
    };
    return (record->is_master || (strcmp(words[0], "worker") == 0 && record->allocation != 0 &&
                                  record->container > 0)) &&
           record->pid > 0 && record->port > 0 && record->port <= 65535 &&
           sl_name_check("topology", record->topology, strlen(record->topology)) == 0;
}

/* The place of the record's slot among those that were read. */
static size_t
place_of(const struct sl_supervisor_record *records, size_t count,
         const struct sl_supervisor_record *record)
{
    size_t i = 0;
    while (i < count && (records[i].is_master != record->is_master ||
                         (record->is_master ? strcmp(records[i].topology, record->topology) != 0
                                            : records[i].port != record->port))) {
        i++;
    }
    return i;
}

size_t
sl_supervisor_records_decode(const uint8_t *data, size_t size, const char *boot_id,
                             struct sl_arena *arena, struct sl_supervisor_record **records,
                             size_t *damaged)
{
    size_t lines = 0;
    size_t count = 0;
    *damaged = 0;
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    struct sl_supervisor_record *found = sl_arena_calloc(arena, lines + 1, sizeof(*found));
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end != NULL ? (size_t)(end - data) - at : size - at;
        char *line = sl_arena_calloc(arena, len + 1, 1);
        char *words[WORDS];
        struct sl_supervisor_record record;
        memcpy(line, data + at, len);
        at += len + 1;
        if (end == NULL || memchr(line, '\0', len) != NULL || !is_hash_right(line, len) ||
            !split(line, words) || !read_record(words, &record)) {
            (*damaged)++;
        } else if (strcmp(words[1], boot_id) == 0) {
            size_t place = place_of(found, count, &record);
            found[place] = record;
            count += place == count;
        }
    }
    *records = found;
    return count;
}

static int
write_all(int fd, const struct sl_buf *content)
{
    for (size_t at = 0; at < content->size;) {
        ssize_t size = write(fd, content->data + at, content->size - at);
        if (size < 0) {
            return -1;
        }
        at += (size_t)size;
    }
    return fsync(fd);
}

int
sl_supervisor_file_write(const char *path, const struct sl_buf *content)
{
    char temporary[4096];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return sl_err_set(SL_ESYS, "write %s: %s", temporary, strerror(errno));
    }
    int rc = write_all(fd, content);
    int why = errno;
    close(fd);
    if (rc == 0 && rename(temporary, path) != 0) {
        rc = -1;
        why = errno;
    }
    if (rc != 0) {
        unlink(temporary);
        return sl_err_set(SL_ESYS, "write %s: %s", path, strerror(why));
    }
    return 0;
}

bool
sl_supervisor_file_read(const char *path, struct sl_buf *out)
{
    uint8_t piece[16384];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? 1 : -1;
    while (size > 0 && out->size < SL_SUPERVISOR_FILE_BYTES_MAX) {
        size = read(fd, piece, sizeof(piece));
        if (size > 0) {
            sl_buf_append(out, piece, (size_t)size);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return size >= 0;
}

#pragma once
/*
 * Where a process listens or connects to:
 *
 *     127.0.0.1:6123   [::1]:6123   node7.example:6123   unix:run/master.sock
 *
 * A TCP address may be written with "tcp://" before it. Port 0 is allowed for listening only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of a host name or a path with the NUL; a Unix socket has room for 107 characters. */
    SL_ADDRESS_HOST_SIZE = 256,
    SL_ADDRESS_TEXT_SIZE = SL_ADDRESS_HOST_SIZE + 16,
    SL_ADDRESS_PATH_MAX = 107,
};

enum sl_address_kind {
    SL_ADDRESS_TCP,
    SL_ADDRESS_UNIX,
};

struct sl_address {
    enum sl_address_kind kind;
    /* Host without brackets, or the path of the socket. */
    char host[SL_ADDRESS_HOST_SIZE];
    uint16_t port;
};

/* Reads a text; SL_EINVAL says what is wrong with it. */
int sl_address_parse(const char *text, struct sl_address *address);

/* Writes the text that reads back as the same address; returns dst. */
char *sl_address_format(const struct sl_address *address, char *dst, size_t size);

/*
 * True when only this machine can reach the address: a Unix socket, 127.0.0.0/8, ::1 or
 * "localhost". A host name that is not "localhost" counts as reachable from outside.
 */
bool sl_address_is_loopback(const struct sl_address *address);

#pragma once
/*
 * An HTTP server for small documents. Each connection has a thread and carries one request, which
 * is read whole and handed to one function; that function may block. What misbehaves is held off
 * before: too many connections, large or slow requests, floods of headers, requests without the
 * proof of the secret (sign.h), and web pages that talk to a server on loopback.
 *
 *     connection -> headers: limits, proof -> body: limits, hash -> handle -> answer -> closed
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct sl_http_server;

enum {
    SL_HTTP_CONNECTIONS_MAX = 64,
    SL_HTTP_HEADER_BYTES_MAX = 32 * 1024,
    SL_HTTP_BODY_BYTES_MAX = 64 * 1024 * 1024,
    /* Of all requests that are under way. */
    SL_HTTP_BODIES_BYTES_MAX = 256 * 1024 * 1024,
    /* Within which a request must have come. */
    SL_HTTP_REQUEST_MS = 30000,
};

/* Borrowed for the call of the handler. */
struct sl_http_request {
    const char *method;
    /* Path and query as they were sent. */
    const char *target;
    /* "" when there is none. */
    const char *content_type;
    const uint8_t *body;
    size_t size;
};

struct sl_http_answer {
    unsigned status;
    /* Static text; NULL is JSON. */
    const char *content_type;
    struct sl_buf body;
};

struct sl_http_server_options {
    /* "127.0.0.1:9000", "[::1]:0". */
    const char *listen;
    /* Copied; NULL or "" for none: only loopback addresses are listened on then. */
    const char *secret;
    /* Called on threads of connections, several at once; answer comes with status 500. */
    void (*handle)(void *ctx, const struct sl_http_request *request, struct sl_http_answer *answer);
    void *ctx;
    /* Limits; 0 picks the default. */
    uint32_t connections_max;
    size_t body_bytes_max;
    uint64_t request_timeout_ms;
};

/*
 * Listens and serves until sl_http_server_stop. SL_EINVAL for a bad address, SL_EFENCED for one
 * that other machines can reach when there is no secret, SL_EEXIST when it is in use, SL_EUNAVAIL
 * when it is not this machine's or the library is missing.
 */
int sl_http_server_start(const struct sl_http_server_options *options,
                         struct sl_http_server **server);

/* Waits for the handlers that run. NULL is fine. */
void sl_http_server_stop(struct sl_http_server *server);

/* The address with its real port: "127.0.0.1:9000". */
const char *sl_http_server_address(const struct sl_http_server *server);

/* Makes an answer an error document: {"message":..., "error":{"code":..., "message":...}}. */
void sl_http_answer_error(struct sl_http_answer *answer, unsigned status, const char *code,
                          const char *message);

#pragma once
/*
 * The HTTP API of a cluster, for `streamlua api` and for masters: a server (server.h) each of whose
 * requests is carried out by a process of its own, `streamlua ... api-request`. That process runs
 * the same runtime manager and the same commands as the command line, so results and errors are the
 * same; a request that hangs, crashes or needs much memory is that process's trouble; and whoever
 * starts the API neither waits for requests nor runs code of users.
 *
 *     to the process:    METHOD TARGET\n CONTENT-TYPE\n  body
 *     from the process:  STATUS CONTENT-TYPE\n           body
 */

#include <stdint.h>

struct sl_http_api;

enum {
    /* Requests that are carried out at once; others wait for SL_HTTP_API_WAIT_MS. */
    SL_HTTP_API_PROCESSES_MAX = 16,
    SL_HTTP_API_WAIT_MS = 30000,
    /* A request that takes longer is ended. */
    SL_HTTP_API_LIMIT_MS = 3600000,
    SL_HTTP_API_ANSWER_BYTES_MAX = 256 * 1024 * 1024,
};

struct sl_http_api_options {
    /* HOST:PORT; see sl_http_server_start for what is refused. */
    const char *listen;
    /* The cluster's secret, or NULL. */
    const char *secret;
    /* Path of the streamlua program. */
    const char *program;
    /* NULL-terminated: global options of the command line that name the cluster ("--state", URL).
     * Copied, as the texts above. */
    const char *const *arguments;
    /* Of a request, in milliseconds; 0 is SL_HTTP_API_LIMIT_MS. */
    uint64_t limit_ms;
};

/* Serves, on threads of its own, until sl_http_api_stop. Errors as sl_http_server_start. */
int sl_http_api_start(const struct sl_http_api_options *options, struct sl_http_api **api);

/* Ends the requests that are under way. NULL is fine. */
void sl_http_api_stop(struct sl_http_api *api);

/* The address with its real port: "127.0.0.1:9000". */
const char *sl_http_api_address(const struct sl_http_api *api);

#include "http/server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "http/microhttpd.h"
#include "http/sign.h"
#include "loop/address.h"

enum {
    BACKLOG = 64,
    STACK_BYTES = 512 * 1024,
    /* Seconds without a byte after which a connection is closed. */
    IDLE_S = 15,
    REAPER_MS = 1000,
    /* Nonces that are remembered; each came with a valid proof. */
    NONCES_MAX = 65536,
};

/* A connection, from its first byte to its last. */
struct http_link {
    struct sl_list_node node;
    int fd;
    uint64_t since_ms;
    /* The request is here and being handled. */
    bool is_served;
};

/* A request and its answer. */
struct http_exchange {
    char *target;
    bool has_begun;
    size_t reserved;
    struct sl_buf body;
    char nonce[SL_HTTP_NONCE_MAX + 1];
    char body_hash[SL_HTTP_HEX_SIZE];
};

struct sl_http_server {
    struct sl_http_server_options options;
    const struct sl_microhttpd *library;
    struct MHD_Daemon *daemon;
    char *secret;
    char address[SL_ADDRESS_TEXT_SIZE];
    bool is_loopback;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t reaper;
    bool has_reaper;
    bool is_stopping;
    struct sl_list links;
    /* Bytes of bodies that are here or announced. */
    size_t reserved;
    /* Nonces of this and of the last period. */
    struct sl_map_bytes nonces[2];
    int64_t nonces_since_s;
};

static uint64_t
now_ms(void)
{
    return sl_clock_mono_ns(sl_clock_system()) / 1000000u;
}

/* Answers. */

static void
append_json_text(struct sl_buf *out, const char *text)
{
    sl_buf_append_u8(out, '"');
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            sl_buf_printf(out, "\\%c", *at);
        } else if (*at < 0x20) {
            sl_buf_printf(out, "\\u%04x", *at);
        } else {
            sl_buf_append_u8(out, *at);
        }
    }
    sl_buf_append_u8(out, '"');
}

void
sl_http_answer_error(struct sl_http_answer *answer, unsigned status, const char *code,
                     const char *message)
{
    struct sl_buf *out = &answer->body;
    answer->status = status;
    answer->content_type = NULL;
    sl_buf_clear(out);
    sl_buf_append_str(out, "{\"message\":");
    append_json_text(out, message);
    sl_buf_append_str(out, ",\"error\":{\"code\":");
    append_json_text(out, code);
    sl_buf_append_str(out, ",\"message\":");
    append_json_text(out, message);
    sl_buf_append_str(out, "}}\n");
}

static enum MHD_Result
send_answer(struct sl_http_server *self, struct MHD_Connection *connection,
            const struct http_exchange *exchange, struct sl_http_answer *answer)
{
    const struct sl_microhttpd *library = self->library;
    struct MHD_Response *response = library->create_response_from_buffer(
        answer->body.size, answer->body.data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_NO;
    if (response != NULL) {
        library->add_response_header(response, "Content-Type",
                                     answer->content_type != NULL ? answer->content_type
                                                                  : "application/json");
        library->add_response_header(response, "Cache-Control", "no-store");
        library->add_response_header(response, "Connection", "close");
        if (self->secret[0] != '\0' && exchange->nonce[0] != '\0') {
            char proof[SL_HTTP_HEX_SIZE];
            sl_http_proof(self->secret, exchange->nonce, answer->status, answer->body.data,
                          answer->body.size, proof);
            library->add_response_header(response, "Streamlua-Proof", proof);
        }
        result = library->queue_response(connection, answer->status, response);
        library->destroy_response(response);
    }
    sl_buf_destroy(&answer->body);
    return result;
}

static enum MHD_Result
refuse(struct sl_http_server *self, struct MHD_Connection *connection,
       const struct http_exchange *exchange, unsigned status, const char *code, const char *message)
{
    struct sl_http_answer answer = {0};
    sl_http_answer_error(&answer, status, code, message);
    return send_answer(self, connection, exchange, &answer);
}

/* Checks of the headers. */

static const char *
header(const struct sl_http_server *self, struct MHD_Connection *connection, const char *name)
{
    return self->library->lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* True when the nonce is new. Those of two periods are remembered, so one that is not remembered
 * any more comes with a time that is too old. */
static bool
remember_nonce(struct sl_http_server *self, const char *nonce, int64_t now_s)
{
    pthread_mutex_lock(&self->lock);
    if (now_s - self->nonces_since_s > 2 * SL_HTTP_SKEW_S || self->nonces[0].count >= NONCES_MAX) {
        struct sl_map_bytes last = self->nonces[1];
        self->nonces[1] = self->nonces[0];
        sl_map_bytes_clear(&last);
        self->nonces[0] = last;
        self->nonces_since_s = now_s;
    }
    bool is_new = sl_map_bytes_find(&self->nonces[0], nonce, strlen(nonce)) == NULL &&
                  sl_map_bytes_find(&self->nonces[1], nonce, strlen(nonce)) == NULL;
    if (is_new) {
        sl_map_bytes_put_str(&self->nonces[0], nonce, self);
    }
    pthread_mutex_unlock(&self->lock);
    return is_new;
}

/* NULL when the request is proven, else why it is not. */
static const char *
check_proof(struct sl_http_server *self, struct MHD_Connection *connection, const char *method,
            struct http_exchange *exchange)
{
    struct sl_http_authorization given;
    int64_t now_s = sl_clock_wall_ms(sl_clock_system()) / 1000;
    if (!sl_http_authorization_parse(header(self, connection, "Authorization"), &given)) {
        return "a proof of the cluster's secret is needed";
    }
    if (!sl_http_authorization_check(&given, self->secret, method, exchange->target)) {
        return "the proof is not one of this cluster's secret";
    }
    if (given.time_s < now_s - SL_HTTP_SKEW_S || given.time_s > now_s + SL_HTTP_SKEW_S) {
        return "the proof is too old, or the clocks are too far apart";
    }
    if (!remember_nonce(self, given.nonce, now_s)) {
        return "the proof was used before";
    }
    memcpy(exchange->nonce, given.nonce, sizeof(exchange->nonce));
    memcpy(exchange->body_hash, given.body, sizeof(exchange->body_hash));
    return NULL;
}

/* A name that web pages can not have made to mean this machine. */
static bool
is_local_host(const char *host)
{
    static const char *const names[] = {"localhost", "127.", "[::1]"};
    for (size_t i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 &&
            (names[i][length - 1] == '.' || host[length] == ':' || host[length] == '\0')) {
            return host[strspn(host, "0123456789.")] == ':' || names[i][length - 1] != '.' ||
                   host[strspn(host, "0123456789.")] == '\0';
        }
    }
    return false;
}

/* Reads Content-Length; false when it is no number. No header is 0. */
static bool
read_length(const char *text, uint64_t *length)
{
    char *end;
    *length = 0;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    *length = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9';
}

static bool
reserve_body(struct sl_http_server *self, struct http_exchange *exchange, size_t size)
{
    pthread_mutex_lock(&self->lock);
    bool has_room = self->reserved + size <= SL_HTTP_BODIES_BYTES_MAX;
    if (has_room) {
        self->reserved += size;
        exchange->reserved = size;
    }
    pthread_mutex_unlock(&self->lock);
    return has_room;
}

/* The headers have come. What is refused here is not read any further. */
static enum MHD_Result
begin(struct sl_http_server *self, struct MHD_Connection *connection, const char *method,
      struct http_exchange *exchange)
{
    uint64_t length;
    const char *why = NULL;
    if (self->secret[0] != '\0') {
        why = check_proof(self, connection, method, exchange);
    }
    if (why != NULL) {
        return refuse(self, connection, exchange, MHD_HTTP_UNAUTHORIZED, "invalid", why);
    }
    if (self->secret[0] == '\0' && (header(self, connection, "Origin") != NULL ||
                                    !is_local_host(header(self, connection, "Host")))) {
        return refuse(self, connection, exchange, MHD_HTTP_FORBIDDEN, "invalid",
                      "without a cluster secret only programs of this machine are served, and no "
                      "web pages");
    }
    if (header(self, connection, "Transfer-Encoding") != NULL) {
        return refuse(self, connection, exchange, MHD_HTTP_LENGTH_REQUIRED, "invalid",
                      "the length of the body must be given (Content-Length)");
    }
    if (!read_length(header(self, connection, "Content-Length"), &length)) {
        return refuse(self, connection, exchange, MHD_HTTP_BAD_REQUEST, "invalid",
                      "Content-Length is no number");
    }
    if (length > self->options.body_bytes_max) {
        char text[128];
        snprintf(text, sizeof(text), "the body has %llu bytes, at most %zu are taken",
                 (unsigned long long)length, self->options.body_bytes_max);
        return refuse(self, connection, exchange, MHD_HTTP_CONTENT_TOO_LARGE, "invalid", text);
    }
    if (!reserve_body(self, exchange, length)) {
        return refuse(self, connection, exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "unreachable",
                      "too many large requests are under way");
    }
    return MHD_YES;
}

/* The body has come. */
static enum MHD_Result
serve(struct sl_http_server *self, struct MHD_Connection *connection, const char *method,
      struct http_exchange *exchange)
{
    const char *type = header(self, connection, "Content-Type");
    struct sl_http_answer answer = {.status = MHD_HTTP_INTERNAL_SERVER_ERROR};
    struct sl_http_request request = {
        .method = method,
        .target = exchange->target,
        .content_type = type != NULL ? type : "",
        .body = exchange->body.data,
        .size = exchange->body.size,
    };
    char hash[SL_HTTP_HEX_SIZE];
    sl_http_hash(request.body, request.size, hash);
    if (exchange->body_hash[0] != '\0' && strcmp(hash, exchange->body_hash) != 0) {
        return refuse(self, connection, exchange, MHD_HTTP_UNAUTHORIZED, "invalid",
                      "the proof is one of another body");
    }
    self->options.handle(self->options.ctx, &request, &answer);
    return send_answer(self, connection, exchange, &answer);
}

/* Callbacks of the library, on the thread of the connection. */

static void *
target_came(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    struct http_exchange *exchange = sl_calloc(1, sizeof(*exchange));
    (void)ctx;
    (void)connection;
    exchange->target = sl_strdup(uri);
    return exchange;
}

static void
set_served(struct sl_http_server *self, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        self->library->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_link *link = info != NULL ? info->socket_context : NULL;
    pthread_mutex_lock(&self->lock);
    if (link != NULL) {
        link->is_served = true;
    }
    pthread_mutex_unlock(&self->lock);
}

static enum MHD_Result
request_came(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
             const char *version, const char *data, size_t *size, void **state)
{
    struct sl_http_server *self = ctx;
    struct http_exchange *exchange = *state;
    (void)url;
    (void)version;
    if (exchange == NULL) {
        return MHD_NO;
    }
    if (!exchange->has_begun) {
        exchange->has_begun = true;
        return begin(self, connection, method, exchange);
    }
    if (*size > 0) {
        if (exchange->body.size + *size > exchange->reserved) {
            return MHD_NO;
        }
        sl_buf_append(&exchange->body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    set_served(self, connection);
    return serve(self, connection, method, exchange);
}

static void
request_over(void *ctx, struct MHD_Connection *connection, void **state,
             enum MHD_RequestTerminationCode code)
{
    struct sl_http_server *self = ctx;
    struct http_exchange *exchange = *state;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->reserved -= exchange->reserved;
    pthread_mutex_unlock(&self->lock);
    sl_buf_destroy(&exchange->body);
    sl_free(exchange->target);
    sl_free(exchange);
    *state = NULL;
}

static void
connection_changed(void *ctx, struct MHD_Connection *connection, void **socket_context,
                   enum MHD_ConnectionNotificationCode code)
{
    struct sl_http_server *self = ctx;
    pthread_mutex_lock(&self->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            self->library->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct http_link *link = sl_calloc(1, sizeof(*link));
        link->fd = info != NULL ? info->connect_fd : -1;
        link->since_ms = now_ms();
        sl_list_push_back(&self->links, &link->node);
        *socket_context = link;
        pthread_cond_signal(&self->wake);
    } else if (*socket_context != NULL) {
        struct http_link *link = *socket_context;
        sl_list_remove(&link->node);
        sl_free(link);
        *socket_context = NULL;
    }
    pthread_mutex_unlock(&self->lock);
}

/* Closes connections whose request does not come: a byte now and then is no request. */
static void *
reap(void *ctx)
{
    struct sl_http_server *self = ctx;
    pthread_mutex_lock(&self->lock);
    while (!self->is_stopping) {
        if (sl_list_is_empty(&self->links)) {
            pthread_cond_wait(&self->wake, &self->lock);
            continue;
        }
        uint64_t now = now_ms();
        sl_list_each(&self->links, it)
        {
            struct http_link *link = sl_container_of(it, struct http_link, node);
            if (!link->is_served && now - link->since_ms >= self->options.request_timeout_ms) {
                shutdown(link->fd, SHUT_RDWR);
            }
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += REAPER_MS / 1000;
        pthread_cond_timedwait(&self->wake, &self->lock, &until);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* Starting. */

static int
bind_failed(const char *address)
{
    int code = errno == EADDRINUSE ? SL_EEXIST : SL_ESYS;
    return sl_err_set(code, "listen on %s: %s", address, strerror(errno));
}

/* A listening socket, and its address with the real port. */
static int
listen_on(struct sl_http_server *self, const char *text, int *fd)
{
    struct sl_address address;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    int rc = sl_address_parse(text, &address);
    if (rc == 0 && address.kind != SL_ADDRESS_TCP) {
        rc = sl_err_set(SL_EINVAL, "listen on %s: HOST:PORT is needed", text);
    }
    if (rc != 0) {
        return rc;
    }
    self->is_loopback = sl_address_is_loopback(&address);
    if (self->secret[0] == '\0' && !self->is_loopback) {
        return sl_err_set(SL_EFENCED,
                          "listen on %s: other machines can reach it, and there is no cluster "
                          "secret",
                          text);
    }
    snprintf(port, sizeof(port), "%u", address.port);
    rc = getaddrinfo(address.host, port, &hints, &found);
    if (rc != 0) {
        return sl_err_set(SL_EUNAVAIL, "listen on %s: %s", text, gai_strerror(rc));
    }
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    int on = 1;
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(*fd, found->ai_addr, found->ai_addrlen) != 0 || listen(*fd, BACKLOG) != 0 ||
        getsockname(*fd, (struct sockaddr *)&bound, &size) != 0) {
        rc = bind_failed(text);
        if (*fd >= 0) {
            close(*fd);
        }
    } else {
        address.port =
            ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
        sl_address_format(&address, self->address, sizeof(self->address));
    }
    freeaddrinfo(found);
    return rc;
}

static void
library_log(void *ctx, const char *fmt, va_list args)
{
    char text[512];
    (void)ctx;
    vsnprintf(text, sizeof(text), fmt, args);
    text[strcspn(text, "\n")] = '\0';
    sl_log_info("http", "%s", text);
}

static void
server_free(struct sl_http_server *self)
{
    sl_map_bytes_destroy(&self->nonces[0]);
    sl_map_bytes_destroy(&self->nonces[1]);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    sl_free(self->secret);
    sl_free(self);
}

static struct sl_http_server *
server_new(const struct sl_http_server_options *options)
{
    struct sl_http_server *self = sl_calloc(1, sizeof(*self));
    pthread_condattr_t attributes;
    self->options = *options;
    self->secret = sl_strdup(options->secret != NULL ? options->secret : "");
    sl_list_create(&self->links);
    pthread_mutex_init(&self->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (self->options.connections_max == 0) {
        self->options.connections_max = SL_HTTP_CONNECTIONS_MAX;
    }
    if (self->options.body_bytes_max == 0) {
        self->options.body_bytes_max = SL_HTTP_BODY_BYTES_MAX;
    }
    if (self->options.request_timeout_ms == 0) {
        self->options.request_timeout_ms = SL_HTTP_REQUEST_MS;
    }
    return self;
}

int
sl_http_server_start(const struct sl_http_server_options *options, struct sl_http_server **server)
{
    const struct sl_microhttpd *library = sl_microhttpd();
    int fd = -1;
    if (library == NULL) {
        return SL_EUNAVAIL;
    }
    struct sl_http_server *self = server_new(options);
    self->library = library;
    int rc = listen_on(self, options->listen, &fd);
    if (rc != 0) {
        server_free(self);
        return rc;
    }
    self->daemon = library->start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, request_came, self, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_EXTERNAL_LOGGER,
        library_log, NULL, MHD_OPTION_CONNECTION_LIMIT, self->options.connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SL_HTTP_HEADER_BYTES_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_BYTES, MHD_OPTION_URI_LOG_CALLBACK, target_came, self,
        MHD_OPTION_NOTIFY_COMPLETED, request_over, self, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changed, self, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (self->daemon == NULL) {
        close(fd);
        server_free(self);
        return sl_err_set(SL_EINTERNAL, "the HTTP server does not start");
    }
    self->has_reaper = pthread_create(&self->reaper, NULL, reap, self) == 0;
    *server = self;
    return 0;
}

void
sl_http_server_stop(struct sl_http_server *self)
{
    if (self == NULL) {
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->is_stopping = true;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
    if (self->has_reaper) {
        pthread_join(self->reaper, NULL);
    }
    /* Closes the socket too. */
    self->library->stop_daemon(self->daemon);
    server_free(self);
}

const char *
sl_http_server_address(const struct sl_http_server *self)
{
    return self->address;
}

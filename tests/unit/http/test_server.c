/* labels: short */
/* The HTTP server over real sockets: what it takes, what it refuses, and proofs of the secret. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/random.h"
#include "http/server.h"
#include "http/sign.h"
#include "unit.h"

/* Answers with what it was asked. */
static void
echo(void *ctx, const struct sl_http_request *request, struct sl_http_answer *answer)
{
    ++*(int *)ctx;
    answer->status = 200;
    answer->content_type = "text/plain";
    sl_buf_printf(&answer->body, "%s %s %s %zu:", request->method, request->target,
                  request->content_type, request->size);
    sl_buf_append(&answer->body, request->body, request->size < 32 ? request->size : 32);
}

static int handled;

static struct sl_http_server *
server_new(const char *secret, uint64_t request_timeout_ms)
{
    struct sl_http_server *server = NULL;
    struct sl_http_server_options options = {
        .listen = "127.0.0.1:0",
        .secret = secret,
        .handle = echo,
        .ctx = &handled,
        .connections_max = 8,
        .body_bytes_max = 1000,
        .request_timeout_ms = request_timeout_ms,
    };
    handled = 0;
    assert_int_equal(sl_http_server_start(&options, &server), 0);
    return server;
}

static int
connect_to(const struct sl_http_server *server)
{
    const char *port = strrchr(sl_http_server_address(server), ':') + 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Sends bytes and reads until the server closes; returns the status, 0 when there was no answer. */
static int
ask_bytes(const struct sl_http_server *server, const char *bytes, size_t size, char *answer,
          size_t answer_size)
{
    int fd = connect_to(server);
    size_t used = 0;
    int status = 0;
    for (size_t sent = 0; sent < size;) {
        ssize_t count = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (count <= 0) {
            break;
        }
        sent += (size_t)count;
    }
    shutdown(fd, SHUT_WR);
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    while (used + 1 < answer_size && poll(&watched, 1, 20000) > 0) {
        ssize_t count = recv(fd, answer + used, answer_size - 1 - used, 0);
        if (count <= 0) {
            break;
        }
        used += (size_t)count;
    }
    answer[used] = '\0';
    close(fd);
    sscanf(answer, "HTTP/1.%*d %d", &status);
    return status;
}

static int
ask(const struct sl_http_server *server, const char *text, char answer[4096])
{
    return ask_bytes(server, text, strlen(text), answer, 4096);
}

static void
test_requests_are_answered(void **state)
{
    struct sl_http_server *server = server_new(NULL, 0);
    char answer[4096];
    (void)state;
    assert_int_equal(ask(server, "GET /a/b?c=d%20e HTTP/1.1\r\nHost: localhost\r\n\r\n", answer),
                     200);
    assert_non_null(strstr(answer, "GET /a/b?c=d%20e  0:"));
    assert_int_equal(ask(server,
                         "POST /x HTTP/1.1\r\nHost: 127.0.0.1:9\r\nContent-Type: text/a\r\n"
                         "Content-Length: 5\r\n\r\nhello",
                         answer),
                     200);
    assert_non_null(strstr(answer, "POST /x text/a 5:hello"));
    assert_non_null(strstr(answer, "Connection: close"));
    assert_int_equal(handled, 2);
    sl_http_server_stop(server);
}

static void
test_bad_requests_are_refused(void **state)
{
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n", 403},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999\r\n\r\n", 413},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: five\r\n\r\nhello", 400},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\nhello", 400},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhel", 0},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n", 0},
        {"\r\n\r\n\r\n", 0},
        {"", 0},
    };
    struct sl_http_server *server = server_new(NULL, 0);
    char answer[4096];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status = ask(server, rows[i].text, answer);
        if (status != rows[i].status) {
            fail_msg("row %zu: status %d\n%s", i, status, answer);
        }
    }
    assert_true(ask(server, "no HTTP at all\r\n\r\n", answer) != 200);
    assert_int_equal(handled, 0);
    sl_http_server_stop(server);
}

static void
test_a_flood_of_headers_is_refused(void **state)
{
    struct sl_http_server *server = server_new(NULL, 0);
    struct sl_buf text = {0};
    char answer[4096];
    (void)state;
    sl_buf_append_str(&text, "GET / HTTP/1.1\r\nHost: localhost\r\n");
    for (int i = 0; i < 4000; i++) {
        sl_buf_printf(&text, "X-%d: aaaaaaaaaaaaaaaaaaaaaaaa\r\n", i);
    }
    sl_buf_append_str(&text, "\r\n");
    int status = ask_bytes(server, (const char *)text.data, text.size, answer, sizeof(answer));
    assert_true(status == 0 || status == 413 || status == 431);
    assert_int_equal(handled, 0);
    assert_int_equal(ask(server, "GET / HTTP/1.1\r\nHost: [::1]:9\r\n\r\n", answer), 200);
    sl_buf_destroy(&text);
    sl_http_server_stop(server);
}

/* As many clients as may be connected, which send nothing, or a part of a request. */
static void
connect_slow_clients(const struct sl_http_server *server, int fds[8])
{
    for (size_t i = 0; i < 8; i++) {
        fds[i] = connect_to(server);
        if (i % 2 == 1) {
            assert_true(send(fds[i], "GET / HT", 8, MSG_NOSIGNAL) == 8);
        }
    }
}

/* The places of connections that were closed are free a little later. */
static void
assert_served_soon(const struct sl_http_server *server)
{
    char answer[4096];
    int status = 0;
    for (int tries = 0; status == 0 && tries < 5000; tries++) {
        status = ask(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", answer);
    }
    assert_int_equal(status, 200);
}

static void
test_one_connection_too_many_is_refused(void **state)
{
    struct sl_http_server *server = server_new(NULL, 0);
    int fds[8];
    char answer[4096];
    (void)state;
    connect_slow_clients(server, fds);
    assert_int_equal(ask(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", answer), 0);
    for (size_t i = 0; i < 8; i++) {
        close(fds[i]);
    }
    assert_served_soon(server);
    sl_http_server_stop(server);
}

/* Others are served again when their time is over. */
static void
test_slow_clients_lose_their_connections(void **state)
{
    struct sl_http_server *server = server_new(NULL, 50);
    int fds[8];
    char byte;
    (void)state;
    connect_slow_clients(server, fds);
    for (size_t i = 0; i < 8; i++) {
        assert_true(recv(fds[i], &byte, 1, 0) <= 0);
        close(fds[i]);
    }
    assert_served_soon(server);
    sl_http_server_stop(server);
}

/* Whatever comes, the server lives and serves the next one. */
static void
test_damaged_requests_do_no_harm(void **state)
{
    static const char valid[] = "POST /api/v1/x?y=z HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                                "text/plain\r\nContent-Length: 5\r\nAccept: */*\r\n\r\nhello";
    struct sl_http_server *server = server_new(NULL, 500);
    struct sl_random random;
    char answer[4096];
    (void)state;
    sl_random_seed(&random, 7);
    for (int round = 0; round < 200; round++) {
        char text[sizeof(valid)];
        size_t size = sizeof(valid) - 1;
        memcpy(text, valid, sizeof(valid));
        for (uint64_t k = sl_random_below(&random, 4) + 1; k > 0; k--) {
            text[sl_random_below(&random, size)] = (char)sl_random_below(&random, 256);
        }
        size = sl_random_below(&random, 4) == 0 ? sl_random_below(&random, size) : size;
        ask_bytes(server, text, size, answer, sizeof(answer));
    }
    assert_served_soon(server);
    sl_http_server_stop(server);
}

/* A request with a proof; body is what is sent, signed what is proven. */
static void
signed_request(char text[2048], const char *secret, int64_t time_s, const char *nonce,
               const char *target, const char *body, const char *proven)
{
    char hash[SL_HTTP_HEX_SIZE];
    char mac[SL_HTTP_HEX_SIZE];
    char plain[512];
    sl_http_hash(proven, strlen(proven), hash);
    int size = snprintf(plain, sizeof(plain), "streamlua request\nPOST\n/a?b=c\n%lld\n%s\n%s\n",
                        (long long)time_s, nonce, hash);
    sl_http_mac(secret, plain, (size_t)size, mac);
    snprintf(text, 2048,
             "POST %s HTTP/1.1\r\nHost: node7\r\nAuthorization: streamlua-hmac time=%lld, "
             "nonce=%s, body=%s, mac=%s\r\nContent-Length: %zu\r\n\r\n%s",
             target, (long long)time_s, nonce, hash, mac, strlen(body), body);
}

static void
test_a_secret_must_be_proven(void **state)
{
    struct sl_http_server *server = server_new("sesame", 0);
    int64_t now = time(NULL);
    char text[2048];
    char answer[4096];
    char proof[SL_HTTP_HEX_SIZE];
    (void)state;
    static const struct {
        const char *secret;
        int shift_s;
        const char *nonce;
        const char *target;
        const char *body;
        int status;
    } rows[] = {
        {"sesame", 0, "00112233445566778899", "/a?b=c", "hello", 200},
        /* Once more. */
        {"sesame", 0, "00112233445566778899", "/a?b=c", "hello", 401},
        {"sesame", -200, "10112233445566778899", "/a?b=c", "hello", 200},
        {"sesame", -400, "20112233445566778899", "/a?b=c", "hello", 401},
        {"sesame", 400, "30112233445566778899", "/a?b=c", "hello", 401},
        {"other", 0, "40112233445566778899", "/a?b=c", "hello", 401},
        {"sesame", 0, "50112233445566778899", "/a?b=d", "hello", 401},
        {"sesame", 0, "60112233445566778899", "/a?b=c", "jello", 401},
        {"sesame", 0, "short", "/a?b=c", "hello", 401},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        signed_request(text, rows[i].secret, now + rows[i].shift_s, rows[i].nonce, rows[i].target,
                       rows[i].body, "hello");
        int status = ask(server, text, answer);
        if (status != rows[i].status) {
            fail_msg("row %zu: status %d\n%s", i, status, answer);
        }
    }
    assert_int_equal(handled, 2);
    assert_int_equal(ask(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", answer), 401);
    assert_int_equal(ask(server,
                         "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: streamlua-hmac "
                         "time=, nonce=1, body=, mac=\r\n\r\n",
                         answer),
                     401);
    /* The server proves that it knows the secret, too. */
    signed_request(text, "sesame", now, "70112233445566778899", "/a?b=c", "hello", "hello");
    assert_int_equal(ask(server, text, answer), 200);
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    sl_http_proof("sesame", "70112233445566778899", 200, body, strlen(body), proof);
    assert_non_null(strstr(answer, proof));
    sl_http_server_stop(server);
}

static void
test_addresses_that_are_refused(void **state)
{
    static const struct {
        const char *listen;
        const char *secret;
        int code;
    } rows[] = {
        {"0.0.0.0:0", NULL, SL_EFENCED},  {"0.0.0.0:0", "", SL_EFENCED},
        {"[::]:0", NULL, SL_EFENCED},     {"192.0.2.1:0", "sesame", SL_ESYS},
        {"nowhere", NULL, SL_EINVAL},     {"127.0.0.1:99999", NULL, SL_EINVAL},
        {"unix:a.sock", NULL, SL_EINVAL}, {"0.0.0.0:0", "sesame", 0},
        {"localhost:0", NULL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_http_server *server = NULL;
        struct sl_http_server_options options = {
            .listen = rows[i].listen, .secret = rows[i].secret, .handle = echo, .ctx = &handled};
        int rc = sl_http_server_start(&options, &server);
        if (rc != rows[i].code) {
            fail_msg("row %zu: %s", i, sl_err_name(rc));
        }
        sl_http_server_stop(server);
    }
    struct sl_http_server *server = server_new(NULL, 0);
    struct sl_http_server *second = NULL;
    struct sl_http_server_options options = {
        .listen = sl_http_server_address(server), .handle = echo, .ctx = &handled};
    assert_int_equal(sl_http_server_start(&options, &second), SL_EEXIST);
    sl_http_server_stop(server);
}

static void
test_without_descriptors_the_error_says_so(void **state)
{
    (void)state;
    struct sl_http_server *server = server_new(NULL, 0);
    sl_http_server_stop(server);
    struct sl_http_server_options options = {
        .listen = "127.0.0.1:0", .handle = echo, .ctx = &handled};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 3, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = sl_http_server_start(&options, &server);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, SL_ESYS);
    assert_non_null(strstr(sl_err_last()->msg, strerror(EMFILE)));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_answered),
        cmocka_unit_test(test_bad_requests_are_refused),
        cmocka_unit_test(test_a_flood_of_headers_is_refused),
        cmocka_unit_test(test_one_connection_too_many_is_refused),
        cmocka_unit_test(test_slow_clients_lose_their_connections),
        cmocka_unit_test(test_damaged_requests_do_no_harm),
        cmocka_unit_test(test_a_secret_must_be_proven),
        cmocka_unit_test(test_addresses_that_are_refused),
        cmocka_unit_test(test_without_descriptors_the_error_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

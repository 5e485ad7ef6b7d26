/* labels: short */
/* The HTTP API and the processes that carry out its requests: shell scripts stand in for them. */

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "http/api.h"
#include "unit.h"

static struct sl_http_api *
api_new(const char *script, uint64_t limit_ms)
{
    struct sl_http_api *api = NULL;
    const char *const arguments[] = {"-c", script, NULL};
    struct sl_http_api_options options = {
        .listen = "127.0.0.1:0",
        .program = "/bin/sh",
        .arguments = arguments,
        .limit_ms = limit_ms,
    };
    assert_int_equal(sl_http_api_start(&options, &api), 0);
    return api;
}

/* Posts a body of so many letters; returns the status and the answer's body. */
static int
post(const struct sl_http_api *api, size_t size, char body[1024])
{
    const char *port = strrchr(sl_http_api_address(api), ':') + 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    struct sl_buf text = {0};
    char answer[4096];
    size_t used = 0;
    int status = 0;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    sl_buf_printf(&text,
                  "POST /a?b HTTP/1.1\r\nHost: localhost\r\nContent-Type: x/y\r\n"
                  "Content-Length: %zu\r\n\r\n",
                  size);
    memset(sl_buf_reserve(&text, size), 'a', size);
    sl_buf_commit(&text, size);
    for (size_t sent = 0; sent < text.size;) {
        ssize_t count = send(fd, text.data + sent, text.size - sent, MSG_NOSIGNAL);
        assert_true(count > 0);
        sent += (size_t)count;
    }
    for (ssize_t count = 1; count > 0 && used + 1 < sizeof(answer); used += (size_t)count) {
        count = recv(fd, answer + used, sizeof(answer) - 1 - used, 0);
        assert_true(count >= 0);
    }
    close(fd);
    sl_buf_destroy(&text);
    answer[used] = '\0';
    sscanf(answer, "HTTP/1.%*d %d", &status);
    snprintf(body, 1024, "%s", strstr(answer, "\r\n\r\n") + 4);
    return status;
}

static void
test_a_process_answers(void **state)
{
    static const struct {
        const char *script;
        size_t size;
        int status;
        const char *body;
    } rows[] = {
        {"printf '201 application/json\\n'; cat", 3, 201, "POST /a?b\nx/y\naaa"},
        {"printf '404 x/y\\nno'", 0, 404, "no"},
        /* Larger than a pipe, both ways. */
        {"printf '200 x/y\\n'; wc -c", 1000000, 200, "1000014\n"},
        /* The input is not read. */
        {"printf '200 x/y\\nyes'", 1000000, 200, "yes"},
        {"echo; echo what; exit 1", 3, 500, NULL},
        {"kill -9 $$", 3, 500, NULL},
        {"printf '99 x/y\\n'", 3, 500, NULL},
        {"printf 200", 3, 500, NULL},
        {"", 1000000, 500, NULL},
    };
    char body[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sl_http_api *api = api_new(rows[i].script, 0);
        int status = post(api, rows[i].size, body);
        const char *wanted = rows[i].body != NULL
                                 ? rows[i].body
                                 : "{\"message\":\"the process that carried out the request "
                                   "failed\",\"error\":{\"code\":\"failed\",\"message\":\"the "
                                   "process that carried out the request failed\"}}\n";
        if (status != rows[i].status || strcmp(body, wanted) != 0) {
            fail_msg("row %zu: status %d\n%s", i, status, body);
        }
        sl_http_api_stop(api);
    }
}

static void
test_a_process_that_hangs_is_ended(void **state)
{
    struct sl_http_api *api = api_new("exec tail -f /dev/null", 100);
    char body[1024];
    (void)state;
    assert_int_equal(post(api, 3, body), 504);
    sl_http_api_stop(api);
}

static void
test_a_program_that_is_missing_is_told(void **state)
{
    struct sl_http_api *api = NULL;
    struct sl_http_api_options options = {.listen = "127.0.0.1:0", .program = "/no/such/program"};
    char body[1024];
    (void)state;
    assert_int_equal(sl_http_api_start(&options, &api), 0);
    assert_int_equal(post(api, 3, body), 500);
    assert_non_null(strstr(body, "No such file"));
    sl_http_api_stop(api);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_answers),
        cmocka_unit_test(test_a_process_that_hangs_is_ended),
        cmocka_unit_test(test_a_program_that_is_missing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

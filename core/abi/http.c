#include <signal.h>
#include <stdio.h>
#include <sys/random.h>

#include "abi/abi.h"
#include "base/err.h"
#include "http/api.h"
#include "http/sign.h"
#include "loop/process.h"

static int
need(bool condition, const char *what)
{
    return condition ? 0 : sl_err_set(SL_EINVAL, "http: %s needed", what);
}

struct sl_http_api *
sl_abi_http_api_start(const char *listen, const char *secret, const char *program,
                      const char *const *arguments)
{
    struct sl_http_api *api = NULL;
    struct sl_http_api_options options = {
        .listen = listen, .secret = secret, .program = program, .arguments = arguments};
    if (need(listen != NULL && program != NULL, "an address and a program are") != 0) {
        return NULL;
    }
    return sl_http_api_start(&options, &api) == 0 ? api : NULL;
}

const char *
sl_abi_http_api_address(const struct sl_http_api *api)
{
    return api != NULL ? sl_http_api_address(api) : NULL;
}

void
sl_abi_http_api_stop(struct sl_http_api *api)
{
    sl_http_api_stop(api);
}

struct end_wait {
    struct sl_loop *loop;
    int number;
};

static void
told_to_end(void *ctx, int number)
{
    struct end_wait *wait = ctx;
    wait->number = number;
    sl_loop_stop(wait->loop);
}

int32_t
sl_abi_http_wait_for_end(void)
{
    struct end_wait wait = {0};
    struct sl_signal *term = NULL;
    struct sl_signal *interrupt = NULL;
    int rc = sl_loop_new(&wait.loop);
    if (rc != 0) {
        return rc;
    }
    rc = sl_signal_open(wait.loop, SIGTERM, told_to_end, &wait, &term);
    if (rc == 0) {
        rc = sl_signal_open(wait.loop, SIGINT, told_to_end, &wait, &interrupt);
    }
    if (rc == 0) {
        sl_loop_run(wait.loop);
        rc = wait.number;
    }
    if (interrupt != NULL) {
        sl_signal_close(interrupt);
    }
    if (term != NULL) {
        sl_signal_close(term);
    }
    sl_loop_free(wait.loop);
    return rc;
}

const char *
sl_abi_http_hash(const uint8_t *data, size_t size)
{
    static __thread char hex[SL_HTTP_HEX_SIZE];
    if (need(data != NULL || size == 0, "bytes are") != 0) {
        return NULL;
    }
    sl_http_hash(data, size, hex);
    return hex;
}

const char *
sl_abi_http_mac(const char *secret, const char *text, size_t size)
{
    static __thread char hex[SL_HTTP_HEX_SIZE];
    if (need(secret != NULL && text != NULL, "a secret and a text are") != 0) {
        return NULL;
    }
    sl_http_mac(secret, text, size, hex);
    return hex;
}

const char *
sl_abi_http_nonce(void)
{
    static __thread char hex[33];
    uint8_t bytes[16];
    for (size_t got = 0; got < sizeof(bytes);) {
        ssize_t count = getrandom(bytes + got, sizeof(bytes) - got, 0);
        got += count > 0 ? (size_t)count : 0;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
    return hex;
}

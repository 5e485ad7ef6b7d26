/* The HTTP API for Lua: its proofs, its server, and the wait for the end. labels: short */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "unit.h"

#include "abi/abi.h"
#include "base/err.h"

/* FIPS 180-2 and RFC 4231, case 2. */
#define SHA256_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA256_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HMAC_JEFE "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"

static void
test_hash_and_mac_are_the_published_ones(void **state)
{
    (void)state;
    static const char text[] = "what do ya want for nothing?";
    assert_string_equal(sl_abi_http_hash((const uint8_t *)"abc", 3), SHA256_ABC);
    assert_string_equal(sl_abi_http_hash(NULL, 0), SHA256_NOTHING);
    assert_string_equal(sl_abi_http_mac("Jefe", text, strlen(text)), HMAC_JEFE);
}

static void
test_hash_and_mac_need_bytes_and_a_secret(void **state)
{
    (void)state;
    assert_null(sl_abi_http_hash(NULL, 1));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_null(sl_abi_http_mac(NULL, "text", 4));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
    assert_null(sl_abi_http_mac("Jefe", NULL, 0));
    assert_int_equal(sl_err_last()->code, SL_EINVAL);
}

static void
test_nonce_is_new_each_time(void **state)
{
    (void)state;
    char first[33];
    snprintf(first, sizeof(first), "%s", sl_abi_http_nonce());
    assert_int_equal(strspn(first, "0123456789abcdef"), 32);
    assert_string_not_equal(first, sl_abi_http_nonce());
}

static void
test_api_start_refuses_what_can_not_be_served(void **state)
{
    static const char *const arguments[] = {NULL};
    static const struct {
        const char *listen;
        const char *program;
        int code;
    } rows[] = {
        {NULL, "/bin/true", SL_EINVAL},
        {"127.0.0.1:0", NULL, SL_EINVAL},
        {"nowhere", "/bin/true", SL_EINVAL},
        {"0.0.0.0:0", "/bin/true", SL_EFENCED},
    };
    (void)state;
    for (size_t i = 0; i < array_size(rows); i++) {
        assert_null(sl_abi_http_api_start(rows[i].listen, NULL, rows[i].program, arguments));
        assert_int_equal(sl_err_last()->code, rows[i].code);
    }
    assert_null(sl_abi_http_api_address(NULL));
    sl_abi_http_api_stop(NULL);
}

static void
test_api_start_says_where_it_listens_and_keeps_the_place(void **state)
{
    (void)state;
    static const char *const arguments[] = {NULL};
    struct sl_http_api *api = sl_abi_http_api_start("127.0.0.1:0", NULL, "/bin/true", arguments);
    assert_non_null(api);
    const char *address = sl_abi_http_api_address(api);
    int port = atoi(strrchr(address, ':') + 1);
    assert_true(port > 0 && port <= 65535);
    char again[32];
    snprintf(again, sizeof(again), "127.0.0.1:%d", port);
    assert_null(sl_abi_http_api_start(again, NULL, "/bin/true", arguments));
    assert_int_equal(sl_err_last()->code, SL_EEXIST);
    sl_abi_http_api_stop(api);
    api = sl_abi_http_api_start(again, NULL, "/bin/true", arguments);
    assert_non_null(api);
    sl_abi_http_api_stop(api);
}

/* Sends a signal as soon as somebody handles it. */
static void *
send_when_handled(void *arg)
{
    int number = *(const int *)arg;
    struct sigaction action;
    do {
        sched_yield();
        sigaction(number, NULL, &action);
    } while (action.sa_handler == SIG_DFL);
    kill(getpid(), number);
    return NULL;
}

static void
test_wait_for_end_gives_the_signal_and_can_wait_again(void **state)
{
    (void)state;
    int numbers[] = {SIGTERM, SIGINT, SIGTERM};
    for (size_t i = 0; i < array_size(numbers); i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, send_when_handled, &numbers[i]), 0);
        assert_int_equal(sl_abi_http_wait_for_end(), numbers[i]);
        pthread_join(thread, NULL);
        struct sigaction action;
        sigaction(numbers[i], NULL, &action);
        assert_true(action.sa_handler == SIG_DFL);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_hash_and_mac_are_the_published_ones),
    cmocka_unit_test(test_hash_and_mac_need_bytes_and_a_secret),
    cmocka_unit_test(test_nonce_is_new_each_time),
    cmocka_unit_test(test_api_start_refuses_what_can_not_be_served),
    cmocka_unit_test(test_api_start_says_where_it_listens_and_keeps_the_place),
    cmocka_unit_test(test_wait_for_end_gives_the_signal_and_can_wait_again),
};

UNIT_MAIN(tests)

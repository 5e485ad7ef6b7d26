#include "base/err.h"
#include "state/layout.h"
#include "state/open.h"
#include "state/runner.h"
#include "state/url.h"
#include "unit.h"

static void
test_parse_reads_the_three_schemes(void **state)
{
    (void)state;
    struct sl_state_url url;
    assert_int_equal(sl_state_url_parse("localfs:/var/lib/streamlua", &url), 0);
    assert_int_equal(url.scheme, SL_STATE_LOCALFS);
    assert_string_equal(url.path, "/var/lib/streamlua");
    assert_int_equal(sl_state_url_parse("localfs:relative dir/x", &url), 0);
    assert_string_equal(url.path, "relative dir/x");
    assert_int_equal(sl_state_url_parse("memory:", &url), 0);
    assert_int_equal(url.scheme, SL_STATE_MEMORY);
    assert_int_equal(sl_state_url_parse("zookeeper://a:1,b.c-d:65535,[::1]:3,e/streams/x", &url),
                     0);
    assert_int_equal(url.scheme, SL_STATE_ZOOKEEPER);
    assert_int_equal(url.host_count, 4);
    assert_string_equal(url.hosts[0].name, "a");
    assert_int_equal(url.hosts[0].port, 1);
    assert_string_equal(url.hosts[1].name, "b.c-d");
    assert_int_equal(url.hosts[1].port, 65535);
    assert_string_equal(url.hosts[2].name, "::1");
    assert_int_equal(url.hosts[2].port, 3);
    assert_int_equal(url.hosts[3].port, 2181);
    assert_string_equal(url.path, "/streams/x");
    assert_int_equal(sl_state_url_parse("zookeeper://a", &url), 0);
    assert_string_equal(url.path, "/streamlua");
    assert_int_equal(sl_state_url_parse("zookeeper://a:1/", &url), 0);
    assert_string_equal(url.path, "/streamlua");
}

static void
test_parse_says_that_a_host_name_is_too_long(void **state)
{
    (void)state;
    struct sl_state_url url;
    struct sl_buf text = {0};
    sl_buf_append_str(&text, "zookeeper://");
    for (size_t i = 0; i < sizeof(url.hosts[0].name); i++) {
        sl_buf_append_u8(&text, 'h');
    }
    sl_buf_append_str(&text, ":2181");
    assert_int_equal(sl_state_url_parse(sl_buf_str(&text), &url), SL_EINVAL);
    assert_non_null(strstr(sl_err_last()->msg, "host 'hhh"));
    assert_non_null(strstr(sl_err_last()->msg, "more than"));
    sl_buf_destroy(&text);
}

static void
test_parse_refuses_everything_else(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "unknown scheme"},
        {"etcd://a:1", "unknown scheme"},
        {"/var/lib/x", "unknown scheme"},
        {"zookeeper:a:1", "unknown scheme"},
        {"Zookeeper://a:1", "unknown scheme"},
        {"memory:x", "unknown scheme"},
        {"localfs:", "no directory"},
        {"zookeeper://", "no name"},
        {"zookeeper:///root", "no name"},
        {"zookeeper://a:1,/root", "no name"},
        {"zookeeper://,a:1", "no name"},
        {"zookeeper://a:0/r", "port '0'"},
        {"zookeeper://a:65536/r", "port '65536'"},
        {"zookeeper://a:99999999999999999999/r", "port"},
        {"zookeeper://a:-1/r", "port '-1'"},
        {"zookeeper://a:x/r", "port 'x'"},
        {"zookeeper://a:/r", "port ''"},
        {"zookeeper://a:1 /r", "port"},
        {"zookeeper://user@a:1/r", "no host name"},
        {"zookeeper://[::1/r", "lacks its ']'"},
        {"zookeeper://[::1]2/r", "lacks its ']'"},
        {"zookeeper://a:1//r", "no root node"},
        {"zookeeper://a:1/r/", "no root node"},
        {"zookeeper://a:1/../r", "no root node"},
        {"zookeeper://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q/r", "more than 16 hosts"},
    };
    for (size_t i = 0; i < array_size(cases); i++) {
        struct sl_state_url url;
        int rc = sl_state_url_parse(cases[i].text, &url);
        if (rc != SL_EINVAL || strstr(sl_err_last()->msg, cases[i].why) == NULL) {
            print_error("'%s' gave %d: %s\n", cases[i].text, rc, sl_err_last()->msg);
        }
        assert_int_equal(rc, SL_EINVAL);
        assert_non_null(strstr(sl_err_last()->msg, cases[i].why));
    }
}

struct opening {
    bool is_done;
    int status;
};

static void
on_created(void *ctx, int status, const struct sl_state_result *result)
{
    struct opening *opening = ctx;
    (void)result;
    opening->is_done = true;
    opening->status = status;
}

static void
on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void
test_open_new_opens_a_store_of_its_own_in_memory(void **state)
{
    (void)state;
    struct sl_manual_clock clock;
    bool is_closed = false;
    struct opening opening = {0};
    sl_manual_clock_create(&clock, 0);
    struct sl_state_runner *runner = sl_state_runner_virtual_new(&clock);
    const struct sl_state_executor *executor = sl_state_runner_executor(runner);
    assert_null(sl_state_open_new("nowhere:", executor, NULL));
    struct sl_state_store *store = sl_state_open_new("memory:", executor, NULL);
    assert_non_null(store);
    sl_state_create(store, "/a", "x", 1, 0, on_created, &opening);
    assert_true(sl_state_runner_run_until(runner, &opening.is_done, 1000));
    assert_int_equal(opening.status, 0);
    sl_state_store_close(store, on_closed, &is_closed);
    assert_true(sl_state_runner_run_until(runner, &is_closed, 1000));
    assert_int_equal(sl_state_runner_timer_count(runner), 0);
    sl_state_runner_free(runner);
}

static void
test_layout_paths_are_paths(void **state)
{
    (void)state;
    char path[SL_STATE_PATH_MAX + 1];
    for (int part = 0; part < SL_LAYOUT_PARTS; part++) {
        assert_int_equal(sl_state_path_check(sl_layout_path(path, part, "word-count_2.x")), 0);
        assert_string_equal(sl_state_path_name(path), "word-count_2.x");
    }
    assert_string_equal(sl_layout_path(path, SL_LAYOUT_PLAN, "t"), "/plans/t");
    assert_int_equal(sl_state_path_check(SL_LAYOUT_MASTER_LEADER), 0);
}

static void
test_path_helpers(void **state)
{
    (void)state;
    static const char guid[] = "0123456789abcdef0123456789abcdef";
    char *path = sl_state_path_protect_dup("/locks/t/lock-", guid);
    assert_string_equal(path, "/locks/t/_c_0123456789abcdef0123456789abcdef-lock-");
    assert_true(sl_state_path_has_guid(sl_state_path_name(path), guid));
    assert_false(sl_state_path_has_guid("_c_0123456789abcdef0123456789abcdee-lock-", guid));
    assert_false(sl_state_path_has_guid("_c_0123", guid));
    free(path);
    assert_int_equal(sl_state_path_sequence("lock-0000000042"), 42);
    assert_int_equal(sl_state_path_sequence("lock-00000000x2"), -1);
    assert_int_equal(sl_state_path_sequence("0042"), -1);
    assert_true(sl_state_path_is_below("/a/b", "/a"));
    assert_true(sl_state_path_is_below("/a", "/a"));
    assert_true(sl_state_path_is_below("/a", "/"));
    assert_false(sl_state_path_is_below("/ab", "/a"));
    assert_null(sl_state_path_parent_dup("/"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_reads_the_three_schemes),
        cmocka_unit_test(test_parse_says_that_a_host_name_is_too_long),
        cmocka_unit_test(test_parse_refuses_everything_else),
        cmocka_unit_test(test_open_new_opens_a_store_of_its_own_in_memory),
        cmocka_unit_test(test_layout_paths_are_paths),
        cmocka_unit_test(test_path_helpers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

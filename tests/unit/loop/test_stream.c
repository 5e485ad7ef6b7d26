#include "loop/stream.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/sim.h"
#include "unit.h"

/* A server that keeps what it reads (or echoes it) and a client, on either kind of loop. */
struct side {
    struct sl_stream *stream;
    struct sl_buf got;
    int opened;
    int closed;
    int drained;
    struct sl_err why;
    bool is_echo;
    bool is_closing_on_data;
};

struct world {
    struct sl_sim *sim;
    struct sl_loop *loop;
    struct sl_listener *listener;
    struct side client;
    struct side server;
    struct sl_stream_options options;
    bool is_refusing;
    char folder[64];
};

static void
on_open(void *ctx)
{
    ((struct side *)ctx)->opened++;
}

static void
on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct side *side = ctx;
    assert_int_equal(side->closed, 0);
    sl_buf_append(&side->got, data, len);
    if (side->is_echo) {
        assert_int_equal(sl_stream_write(side->stream, data, len), 0);
    }
    if (side->is_closing_on_data) {
        sl_stream_close(side->stream);
    }
}

static void
on_drain(void *ctx)
{
    ((struct side *)ctx)->drained++;
}

static void
on_close(void *ctx, const struct sl_err *why)
{
    struct side *side = ctx;
    side->closed++;
    side->why = *why;
    side->stream = NULL;
}

static const struct sl_stream_handler handler = {on_open, on_data, on_drain, on_close};

static void
on_accept(void *ctx, struct sl_stream *stream)
{
    struct world *world = ctx;
    if (world->is_refusing) {
        sl_stream_close(stream);
        return;
    }
    world->server.stream = stream;
    sl_stream_accept(stream, NULL, &handler, &world->server);
}

static const struct sl_listener_handler listener_handler = {on_accept};

static void
open_world(struct world *world, bool is_simulated)
{
    memset(world, 0, sizeof(*world));
    if (is_simulated) {
        world->sim = sl_sim_new(&(struct sl_sim_options){.seed = 5, .is_splitting_reads = true});
        world->loop = sl_sim_loop_new(world->sim, "127.0.0.1");
    } else {
        assert_int_equal(sl_loop_new(&world->loop), 0);
    }
    strcpy(world->folder, "sl-stream-XXXXXX");
}

static void
listen_on(struct world *world, const char *text)
{
    struct sl_address address;
    assert_int_equal(sl_address_parse(text, &address), 0);
    assert_int_equal(
        sl_listener_open(world->loop, &address, &listener_handler, world, &world->listener), 0);
}

static void
connect_to(struct world *world, const struct sl_address *address)
{
    assert_int_equal(sl_stream_connect(world->loop, address, &world->options, &handler,
                                       &world->client, &world->client.stream),
                     0);
}

static void
close_world(struct world *world)
{
    sl_listener_close(world->listener);
    sl_loop_free(world->loop);
    sl_sim_free(world->sim);
    sl_buf_destroy(&world->client.got);
    sl_buf_destroy(&world->server.got);
}

/* Turns until the condition holds; a hang is ended by the time limit of the test. */
#define run_until(world, condition)                                                                \
    while (!(condition)) {                                                                         \
        sl_loop_run_once((world)->loop, -1);                                                       \
    }

static void
test_bytes_come_back_in_order(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        world.server.is_echo = true;
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        struct sl_buf sent = {0};
        /* Before on_open, and more than a socket's buffers hold. */
        for (uint32_t i = 0; i < 300000; i++) {
            sl_buf_append_u32(&sent, i);
        }
        assert_int_equal(sl_stream_write(world.client.stream, sent.data, sent.size), 0);
        run_until(&world, world.client.got.size == sent.size);
        assert_int_equal(world.client.opened, 1);
        assert_memory_equal(world.client.got.data, sent.data, sent.size);
        assert_int_equal(sl_stream_queued_bytes(world.client.stream), 0);
        sl_stream_close(world.client.stream);
        run_until(&world, world.client.closed && world.server.closed);
        assert_int_equal(world.client.why.code, 0);
        assert_int_equal(world.server.why.code, SL_ECLOSED);
        sl_buf_destroy(&sent);
        close_world(&world);
    }
}

static void
test_nobody_listens(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct sl_address address;
        open_world(&world, kind == 1);
        listen_on(&world, "127.0.0.1:0");
        address = *sl_listener_address(world.listener);
        sl_listener_close(world.listener);
        world.listener = NULL;
        connect_to(&world, &address);
        run_until(&world, world.client.closed);
        assert_int_equal(world.client.opened, 0);
        assert_int_equal(world.client.why.code, SL_EUNAVAIL);
        assert_non_null(strstr(world.client.why.msg, "127.0.0.1:"));
        close_world(&world);
    }
}

static void
test_an_address_is_used_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        struct sl_listener *second;
        open_world(&world, kind == 1);
        listen_on(&world, "127.0.0.1:0");
        assert_int_equal(sl_listener_open(world.loop, sl_listener_address(world.listener),
                                          &listener_handler, &world, &second),
                         SL_EEXIST);
        close_world(&world);
    }
}

static void
test_a_refused_connection_is_closed(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        world.is_refusing = true;
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.closed);
        assert_int_equal(world.client.why.code, SL_ECLOSED);
        close_world(&world);
    }
}

static void
test_finish_delivers_the_last_word(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.opened && world.server.stream);
        /* Bytes that the server never reads would turn its close into a reset. */
        assert_int_equal(sl_stream_write(world.client.stream, "unread", 6), 0);
        assert_int_equal(sl_stream_write(world.server.stream, "no", 2), 0);
        sl_stream_finish(world.server.stream);
        assert_int_equal(sl_stream_write(world.server.stream, "x", 1), SL_ECLOSED);
        run_until(&world, world.client.closed && world.server.closed);
        assert_int_equal(world.client.got.size, 2);
        assert_int_equal(world.server.got.size, 0);
        assert_int_equal(world.server.why.code, 0);
        close_world(&world);
    }
}

static void
test_close_in_on_data_ends_the_calls(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        world.server.is_closing_on_data = true;
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        assert_int_equal(sl_stream_write(world.client.stream, "abcdef", 6), 0);
        run_until(&world, world.client.closed && world.server.closed);
        assert_int_equal(world.server.why.code, 0);
        close_world(&world);
    }
}

static void
test_a_full_queue_refuses_and_tells_when_there_is_room(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        enum { LIMIT = 16 * 1024 * 1024 };
        open_world(&world, kind == 1);
        world.options.write_max_bytes = LIMIT;
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.opened && world.server.stream);
        sl_stream_pause(world.server.stream);
        uint8_t *block = calloc(1, LIMIT);
        assert_int_equal(sl_stream_write(world.client.stream, block, LIMIT), 0);
        assert_int_equal(sl_stream_write(world.client.stream, block, 1), SL_ELIMIT);
        assert_int_equal(world.client.drained, 0);
        sl_stream_resume(world.server.stream);
        run_until(&world, world.server.got.size == LIMIT && world.client.drained == 1);
        assert_int_equal(sl_stream_write(world.client.stream, block, 1), 0);
        free(block);
        close_world(&world);
    }
}

static void
test_a_full_queue_that_fits_the_system_tells_of_room_too(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        enum { LIMIT = 8192 };
        open_world(&world, kind == 1);
        world.options.write_max_bytes = LIMIT;
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.opened && world.server.stream);
        uint8_t block[LIMIT] = {0};
        assert_int_equal(sl_stream_write(world.client.stream, block, LIMIT), 0);
        assert_int_equal(sl_stream_write(world.client.stream, block, 1), SL_ELIMIT);
        run_until(&world, world.client.drained == 1);
        run_until(&world, world.server.got.size == LIMIT);
        close_world(&world);
    }
}

static void
test_pause_holds_data_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.opened && world.server.stream);
        sl_stream_pause(world.server.stream);
        assert_int_equal(sl_stream_write(world.client.stream, "abc", 3), 0);
        for (int i = 0; i < 20; i++) {
            sl_loop_run_once(world.loop, 0);
        }
        assert_int_equal(world.server.got.size, 0);
        sl_stream_resume(world.server.stream);
        run_until(&world, world.server.got.size == 3);
        close_world(&world);
    }
}

static void
test_loop_free_closes_what_is_open(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct world world;
        open_world(&world, kind == 1);
        listen_on(&world, "127.0.0.1:0");
        connect_to(&world, sl_listener_address(world.listener));
        run_until(&world, world.client.opened && world.server.stream);
        world.listener = NULL;
        sl_loop_free(world.loop);
        world.loop = NULL;
        assert_int_equal(world.client.closed, 1);
        assert_int_equal(world.client.why.code, SL_ECANCELED);
        assert_int_equal(world.server.closed, 1);
        close_world(&world);
    }
}

static void
test_connect_time_limit(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, true);
    listen_on(&world, "127.0.0.1:0");
    world.options.connect_timeout_ms = 300;
    sl_sim_cut(world.sim, "127.0.0.1", "127.0.0.1");
    connect_to(&world, sl_listener_address(world.listener));
    sl_sim_run_for(world.sim, 299);
    assert_int_equal(world.client.closed, 0);
    sl_sim_run_for(world.sim, 2);
    assert_int_equal(world.client.why.code, SL_ETIMEOUT);
    close_world(&world);
}

/* A Unix socket in a folder of its own; paths are relative to stay short. */
static void
unix_text(struct world *world, char *text, size_t size)
{
    assert_non_null(mkdtemp(world->folder));
    snprintf(text, size, "unix:%s/s", world->folder);
}

static void
test_unix_socket(void **state)
{
    (void)state;
    struct world world;
    char text[128];
    struct stat info;
    open_world(&world, false);
    unix_text(&world, text, sizeof(text));
    world.server.is_echo = true;
    listen_on(&world, text);
    assert_int_equal(stat(text + 5, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    connect_to(&world, sl_listener_address(world.listener));
    assert_int_equal(sl_stream_write(world.client.stream, "hello", 5), 0);
    run_until(&world, world.client.got.size == 5);
    close_world(&world);
    /* The file went with the listener. */
    assert_int_not_equal(stat(text + 5, &info), 0);
    assert_int_equal(rmdir(world.folder), 0);
}

static void
test_unix_socket_of_a_dead_process_is_replaced_and_of_a_live_one_is_not(void **state)
{
    (void)state;
    struct world world;
    struct sl_address address;
    struct sl_listener *second;
    char text[128];
    open_world(&world, false);
    unix_text(&world, text, sizeof(text));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, text + 5);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    listen_on(&world, text);
    assert_int_equal(sl_address_parse(text, &address), 0);
    assert_int_equal(sl_listener_open(world.loop, &address, &listener_handler, &world, &second),
                     SL_EEXIST);
    close_world(&world);
    assert_int_equal(rmdir(world.folder), 0);
}

static void
test_a_host_that_does_not_exist(void **state)
{
    (void)state;
    struct world world;
    struct sl_address address;
    open_world(&world, false);
    assert_int_equal(sl_address_parse("nosuch.invalid:80", &address), 0);
    connect_to(&world, &address);
    run_until(&world, world.client.closed);
    assert_int_equal(world.client.why.code, SL_EUNAVAIL);
    close_world(&world);
}

static void
test_close_while_resolving(void **state)
{
    (void)state;
    struct world world;
    struct sl_address address;
    open_world(&world, false);
    assert_int_equal(sl_address_parse("nosuch.invalid:80", &address), 0);
    connect_to(&world, &address);
    sl_stream_close(world.client.stream);
    run_until(&world, world.client.closed);
    assert_int_equal(world.client.why.code, 0);
    close_world(&world);
}

/* A peer that is gone when the first write is sent, before its end could be read. */
struct gone {
    int listener;
    struct sl_loop *loop;
    struct sl_stream *stream;
    int closed;
    int code;
};

static void
write_to_nobody(void *ctx)
{
    struct gone *gone = ctx;
    close(accept(gone->listener, NULL, NULL));
    assert_int_equal(sl_stream_write(gone->stream, "x", 1), 0);
}

static void
note_gone(void *ctx, const struct sl_err *why)
{
    struct gone *gone = ctx;
    gone->closed++;
    gone->code = why->code;
    sl_loop_stop(gone->loop);
}

static void
test_a_peer_that_closed_ends_the_stream_and_not_the_process(void **state)
{
    (void)state;
    static const struct sl_stream_handler gone_handler = {write_to_nobody, on_data, NULL,
                                                          note_gone};
    char folder[64];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct sl_address address;
    struct gone gone = {0};
    char text[128];
    unit_folder_new(folder, sizeof(folder));
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", folder);
    snprintf(text, sizeof(text), "unix:%s", name.sun_path);
    gone.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(gone.listener, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(gone.listener, 1), 0);
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(sl_loop_new(&gone.loop), 0);
    assert_int_equal(sl_address_parse(text, &address), 0);
    assert_int_equal(
        sl_stream_connect(gone.loop, &address, NULL, &gone_handler, &gone, &gone.stream), 0);
    sl_loop_run(gone.loop);
    assert_int_equal(gone.closed, 1);
    assert_true(gone.code == SL_EIO || gone.code == SL_ECLOSED);
    sl_loop_free(gone.loop);
    close(gone.listener);
    unlink(name.sun_path);
    rmdir(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_peer_that_closed_ends_the_stream_and_not_the_process),
    cmocka_unit_test(test_bytes_come_back_in_order),
    cmocka_unit_test(test_nobody_listens),
    cmocka_unit_test(test_an_address_is_used_once),
    cmocka_unit_test(test_a_refused_connection_is_closed),
    cmocka_unit_test(test_finish_delivers_the_last_word),
    cmocka_unit_test(test_close_in_on_data_ends_the_calls),
    cmocka_unit_test(test_a_full_queue_refuses_and_tells_when_there_is_room),
    cmocka_unit_test(test_a_full_queue_that_fits_the_system_tells_of_room_too),
    cmocka_unit_test(test_pause_holds_data_back),
    cmocka_unit_test(test_loop_free_closes_what_is_open),
    cmocka_unit_test(test_connect_time_limit),
    cmocka_unit_test(test_unix_socket),
    cmocka_unit_test(test_unix_socket_of_a_dead_process_is_replaced_and_of_a_live_one_is_not),
    cmocka_unit_test(test_a_host_that_does_not_exist),
    cmocka_unit_test(test_close_while_resolving),
};

UNIT_MAIN(tests)

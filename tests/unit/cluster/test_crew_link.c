/* Crews over several processes: who gets what, what the owner hears, and who is not heard. */

#include "cluster/crew_link.h"

#include "stream/remote_line.h"

enum {
    TASK = 2,
    RESULT = 3,
};

struct ends {
    struct sites *sites;
    struct sl_crew *crews[2];
    struct sl_crew_link *links[2];
};

/* Site 0 has the owner, site 1 serves it. */
static void
ends_create(struct ends *self)
{
    reset_line();
    tuples = 0;
    self->sites = line_new(2, 9);
    for (int32_t i = 0; i < 2; i++) {
        self->crews[i] = sl_crew_new(2);
        self->links[i] = sl_crew_link_new(self->sites->at[i].rig->worker, self->crews[i]);
        assert_non_null(self->links[i]);
    }
    sl_crew_link_serve(self->links[1], 0);
}

static void
ends_destroy(struct ends *self)
{
    for (int32_t i = 0; i < 2; i++) {
        sl_crew_link_free(self->links[i]);
        sl_crew_free(self->crews[i]);
    }
    sites_free(self->sites);
    reset_line();
}

static void
take(struct sl_crew *crew, int32_t kind, int32_t member, const char *text)
{
    struct sl_crew_message message;
    assert_int_equal(sl_crew_take(crew, 0, &message), 1);
    assert_int_equal(message.kind, kind);
    assert_int_equal(message.member, member);
    assert_int_equal(message.len, strlen(text));
    assert_memory_equal(message.bytes, text, strlen(text));
}

static void
test_work_goes_to_members_elsewhere_and_results_come_back(void **state)
{
    (void)state;
    struct ends ends;
    struct sl_crew_message message;
    ends_create(&ends);
    sites_connect(ends.sites, 0, 1);
    take(ends.crews[0], SL_CREW_PEER, 1, "\1");
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, SL_CREW_ANY, TASK, "any", 3), 0);
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, 1, TASK, "one", 3), 0);
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, 7, TASK, "nobody", 6), 0);
    sites_run(ends.sites);
    assert_int_equal(sl_crew_receive(ends.crews[1], 1, true, 0, &message), 1);
    assert_memory_equal(message.bytes, "one", 3);
    assert_int_equal(sl_crew_receive(ends.crews[1], 0, true, 0, &message), 1);
    assert_memory_equal(message.bytes, "any", 3);
    assert_int_equal(sl_crew_receive(ends.crews[1], 0, true, 0, &message), 0);

    sl_crew_post(ends.crews[1], 1, RESULT, "done", 4);
    /* That a member can not go on concerns its own process. */
    sl_crew_post(ends.crews[1], 1, 0, "broken", 6);
    sites_run(ends.sites);
    take(ends.crews[0], RESULT, 1, "done");
    assert_int_equal(sl_crew_take(ends.crews[0], 0, &message), 0);
    take(ends.crews[1], 0, 1, "broken");
    ends_destroy(&ends);
}

static void
test_the_owner_hears_of_connections_and_servers_do_not(void **state)
{
    (void)state;
    struct ends ends;
    struct sl_crew_message message;
    ends_create(&ends);
    sites_connect(ends.sites, 0, 1);
    sites_cut(ends.sites, 0, 1);
    sites_connect(ends.sites, 0, 1);
    sl_remote_forget(ends.sites->at[0].remote, 1);
    static const char *const changes[] = {"\1", "\2", "\3", "\2", "\4"};
    for (size_t i = 0; i < array_size(changes); i++) {
        take(ends.crews[0], SL_CREW_PEER, 1, changes[i]);
    }
    assert_int_equal(sl_crew_take(ends.crews[1], 0, &message), 0);
    ends_destroy(&ends);
}

static void
test_a_server_hears_its_owner_alone(void **state)
{
    (void)state;
    struct ends ends;
    struct sl_crew_message message;
    ends_create(&ends);
    sites_connect(ends.sites, 0, 1);
    sl_crew_link_serve(ends.links[1], 2);
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, SL_CREW_ANY, TASK, "x", 1), 0);
    /* Too short, and of no kind that is sent. */
    assert_int_equal(sl_remote_send(ends.sites->at[0].remote, 1, "x", 1), 0);
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, 0, 0, "x", 1), 0);
    sites_run(ends.sites);
    assert_int_equal(sl_crew_receive(ends.crews[1], 0, true, 0, &message), 0);
    sl_crew_link_serve(ends.links[1], 0);
    assert_int_equal(sl_crew_link_send(ends.links[0], 1, 0, 0, "x", 1), 0);
    sites_run(ends.sites);
    assert_int_equal(sl_crew_receive(ends.crews[1], 0, true, 0, &message), 0);
    ends_destroy(&ends);
}

static void
test_a_worker_without_a_lane_is_refused(void **state)
{
    (void)state;
    struct sl_worker_options options = rig_options();
    struct rig *rig = rig_new(&options);
    struct sl_crew *crew = sl_crew_new(1);
    assert_null(sl_crew_link_new(rig->worker, crew));
    sl_crew_link_free(NULL);
    sl_crew_free(crew);
    rig_free(rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_goes_to_members_elsewhere_and_results_come_back),
        cmocka_unit_test(test_the_owner_hears_of_connections_and_servers_do_not),
        cmocka_unit_test(test_a_server_hears_its_owner_alone),
        cmocka_unit_test(test_a_worker_without_a_lane_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

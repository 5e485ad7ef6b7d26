#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/slot_manager_priv.h"

/*
 * Supervisors that come and go for the sake of the slots: those that are started because slots are
 * missing, spare ones, and idle ones that are released. Only where somebody can start and stop
 * them.
 */

void
sl__sm_forget_starting(struct sl_slot_manager *manager, struct sl__sm_starting *starting)
{
    if (starting->request != NULL) {
        starting->request->starting = NULL;
    }
    sl_list_remove(&starting->node);
    manager->starting_count--;
    sl_timer_stop(&starting->timer);
    sl_free(starting);
}

static void
start_gave_up(void *ctx, uint64_t ticket)
{
    struct sl__sm_starting *starting = ctx;
    struct sl_slot_manager *manager = starting->manager;
    struct sl__sm_request *request = starting->request;
    (void)ticket;
    sl__sm_forget_starting(manager, starting);
    if (request != NULL) {
        sl__sm_request_or_fail(manager, request);
    }
}

static struct sl__sm_starting *
find_starting(const struct sl_slot_manager *manager)
{
    sl_list_each(&manager->starting, it)
    {
        struct sl__sm_starting *starting = sl_container_of(it, struct sl__sm_starting, node);
        if (starting->request == NULL) {
            return starting;
        }
    }
    return NULL;
}

/* Starts a supervisor, if somebody can and the cap allows it. */
static bool
start_supervisor(struct sl_slot_manager *manager)
{
    const struct sl_slot_manager_config *config = &manager->config;
    size_t total = manager->slot_count + manager->starting_count + config->slots_per_supervisor;
    if (manager->ops.start_supervisor == NULL ||
        (config->max_slots != 0 && total > config->max_slots) ||
        manager->ops.start_supervisor(manager->ops.ctx) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < config->slots_per_supervisor; i++) {
        struct sl__sm_starting *starting = sl_calloc(1, sizeof(*starting));
        starting->manager = manager;
        sl_list_push_back(&manager->starting, &starting->node);
        manager->starting_count++;
        sl_timer_start(manager->loop, &starting->timer, config->start_timeout_ms, start_gave_up,
                       starting);
    }
    return true;
}

/* Means a starting slot for a request that names none. */
bool
sl__sm_assign_starting(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    if (request->wanted[0] != '\0' ||
        !sl_profile_fits(&manager->config.slot_profile, &request->message.profile)) {
        return false;
    }
    struct sl__sm_starting *starting = find_starting(manager);
    if (starting == NULL && start_supervisor(manager)) {
        starting = find_starting(manager);
    }
    if (starting == NULL) {
        return false;
    }
    starting->request = request;
    request->starting = starting;
    return true;
}

/* A free slot that is just like one that was awaited takes its place. */
bool
sl__sm_take_starting(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    struct sl__sm_starting *starting;
    if (manager->starting_count == 0 ||
        !sl_profile_equals(&slot->profile, &manager->config.slot_profile)) {
        return false;
    }
    /* One that a request waits for comes first. */
    starting = sl_container_of(sl_list_first(&manager->starting), struct sl__sm_starting, node);
    sl_list_each(&manager->starting, it)
    {
        struct sl__sm_starting *other = sl_container_of(it, struct sl__sm_starting, node);
        if (other->request != NULL) {
            starting = other;
            break;
        }
    }
    struct sl__sm_request *request = starting->request;
    sl__sm_forget_starting(manager, starting);
    if (request == NULL) {
        sl__sm_offer_around(manager, slot);
    } else {
        slot->supervisor->idle_period = 0;
        sl__sm_allocate(manager, slot, request);
    }
    return true;
}

/* Would these slots, less those that were awaited, be too many? */
bool
sl__sm_is_above_cap(const struct sl_slot_manager *manager, const struct sl_slot_list *report)
{
    size_t awaited = 0;
    size_t total = manager->slot_count + manager->starting_count + report->count;
    if (manager->config.max_slots == 0 || total <= manager->config.max_slots) {
        return false;
    }
    for (size_t i = 0; i < report->count; i++) {
        awaited += report->slots[i].allocation == 0 && awaited < manager->starting_count &&
                   sl_profile_equals(&report->slots[i].profile, &manager->config.slot_profile);
    }
    return total - awaited > manager->config.max_slots;
}

void
sl__sm_release(struct sl_slot_manager *manager, uint64_t instance, const char *cause)
{
    if (manager->ops.release_supervisor != NULL) {
        manager->ops.release_supervisor(manager->ops.ctx, instance, cause);
    }
}

void
sl_slot_manager_can_be_released(struct sl_slot_manager *manager, uint64_t instance,
                                uint64_t idle_period, bool can_be_released)
{
    struct sl__sm_supervisor *supervisor = sl__sm_find_supervisor(manager, instance);
    if (supervisor == NULL) {
        return;
    }
    supervisor->is_being_released = false;
    if (can_be_released && supervisor->idle_period == idle_period) {
        sl__sm_release(manager, instance, "the supervisor was idle");
    }
}

/* Releases at most `most` of the supervisors that are idle for long enough. */
static void
release_idle(struct sl_slot_manager *manager, size_t most)
{
    uint64_t now_ms = sl_loop_now_ms(manager->loop);
    struct sl_map_u64 idle = {0};
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->supervisors, &at)) != NULL;) {
        const struct sl__sm_supervisor *supervisor =
            (const struct sl__sm_supervisor *)(uintptr_t)entry->value;
        if (supervisor->idle_period != 0 && !supervisor->is_being_released &&
            now_ms - supervisor->idle_since_ms >= manager->config.idle_timeout_ms &&
            idle.count < most) {
            sl_map_u64_put(&idle, supervisor->instance, supervisor->idle_period);
        }
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&idle, &at)) != NULL;) {
        struct sl__sm_supervisor *supervisor = sl__sm_find_supervisor(manager, entry->key);
        if (supervisor == NULL) {
            continue;
        }
        supervisor->is_being_released = true;
        if (manager->ops.ask_release != NULL) {
            manager->ops.ask_release(manager->ops.ctx, entry->key, entry->value);
        } else {
            sl_slot_manager_can_be_released(manager, entry->key, entry->value, true);
        }
    }
    sl_map_u64_destroy(&idle);
}

void
sl_slot_manager_check(struct sl_slot_manager *manager)
{
    const struct sl_slot_manager_config *config = &manager->config;
    size_t spare = (size_t)config->redundant_supervisors * config->slots_per_supervisor;
    if (manager->ops.release_supervisor == NULL || manager->supervisors.count == 0) {
        return;
    }
    if (manager->free_count == manager->slot_count) {
        release_idle(manager, SIZE_MAX);
    } else if (spare > manager->free_count) {
        size_t missing = (spare - manager->free_count + config->slots_per_supervisor - 1) /
                         config->slots_per_supervisor;
        while (missing-- > 0 && start_supervisor(manager)) {
        }
    } else {
        release_idle(manager, (manager->free_count - spare) / config->slots_per_supervisor);
    }
}

size_t
sl_slot_manager_assigned_starting(const struct sl_slot_manager *manager)
{
    size_t count = 0;
    sl_list_each(&manager->starting, it)
    {
        count += sl_container_of(it, struct sl__sm_starting, node)->request != NULL;
    }
    return count;
}

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/err.h"
#include "cluster/slot_manager_priv.h"

struct sl_slot_manager_config
sl_slot_manager_config_default(void)
{
    return (struct sl_slot_manager_config){
        .slots_per_supervisor = 1,
        .slot_profile = sl_profile_any(),
        .idle_timeout_ms = SL_SLOT_MANAGER_IDLE_MS,
        .request_timeout_ms = SL_SLOT_MANAGER_REQUEST_MS,
        .start_timeout_ms = SL_SLOT_MANAGER_START_MS,
        .is_failing_unfulfillable = true,
    };
}

struct sl__sm_supervisor *
sl__sm_find_supervisor(const struct sl_slot_manager *manager, uint64_t instance)
{
    return sl_map_u64_get_ptr(&manager->supervisors, instance);
}

static struct sl__sm_slot *
find_slot(const struct sl__sm_supervisor *supervisor, uint32_t port)
{
    sl_list_each(&supervisor->slots, it)
    {
        struct sl__sm_slot *slot = sl_container_of(it, struct sl__sm_slot, supervisor_node);
        if (slot->port == port) {
            return slot;
        }
    }
    return NULL;
}

static struct sl__sm_request *
find_request(const struct sl_slot_manager *manager, uint64_t allocation)
{
    return sl_map_u64_get_ptr(&manager->requests, allocation);
}

static void
periodic_check(void *ctx, uint64_t ticket)
{
    struct sl_slot_manager *manager = ctx;
    (void)ticket;
    sl_timer_start(manager->loop, &manager->check, manager->config.idle_timeout_ms, periodic_check,
                   manager);
    sl_slot_manager_check(manager);
}

void
sl_slot_manager_create(struct sl_slot_manager *manager, struct sl_loop *loop,
                       const struct sl_slot_manager_config *config,
                       const struct sl_slot_manager_ops *ops)
{
    memset(manager, 0, sizeof(*manager));
    manager->loop = loop;
    manager->config = *config;
    manager->ops = *ops;
    manager->next_call = 1;
    manager->next_idle_period = 1;
    sl_list_create(&manager->free);
    sl_list_create(&manager->unserved);
    sl_list_create(&manager->starting);
    manager->is_suspended = true;
    sl_slot_manager_resume(manager);
}

void
sl_slot_manager_resume(struct sl_slot_manager *manager)
{
    sl_assert(manager->is_suspended);
    manager->is_suspended = false;
    if (manager->config.idle_timeout_ms != 0) {
        sl_timer_start(manager->loop, &manager->check, manager->config.idle_timeout_ms,
                       periodic_check, manager);
    }
}

/* A slot leaves or joins the free ones; the supervisor's idle period follows. */
static void
leave_free(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    sl_list_remove(&slot->free_node);
    manager->free_count--;
    slot->supervisor->free_count--;
    slot->supervisor->idle_period = 0;
}

static void
join_free(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    struct sl__sm_supervisor *supervisor = slot->supervisor;
    slot->state = SL_SLOT_FREE;
    sl_list_push_back(&manager->free, &slot->free_node);
    manager->free_count++;
    supervisor->free_count++;
    if (supervisor->free_count == supervisor->slot_count) {
        supervisor->idle_period = manager->next_idle_period++;
        supervisor->idle_since_ms = sl_loop_now_ms(manager->loop);
    }
}

static void
forget_allocation(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    if (sl_map_u64_get_ptr(&manager->fulfilled, slot->allocation) == slot) {
        sl_map_u64_remove(&manager->fulfilled, slot->allocation, NULL);
    }
    slot->allocation = 0;
    sl_free(slot->topology);
    slot->topology = NULL;
}

static void
set_allocated(struct sl_slot_manager *manager, struct sl__sm_slot *slot, uint64_t allocation,
              const char *topology)
{
    slot->state = SL_SLOT_ALLOCATED;
    slot->allocation = allocation;
    slot->topology = sl_strdup(topology);
    sl_map_u64_put_ptr(&manager->fulfilled, allocation, slot);
}

static void
unassign_starting(struct sl__sm_request *request)
{
    if (request->starting != NULL) {
        request->starting->request = NULL;
        request->starting = NULL;
    }
}

/* Parts a request from its slot, whose state the caller sets. */
static void
part(struct sl__sm_request *request)
{
    sl_map_u64_remove(&request->manager->calls, request->slot->call, NULL);
    request->slot->request = NULL;
    request->slot->call = 0;
    request->slot = NULL;
    sl_list_push_back(&request->manager->unserved, &request->unserved_node);
}

static void
forget_request(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    sl_assert(request->slot == NULL);
    unassign_starting(request);
    sl_list_remove(&request->unserved_node);
    sl_map_u64_remove(&manager->requests, request->message.allocation, NULL);
    sl_timer_stop(&request->timer);
    sl_timer_stop(&request->retry);
    sl_free(request->topology);
    sl_free(request->master_address);
    sl_free(request->wanted);
    sl_free(request);
}

/* Takes a slot out of everything; one that is pending is parted from its request before. */
static void
forget_slot(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    sl_assert(slot->request == NULL);
    if (slot->state == SL_SLOT_FREE) {
        leave_free(manager, slot);
    } else if (slot->state == SL_SLOT_ALLOCATED) {
        forget_allocation(manager, slot);
    }
    sl_list_remove(&slot->supervisor_node);
    slot->supervisor->slot_count--;
    manager->slot_count--;
    sl_free(slot->topology);
    sl_free(slot);
}

static void
forget_supervisor(struct sl_slot_manager *manager, struct sl__sm_supervisor *supervisor)
{
    sl_map_u64_remove(&manager->supervisors, supervisor->instance, NULL);
    if (sl_map_bytes_get_str(&manager->by_name, supervisor->name) == supervisor) {
        sl_map_bytes_remove_str(&manager->by_name, supervisor->name);
    }
    sl_free(supervisor->name);
    sl_free(supervisor);
}

static void
forget_all(struct sl_slot_manager *manager)
{
    struct sl_map_u64_entry *entry;
    struct sl_list_node *node;
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->requests, &at)) != NULL;) {
        struct sl__sm_request *request = (struct sl__sm_request *)(uintptr_t)entry->value;
        if (request->slot != NULL) {
            part(request);
        }
        forget_request(manager, request);
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->supervisors, &at)) != NULL;) {
        struct sl__sm_supervisor *supervisor = (struct sl__sm_supervisor *)(uintptr_t)entry->value;
        while ((node = sl_list_first(&supervisor->slots)) != NULL) {
            forget_slot(manager, sl_container_of(node, struct sl__sm_slot, supervisor_node));
        }
        forget_supervisor(manager, supervisor);
    }
    while ((node = sl_list_first(&manager->starting)) != NULL) {
        sl__sm_forget_starting(manager, sl_container_of(node, struct sl__sm_starting, node));
    }
}

void
sl_slot_manager_suspend(struct sl_slot_manager *manager)
{
    manager->is_suspended = true;
    sl_timer_stop(&manager->check);
    forget_all(manager);
}

void
sl_slot_manager_destroy(struct sl_slot_manager *manager)
{
    sl_slot_manager_suspend(manager);
    sl_map_u64_destroy(&manager->supervisors);
    sl_map_bytes_destroy(&manager->by_name);
    sl_map_u64_destroy(&manager->requests);
    sl_map_u64_destroy(&manager->calls);
    sl_map_u64_destroy(&manager->fulfilled);
}

static bool
is_wanted(const struct sl__sm_request *request, const struct sl__sm_slot *slot)
{
    return request->wanted[0] == '\0' || (request->message.port == slot->port &&
                                          strcmp(request->wanted, slot->supervisor->name) == 0);
}

static bool
fits(const struct sl__sm_request *request, const struct sl__sm_slot *slot)
{
    return is_wanted(request, slot) && sl_profile_fits(&slot->profile, &request->message.profile);
}

/* Share of a supervisor's slots that are not free. */
static double
used_share(const struct sl__sm_supervisor *supervisor)
{
    return 1.0 - (double)supervisor->free_count / (double)supervisor->slot_count;
}

/* The slot that a request names, whatever its state; NULL while its supervisor is not here. */
static struct sl__sm_slot *
named_slot(const struct sl_slot_manager *manager, const struct sl__sm_request *request)
{
    const struct sl__sm_supervisor *supervisor =
        sl_map_bytes_get_str(&manager->by_name, request->wanted);
    return supervisor != NULL ? find_slot(supervisor, request->message.port) : NULL;
}

static struct sl__sm_slot *
find_free_slot(const struct sl_slot_manager *manager, const struct sl__sm_request *request)
{
    struct sl__sm_slot *best = NULL;
    if (request->wanted[0] != '\0') {
        struct sl__sm_slot *slot = named_slot(manager, request);
        return slot != NULL && slot->state == SL_SLOT_FREE && fits(request, slot) ? slot : NULL;
    }
    sl_list_each(&manager->free, it)
    {
        struct sl__sm_slot *slot = sl_container_of(it, struct sl__sm_slot, free_node);
        if (!fits(request, slot)) {
            continue;
        }
        if (!manager->config.is_spreading) {
            return slot;
        }
        if (best == NULL || used_share(slot->supervisor) < used_share(best->supervisor)) {
            best = slot;
        }
    }
    return best;
}

/* FREE -> PENDING: asks the supervisor. Must be the last thing its caller does. */
void
sl__sm_allocate(struct sl_slot_manager *manager, struct sl__sm_slot *slot,
                struct sl__sm_request *request)
{
    unassign_starting(request);
    slot->state = SL_SLOT_PENDING;
    slot->request = request;
    slot->call = manager->next_call++;
    request->slot = slot;
    sl_map_u64_put_ptr(&manager->calls, slot->call, request);
    sl_list_remove(&request->unserved_node);
    manager->ops.request_slot(manager->ops.ctx, slot->supervisor->instance, slot->supervisor->name,
                              slot->port, slot->call, &request->message);
}

/* A slot that nobody has: serves the oldest request that it fits, or is free. */
void
sl__sm_offer_around(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    sl_list_each(&manager->unserved, it)
    {
        struct sl__sm_request *request = sl_container_of(it, struct sl__sm_request, unserved_node);
        if (!sl_timer_is_running(&request->retry) && fits(request, slot)) {
            slot->supervisor->idle_period = 0;
            sl__sm_allocate(manager, slot, request);
            return;
        }
    }
    join_free(manager, slot);
}

/* Could a slot that is there or starting, however busy, ever serve it? */
static bool
is_fulfillable(const struct sl_slot_manager *manager, const struct sl__sm_request *request)
{
    struct sl_map_u64_entry *entry;
    if (request->wanted[0] == '\0' && manager->starting_count > 0 &&
        sl_profile_fits(&manager->config.slot_profile, &request->message.profile)) {
        return true;
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->supervisors, &at)) != NULL;) {
        const struct sl__sm_supervisor *supervisor =
            (const struct sl__sm_supervisor *)(uintptr_t)entry->value;
        sl_list_each(&supervisor->slots, it)
        {
            if (fits(request, sl_container_of(it, struct sl__sm_slot, supervisor_node))) {
                return true;
            }
        }
    }
    return false;
}

static int
describe_unfulfillable(const struct sl_slot_manager *manager, const struct sl__sm_request *request)
{
    size_t need = manager->requests.count + manager->fulfilled.count;
    if (request->wanted[0] != '\0') {
        return sl_err_set(
            SL_EUNSATISFIABLE, "no slot %s:%u that fits the request: need %zu, have %zu, free %zu",
            request->wanted, request->message.port, need, manager->slot_count, manager->free_count);
    }
    return sl_err_set(SL_EUNSATISFIABLE, "no slot fits the request: need %zu, have %zu, free %zu",
                      need, manager->slot_count, manager->free_count);
}

/* Finds a slot for a request that has none. 0, SL_EUNSATISFIABLE or SL_ECONFLICT; then the request
 * is still there. */
static int
serve(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    struct sl__sm_slot *slot = find_free_slot(manager, request);
    if (slot != NULL) {
        leave_free(manager, slot);
        sl__sm_allocate(manager, slot, request);
        return 0;
    }
    if (request->wanted[0] != '\0') {
        const struct sl__sm_slot *taken = named_slot(manager, request);
        if (taken != NULL && taken->state != SL_SLOT_FREE) {
            return sl_err_set(SL_ECONFLICT, "slot %s:%u is in use by %s", request->wanted,
                              request->message.port,
                              taken->request != NULL ? taken->request->topology : taken->topology);
        }
    } else if (sl__sm_assign_starting(manager, request)) {
        return 0;
    }
    if (manager->config.is_failing_unfulfillable && !is_fulfillable(manager, request)) {
        return describe_unfulfillable(manager, request);
    }
    return 0;
}

/* Removes a request and tells its topology master. */
static void
fail_request(struct sl_slot_manager *manager, struct sl__sm_request *request, bool is_unfulfillable,
             const char *cause)
{
    uint64_t allocation = request->message.allocation;
    char *topology = sl_strdup(request->topology);
    forget_request(manager, request);
    manager->ops.allocation_failed(manager->ops.ctx, topology, allocation, is_unfulfillable, cause);
    sl_free(topology);
}

/* The same as serve for a request that was accepted before: a refusal goes to the topology master.
 */
void
sl__sm_request_or_fail(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    int rc = serve(manager, request);
    if (rc != 0) {
        char cause[SL_ERR_MSG_SIZE];
        snprintf(cause, sizeof(cause), "%s", sl_err_last()->msg);
        fail_request(manager, request, rc == SL_EUNSATISFIABLE, cause);
    }
}

/* Parts a request from its slot, if it has one, and gives the slot, which then goes around last. */
static struct sl__sm_slot *
take_slot_back(struct sl__sm_request *request)
{
    struct sl__sm_slot *slot = request->slot;
    if (slot != NULL) {
        part(request);
    }
    return slot;
}

static void
request_timed_out(void *ctx, uint64_t ticket)
{
    struct sl__sm_request *request = ctx;
    struct sl_slot_manager *manager = request->manager;
    uint64_t allocation = request->message.allocation;
    char *topology = sl_strdup(request->topology);
    char cause[SL_REASON_SIZE];
    (void)ticket;
    snprintf(cause, sizeof(cause), "no slot in time: need %zu, have %zu, free %zu",
             manager->requests.count + manager->fulfilled.count, manager->slot_count,
             manager->free_count);
    struct sl__sm_slot *slot = take_slot_back(request);
    forget_request(manager, request);
    if (slot != NULL) {
        sl__sm_offer_around(manager, slot);
    }
    manager->ops.allocation_failed(manager->ops.ctx, topology, allocation, false, cause);
    sl_free(topology);
}

static void
pause_over(void *ctx, uint64_t ticket)
{
    struct sl__sm_request *request = ctx;
    (void)ticket;
    if (request->slot == NULL) {
        sl__sm_request_or_fail(request->manager, request);
    }
}

static void
pause_request(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    uint64_t doubled_ms = 2 * request->retry_ms;
    request->retry_ms = request->retry_ms == 0                      ? SL_SLOT_MANAGER_RETRY_MS
                        : doubled_ms > SL_SLOT_MANAGER_RETRY_MAX_MS ? SL_SLOT_MANAGER_RETRY_MAX_MS
                                                                    : doubled_ms;
    sl_timer_start(manager->loop, &request->retry, request->retry_ms, pause_over, request);
}

int
sl_slot_manager_request(struct sl_slot_manager *manager, const struct sl_slot_request *message)
{
    sl_assert(!manager->is_suspended);
    if (find_request(manager, message->allocation) != NULL ||
        sl_map_u64_get_ptr(&manager->fulfilled, message->allocation) != NULL) {
        return 0;
    }
    struct sl__sm_request *request = sl_calloc(1, sizeof(*request));
    request->manager = manager;
    request->message = *message;
    request->topology = sl_strdup(message->topology);
    request->master_address =
        sl_strdup(message->master_address != NULL ? message->master_address : "");
    request->wanted = sl_strdup(message->supervisor != NULL ? message->supervisor : "");
    request->message.topology = request->topology;
    request->message.master_address = request->master_address;
    request->message.supervisor = request->wanted;
    sl_map_u64_put_ptr(&manager->requests, message->allocation, request);
    sl_list_push_back(&manager->unserved, &request->unserved_node);
    sl_timer_start(manager->loop, &request->timer,
                   message->timeout_ms != 0 ? message->timeout_ms
                                            : manager->config.request_timeout_ms,
                   request_timed_out, request);
    int rc = serve(manager, request);
    if (rc != 0) {
        /* The answer says it; the topology master is not told a second time. */
        forget_request(manager, request);
        return rc;
    }
    return 1;
}

void
sl_slot_manager_cancel(struct sl_slot_manager *manager, uint64_t allocation)
{
    struct sl__sm_request *request = find_request(manager, allocation);
    if (request == NULL) {
        return;
    }
    struct sl__sm_slot *slot = take_slot_back(request);
    forget_request(manager, request);
    if (slot != NULL) {
        sl__sm_offer_around(manager, slot);
    }
}

/* The request got what it wanted; its slot is ALLOCATED, or it was found allocated elsewhere. */
static void
complete(struct sl_slot_manager *manager, struct sl__sm_request *request)
{
    if (request->slot != NULL) {
        part(request);
    }
    forget_request(manager, request);
}

/* The supervisor says that the slot has this allocation: it wins. */
static void
update_allocated(struct sl_slot_manager *manager, struct sl__sm_slot *slot, uint64_t allocation,
                 const char *topology)
{
    uint64_t loser = 0;
    struct sl__sm_request *owner = find_request(manager, allocation);
    if (slot->state == SL_SLOT_ALLOCATED && slot->allocation == allocation) {
        return;
    }
    if (slot->state == SL_SLOT_FREE) {
        leave_free(manager, slot);
    } else if (slot->state == SL_SLOT_ALLOCATED) {
        forget_allocation(manager, slot);
    } else if (slot->request != NULL && slot->request != owner) {
        loser = slot->request->message.allocation;
        part(slot->request);
    }
    if (owner != NULL) {
        struct sl__sm_slot *elsewhere = owner->slot != slot ? owner->slot : NULL;
        complete(manager, owner);
        set_allocated(manager, slot, allocation, topology);
        if (elsewhere != NULL) {
            sl__sm_offer_around(manager, elsewhere);
        }
    } else {
        /* One allocation is in one place: what an older report said of another slot is over. */
        struct sl__sm_slot *before = sl_map_u64_get_ptr(&manager->fulfilled, allocation);
        set_allocated(manager, slot, allocation, topology);
        if (before != NULL && before != slot) {
            before->allocation = 0;
            sl_free(before->topology);
            before->topology = NULL;
            sl__sm_offer_around(manager, before);
        }
    }
    /* It may have got the slot that went around. */
    struct sl__sm_request *request = find_request(manager, loser);
    if (request != NULL && request->slot == NULL) {
        sl__sm_request_or_fail(manager, request);
    }
}

/* The supervisor says that the slot is free. */
static void
update_free(struct sl_slot_manager *manager, struct sl__sm_slot *slot)
{
    /* PENDING: the report is older than the request. */
    if (slot->state == SL_SLOT_ALLOCATED) {
        forget_allocation(manager, slot);
        sl__sm_offer_around(manager, slot);
    }
}

static void
remove_slot(struct sl_slot_manager *manager, struct sl__sm_slot *slot, const char *cause)
{
    struct sl__sm_request *request = slot->request;
    uint64_t allocation = slot->allocation;
    char *topology = allocation != 0 ? sl_strdup(slot->topology) : NULL;
    if (request != NULL) {
        part(request);
    }
    forget_slot(manager, slot);
    if (request != NULL) {
        sl__sm_request_or_fail(manager, request);
    } else if (allocation != 0) {
        manager->ops.allocation_failed(manager->ops.ctx, topology, allocation, false, cause);
    }
    sl_free(topology);
}

static void
add_slot(struct sl_slot_manager *manager, struct sl__sm_supervisor *supervisor,
         const struct sl_slot_status *status)
{
    struct sl__sm_slot *slot = find_slot(supervisor, status->port);
    if (slot != NULL) {
        remove_slot(manager, slot, "the slot was registered anew");
    }
    slot = sl_calloc(1, sizeof(*slot));
    slot->supervisor = supervisor;
    slot->port = status->port;
    slot->profile = status->profile;
    slot->state = SL_SLOT_PENDING;
    sl_list_push_back(&supervisor->slots, &slot->supervisor_node);
    supervisor->slot_count++;
    manager->slot_count++;
    if (status->allocation != 0) {
        /* In no list yet, as a slot that is pending for nobody. */
        update_allocated(manager, slot, status->allocation, status->topology);
    } else if (!sl__sm_take_starting(manager, slot)) {
        sl__sm_offer_around(manager, slot);
    }
}

bool
sl_slot_manager_register(struct sl_slot_manager *manager, uint64_t instance,
                         const struct sl_slot_list *report)
{
    sl_assert(!manager->is_suspended);
    if (sl__sm_find_supervisor(manager, instance) != NULL) {
        sl_slot_manager_report(manager, instance, report);
        return false;
    }
    if (sl__sm_is_above_cap(manager, report)) {
        sl__sm_release(manager, instance, "the cluster has the most slots it may have");
        return false;
    }
    struct sl__sm_supervisor *supervisor = sl_calloc(1, sizeof(*supervisor));
    supervisor->instance = instance;
    supervisor->name = sl_strdup(report->resource);
    sl_list_create(&supervisor->slots);
    sl_map_u64_put_ptr(&manager->supervisors, instance, supervisor);
    sl_map_bytes_put_str(&manager->by_name, supervisor->name, supervisor);
    for (size_t i = 0; i < report->count; i++) {
        add_slot(manager, supervisor, &report->slots[i]);
    }
    if (supervisor->slot_count > 0 && supervisor->free_count == supervisor->slot_count &&
        supervisor->idle_period == 0) {
        supervisor->idle_period = manager->next_idle_period++;
        supervisor->idle_since_ms = sl_loop_now_ms(manager->loop);
    }
    return true;
}

bool
sl_slot_manager_unregister(struct sl_slot_manager *manager, uint64_t instance, const char *cause)
{
    struct sl__sm_supervisor *supervisor = sl__sm_find_supervisor(manager, instance);
    struct sl_list_node *node;
    if (supervisor == NULL) {
        return false;
    }
    /* First nobody finds a free slot of it any more, then the requests look elsewhere. */
    sl_list_each(&supervisor->slots, it)
    {
        struct sl__sm_slot *slot = sl_container_of(it, struct sl__sm_slot, supervisor_node);
        if (slot->state == SL_SLOT_FREE) {
            forget_slot(manager, slot);
        }
    }
    if (sl_map_bytes_get_str(&manager->by_name, supervisor->name) == supervisor) {
        sl_map_bytes_remove_str(&manager->by_name, supervisor->name);
    }
    while ((node = sl_list_first(&supervisor->slots)) != NULL) {
        remove_slot(manager, sl_container_of(node, struct sl__sm_slot, supervisor_node), cause);
    }
    forget_supervisor(manager, supervisor);
    return true;
}

bool
sl_slot_manager_report(struct sl_slot_manager *manager, uint64_t instance,
                       const struct sl_slot_list *report)
{
    for (size_t i = 0; i < report->count; i++) {
        /* Looked up each time: what an update sets off may remove the supervisor. */
        struct sl__sm_supervisor *supervisor = sl__sm_find_supervisor(manager, instance);
        if (supervisor == NULL) {
            return false;
        }
        struct sl__sm_slot *slot = find_slot(supervisor, report->slots[i].port);
        if (slot == NULL) {
            continue;
        }
        if (report->slots[i].allocation != 0) {
            update_allocated(manager, slot, report->slots[i].allocation, report->slots[i].topology);
        } else {
            update_free(manager, slot);
        }
    }
    return sl__sm_find_supervisor(manager, instance) != NULL;
}

void
sl_slot_manager_free_slot(struct sl_slot_manager *manager, uint64_t instance, uint32_t port,
                          uint64_t allocation)
{
    struct sl__sm_supervisor *supervisor = sl__sm_find_supervisor(manager, instance);
    struct sl__sm_slot *slot = supervisor != NULL ? find_slot(supervisor, port) : NULL;
    if (slot != NULL && slot->state == SL_SLOT_ALLOCATED && slot->allocation == allocation) {
        forget_allocation(manager, slot);
        sl__sm_offer_around(manager, slot);
    }
}

void
sl_slot_manager_answered(struct sl_slot_manager *manager, uint64_t call, enum sl_slot_answer answer,
                         uint64_t allocation, const char *topology)
{
    struct sl__sm_request *request = sl_map_u64_get_ptr(&manager->calls, call);
    if (request == NULL) {
        return;
    }
    struct sl__sm_slot *slot = request->slot;
    switch (answer) {
    case SL_SLOT_ACK: {
        uint64_t own = request->message.allocation;
        char *name = sl_strdup(request->topology);
        complete(manager, request);
        set_allocated(manager, slot, own, name);
        sl_free(name);
        break;
    }
    case SL_SLOT_OCCUPIED:
        if (allocation != 0 && allocation != request->message.allocation) {
            update_allocated(manager, slot, allocation, topology);
            break;
        }
        /* fall through */
    default:
        part(request);
        pause_request(manager, request);
        sl__sm_offer_around(manager, slot);
    }
}

void
sl_slot_manager_fail_unfulfillable(struct sl_slot_manager *manager, bool is_failing)
{
    struct sl_map_u64 hopeless = {0};
    struct sl_map_u64_entry *entry;
    manager->config.is_failing_unfulfillable = is_failing;
    if (!is_failing) {
        return;
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->requests, &at)) != NULL;) {
        const struct sl__sm_request *request =
            (const struct sl__sm_request *)(uintptr_t)entry->value;
        if (request->slot == NULL && request->starting == NULL &&
            !is_fulfillable(manager, request)) {
            sl_map_u64_put(&hopeless, entry->key, 0);
        }
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&hopeless, &at)) != NULL;) {
        struct sl__sm_request *request = find_request(manager, entry->key);
        if (request != NULL) {
            char cause[SL_ERR_MSG_SIZE];
            describe_unfulfillable(manager, request);
            snprintf(cause, sizeof(cause), "%s", sl_err_last()->msg);
            fail_request(manager, request, true, cause);
        }
    }
    sl_map_u64_destroy(&hopeless);
}

int
sl_slot_manager_slot_state(const struct sl_slot_manager *manager, const char *name, uint32_t port,
                           uint64_t *allocation)
{
    const struct sl__sm_supervisor *supervisor = sl_map_bytes_get_str(&manager->by_name, name);
    const struct sl__sm_slot *slot = supervisor != NULL ? find_slot(supervisor, port) : NULL;
    if (slot == NULL) {
        return -1;
    }
    if (allocation != NULL) {
        *allocation =
            slot->state == SL_SLOT_PENDING ? slot->request->message.allocation : slot->allocation;
    }
    return (int)slot->state;
}

bool
sl_slot_manager_is_pending(const struct sl_slot_manager *manager, uint64_t allocation)
{
    return find_request(manager, allocation) != NULL;
}

void
sl_slot_manager_check_invariants(const struct sl_slot_manager *manager)
{
    struct sl_map_u64_entry *entry;
    size_t counts[3] = {0};
    size_t total = 0;
    for (size_t at = 0; (entry = sl_map_u64_next(&manager->supervisors, &at)) != NULL;) {
        const struct sl__sm_supervisor *supervisor =
            (const struct sl__sm_supervisor *)(uintptr_t)entry->value;
        size_t free_here = 0;
        size_t here = 0;
        sl_list_each(&supervisor->slots, it)
        {
            const struct sl__sm_slot *slot =
                sl_container_of(it, struct sl__sm_slot, supervisor_node);
            counts[slot->state]++;
            here++;
            free_here += slot->state == SL_SLOT_FREE;
            sl_assert((slot->state == SL_SLOT_PENDING) == (slot->request != NULL));
            sl_assert(slot->request == NULL || slot->request->slot == slot);
            sl_assert((slot->state == SL_SLOT_ALLOCATED) == (slot->allocation != 0));
            if (slot->allocation != 0) {
                sl_assert(sl_map_u64_get_ptr(&manager->fulfilled, slot->allocation) == slot);
                sl_assert(find_request(manager, slot->allocation) == NULL);
            }
        }
        sl_assert_eq(here, supervisor->slot_count);
        sl_assert_eq(free_here, supervisor->free_count);
        total += here;
    }
    sl_assert_eq(total, manager->slot_count);
    sl_assert_eq(counts[SL_SLOT_FREE], manager->free_count);
    sl_assert_eq(counts[SL_SLOT_PENDING], manager->calls.count);
    sl_assert_eq(counts[SL_SLOT_ALLOCATED], manager->fulfilled.count);
    sl_assert_eq(counts[0] + counts[1] + counts[2], total);
}

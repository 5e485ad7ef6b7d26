#include "cluster/slot_pool.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct supervisor {
    char *name;
    struct sl_list slots;
    size_t slot_count;
    size_t used_count;
};

struct slot {
    struct supervisor *supervisor;
    struct sl_list_node supervisor_node;
    /* In pool->available while request is 0. */
    struct sl_list_node available_node;
    uint64_t allocation;
    uint32_t port;
    struct sl_profile profile;
    uint64_t request;
    uint64_t unused_since_ms;
};

struct request {
    struct sl_slot_pool *pool;
    struct sl_list_node node;
    uint64_t id;
    /* 0 while waiting. */
    uint64_t allocation;
    struct sl_profile profile;
    char *wanted;
    uint32_t wanted_port;
    uint64_t timeout_ms;
    bool is_batch;
    struct sl_timer timer;
    /* Since when no slot could serve it; meaningful for batch requests only. */
    bool is_unfulfillable;
    uint64_t unfulfillable_since_ms;
};

static struct request *
find_request(const struct sl_slot_pool *pool, uint64_t id)
{
    return sl_map_u64_get_ptr(&pool->requests, id);
}

static struct slot *
find_slot(const struct sl_slot_pool *pool, uint64_t allocation)
{
    return sl_map_u64_get_ptr(&pool->slots, allocation);
}

static struct supervisor *
find_supervisor(const struct sl_slot_pool *pool, const char *name)
{
    return sl_map_bytes_get_str(&pool->supervisors, name);
}

static void
periodic_check(void *ctx, uint64_t ticket)
{
    struct sl_slot_pool *pool = ctx;
    (void)ticket;
    sl_timer_start(pool->loop, &pool->check, pool->config.idle_timeout_ms, periodic_check, pool);
    sl_slot_pool_check(pool);
}

void
sl_slot_pool_create(struct sl_slot_pool *pool, struct sl_loop *loop,
                    const struct sl_slot_pool_config *config, const struct sl_slot_pool_ops *ops)
{
    memset(pool, 0, sizeof(*pool));
    pool->loop = loop;
    pool->config = *config;
    pool->ops = *ops;
    sl_list_create(&pool->pending);
    sl_list_create(&pool->waiting);
    sl_list_create(&pool->available);
    sl_timer_start(loop, &pool->check, config->idle_timeout_ms, periodic_check, pool);
}

/* Takes a request out of its list and the maps and frees it. */
static void
forget_request(struct sl_slot_pool *pool, struct request *request)
{
    sl_list_remove(&request->node);
    if (request->allocation != 0) {
        pool->pending_count--;
        sl_map_u64_remove(&pool->by_allocation, request->allocation, NULL);
    } else {
        pool->waiting_count--;
    }
    sl_map_u64_remove(&pool->requests, request->id, NULL);
    sl_timer_stop(&request->timer);
    sl_free(request->wanted);
    sl_free(request);
}

/* Takes a slot out of everything and frees it. */
static void
forget_slot(struct sl_slot_pool *pool, struct slot *slot)
{
    if (slot->request != 0) {
        sl_map_u64_remove(&pool->served, slot->request, NULL);
        slot->supervisor->used_count--;
    } else {
        sl_list_remove(&slot->available_node);
        pool->available_count--;
    }
    sl_list_remove(&slot->supervisor_node);
    slot->supervisor->slot_count--;
    sl_map_u64_remove(&pool->slots, slot->allocation, NULL);
    sl_free(slot);
}

static void
forget_supervisor(struct sl_slot_pool *pool, struct supervisor *supervisor)
{
    sl_map_bytes_remove_str(&pool->supervisors, supervisor->name);
    sl_free(supervisor->name);
    sl_free(supervisor);
}

static void
forget_all(struct sl_slot_pool *pool)
{
    struct sl_map_u64_entry *entry;
    struct sl_map_bytes_entry *named;
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->requests, &at)) != NULL;) {
        forget_request(pool, (struct request *)(uintptr_t)entry->value);
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->slots, &at)) != NULL;) {
        forget_slot(pool, (struct slot *)(uintptr_t)entry->value);
    }
    for (size_t at = 0; (named = sl_map_bytes_next(&pool->supervisors, &at)) != NULL;) {
        forget_supervisor(pool, named->value);
    }
}

void
sl_slot_pool_destroy(struct sl_slot_pool *pool)
{
    forget_all(pool);
    sl_timer_stop(&pool->check);
    sl_map_u64_destroy(&pool->requests);
    sl_map_u64_destroy(&pool->by_allocation);
    sl_map_u64_destroy(&pool->slots);
    sl_map_u64_destroy(&pool->served);
    sl_map_bytes_destroy(&pool->supervisors);
}

/* Tells the resource manager that an allocation is not wanted. */
static void
cancel_allocation(struct sl_slot_pool *pool, uint64_t allocation)
{
    if (allocation != 0 && pool->is_connected) {
        pool->ops.cancel_slot(pool->ops.ctx, allocation);
    }
}

/* Ends a request without a slot. What was sent for it is cancelled under its present id. */
static void
fail_request(struct sl_slot_pool *pool, struct request *request, enum sl_slot_failure kind,
             const char *reason)
{
    uint64_t id = request->id;
    uint64_t allocation = request->allocation;
    char text[SL_REASON_SIZE];
    snprintf(text, sizeof(text), "%s", reason);
    forget_request(pool, request);
    cancel_allocation(pool, allocation);
    pool->ops.on_failed(pool->ops.ctx, id, kind, text);
}

static void
request_timed_out(void *ctx, uint64_t ticket)
{
    struct request *request = ctx;
    struct sl_slot_pool *pool = request->pool;
    char shortage[96];
    char reason[SL_REASON_SIZE];
    (void)ticket;
    snprintf(reason, sizeof(reason), "no slot within %llu ms: %s",
             (unsigned long long)request->timeout_ms,
             sl_slot_pool_shortage(pool, shortage, sizeof(shortage)));
    fail_request(pool, request, SL_SLOT_TIMED_OUT, reason);
}

/* Allocation ids are unique in the cluster: random, never 0, never one that is known here. */
static uint64_t
new_allocation(struct sl_slot_pool *pool)
{
    uint64_t id;
    do {
        id = sl_random_u64(sl_loop_random(pool->loop));
    } while (id == 0 || find_slot(pool, id) != NULL ||
             sl_map_u64_get_ptr(&pool->by_allocation, id) != NULL);
    return id;
}

static void
send_request(struct sl_slot_pool *pool, const struct request *request)
{
    struct sl_slot_request message = {
        .topology = pool->config.topology,
        .allocation = request->allocation,
        .profile = request->profile,
        .master_address = pool->config.master_address,
        .supervisor = request->wanted,
        .port = request->wanted_port,
        .timeout_ms = request->timeout_ms,
        .token = pool->config.token,
    };
    pool->ops.request_slot(pool->ops.ctx, &message);
}

/* From waiting to pending: the request gets an allocation and goes out. */
static void
ask_for(struct sl_slot_pool *pool, struct request *request)
{
    sl_list_remove(&request->node);
    pool->waiting_count--;
    request->allocation = new_allocation(pool);
    sl_list_push_back(&pool->pending, &request->node);
    pool->pending_count++;
    sl_map_u64_put_ptr(&pool->by_allocation, request->allocation, request);
    send_request(pool, request);
}

void
sl_slot_pool_connect(struct sl_slot_pool *pool)
{
    pool->is_connected = true;
    /* What an earlier resource manager was asked is asked again, before what is new. A refusal may
     * come at once, so each step looks at the list as it is then. */
    struct sl_map_u64 again = {0};
    struct sl_map_u64_entry *entry;
    sl_list_each(&pool->pending, it)
    {
        sl_map_u64_put(&again, sl_container_of(it, struct request, node)->id, 0);
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&again, &at)) != NULL;) {
        struct request *request = find_request(pool, entry->key);
        if (request != NULL && request->allocation != 0 && pool->is_connected) {
            send_request(pool, request);
        }
    }
    sl_map_u64_destroy(&again);
    while (pool->is_connected && !sl_list_is_empty(&pool->waiting)) {
        ask_for(pool, sl_container_of(sl_list_first(&pool->waiting), struct request, node));
    }
}

void
sl_slot_pool_disconnect(struct sl_slot_pool *pool)
{
    pool->is_connected = false;
}

void
sl_slot_pool_request(struct sl_slot_pool *pool, uint64_t id, const struct sl_slot_wish *wish)
{
    sl_assert(id != 0 && find_request(pool, id) == NULL);
    sl_assert(sl_map_u64_get_ptr(&pool->served, id) == NULL);
    struct request *request = sl_calloc(1, sizeof(*request));
    request->pool = pool;
    request->id = id;
    request->profile = wish->profile;
    request->wanted = sl_strdup(wish->supervisor != NULL ? wish->supervisor : "");
    request->wanted_port = wish->port;
    request->timeout_ms =
        wish->timeout_ms != 0 ? wish->timeout_ms : pool->config.request_timeout_ms;
    request->is_batch = wish->is_batch;
    sl_map_u64_put_ptr(&pool->requests, id, request);
    sl_list_push_back(&pool->waiting, &request->node);
    pool->waiting_count++;
    if (!request->is_batch) {
        sl_timer_start(pool->loop, &request->timer, request->timeout_ms, request_timed_out,
                       request);
    }
    if (pool->is_connected) {
        ask_for(pool, request);
    }
}

void
sl_slot_pool_request_refused(struct sl_slot_pool *pool, uint64_t allocation, bool is_unfulfillable,
                             const char *reason)
{
    struct request *request = sl_map_u64_get_ptr(&pool->by_allocation, allocation);
    if (request == NULL || (request->is_batch && !is_unfulfillable)) {
        return;
    }
    fail_request(pool, request, is_unfulfillable ? SL_SLOT_UNFULFILLABLE : SL_SLOT_FAILED, reason);
}

static bool
is_wanted(const struct request *request, const struct slot *slot)
{
    return request->wanted[0] == '\0' || (strcmp(request->wanted, slot->supervisor->name) == 0 &&
                                          request->wanted_port == slot->port);
}

static bool
fits(const struct request *request, const struct slot *slot)
{
    return is_wanted(request, slot) && sl_profile_fits(&slot->profile, &request->profile);
}

static struct request *
first_fitting(const struct sl_list *list, const struct slot *slot)
{
    sl_list_each(list, it)
    {
        struct request *request = sl_container_of(it, struct request, node);
        if (fits(request, slot)) {
            return request;
        }
    }
    return NULL;
}

/* Whom the slot serves: a request that named its slot gets what was granted for it; else the oldest
 * that fits, pending ones first. */
static struct request *
choose_request(const struct sl_slot_pool *pool, const struct slot *slot)
{
    struct request *owner = sl_map_u64_get_ptr(&pool->by_allocation, slot->allocation);
    if (owner != NULL && owner->wanted[0] != '\0' && fits(owner, slot)) {
        return owner;
    }
    struct request *request = first_fitting(&pool->pending, slot);
    return request != NULL ? request : first_fitting(&pool->waiting, slot);
}

/*
 * Request `served` (allocation a1) gets the slot of allocation a2. Whoever is still pending for a2
 * takes over a1 and keeps its place. Returns the allocation that nobody owns then and that is to be
 * cancelled, or 0.
 */
static uint64_t
hand_over_allocation(struct sl_slot_pool *pool, struct request *served, uint64_t allocation)
{
    uint64_t own = served->allocation;
    struct request *owner = sl_map_u64_get_ptr(&pool->by_allocation, allocation);
    if (own == allocation || own == 0) {
        return 0;
    }
    if (owner == NULL) {
        return own;
    }
    owner->allocation = own;
    served->allocation = allocation;
    sl_map_u64_put_ptr(&pool->by_allocation, own, owner);
    sl_map_u64_put_ptr(&pool->by_allocation, allocation, served);
    return 0;
}

/* A pending request whose allocation became a slot that does not fit it asks under a new one. */
static void
ask_anew(struct sl_slot_pool *pool, uint64_t allocation)
{
    struct request *owner = sl_map_u64_remove_ptr(&pool->by_allocation, allocation);
    if (owner != NULL) {
        sl_list_remove(&owner->node);
        pool->pending_count--;
        owner->allocation = 0;
        sl_list_push_back(&pool->waiting, &owner->node);
        pool->waiting_count++;
        if (pool->is_connected) {
            ask_for(pool, owner);
        }
    }
}

static void
take_into_use(struct sl_slot_pool *pool, struct slot *slot, uint64_t request)
{
    slot->request = request;
    slot->supervisor->used_count++;
    sl_map_u64_put_ptr(&pool->served, request, slot);
}

/* Gives a slot that is in neither state to the next request, or makes it available. */
static void
use_or_keep(struct sl_slot_pool *pool, struct slot *slot)
{
    struct request *request = choose_request(pool, slot);
    if (request == NULL) {
        slot->request = 0;
        slot->unused_since_ms = sl_loop_now_ms(pool->loop);
        sl_list_push_back(&pool->available, &slot->available_node);
        pool->available_count++;
        return;
    }
    uint64_t id = request->id;
    uint64_t allocation = slot->allocation;
    const char *supervisor = slot->supervisor->name;
    uint32_t port = slot->port;
    uint64_t orphan = hand_over_allocation(pool, request, allocation);
    forget_request(pool, request);
    take_into_use(pool, slot, id);
    pool->ops.on_served(pool->ops.ctx, id, allocation, supervisor, port);
    cancel_allocation(pool, orphan);
    ask_anew(pool, allocation);
}

bool
sl_slot_pool_offer(struct sl_slot_pool *pool, const char *name, uint32_t port, uint64_t allocation,
                   const struct sl_profile *profile)
{
    struct supervisor *supervisor = find_supervisor(pool, name);
    if (supervisor == NULL || allocation == 0) {
        return false;
    }
    struct slot *slot = find_slot(pool, allocation);
    if (slot != NULL) {
        /* The same offer again is fine; the same allocation elsewhere is a second slot. */
        return slot->supervisor == supervisor && slot->port == port;
    }
    slot = sl_calloc(1, sizeof(*slot));
    slot->supervisor = supervisor;
    slot->allocation = allocation;
    slot->port = port;
    slot->profile = *profile;
    sl_map_u64_put_ptr(&pool->slots, allocation, slot);
    sl_list_push_back(&supervisor->slots, &slot->supervisor_node);
    supervisor->slot_count++;
    use_or_keep(pool, slot);
    return true;
}

bool
sl_slot_pool_allocate_available(struct sl_slot_pool *pool, uint64_t request, uint64_t allocation)
{
    struct slot *slot = find_slot(pool, allocation);
    if (slot == NULL || slot->request != 0) {
        return false;
    }
    sl_list_remove(&slot->available_node);
    pool->available_count--;
    take_into_use(pool, slot, request);
    pool->ops.on_served(pool->ops.ctx, request, allocation, slot->supervisor->name, slot->port);
    return true;
}

void
sl_slot_pool_release(struct sl_slot_pool *pool, uint64_t id, const char *cause)
{
    struct request *request = find_request(pool, id);
    struct slot *slot = sl_map_u64_get_ptr(&pool->served, id);
    if (request != NULL) {
        char reason[SL_REASON_SIZE];
        snprintf(reason, sizeof(reason), "the slot request has been released: %s", cause);
        fail_request(pool, request, SL_SLOT_RELEASED, reason);
    } else if (slot != NULL) {
        sl_map_u64_remove(&pool->served, id, NULL);
        slot->supervisor->used_count--;
        slot->request = 0;
        use_or_keep(pool, slot);
    }
}

void
sl_slot_pool_give_back(struct sl_slot_pool *pool, uint64_t id, const char *cause)
{
    struct slot *slot = sl_map_u64_get_ptr(&pool->served, id);
    if (slot == NULL) {
        sl_slot_pool_release(pool, id, cause);
        return;
    }
    char *name = sl_strdup(slot->supervisor->name);
    uint64_t allocation = slot->allocation;
    forget_slot(pool, slot);
    pool->ops.free_slot(pool->ops.ctx, name, allocation, cause);
    sl_free(name);
}

bool
sl_slot_pool_register_supervisor(struct sl_slot_pool *pool, const char *name)
{
    if (find_supervisor(pool, name) != NULL) {
        return false;
    }
    struct supervisor *supervisor = sl_calloc(1, sizeof(*supervisor));
    supervisor->name = sl_strdup(name);
    sl_list_create(&supervisor->slots);
    sl_map_bytes_put_str(&pool->supervisors, name, supervisor);
    return true;
}

bool
sl_slot_pool_has_supervisor(const struct sl_slot_pool *pool, const char *name)
{
    return find_supervisor(pool, name) != NULL;
}

/* Removes a slot, gives it back to its supervisor and tells who used it. */
static void
lose_slot(struct sl_slot_pool *pool, struct slot *slot, const char *cause)
{
    uint64_t request = slot->request;
    uint64_t allocation = slot->allocation;
    char *name = sl_strdup(slot->supervisor->name);
    forget_slot(pool, slot);
    pool->ops.free_slot(pool->ops.ctx, name, allocation, cause);
    if (request != 0) {
        pool->ops.on_lost(pool->ops.ctx, request, allocation, cause);
    }
    sl_free(name);
}

void
sl_slot_pool_release_supervisor(struct sl_slot_pool *pool, const char *name, const char *cause)
{
    struct supervisor *supervisor = find_supervisor(pool, name);
    if (supervisor == NULL) {
        return;
    }
    /* Off the map first: whoever is told may offer or ask again, and nobody finds it then. */
    sl_map_bytes_remove_str(&pool->supervisors, name);
    struct sl_list_node *node;
    while ((node = sl_list_first(&supervisor->slots)) != NULL) {
        lose_slot(pool, sl_container_of(node, struct slot, supervisor_node), cause);
    }
    sl_free(supervisor->name);
    sl_free(supervisor);
}

const char *
sl_slot_pool_fail_allocation(struct sl_slot_pool *pool, uint64_t allocation, bool is_unfulfillable,
                             const char *cause)
{
    struct request *request = sl_map_u64_get_ptr(&pool->by_allocation, allocation);
    struct slot *slot = find_slot(pool, allocation);
    if (request != NULL) {
        if (!request->is_batch || is_unfulfillable) {
            fail_request(pool, request, is_unfulfillable ? SL_SLOT_UNFULFILLABLE : SL_SLOT_FAILED,
                         cause);
        }
        return NULL;
    }
    if (slot == NULL) {
        return NULL;
    }
    char *name = sl_strdup(slot->supervisor->name);
    lose_slot(pool, slot, cause);
    const struct supervisor *supervisor = find_supervisor(pool, name);
    sl_free(name);
    return supervisor != NULL && supervisor->slot_count == 0 ? supervisor->name : NULL;
}

bool
sl_slot_pool_holds(const struct sl_slot_pool *pool, uint64_t allocation)
{
    return find_slot(pool, allocation) != NULL;
}

size_t
sl_slot_pool_report(const struct sl_slot_pool *pool, const char *name, struct sl_slot_status *slots,
                    size_t max)
{
    const struct supervisor *supervisor = find_supervisor(pool, name);
    size_t count = 0;
    if (supervisor == NULL) {
        return 0;
    }
    sl_list_each(&supervisor->slots, it)
    {
        const struct slot *slot = sl_container_of(it, struct slot, supervisor_node);
        if (count < max) {
            slots[count] = (struct sl_slot_status){slot->port, slot->profile, pool->config.topology,
                                                   slot->allocation};
        }
        count++;
    }
    return count;
}

static void
free_idle_slots(struct sl_slot_pool *pool)
{
    uint64_t now_ms = sl_loop_now_ms(pool->loop);
    struct sl_list_node *node;
    while ((node = sl_list_first(&pool->available)) != NULL) {
        struct slot *slot = sl_container_of(node, struct slot, available_node);
        if (now_ms - slot->unused_since_ms <= pool->config.idle_timeout_ms) {
            break;
        }
        lose_slot(pool, slot, "the slot was not used");
    }
}

/* A slot that is held here, busy or not, and that could serve the request one day. */
static bool
has_fitting_slot(const struct sl_slot_pool *pool, const struct request *request)
{
    struct sl_map_u64_entry *entry;
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->slots, &at)) != NULL;) {
        if (fits(request, (const struct slot *)(uintptr_t)entry->value)) {
            return true;
        }
    }
    return false;
}

static void
check_batch_request(struct sl_slot_pool *pool, struct request *request)
{
    uint64_t now_ms = sl_loop_now_ms(pool->loop);
    if (has_fitting_slot(pool, request)) {
        request->is_unfulfillable = false;
    } else if (!request->is_unfulfillable) {
        request->is_unfulfillable = true;
        request->unfulfillable_since_ms = now_ms;
    }
    if (request->is_unfulfillable &&
        request->unfulfillable_since_ms + request->timeout_ms <= now_ms) {
        fail_request(pool, request, SL_SLOT_TIMED_OUT,
                     "no slot that could serve it was there for the whole time limit");
    }
}

void
sl_slot_pool_check(struct sl_slot_pool *pool)
{
    struct sl_map_u64 batch = {0};
    struct sl_map_u64_entry *entry;
    free_idle_slots(pool);
    /* By id, since whoever is told of an end may ask for more. */
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->requests, &at)) != NULL;) {
        if (((const struct request *)(uintptr_t)entry->value)->is_batch) {
            sl_map_u64_put(&batch, entry->key, 0);
        }
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&batch, &at)) != NULL;) {
        struct request *request = find_request(pool, entry->key);
        if (request != NULL) {
            check_batch_request(pool, request);
        }
    }
    sl_map_u64_destroy(&batch);
}

static void
cancel_pending(struct sl_slot_pool *pool)
{
    struct sl_map_u64_entry *entry;
    if (!pool->is_connected) {
        return;
    }
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->by_allocation, &at)) != NULL;) {
        pool->ops.cancel_slot(pool->ops.ctx, entry->key);
    }
}

void
sl_slot_pool_suspend(struct sl_slot_pool *pool)
{
    cancel_pending(pool);
    pool->is_connected = false;
    /* The supervisors go together with the slots: one that stayed would look registered to the next
     * term, which would then refuse its offers for ever. */
    forget_all(pool);
}

void
sl_slot_pool_close(struct sl_slot_pool *pool, const char *cause)
{
    struct sl_map_u64_entry *entry;
    cancel_pending(pool);
    for (size_t at = 0; (entry = sl_map_u64_next(&pool->slots, &at)) != NULL;) {
        const struct slot *slot = (const struct slot *)(uintptr_t)entry->value;
        pool->ops.free_slot(pool->ops.ctx, slot->supervisor->name, slot->allocation, cause);
    }
    pool->is_connected = false;
    forget_all(pool);
}

size_t
sl_slot_pool_allocated_count(const struct sl_slot_pool *pool)
{
    return pool->served.count;
}

double
sl_slot_pool_utilization(const struct sl_slot_pool *pool, const char *name)
{
    const struct supervisor *supervisor = find_supervisor(pool, name);
    return supervisor == NULL || supervisor->slot_count == 0
               ? 0
               : (double)supervisor->used_count / (double)supervisor->slot_count;
}

uint64_t
sl_slot_pool_allocation_of(const struct sl_slot_pool *pool, uint64_t id)
{
    const struct request *request = find_request(pool, id);
    return request != NULL ? request->allocation : 0;
}

char *
sl_slot_pool_shortage(const struct sl_slot_pool *pool, char *dst, size_t size)
{
    snprintf(dst, size, "need %zu, have %zu, free %zu", pool->requests.count + pool->served.count,
             pool->slots.count, pool->available_count);
    return dst;
}

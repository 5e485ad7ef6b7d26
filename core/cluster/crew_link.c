#include "cluster/crew_link.h"

#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "stream/remote.h"

struct sl_crew_link {
    struct sl_remote *remote;
    struct sl_crew *crew;
    /* The container of the owner; SL_CREW_LINK_OWNER: it is here. */
    int32_t serves;
};

struct head {
    int32_t member;
    int32_t kind;
};

static int32_t
serves(const struct sl_crew_link *self)
{
    return __atomic_load_n(&self->serves, __ATOMIC_SEQ_CST);
}

/* On the thread of the connections, as is changed. */
static void
arrived(void *ctx, int32_t peer, const uint8_t *bytes, size_t size)
{
    struct sl_crew_link *self = ctx;
    struct head head;
    if (size < sizeof(head)) {
        sl_log_warn("cluster.crew", "a message of %zu bytes from container %d", size, peer);
        return;
    }
    memcpy(&head, bytes, sizeof(head));
    bytes += sizeof(head);
    size -= sizeof(head);
    int32_t owner = serves(self);
    if (head.kind <= 0) {
        sl_log_warn("cluster.crew", "a message of kind %d from container %d", head.kind, peer);
    } else if (owner == SL_CREW_LINK_OWNER) {
        sl_crew_post(self->crew, peer, head.kind, bytes, size);
    } else if (owner == peer &&
               sl_crew_send(self->crew, head.member, head.kind, bytes, size) != 0) {
        sl_log_warn("cluster.crew", "a message from container %d: %s", peer, sl_err_last()->msg);
    }
}

static void
changed(void *ctx, int32_t peer, enum sl_remote_change change)
{
    static const uint8_t codes[] = {
        [SL_REMOTE_BEGAN] = SL_CREW_PEER_CAME,
        [SL_REMOTE_BROKE] = SL_CREW_PEER_BROKE,
        [SL_REMOTE_RESUMED] = SL_CREW_PEER_RESUMED,
        [SL_REMOTE_ENDED] = SL_CREW_PEER_LEFT,
    };
    struct sl_crew_link *self = ctx;
    if (serves(self) == SL_CREW_LINK_OWNER) {
        sl_crew_post(self->crew, peer, SL_CREW_PEER, &codes[change], 1);
    }
}

struct sl_crew_link *
sl_crew_link_new(struct sl_worker *worker, struct sl_crew *crew)
{
    struct sl_remote *remote = sl_worker_remote(worker);
    if (remote == NULL) {
        sl_err_set(SL_EINVAL, "the worker has no lane to other processes");
        return NULL;
    }
    struct sl_crew_link *self = sl_calloc(1, sizeof(*self));
    self->remote = remote;
    self->crew = crew;
    self->serves = SL_CREW_LINK_OWNER;
    struct sl_remote_listener listener = {.on_message = arrived, .on_change = changed, .ctx = self};
    sl_remote_listen(remote, &listener);
    return self;
}

void
sl_crew_link_free(struct sl_crew_link *self)
{
    if (self == NULL) {
        return;
    }
    sl_crew_set_forward(self->crew, NULL, NULL);
    sl_remote_listen(self->remote, NULL);
    sl_free(self);
}

static void
forward(void *ctx, int32_t member, int32_t kind, const void *bytes, size_t len)
{
    struct sl_crew_link *self = ctx;
    if (sl_crew_link_send(self, serves(self), member, kind, bytes, len) != 0) {
        sl_log_error("cluster.crew", "a message of member %d is lost: %s", member,
                     sl_err_last()->msg);
    }
}

void
sl_crew_link_serve(struct sl_crew_link *self, int32_t peer)
{
    __atomic_store_n(&self->serves, peer, __ATOMIC_SEQ_CST);
    sl_crew_set_forward(self->crew, peer != SL_CREW_LINK_OWNER ? forward : NULL, self);
}

int
sl_crew_link_send(struct sl_crew_link *self, int32_t peer, int32_t member, int32_t kind,
                  const void *bytes, size_t len)
{
    struct head head = {member, kind};
    uint8_t *message = sl_alloc(sizeof(head) + len);
    memcpy(message, &head, sizeof(head));
    if (len > 0) {
        memcpy(message + sizeof(head), bytes, len);
    }
    int rc = sl_remote_send(self->remote, peer, message, sizeof(head) + len);
    sl_free(message);
    return rc;
}

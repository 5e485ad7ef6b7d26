#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "registration.pb-c.h"
#include "rpc/messages.h"
#include "slots.pb-c.h"
#include "wire/frame.h"
#include "wire/message.h"

/* A profile as a message, in the caller's memory. */
struct profile_message {
    Streamlua__ResourceProfile message;
    Streamlua__ProfileExtra extras[SL_PROFILE_EXTRAS_MAX];
    Streamlua__ProfileExtra *pointers[SL_PROFILE_EXTRAS_MAX];
};

static const struct sl_pb_limit counts[] = {
    {&streamlua__resource_profile__descriptor, 5, SL_PROFILE_EXTRAS_MAX},
    {&streamlua__slot_report__descriptor, 3, SL_SLOTS_MAX},
    {&streamlua__slot_offers__descriptor, 3, SL_SLOTS_MAX},
    {&streamlua__allocated_slots__descriptor, 2, SL_SLOTS_MAX},
    {&streamlua__slots_accepted__descriptor, 1, SL_SLOTS_MAX},
};

static const struct sl_pb_limits limits = {
    .max_size = SL_FRAME_CONTROL_MAX,
    /* A slot has 4 fields, its profile 4 and its extras 3 each. */
    .max_fields = 32 * SL_SLOTS_MAX,
    SL_PB_COUNTS(counts),
};

/* A name that may be missing. */
static int
check_name(const char *what, const char *name)
{
    return name[0] == '\0' ? 0 : sl_name_check_system(what, name, strlen(name));
}

static void
profile_to_message(const struct sl_profile *profile, struct profile_message *out)
{
    streamlua__resource_profile__init(&out->message);
    out->message.kind = (Streamlua__ProfileKind)profile->kind;
    out->message.cpu_cores = profile->cpu_cores;
    out->message.ram_bytes = profile->ram_bytes;
    out->message.disk_bytes = profile->disk_bytes;
    out->message.n_extras = profile->extra_count;
    out->message.extras = out->pointers;
    for (uint32_t i = 0; i < profile->extra_count; i++) {
        streamlua__profile_extra__init(&out->extras[i]);
        out->extras[i].name = SL_PB_MUTABLE(profile->extras[i].name);
        out->extras[i].amount = profile->extras[i].amount;
        out->pointers[i] = &out->extras[i];
    }
}

static bool
is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

/* A missing profile is UNKNOWN. Amounts are finite and not negative. */
static int
profile_from_message(const Streamlua__ResourceProfile *message, struct sl_profile *profile)
{
    *profile = sl_profile_unknown();
    if (message == NULL) {
        return 0;
    }
    if (!is_amount(message->cpu_cores) || !is_amount(message->ram_bytes) ||
        !is_amount(message->disk_bytes)) {
        return sl_err_set(SL_EPROTO, "a profile with an amount that is no amount");
    }
    *profile = sl_profile_set(message->cpu_cores, message->ram_bytes, message->disk_bytes);
    profile->kind = (enum sl_profile_kind)message->kind;
    for (size_t i = 0; i < message->n_extras; i++) {
        if (!is_amount(message->extras[i]->amount) ||
            !sl_profile_add_extra(profile, message->extras[i]->name, message->extras[i]->amount)) {
            return sl_err_set(SL_EPROTO, "a profile with a bad extra");
        }
    }
    return 0;
}

void
sl_slot_request_encode(const struct sl_slot_request *request, struct sl_buf *out)
{
    Streamlua__SlotRequest message = STREAMLUA__SLOT_REQUEST__INIT;
    struct profile_message profile;
    profile_to_message(&request->profile, &profile);
    message.topology = sl_pb_text(request->topology);
    message.allocation = request->allocation;
    message.profile = &profile.message;
    message.master_address = sl_pb_text(request->master_address);
    message.supervisor = sl_pb_text(request->supervisor);
    message.port = request->port;
    message.timeout_ms = request->timeout_ms;
    message.token = request->token;
    sl_message_pack(&message.base, out);
}

int
sl_slot_request_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                       struct sl_slot_request *request)
{
    Streamlua__SlotRequest *message;
    int rc = sl_message_unpack(&streamlua__slot_request__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *request = (struct sl_slot_request){
        .topology = message->topology,
        .allocation = message->allocation,
        .master_address = message->master_address,
        .supervisor = message->supervisor,
        .port = message->port,
        .timeout_ms = message->timeout_ms,
        .token = message->token,
    };
    if (request->allocation == 0 || request->topology[0] == '\0') {
        return sl_err_set(SL_EPROTO, "slot request without a topology or an allocation");
    }
    rc = check_name("topology name", request->topology);
    if (rc == 0) {
        rc = check_name("supervisor name", request->supervisor);
    }
    return rc != 0 ? rc : profile_from_message(message->profile, &request->profile);
}

/* Slots as messages, in the arena. */
static Streamlua__SlotStatus **
slots_to_messages(struct sl_arena *arena, const struct sl_slot_list *list)
{
    Streamlua__SlotStatus **pointers = sl_arena_calloc(arena, list->count + 1, sizeof(*pointers));
    Streamlua__SlotStatus *messages = sl_arena_calloc(arena, list->count + 1, sizeof(*messages));
    struct profile_message *profiles = sl_arena_calloc(arena, list->count + 1, sizeof(*profiles));
    for (size_t i = 0; i < list->count; i++) {
        const struct sl_slot_status *slot = &list->slots[i];
        streamlua__slot_status__init(&messages[i]);
        profile_to_message(&slot->profile, &profiles[i]);
        messages[i].port = slot->port;
        messages[i].profile = &profiles[i].message;
        messages[i].topology = sl_pb_text(slot->topology);
        messages[i].allocation = slot->allocation;
        pointers[i] = &messages[i];
    }
    return pointers;
}

static int
slots_from_messages(struct sl_arena *arena, size_t count, Streamlua__SlotStatus **messages,
                    struct sl_slot_list *list)
{
    struct sl_slot_status *slots = sl_arena_calloc(arena, count + 1, sizeof(*slots));
    if (slots == NULL) {
        return sl_err_set(SL_ELIMIT, "a list of slots takes too much memory");
    }
    for (size_t i = 0; i < count; i++) {
        slots[i].port = messages[i]->port;
        slots[i].topology = messages[i]->topology;
        slots[i].allocation = messages[i]->allocation;
        int rc = check_name("topology name", slots[i].topology);
        if (rc == 0) {
            rc = profile_from_message(messages[i]->profile, &slots[i].profile);
        }
        if (rc != 0) {
            return rc;
        }
    }
    list->slots = slots;
    list->count = count;
    return 0;
}

void
sl_slot_report_encode(const struct sl_slot_list *list, struct sl_buf *out)
{
    Streamlua__SlotReport message = STREAMLUA__SLOT_REPORT__INIT;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    message.resource = sl_pb_text(list->resource);
    message.instance = list->instance;
    message.n_slots = list->count;
    message.slots = slots_to_messages(&arena, list);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_slot_report_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_slot_list *list)
{
    Streamlua__SlotReport *message;
    int rc = sl_message_unpack(&streamlua__slot_report__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *list = (struct sl_slot_list){
        .resource = message->resource, .instance = message->instance, .topology = ""};
    rc = check_name("resource name", list->resource);
    return rc != 0 ? rc : slots_from_messages(arena, message->n_slots, message->slots, list);
}

void
sl_slot_offers_encode(const struct sl_slot_list *list, struct sl_buf *out)
{
    Streamlua__SlotOffers message = STREAMLUA__SLOT_OFFERS__INIT;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    message.resource = sl_pb_text(list->resource);
    message.topology = sl_pb_text(list->topology);
    message.offer = list->offer;
    message.n_slots = list->count;
    message.slots = slots_to_messages(&arena, list);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_slot_offers_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_slot_list *list)
{
    Streamlua__SlotOffers *message;
    int rc = sl_message_unpack(&streamlua__slot_offers__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *list = (struct sl_slot_list){
        .resource = message->resource, .topology = message->topology, .offer = message->offer};
    rc = check_name("resource name", list->resource);
    if (rc == 0) {
        rc = check_name("topology name", list->topology);
    }
    return rc != 0 ? rc : slots_from_messages(arena, message->n_slots, message->slots, list);
}

void
sl_allocated_slots_encode(const struct sl_slot_list *list, struct sl_buf *out)
{
    Streamlua__AllocatedSlots message = STREAMLUA__ALLOCATED_SLOTS__INIT;
    struct sl_arena arena;
    sl_arena_create(&arena, 0, 0);
    message.topology = sl_pb_text(list->topology);
    message.offer = list->offer;
    message.n_slots = list->count;
    message.slots = slots_to_messages(&arena, list);
    sl_message_pack(&message.base, out);
    sl_arena_destroy(&arena);
}

int
sl_allocated_slots_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                          struct sl_slot_list *list)
{
    Streamlua__AllocatedSlots *message;
    int rc = sl_message_unpack(&streamlua__allocated_slots__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *list = (struct sl_slot_list){
        .resource = "", .topology = message->topology, .offer = message->offer};
    rc = check_name("topology name", list->topology);
    return rc != 0 ? rc : slots_from_messages(arena, message->n_slots, message->slots, list);
}

void
sl_slot_notice_encode(const struct sl_slot_notice *notice, struct sl_buf *out)
{
    Streamlua__SlotNotice message = STREAMLUA__SLOT_NOTICE__INIT;
    message.resource = sl_pb_text(notice->resource);
    message.instance = notice->instance;
    message.topology = sl_pb_text(notice->topology);
    message.port = notice->port;
    message.allocation = notice->allocation;
    message.cause = sl_pb_text(notice->cause);
    message.token = notice->token;
    message.is_unfulfillable = notice->is_unfulfillable;
    sl_message_pack(&message.base, out);
}

int
sl_slot_notice_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                      struct sl_slot_notice *notice)
{
    Streamlua__SlotNotice *message;
    int rc = sl_message_unpack(&streamlua__slot_notice__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *notice = (struct sl_slot_notice){
        .resource = message->resource,
        .instance = message->instance,
        .topology = message->topology,
        .port = message->port,
        .allocation = message->allocation,
        .cause = message->cause,
        .token = message->token,
        .is_unfulfillable = message->is_unfulfillable,
    };
    rc = check_name("resource name", notice->resource);
    return rc != 0 ? rc : check_name("topology name", notice->topology);
}

void
sl_slots_accepted_encode(const struct sl_slots_accepted *accepted, struct sl_buf *out)
{
    Streamlua__SlotsAccepted message = STREAMLUA__SLOTS_ACCEPTED__INIT;
    message.n_allocations = accepted->count;
    message.allocations = SL_PB_MUTABLE(accepted->allocations);
    sl_message_pack(&message.base, out);
}

int
sl_slots_accepted_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                         struct sl_slots_accepted *accepted)
{
    Streamlua__SlotsAccepted *message;
    int rc = sl_message_unpack(&streamlua__slots_accepted__descriptor, data, size, &limits, arena,
                               &message);
    if (rc == 0) {
        accepted->allocations = message->allocations;
        accepted->count = message->n_allocations;
    }
    return rc;
}

static int
check_names(const char *resource, const char *topology)
{
    int rc = check_name("resource name", resource);
    return rc != 0 ? rc : check_name("topology name", topology);
}

void
sl_register_supervisor_encode(const struct sl_register_supervisor *from, struct sl_buf *out)
{
    Streamlua__RegisterSupervisor message = STREAMLUA__REGISTER_SUPERVISOR__INIT;
    Streamlua__Hardware hardware = STREAMLUA__HARDWARE__INIT;
    struct profile_message default_profile;
    struct profile_message total_profile;
    profile_to_message(&from->default_profile, &default_profile);
    profile_to_message(&from->total_profile, &total_profile);
    hardware.cpu_cores = from->hardware.cpu_cores;
    hardware.ram_bytes = from->hardware.ram_bytes;
    hardware.os = sl_pb_text(from->hardware.os);
    message.address = sl_pb_text(from->address);
    message.resource = sl_pb_text(from->resource);
    message.process = from->process;
    message.attempt = from->attempt;
    message.data_port = from->data_port;
    message.hardware = &hardware;
    message.default_profile = &default_profile.message;
    message.total_profile = &total_profile.message;
    sl_message_pack(&message.base, out);
}

int
sl_register_supervisor_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                              struct sl_register_supervisor *to)
{
    Streamlua__RegisterSupervisor *message;
    int rc = sl_message_unpack(&streamlua__register_supervisor__descriptor, data, size, &limits,
                               arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_register_supervisor){
        .address = message->address,
        .resource = message->resource,
        .process = message->process,
        .attempt = message->attempt,
        .data_port = message->data_port,
        .hardware.os = "",
    };
    if (to->resource[0] == '\0' || to->data_port > 65535) {
        return sl_err_set(SL_EPROTO,
                          "registration of a supervisor without a name or with data "
                          "port %u",
                          to->data_port);
    }
    if (message->hardware != NULL) {
        to->hardware.cpu_cores = message->hardware->cpu_cores;
        to->hardware.ram_bytes = message->hardware->ram_bytes;
        to->hardware.os = message->hardware->os;
        if (!isfinite(to->hardware.cpu_cores) || !isfinite(to->hardware.ram_bytes)) {
            return sl_err_set(SL_EPROTO, "hardware with an amount that is no amount");
        }
    }
    rc = check_names(to->resource, "");
    if (rc == 0) {
        rc = profile_from_message(message->default_profile, &to->default_profile);
    }
    return rc != 0 ? rc : profile_from_message(message->total_profile, &to->total_profile);
}

void
sl_register_topology_master_encode(const struct sl_register_topology_master *from,
                                   struct sl_buf *out)
{
    Streamlua__RegisterTopologyMaster message = STREAMLUA__REGISTER_TOPOLOGY_MASTER__INIT;
    message.topology = sl_pb_text(from->topology);
    message.address = sl_pb_text(from->address);
    message.resource = sl_pb_text(from->resource);
    message.process = from->process;
    message.attempt = from->attempt;
    message.token = from->token;
    sl_message_pack(&message.base, out);
}

int
sl_register_topology_master_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                                   struct sl_register_topology_master *to)
{
    Streamlua__RegisterTopologyMaster *message;
    int rc = sl_message_unpack(&streamlua__register_topology_master__descriptor, data, size,
                               &limits, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_register_topology_master){
        .topology = message->topology,
        .address = message->address,
        .resource = message->resource,
        .process = message->process,
        .attempt = message->attempt,
        .token = message->token,
    };
    if (to->topology[0] == '\0' || to->token == 0) {
        return sl_err_set(SL_EPROTO, "registration of a topology master without a topology or a "
                                     "token");
    }
    return check_names(to->resource, to->topology);
}

void
sl_register_peer_encode(const struct sl_register_peer *from, struct sl_buf *out)
{
    Streamlua__RegisterPeer message = STREAMLUA__REGISTER_PEER__INIT;
    message.topology = sl_pb_text(from->topology);
    message.address = sl_pb_text(from->address);
    message.resource = sl_pb_text(from->resource);
    message.process = from->process;
    message.attempt = from->attempt;
    message.supervisor = sl_pb_text(from->supervisor);
    message.port = from->port;
    message.data_address = sl_pb_text(from->data_address);
    message.container = from->container;
    for (size_t i = 0; i < sizeof(from->identity); i++) {
        if (from->identity[i] != 0) {
            message.identity =
                (ProtobufCBinaryData){sizeof(from->identity), SL_PB_MUTABLE(from->identity)};
        }
    }
    message.pid = from->pid;
    message.plan_version = from->plan_version;
    sl_message_pack(&message.base, out);
}

int
sl_register_peer_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                        struct sl_register_peer *to)
{
    Streamlua__RegisterPeer *message;
    int rc = sl_message_unpack(&streamlua__register_peer__descriptor, data, size, &limits, arena,
                               &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_register_peer){
        .topology = message->topology,
        .address = message->address,
        .resource = message->resource,
        .process = message->process,
        .attempt = message->attempt,
        .supervisor = message->supervisor,
        .port = message->port,
        .data_address = message->data_address,
        .container = message->container,
        .pid = message->pid,
        .plan_version = message->plan_version,
    };
    if (to->topology[0] == '\0' || to->resource[0] == '\0') {
        return sl_err_set(SL_EPROTO, "registration without a topology or a name");
    }
    if (to->container < 0 ||
        (message->identity.len != 0 && message->identity.len != sizeof(to->identity))) {
        return sl_err_set(SL_EPROTO, "registration with container %d and an identity of %zu bytes",
                          to->container, message->identity.len);
    }
    if (message->identity.len != 0) {
        memcpy(to->identity, message->identity.data, sizeof(to->identity));
    }
    rc = check_names(to->resource, to->topology);
    return rc != 0 ? rc : check_name("supervisor name", to->supervisor);
}

void
sl_registered_encode(const struct sl_registered *from, struct sl_buf *out)
{
    Streamlua__Registered message = STREAMLUA__REGISTERED__INIT;
    message.resource = sl_pb_text(from->resource);
    message.instance = from->instance;
    message.token = from->token;
    sl_message_pack(&message.base, out);
}

int
sl_registered_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl_registered *to)
{
    Streamlua__Registered *message;
    int rc =
        sl_message_unpack(&streamlua__registered__descriptor, data, size, &limits, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_registered){message->resource, message->instance, message->token};
    return check_names(to->resource, "");
}

void
sl_disconnect_encode(const struct sl_disconnect *from, struct sl_buf *out)
{
    Streamlua__Disconnect message = STREAMLUA__DISCONNECT__INIT;
    message.resource = sl_pb_text(from->resource);
    message.topology = sl_pb_text(from->topology);
    message.token = from->token;
    message.cause = sl_pb_text(from->cause);
    sl_message_pack(&message.base, out);
}

int
sl_disconnect_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                     struct sl_disconnect *to)
{
    Streamlua__Disconnect *message;
    int rc =
        sl_message_unpack(&streamlua__disconnect__descriptor, data, size, &limits, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_disconnect){message->resource, message->topology, message->token,
                                 message->cause};
    return check_names(to->resource, to->topology);
}

void
sl_heartbeat_encode(const struct sl_heartbeat *from, struct sl_buf *out)
{
    Streamlua__Heartbeat message = STREAMLUA__HEARTBEAT__INIT;
    message.resource = sl_pb_text(from->resource);
    message.payload = (ProtobufCBinaryData){from->size, SL_PB_MUTABLE(from->payload)};
    sl_message_pack(&message.base, out);
}

int
sl_heartbeat_decode(const uint8_t *data, size_t size, struct sl_arena *arena,
                    struct sl_heartbeat *to)
{
    Streamlua__Heartbeat *message;
    int rc =
        sl_message_unpack(&streamlua__heartbeat__descriptor, data, size, &limits, arena, &message);
    if (rc != 0) {
        return rc;
    }
    *to = (struct sl_heartbeat){message->resource, message->payload.data, message->payload.len};
    return check_names(to->resource, "");
}

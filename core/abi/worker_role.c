/* The role of a worker process for Lua: checks what a script could get wrong, calls room cluster.
 */

#include "cluster/worker_role.h"

#include "abi/abi.h"
#include "cluster/package_unpack.h"
#include "cluster/settings.h"
#include "cluster/worker_messages.h"

static int
missing(void)
{
    return sl_err_set(SL_EINVAL, "a pointer is NULL");
}

struct sl_unpacked *
sl_abi_package_unpack(const char *state_url, const char *topology,
                      const struct sl_settings *settings)
{
    if (state_url == NULL || topology == NULL || settings == NULL) {
        missing();
        return NULL;
    }
    return sl_package_unpack_new(state_url, topology, settings);
}

void
sl_abi_package_unpack_free(struct sl_unpacked *unpacked)
{
    sl_package_unpack_free(unpacked);
}

struct sl_worker_role *
sl_abi_worker_role_new(struct sl_worker *worker, const struct sl_worker_role_options *options,
                       const struct sl_settings *settings)
{
    struct sl_worker_role *role = NULL;
    if (worker == NULL || options == NULL || settings == NULL) {
        missing();
        return NULL;
    }
    return sl_worker_role_new(worker, options, settings, &role) == 0 ? role : NULL;
}

void
sl_abi_worker_role_free(struct sl_worker_role *role)
{
    sl_worker_role_free(role);
}

int32_t
sl_abi_worker_role_port(const struct sl_worker_role *role)
{
    return role != NULL ? sl_worker_role_data_port(role) : missing();
}

void
sl_abi_worker_role_answer(struct sl_worker_role *role, int32_t request, int32_t code,
                          const char *text, size_t len)
{
    if (role == NULL || (text == NULL && len > 0)) {
        missing();
        return;
    }
    sl_worker_role_answer(role, request, code, text, len);
}

void
sl_abi_worker_role_piece(struct sl_worker_role *role, const char *state, uint32_t key_groups,
                         uint32_t group, const char *entries, size_t size, double count,
                         const struct sl_keyed_summary *whole)
{
    if (role == NULL || state == NULL || (entries == NULL && size > 0) ||
        !(count >= 0 && count <= 1e15)) {
        missing();
        return;
    }
    struct sl_worker_piece piece = {.state = state,
                                    .entries = (const uint8_t *)entries,
                                    .size = size,
                                    .count = (uint64_t)count,
                                    .group = group};
    if (whole != NULL) {
        piece.whole = (struct sl_worker_moved){1, whole->entries, whole->bytes, whole->checksum};
    }
    sl_worker_role_piece(role, key_groups, &piece);
}

int32_t
sl_abi_worker_role_staged(struct sl_worker_role *role, double version, struct sl_staged *staged)
{
    if (role == NULL || staged == NULL || !(version >= 0 && version <= 9e15)) {
        return missing();
    }
    return sl_worker_role_staged(role, (uint64_t)version, staged) ? 1 : 0;
}

int32_t
sl_abi_worker_role_topology(struct sl_worker_role *role, const char *topology_id)
{
    if (role == NULL || topology_id == NULL) {
        return missing();
    }
    return sl_worker_role_topology(role, topology_id);
}

int32_t
sl_abi_worker_role_peer(struct sl_worker_role *role, int32_t container, const char *identity,
                        const char *host, int32_t port)
{
    if (role == NULL || identity == NULL || host == NULL) {
        return missing();
    }
    if (port < 1 || port > 65535) {
        return sl_err_set(SL_EINVAL, "port %d", port);
    }
    return sl_worker_role_peer(role, container, (const uint8_t *)identity, host, (uint16_t)port);
}

void
sl_abi_worker_role_report(struct sl_worker_role *role, const char *component, int32_t task,
                          const char *text, size_t len, int32_t is_fatal)
{
    if (role == NULL || component == NULL || (text == NULL && len > 0)) {
        missing();
        return;
    }
    sl_worker_role_report(role, component, task, text, len, is_fatal);
}

int32_t
sl_abi_worker_role_count(struct sl_worker_role *role, const struct sl_worker_counters *counters)
{
    if (role == NULL || counters == NULL || counters->component == NULL) {
        return missing();
    }
    sl_worker_role_count(role, counters);
    return 0;
}

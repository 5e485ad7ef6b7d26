#pragma once
/*
 * The settings of the control plane: time-outs, intervals and limits of every role. This table is
 * the only list of them: the struct, the defaults, what `streamlua config view` shows and what
 * docs/control-plane.md says come from here. A process reads its files of settings, fills a struct
 * sl_settings, and derives from it what its parts want.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/master.h"
#include "cluster/resource_manager.h"
#include "cluster/settings.abi.h"
#include "cluster/slot_pool.h"
#include "cluster/supervisor_slots.h"
#include "state/open.h"
#include "state/zookeeper.h"

/*
 * DURATION(name, default in ms, least in ms, text) and VALUE(name, kind, default, least, text).
 */
#define SL_SETTINGS_MAP(DURATION, VALUE)                                                           \
    DURATION(state_timeout, SL_STATE_TIMEOUT_MS, 1,                                                \
             "Limit of one operation on the state manager.")                                       \
    DURATION(zookeeper_session_timeout, SL_ZOOKEEPER_SESSION_MS, 1,                                \
             "Session with ZooKeeper: how long a dead leader or lock holder blocks the others.")   \
    DURATION(rpc_timeout, SL_RPC_CALL_MS, 1, "Limit of a call between processes.")                 \
    DURATION(rpc_frame_timeout, SL_RPC_FRAME_MS, 1,                                                \
             "Limit of a frame that has begun, and of the opening of a connection.")               \
    DURATION(rpc_retry_delay, SL_RPC_RETRY_GATE_MS, 1,                                             \
             "Pause before a broken connection is made anew.")                                     \
    DURATION(registration_initial_timeout, SL_REGISTRATION_INITIAL_MS, 1,                          \
             "Limit of the first attempt to register; it doubles with each.")                      \
    DURATION(registration_max_timeout, SL_REGISTRATION_MAX_MS, 1,                                  \
             "Most that the limit of an attempt doubles to.")                                      \
    DURATION(registration_error_delay, SL_REGISTRATION_ERROR_MS, 0,                                \
             "Pause after an error, and when there is no connection.")                             \
    DURATION(registration_refused_delay, SL_REGISTRATION_REFUSED_MS, 0,                            \
             "Pause after a refusal that may pass.")                                               \
    DURATION(registration_timeout, SL_SUPERVISOR_REGISTRATION_MS, 1,                               \
             "Longest time that a supervisor is without a master; it ends then.")                  \
    DURATION(heartbeat_interval, SL_HEARTBEAT_INTERVAL_MS, 1, "Time from heartbeat to heartbeat.") \
    DURATION(heartbeat_timeout, SL_HEARTBEAT_TIMEOUT_MS, 1,                                        \
             "Silence after which a process counts as dead.")                                      \
    VALUE(heartbeat_threshold, SL_SETTING_NUMBER, SL_HEARTBEAT_THRESHOLD, -1,                      \
          "Unreachable answers in a row that make a process dead; -1 switches it off.")            \
    DURATION(slot_request_timeout, SL_SLOT_REQUEST_MS, 1,                                          \
             "Longest time that a slot request waits.")                                            \
    DURATION(slot_idle_timeout, SL_SLOT_IDLE_MS, 1,                                                \
             "A slot that its topology does not use for so long is given back.")                   \
    DURATION(slot_timeout, SL_SLOT_TABLE_TIMEOUT_MS, 1,                                            \
             "A reserved slot that is not in use by then is free again.")                          \
    DURATION(slot_orphan_timeout, SL_SUPERVISOR_ORPHAN_MS, 1,                                      \
             "Longest time that a worker's slot is without a topology master; the worker ends.")   \
    DURATION(slot_start_up_time, SL_SLOT_START_UP_MS, 0,                                           \
             "How long a new master waits for supervisors before it fails what none could serve.") \
    VALUE(slots_max, SL_SETTING_NUMBER, 0, 0, "Most slots of a cluster; 0 is no limit.")           \
    VALUE(spread_slots, SL_SETTING_FLAG, 0, 0,                                                     \
          "Take a slot from the supervisor with the smallest share in use.")                       \
    VALUE(redundant_supervisors, SL_SETTING_NUMBER, 0, 0,                                          \
          "Supervisors kept in reserve, where supervisors can be started.")                        \
    DURATION(supervisor_idle_timeout, SL_SLOT_MANAGER_IDLE_MS, 1,                                  \
             "An idle supervisor is released after this, where supervisors can be started.")       \
    DURATION(supervisor_start_timeout, SL_SLOT_MANAGER_START_MS, 1,                                \
             "A started supervisor that has not registered by then is given up.")                  \
    DURATION(monitor_interval, SL_MASTER_MONITOR_MS, 1,                                            \
             "Time from one look of a master at all topologies to the next.")                      \
    DURATION(supervisor_timeout, SL_MASTER_SUPERVISOR_TIMEOUT_MS, 1,                               \
             "A supervisor that is not heard for so long counts as gone.")                         \
    DURATION(topology_timeout, SL_TOPOLOGY_TIMEOUT_MS, 1,                                          \
             "A topology without a topology master is forgotten after this.")

/* Durations end in _ms. */
struct sl_settings {
#define SL__SETTING_DURATION(name, value, least, text) int64_t name##_ms;
#define SL__SETTING_VALUE(name, kind, value, least, text) int64_t name;
    SL_SETTINGS_MAP(SL__SETTING_DURATION, SL__SETTING_VALUE)
#undef SL__SETTING_DURATION
#undef SL__SETTING_VALUE
};

/* Row i of the table with its default, NULL behind the last. Static. */
const struct sl_setting *sl_settings_row(size_t i);

/* All defaults. */
struct sl_settings sl_settings_default(void);

/* Sets one by its name. SL_ENOTFOUND for an unknown name, SL_ERANGE below the least or above
 * 2^53. */
int sl_settings_set(struct sl_settings *settings, const char *name, int64_t value);

/* Value i of the table as its variable of the environment says it:
 * "STREAMLUA_HEARTBEAT_INTERVAL=2000ms". False behind the last. */
bool sl_settings_variable(const struct sl_settings *settings, size_t i, char *dst, size_t size);

/* What single values can not tell: SL_EINVAL names both settings. */
int sl_settings_check(const struct sl_settings *settings);

/* What the parts of a role want. The last three change only what settings say: the caller fills in
 * the rest. */
struct sl_registration_config sl_settings_registration(const struct sl_settings *settings);
struct sl_heartbeat_config sl_settings_heartbeat(const struct sl_settings *settings);
void sl_settings_apply_rpc(const struct sl_settings *settings, struct sl_rpc_options *options);
void sl_settings_apply_state(const struct sl_settings *settings,
                             struct sl_state_open_options *options);
void sl_settings_apply_slots(const struct sl_settings *settings,
                             struct sl_slot_manager_config *config);

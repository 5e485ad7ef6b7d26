#pragma once
/*
 * The system topology: the user's topology and what the engine adds to run it, in the manner of
 * Storm and JStorm but with one aggregating pair of components a worker instead of a stream from
 * every task:
 *
 *   spouts --__ack_init--> __acker <--__ack_ack, __ack_fail, __ack_reset_timeout-- bolts
 *   __acker --__ack_ack, __ack_fail, __ack_reset_timeout (direct)--> spouts
 *   all components --__metrics--> __metrics --__metrics (direct)--> __topology_master
 *   __system --__tick (direct)--> bolts, __acker          timers of the worker
 *   __system --__metrics_tick (direct)--> __metrics       when to hand on what was collected
 *   __system --__heartbeat (direct)--> __topology_master  one message a worker, for all its tasks
 *   __topology_master --__control (direct)--> __system    pause, resume, stop, new plan
 *
 * __metrics and __system are carried by every worker itself: their parallelism is 0, they have no
 * task ids. __topology_master is one task. __acker exists only when acker tasks are asked for.
 */
#include "topology/topology.h"

/* Names of the components and streams of the engine. */
#define SL_ACKER "__acker"
#define SL_TOPOLOGY_MASTER "__topology_master"
#define SL_METRICS "__metrics"
#define SL_SYSTEM "__system"
#define SL_ACK_INIT "__ack_init"
#define SL_ACK_ACK "__ack_ack"
#define SL_ACK_FAIL "__ack_fail"
#define SL_ACK_RESET_TIMEOUT "__ack_reset_timeout"
#define SL_STREAM_METRICS "__metrics"
#define SL_STREAM_METRICS_TICK "__metrics_tick"
#define SL_STREAM_TICK "__tick"
#define SL_STREAM_HEARTBEAT "__heartbeat"
#define SL_STREAM_CONTROL "__control"

/* What the shape of the system topology depends on. */
struct sl_system_config {
    /* Tasks of __acker; 0 = no such component, roots are tracked at the spout's executor. */
    uint32_t ackers;
};

/*
 * Reads it from the topology's own config: `ackers`, unless `acking` is false. SL_EINVAL when
 * ackers is no whole number from 0 to SL_PARALLELISM_MAX.
 */
int sl_system_config_read(const struct sl_topology *topology, struct sl_system_config *config);

/*
 * A copy of the user's topology with the engine's components added after the user's and the
 * engine's streams and inputs added to the user's components. Pure: the same arguments give an
 * equal result, and the arguments stay as they are. NULL with SL_EINVAL when it is a system
 * topology already.
 */
struct sl_topology *sl_system_topology_new(const struct sl_topology *user,
                                           const struct sl_system_config *config);

/*
 * The ids of the first plan, one range a component in its order: ids count from 1 over the bolts in
 * order of declaration, __acker, __topology_master, then the spouts. SL_EINVAL for a topology that
 * is no system topology, SL_ERANGE when the ids do not fit an int32_t.
 */
int sl_topology_task_ranges(const struct sl_topology *system, struct sl_task_range *ranges);

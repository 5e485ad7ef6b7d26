#pragma once
/*
 * The runtime manager: what the commands of running topologies do, one function a step. It has a
 * loop and one connection to the state manager for its whole life, and blocks its caller. What a
 * topology master is asked for goes through one place (call_master), which finds it in the state
 * manager.
 *
 *     sl_runtime_open -> any of the commands -> sl_runtime_close
 */

#include "cluster/control_messages.h"
#include "cluster/package.h"

struct sl_runtime;

enum {
    SL_RUNTIME_STEP_MS = 10000,
    /* How long the processes of a killed topology may take to end before they are ended. */
    SL_RUNTIME_END_MS = 8000,
};

struct sl_runtime_options {
    const char *state_url;
    const char *program;
    /* Folder of all logs. */
    const char *logs;
    /* Limit of one step; 0 is SL_RUNTIME_STEP_MS. */
    uint64_t timeout_ms;
    /* Nothing is written to the state manager. */
    bool is_reader;
    /* Lines about what is going on, or NULL. */
    void (*progress)(void *ctx, const char *text);
    void *ctx;
};

struct sl_runtime_submission {
    const char *topology;
    const uint8_t *definition;
    size_t definition_size;
    const struct sl_stored_plan *plan;
    const struct sl_package *package;
    const char *cwd;
    const char *user;
    bool is_active;
    uint64_t timeout_ms;
};

/* SL_EINVAL for a bad address, SL_EIO. Texts are copied. */
int sl_runtime_open(const struct sl_runtime_options *options, struct sl_runtime **runtime);
void sl_runtime_close(struct sl_runtime *runtime);

/* Names of all topologies, sorted, until the next call. */
int sl_runtime_names(struct sl_runtime *runtime, const char *const **names, size_t *count);

/* What is stored of one, until the next load. SL_ENOTFOUND. */
int sl_runtime_load(struct sl_runtime *runtime, const char *topology,
                    const struct sl_topology_view **view);

/* Its code, until the next load. SL_ENOTFOUND. */
int sl_runtime_package(struct sl_runtime *runtime, const char *topology,
                       const struct sl_package **package);

/* See abi/cluster.abi.h for what the commands do and give. */
int sl_runtime_submit(struct sl_runtime *runtime, const struct sl_runtime_submission *submission);
int sl_runtime_status(struct sl_runtime *runtime, const char *topology,
                      const struct sl_control_status **status);
int sl_runtime_set_active(struct sl_runtime *runtime, const char *topology, bool is_active,
                          uint64_t timeout_ms);
int sl_runtime_restart(struct sl_runtime *runtime, const char *topology, int32_t container,
                       uint64_t timeout_ms);
int sl_runtime_update(struct sl_runtime *runtime, const struct sl_stored_plan *current,
                      const struct sl_stored_plan *proposed, uint64_t lock_timeout_ms,
                      uint64_t drain_timeout_ms, const struct sl_update_result **result);
int sl_runtime_kill(struct sl_runtime *runtime, const char *topology, uint64_t wait_ms,
                    uint64_t timeout_ms);

/* SHA-256 of a package's files, without the config, as 64 digits and a NUL. */
int sl_package_hash(const struct sl_package *package, char hash[65]);

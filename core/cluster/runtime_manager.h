#pragma once
/*
 * The runtime manager: what the commands of running topologies do, one function a step. It has a
 * loop and one connection to the state manager for its whole life, and blocks its caller.
 *
 *     sl_runtime_open -> look, or sl_runtime_run(command) -> sl_runtime_close
 *                                  |
 *        submit -> launcher        | update, kill, restart -> scheduler client: library or service
 *        activate, deactivate -> topology master
 *
 * Launchers: client_launcher.h. Scheduler clients: scheduler_client.h. Whoever is called is found
 * in the state manager (runtime_call.c).
 */

#include "cluster/control_messages.h"
#include "cluster/package.h"

struct sl_runtime;

enum {
    SL_RUNTIME_STEP_MS = 10000,
    /* How long the processes of a killed topology may take to end before they are ended. */
    SL_RUNTIME_END_MS = 8000,
};

struct sl_schedule_template;
struct sl_settings;

/* Everything is copied. */
struct sl_runtime_options {
    const char *state_url;
    const char *program;
    /* Folder of all logs. */
    const char *logs;
    /* Name of the client-side launcher; NULL is "local". */
    const char *launcher;
    /* Setting scheduler_service: the scheduler is asked at its endpoint, not loaded. */
    bool is_service;
    /* NULL for all defaults. */
    const struct sl_settings *settings;
    /* Of the cluster, or NULL. */
    const char *secret;
    /* Limit of one step; 0 is SL_RUNTIME_STEP_MS. */
    uint64_t timeout_ms;
    /* Nothing is written to the state manager. */
    bool is_reader;
    /* Lines about what is going on, or NULL. */
    void (*progress)(void *ctx, const char *text);
    void *ctx;
};

/* What the commands are given; everything is borrowed for the call. */

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
    /* How it is to be scheduled, where masters schedule; NULL elsewhere. */
    const struct sl_schedule_template *schedule;
    /* Where masters schedule: only the plan is made. */
    bool is_dry_run;
};

struct sl_runtime_change {
    /* What was planned from, and what is to be. */
    const struct sl_stored_plan *current;
    const struct sl_stored_plan *proposed;
    uint64_t lock_timeout_ms;
    uint64_t drain_timeout_ms;
    /* Where masters schedule: in which mode (enum sl_sched_mode), how from now on (NULL: as
     * before), and whether only to say what would be. */
    int32_t mode;
    const struct sl_schedule_template *schedule;
    bool is_dry_run;
};

struct sl_runtime_kill {
    const char *topology;
    /* How long what is in flight may take. */
    uint64_t wait_ms;
    uint64_t timeout_ms;
    /* The scheduler has ended it already: only what is left is cleaned up. */
    bool is_ended;
    /* What is kept for its return goes, too. */
    bool is_purged;
};

enum sl_runtime_command {
    SL_RUNTIME_SUBMIT = 1,
    SL_RUNTIME_KILL,
    SL_RUNTIME_ACTIVATE,
    SL_RUNTIME_DEACTIVATE,
    SL_RUNTIME_UPDATE,
    SL_RUNTIME_RESTART,
};

/* A command with what it needs. */
struct sl_runtime_request {
    enum sl_runtime_command command;
    /* SUBMIT, UPDATE, KILL. */
    struct sl_runtime_submission submission;
    struct sl_runtime_change change;
    struct sl_runtime_kill kill;
    /* ACTIVATE, DEACTIVATE, RESTART. */
    const char *topology;
    uint64_t timeout_ms;
    /* RESTART: one, or 0 for all. */
    int32_t container;
};

struct sl_runtime_answer {
    /* ACTIVATE, DEACTIVATE: it was so before. */
    bool was_so;
    /* UPDATE; valid until the next call. Of a dry run what would move, or NULL. */
    const struct sl_update_result *update;
    /* UPDATE, and SUBMIT as a dry run: the plan with the slots that masters chose, or NULL; as
     * long. */
    const struct sl_stored_plan *planned;
};

/* SL_EINVAL for a bad address, SL_EIO. */
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

/* How it is, until the next call. SL_ENOTFOUND, SL_EUNAVAIL. */
int sl_runtime_status(struct sl_runtime *runtime, const char *topology,
                      const struct sl_control_status **status);

/* Asks supervisors for logs and fills in the answers, which are there until the next call. With
 * wait_ms it returns when one of them has something, or at the end of that time. */
void sl_runtime_logs(struct sl_runtime *runtime, const char *topology,
                     struct sl_log_question *questions, size_t count, uint64_t wait_ms);

/* Carries out a command (abi/cluster.abi.h says what each does and gives). SL_EINVAL for one that
 * there is not. */
int sl_runtime_run(struct sl_runtime *runtime, const struct sl_runtime_request *request,
                   struct sl_runtime_answer *answer);

/* SHA-256 of a package's files, without the config, as 64 digits and a NUL. */
int sl_package_hash(const struct sl_package *package, char hash[65]);

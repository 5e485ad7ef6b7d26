#pragma once
/*
 * The processes of a supervisor: workers in slots, and topology masters. Each is kept running
 * (kept_process.h) and remembered in a file (supervisor_file.h), so that they outlive the
 * supervisor: its next process takes them over.
 */

#include "cluster/kept_process.h"
#include "cluster/supervisor_messages.h"

enum {
    /* A worker that fails so often in a row, each time within SL_KEPT_RESET_MS, is given up. */
    SL_SUPERVISOR_FAILURES_MAX = 6,
};

struct sl_supervisor_processes;

/* What processes are started with, and where what they leave goes. Other texts are copied. */
struct sl_supervisor_program {
    /* Path of the streamlua program. */
    const char *program;
    const char *state_url;
    /* Words that are added to command lines; NULL ends them, and may stand for none. Borrowed. */
    const char *const *arguments;
    /* Of the supervisor. */
    const char *id;
    const char *host;
    /* Folder of the supervisor's own file. */
    const char *folder;
    /* Folder of all logs; those of a topology are in one of its own below it. */
    const char *logs;
};

struct sl_supervisor_processes_options {
    struct sl_loop *loop;
    struct sl_supervisor_program program;
    /* How processes that are no children are watched; NULL: the real way. */
    const struct sl_adopter *adopter;
    /* sl_local_process_start, or a test's. */
    uint64_t (*process_start)(int64_t pid);
    const char *boot_id;
    /* The process of a worker was started or has ended. */
    void (*on_worker)(void *ctx, const struct sl_slot_worker *state);
    /* A worker is not started any more; stop it then. */
    void (*on_worker_given_up)(void *ctx, uint64_t allocation, const char *cause);
    /* A worker that was to end has ended; it is forgotten. */
    void (*on_worker_stopped)(void *ctx, uint64_t allocation);
    /* A topology master ended: by itself and is started again, or for good. */
    void (*on_master_ended)(void *ctx, const char *topology, const char *text, bool is_for_good);
    void *ctx;
};

struct sl_supervisor_processes *
sl_supervisor_processes_new(const struct sl_supervisor_processes_options *options);

/* Processes run on. NULL is fine. */
void sl_supervisor_processes_free(struct sl_supervisor_processes *self);

/*
 * Takes over what the file names and what still runs; before anything is started. has_slot(ctx)
 * says whether a worker's slot is there: if not, its process is ended. A topology master that has
 * ended meanwhile is started again. Call it once.
 */
void sl_supervisor_processes_take_over(struct sl_supervisor_processes *self,
                                       bool (*has_slot)(void *ctx, const char *topology,
                                                        uint32_t port, uint64_t allocation),
                                       void *ctx);

/* Starts a worker; again: nothing. SL_ECONFLICT when the slot's worker is another container's, or
 * ends. */
int sl_supervisor_processes_start_worker(struct sl_supervisor_processes *self, uint32_t port,
                                         const struct sl_worker_command *command);

/* Ends the process of a worker and starts it anew. SL_ENOTFOUND. */
int sl_supervisor_processes_restart_worker(struct sl_supervisor_processes *self,
                                           uint64_t allocation);

/* Ends a worker; done(arg), which may be NULL, is called when it has ended. False: there is none.
 */
bool sl_supervisor_processes_stop_worker(struct sl_supervisor_processes *self, uint64_t allocation,
                                         sl_loop_fn done, void *arg);

/* True with what is known of the worker in a slot; texts are borrowed until it changes. */
bool sl_supervisor_processes_worker(const struct sl_supervisor_processes *self, uint64_t allocation,
                                    struct sl_slot_worker *state);

/* The workers of a topology (NULL: of all), one after another: *at is 0 at first. */
bool sl_supervisor_processes_next(const struct sl_supervisor_processes *self, const char *topology,
                                  size_t *at, struct sl_slot_worker *state);

/* Starts a topology master, which is started again until it ends with exit code 0; again: nothing.
 * SL_EAGAIN while an earlier one ends. */
int sl_supervisor_processes_start_master(struct sl_supervisor_processes *self, const char *topology,
                                         uint32_t port);
/* Ends a topology master, which is started again; false when there is none, or it ends for good. */
bool sl_supervisor_processes_restart_master(struct sl_supervisor_processes *self,
                                            const char *topology);
/* As sl_supervisor_processes_stop_worker. */
bool sl_supervisor_processes_stop_master(struct sl_supervisor_processes *self, const char *topology,
                                         sl_loop_fn done, void *arg);

/* Ends everything; done(arg) is called, never inside, when nothing runs. */
void sl_supervisor_processes_stop_all(struct sl_supervisor_processes *self, sl_loop_fn done,
                                      void *arg);

/* Writes the file now if it is not up to date. */
void sl_supervisor_processes_save(struct sl_supervisor_processes *self);

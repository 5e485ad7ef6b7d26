#pragma once
/*
 * The processes of local topologies, found by their command lines: who takes over after a crash, or
 * cleans up behind one, has no other trace of what was started last.
 *
 *     EXE ROLE --state URL --topology NAME [--container N] ...
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_ROLE_GUARDIAN "guardian"
#define SL_ROLE_TOPOLOGY_MASTER "topology-master"
#define SL_ROLE_WORKER "worker"

/* container: -1 when the command line names none. */
typedef void (*sl_local_process_fn)(void *ctx, int64_t pid, const char *role, int32_t container);

/* Calls fn for every process of this user that serves the topology of this state manager. */
void sl_local_processes_each(const char *state_url, const char *topology, sl_local_process_fn fn,
                             void *ctx);

/* Calls fn for every worker and topology master of this user that a supervisor of this state
 * manager started. */
void sl_local_processes_of_supervisor(const char *state_url, const char *supervisor,
                                      void (*fn)(void *ctx, int64_t pid), void *ctx);

/*
 * The start of a process in ticks since the boot of this machine, 0 when there is no such process:
 * a process id alone may be another process' by now.
 */
uint64_t sl_local_process_start(int64_t pid);

/* Names the boot of this machine. */
enum { SL_BOOT_ID_SIZE = 40 };
void sl_local_boot_id(char text[SL_BOOT_ID_SIZE]);

/* A descriptor that can be read when the process has ended, or -1 when it has already. */
int sl_local_process_watch(int64_t pid);

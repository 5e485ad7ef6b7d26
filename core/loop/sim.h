#pragma once
/*
 * Virtual time: any number of loops ("nodes") in one thread that share one clock, one network and
 * one seed. Time stands still while callbacks run and jumps to the next event otherwise, so a test
 * of an hour takes as long as its events take. The same seed and the same calls give the same run;
 * sl_sim_trace_hash tells whether two runs were the same.
 *
 *     struct sl_sim *sim = sl_sim_new(&(struct sl_sim_options){.seed = 7});
 *     struct sl_loop *node = sl_sim_loop_new(sim, "127.0.0.2");
 *     ... hand the loop to a role ...
 *     sl_sim_run_for(sim, 5000);
 *
 * The network knows loops by their host names. Bytes of one connection arrive in order, as in TCP;
 * different connections are independent. A cut link loses nothing: bytes wait for its healing, as
 * TCP's retransmissions would, and connection attempts time out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "loop/loop.h"
#include "loop/process.h"

struct sl_sim;

struct sl_sim_options {
    uint64_t seed;
    /* One-way latency, drawn uniformly for every write; both 0 gives 50..200. */
    uint32_t latency_min_us;
    uint32_t latency_max_us;
    /* Cut what is read into random pieces, as a real network may. */
    bool is_splitting_reads;
};

struct sl_sim *sl_sim_new(const struct sl_sim_options *options);

/* All its loops must be freed before. */
void sl_sim_free(struct sl_sim *sim);

/*
 * A loop of the host. Several loops may share a host. Listening on 0.0.0.0 or [::] means the host's
 * own name; everything else a role does with its loop works as on the real one, except
 * sl_fd_watch_open.
 */
struct sl_loop *sl_sim_loop_new(struct sl_sim *sim, const char *host);

/* Virtual time since the start. */
uint64_t sl_sim_now_ms(const struct sl_sim *sim);

/* Handles the next event and moves time to it; false when nothing is to come. */
bool sl_sim_step(struct sl_sim *sim);

/* Handles everything that happens in the next ms milliseconds; time has then moved by just those.
 */
void sl_sim_run_for(struct sl_sim *sim, uint64_t ms);

/* Steps until done(ctx); false when that is not so within limit_ms or when nothing is to come. */
bool sl_sim_run_until(struct sl_sim *sim, bool (*done)(void *ctx), void *ctx, uint64_t limit_ms);

/* Of everything that happened so far. */
uint64_t sl_sim_trace_hash(const struct sl_sim *sim);

/* Cuts and heals one direction between two hosts. */
void sl_sim_cut(struct sl_sim *sim, const char *from, const char *to);
void sl_sim_heal(struct sl_sim *sim, const char *from, const char *to);
void sl_sim_heal_all(struct sl_sim *sim);

/* Breaks the connections between two hosts; both ends see it. Bytes under way are lost: the only
 * way in which TCP loses messages. */
void sl_sim_reset(struct sl_sim *sim, const char *one, const char *other);

/* Stops and continues a node, as SIGSTOP does: events wait, timers come late. */
void sl_sim_loop_pause(struct sl_loop *loop);
void sl_sim_loop_resume(struct sl_loop *loop);

/*
 * Ends a node as kill -9 does: no callback of it is called any more and its peers see closed
 * connections; with is_silent (the power fails) they see nothing. Its owner then frees the objects
 * of the node and the loop.
 */
void sl_sim_loop_crash(struct sl_loop *loop, bool is_silent);

/* Moves the wall clock of one node. */
void sl_sim_loop_jump_wall(struct sl_loop *loop, int64_t delta_ms);

/* Sends a signal to the node. */
void sl_sim_loop_raise(struct sl_loop *loop, int number);

/* What the simulation does for child processes; without it sl_process_spawn fails. */
struct sl_sim_spawner {
    /* A child is to start; the options are borrowed for the call. Failures reach the parent. */
    int (*spawn)(void *ctx, struct sl_loop *parent, const struct sl_process_options *options,
                 int64_t pid);
    void (*kill)(void *ctx, int64_t pid, int number);
    void *ctx;
};

void sl_sim_set_spawner(struct sl_sim *sim, const struct sl_sim_spawner *spawner);

/* A child has ended; its parent learns it. Unknown ids are ignored. */
void sl_sim_process_exited(struct sl_sim *sim, int64_t pid, int code, int signal);

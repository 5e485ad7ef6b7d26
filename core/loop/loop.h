#pragma once
/*
 * The event loop of a role: one thread owns it and everything that hangs on it; other threads only
 * post to it. Two kinds have this one interface: the real one on libuv (sl_loop_new) and the
 * simulated one in virtual time (loop/sim.h), which is handed to a role instead, so that whole
 * clusters live in one process and a seed repeats a run. A role gets its loop at creation and finds
 * there its clock, its randomness, its transport and its processes.
 *
 * Callbacks run on the loop, one at a time and never from inside a function that was called by the
 * same callback: an event is always delivered in a turn of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"

struct sl_loop;

typedef void (*sl_loop_fn)(void *ctx);

/*
 * Makes a loop on libuv; the thread that first runs it owns it. SL_EIO when libuv fails. The
 * process ignores SIGPIPE from now on, unless it handles it: a peer that closes would end it.
 * Children start with the default again.
 */
int sl_loop_new(struct sl_loop **loop);

/*
 * Closes the streams and listeners that are still open on the loop, with the close callbacks
 * (reason SL_ECANCELED), forgets children, drops posts that did not run, and frees the loop.
 * Watches of descriptors and signals must be closed before. Only the owner calls it, and no other
 * thread may post any more. NULL is fine.
 */
void sl_loop_free(struct sl_loop *loop);

/* Runs turns until sl_loop_stop. A loop on which nothing is open still waits for posts. */
void sl_loop_run(struct sl_loop *loop);

/* One turn: waits at most timeout_ms for something to happen (-1: for ever) and handles it. */
void sl_loop_run_once(struct sl_loop *loop, int timeout_ms);

/* Makes sl_loop_run return after the present turn. Any thread. */
void sl_loop_stop(struct sl_loop *loop);

/*
 * Runs fn(ctx) on the loop in one of its next turns, in the order of the posts of each thread. Any
 * thread, also the owner: this is how to do something "later".
 */
void sl_loop_post(struct sl_loop *loop, sl_loop_fn fn, void *ctx);

/*
 * Runs work(ctx) on another thread and then done(ctx) on the loop: for what would block it (files,
 * name resolution). Always ends in done. In the simulation both run on the loop, in a later turn.
 */
void sl_loop_work(struct sl_loop *loop, sl_loop_fn work, sl_loop_fn done, void *ctx);

/* The clocks of the loop; any thread may read them. */
const struct sl_clock *sl_loop_clock(const struct sl_loop *loop);

/* The monotonic clock in milliseconds and nanoseconds. */
uint64_t sl_loop_now_ms(const struct sl_loop *loop);
uint64_t sl_loop_now_ns(const struct sl_loop *loop);

/* The generator of the loop: from entropy on the real one, from the run's seed in the simulation.
 * Owner only. */
struct sl_random *sl_loop_random(struct sl_loop *loop);

/* Bytes that nobody can guess (from the operating system; in the simulation from the seed). */
void sl_loop_entropy(struct sl_loop *loop, void *bytes, size_t size);

/* True on the thread that owns the loop, or before any thread ran it. */
bool sl_loop_is_owner(const struct sl_loop *loop);

/*
 * A timer, in the memory of its owner; zeroed memory is a stopped one. Timers that are due at the
 * same time fire in the order in which they were started.
 */
struct sl_timer {
    struct sl_heap_node node;
    struct sl_loop *loop;
    void (*fn)(void *ctx, uint64_t ticket);
    void *ctx;
    uint64_t ticket;
};

/*
 * Starts a timer anew: fn(ctx, ticket) is called once, delay_ms from now. Returns the ticket, a
 * number that no other start on this loop gets. Whoever passes a firing on (posts it, sends it)
 * passes its ticket too, and the receiver asks sl_timer_is_current: a firing that was on its way
 * when the timer was stopped or restarted is then seen to be stale.
 */
uint64_t sl_timer_start(struct sl_loop *loop, struct sl_timer *timer, uint64_t delay_ms,
                        void (*fn)(void *ctx, uint64_t ticket), void *ctx);

/* Stops a timer; the function is not called any more. A stopped one stays so. */
void sl_timer_stop(struct sl_timer *timer);

/* True while the timer runs. */
bool sl_timer_is_running(const struct sl_timer *timer);

/* True when the ticket is that of the last start and the timer was not stopped since; a timer that
 * has fired keeps its ticket until it is started or stopped. */
bool sl_timer_is_current(const struct sl_timer *timer, uint64_t ticket);

/* Milliseconds until the timer fires; 0 when it is due or not running. */
uint64_t sl_timer_left_ms(const struct sl_timer *timer);

/* A watched descriptor, in the memory of its owner until the close callback. Real loops only. */
struct sl_fd_watch;

/*
 * Calls on_ready(ctx) in every turn in which fd can be read, until sl_fd_watch_close. The
 * descriptor stays the caller's. SL_EUNAVAIL in the simulation, SL_EIO from libuv.
 */
int sl_fd_watch_open(struct sl_loop *loop, int fd, sl_loop_fn on_ready, void *ctx,
                     struct sl_fd_watch **watch);

/* Ends the watching at once; on_ready is not called any more and the descriptor may be closed. */
void sl_fd_watch_close(struct sl_fd_watch *watch);

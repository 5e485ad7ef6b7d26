#pragma once
/*
 * An executor of its own: a queue of tasks and timers that the calling thread works off. With a
 * manual clock it is virtual time: when nothing is left to run now, the clock jumps to the next
 * timer. With the system's clock it waits for tasks that other threads post, which is how tests and
 * command line tools use a real backend without a loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "state/executor.h"

struct sl_state_runner;

/* Real time. */
struct sl_state_runner *sl_state_runner_new(void);

/* Virtual time, told by a clock that the runner moves. The clock is borrowed. */
struct sl_state_runner *sl_state_runner_virtual_new(struct sl_manual_clock *clock);

/* Tasks that have not run are dropped. */
void sl_state_runner_free(struct sl_state_runner *self);

/* The seam to hand to a store; valid as long as the runner. */
const struct sl_state_executor *sl_state_runner_executor(struct sl_state_runner *self);

/*
 * Runs tasks until *done is true or timeout_ms have passed on the runner's clock. Returns *done; in
 * virtual time also false at once when nothing is left that could make it true.
 */
bool sl_state_runner_run_until(struct sl_state_runner *self, const bool *done, uint64_t timeout_ms);

/* Runs everything that is due within the next duration_ms; in virtual time the clock ends there. */
void sl_state_runner_run_for(struct sl_state_runner *self, uint64_t duration_ms);

/* Runs the oldest task, or the next timer when it is due by until_ms; false when there is neither.
 */
bool sl_state_runner_step(struct sl_state_runner *self, uint64_t until_ms);

/* Timers that wait: a test's look for what was left behind. */
uint64_t sl_state_runner_timer_count(const struct sl_state_runner *self);

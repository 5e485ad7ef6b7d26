/*
 * Scheduling for Lua: the built-in schedulers over flat documents.
 */

/*
 * Assigns the tasks of *request with the built-in scheduler (enum sl_sched_scheduler). On success
 * *result holds the workers by (supervisor, port), whose texts point into the request; free it with
 * sl_scheduling_result_free. Returns 0 or SL_EINVAL (null pointer, or the request contradicts
 * itself), SL_EUNSATISFIABLE (no assignment keeps what is asked), SL_ECONFLICT (nothing needs
 * assigning).
 */
int32_t sl_scheduling_assign(const struct sl_sched_request *request, int32_t scheduler,
                             struct sl_sched_result *result);

/* Frees the arrays of a result and zeroes it; NULL and an empty one are fine. */
void sl_scheduling_result_free(struct sl_sched_result *result);

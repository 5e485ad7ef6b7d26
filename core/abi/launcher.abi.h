/*
 * A topology master whose launcher is written in Lua: it runs on a thread of its own, and this one
 * takes what the launcher is to do, one command after the other. This is a bare header.
 */

/* A topology master and the queue of its launcher. */
struct sl_launcher_role;

/*
 * Starts a topology master on a thread. Returns NULL with SL_EINVAL when something is missing, or
 * SL_ESYS. Free it with sl_abi_launcher_end.
 */
struct sl_launcher_role *sl_abi_launcher_start(const struct sl_role_options *options,
                                               const struct sl_settings *settings,
                                               const struct sl_launcher_abilities *abilities);

/*
 * Waits for a command, at most timeout_ms. Returns 1 with *command, which has to be answered before
 * the next; 0 when the time is over; SL_ECLOSED when the topology master has ended.
 */
int32_t sl_abi_launcher_next(struct sl_launcher_role *role, double timeout_ms,
                             const struct sl_launcher_command **command);

/*
 * Answers a command: with a text why it could not be done; or with NULL when it was, and for
 * SL_LAUNCHER_ADD the real numbers of the containers (NULL: as asked). Returns 0, or SL_EINVAL:
 * numbers are missing or doubled, and the command counts as failed.
 */
int32_t sl_abi_launcher_done(struct sl_launcher_role *role, const char *failure, const int32_t *ids,
                             uint32_t count);

/* Tells that a container ended and was started again. */
void sl_abi_launcher_ended(struct sl_launcher_role *role, int32_t container, const char *text);

/* Waits for the topology master's end and frees the role. Returns the exit code of the process. */
int32_t sl_abi_launcher_end(struct sl_launcher_role *role);

/*
 * Crews for Lua: threads with a Lua state each, which run streamlua.streaming.member, and their
 * mailboxes. Functions that return int32_t and do not say otherwise return 0, or SL_EINVAL for a
 * NULL pointer or a member that does not exist. This is a bare header.
 */

/* Makes a crew of `members` (>= 1); NULL with SL_EINVAL. Free it with sl_abi_crew_free. */
struct sl_crew *sl_abi_crew_new(int32_t members);

/* Closes a crew, waits for its threads and frees it. NULL is fine. */
void sl_abi_crew_free(struct sl_crew *crew);

/* Sets the text that every member reads when it starts. */
int32_t sl_abi_crew_set_boot(struct sl_crew *crew, const char *text, size_t len);

/* Returns that text (borrowed) and its length. */
const char *sl_abi_crew_boot(const struct sl_crew *crew, size_t *len);

/*
 * Messages to the owner end the wait of this context (sl_abi_streaming_wait) from now on; NULL:
 * they wake nobody. Before the threads are started.
 */
int32_t sl_abi_crew_wakes(struct sl_crew *crew, struct sl_streaming *context);

/* Starts all threads. SL_ESYS when one can not be, SL_EUNAVAIL when this process has no Lua states
   to give (a stock luajit). */
int32_t sl_abi_crew_start(struct sl_crew *crew);

/* Sends len bytes to a member, or to whichever comes first (SL_CREW_ANY). Any thread. */
int32_t sl_abi_crew_send(struct sl_crew *crew, int32_t member, int32_t kind, const char *bytes,
                         size_t len);

/*
 * For a member: its next message, with takes_shared != 0 also one for any, waiting at most
 * timeout_ms (negative: as long as it takes). Returns 1 with *message, 0 when there is none,
 * SL_ECLOSED when the crew has been closed.
 */
int32_t sl_abi_crew_receive(struct sl_crew *crew, int32_t member, int32_t takes_shared,
                            double timeout_ms, struct sl_crew_message *message);

/* Sends len bytes to the owner. Any thread. */
int32_t sl_abi_crew_post(struct sl_crew *crew, int32_t member, int32_t kind, const char *bytes,
                         size_t len);

/* For the owner: its next message, likewise. Returns 1 with *message, or 0. */
int32_t sl_abi_crew_take(struct sl_crew *crew, double timeout_ms, struct sl_crew_message *message);

/* Lets no member wait any more: they finish what they have and end. */
int32_t sl_abi_crew_close(struct sl_crew *crew);

/*
 * From now on SIGINT and SIGTERM reach the crew's owner as messages (SL_CREW_SIGNAL). NULL gives
 * them back their default. SL_ESYS when they can not be caught.
 */
int32_t sl_abi_crew_catch_signals(struct sl_crew *crew);

/*
 * Crews over several processes for Lua (cluster/crew_link.h): members that work for the driver of a
 * stream program in another one. Functions that return int32_t return 0 or an SL_E code. This is a
 * bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

struct sl_crew_link;

/*
 * Joins a crew with those of the other processes of a worker that was made with a remote_window,
 * before its role is made. NULL with SL_EINVAL.
 */
struct sl_crew_link *sl_abi_crew_link_new(struct sl_worker *worker, struct sl_crew *crew);

/* Parts them again; the role must have been freed. NULL is fine. */
void sl_abi_crew_link_free(struct sl_crew_link *link);

/* Has the crew work for the driver in container `peer` from now on; -1: its owner is here. */
int32_t sl_abi_crew_link_serve(struct sl_crew_link *link, int32_t peer);

/*
 * Sends len bytes to a member of the crew in container `peer` (SL_CREW_ANY: whichever comes first),
 * or, in a process that serves, to the driver. SL_EINVAL, SL_ELIMIT (more than 1 GiB). Any thread.
 */
int32_t sl_abi_crew_link_send(struct sl_crew_link *link, int32_t peer, int32_t member, int32_t kind,
                              const char *bytes, size_t len);

/*
 * Events of a worker end the wait of this context (sl_abi_streaming_wait) from now on; NULL: they
 * wake nobody.
 */
int32_t sl_abi_worker_wakes(struct sl_worker *worker, struct sl_streaming *context);

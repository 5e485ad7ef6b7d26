/*
 * What a launcher that is written in Lua is asked to do: its thread takes commands one after the
 * other and answers each. This is a bare header.
 */

enum sl_launcher_command_kind {
    /* Once, before anything else. */
    SL_LAUNCHER_INITIALIZE = 1,
    /* Start these containers, those that run already excepted. */
    SL_LAUNCHER_SCHEDULE = 2,
    /* The plan is to change, from old_containers to containers; an error refuses it. */
    SL_LAUNCHER_UPDATE = 3,
    /* Start these new containers; the answer has their real numbers. */
    SL_LAUNCHER_ADD = 4,
    SL_LAUNCHER_REMOVE = 5,
    SL_LAUNCHER_RESTART = 6,
    /* End everything. */
    SL_LAUNCHER_KILL = 7,
};

/* A command, valid until it is answered. */
struct sl_launcher_command {
    enum sl_launcher_command_kind kind;
    /* Numbers and sizes of containers. */
    const struct sl_packing_container *containers;
    int32_t container_count;
    const struct sl_packing_container *old_containers;
    int32_t old_container_count;
    /* INITIALIZE: what is kept of the submission. */
    const char *topology;
    const char *cwd;
    const char *user;
};

/* What a launcher can do. */
struct sl_launcher_abilities {
    /* It has add_containers and remove_containers. */
    bool can_scale;
    bool can_restart;
    /* It wants to hear of updates. */
    bool wants_updates;
};

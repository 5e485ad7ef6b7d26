/* A crew: threads with a Lua state each that work for one driver. This is a bare header. */

struct sl_crew;

enum {
    /* As the member of a message: whoever of the crew comes first. */
    SL_CREW_ANY = -1,
    /* As the kind of a message to the owner: a signal came, its number is the member. */
    SL_CREW_SIGNAL = -2,
    /* As the kind of a message to the owner: a member's thread has ended. */
    SL_CREW_ENDED = -3,
    /* As the kind of a message to the owner: what became of the connection to another process, the
       member is its number, the one byte enum sl_crew_peer_change. */
    SL_CREW_PEER = -4,
};

enum sl_crew_peer_change {
    /* It is connected; what was under way to one that was there before is lost. */
    SL_CREW_PEER_CAME = 1,
    /* The connection is broken, and stands again with nothing lost. */
    SL_CREW_PEER_BROKE = 2,
    SL_CREW_PEER_RESUMED = 3,
    /* It will not come back. */
    SL_CREW_PEER_LEFT = 4,
};

/* A message as its receiver sees it; the bytes are valid until the receiver's next message. */
struct sl_crew_message {
    const uint8_t *bytes;
    int64_t len;
    /* Kinds from 0 on are the sender's own. */
    int32_t kind;
    /* Who sent it, or to whom it was sent. */
    int32_t member;
};

/* What C and Lua share of keyed state. This is a bare header. */

/* Keyed state of one task; see stream/state_table.h. */
struct sl_keyed;

/* A walk over entries; zeroed it starts at the first one. */
struct sl_keyed_iter {
    /* The group being walked, and the one at which the walk ends (0 = all groups). */
    uint32_t group;
    uint32_t end_group;
    /* Slots of the group still to visit, and the slot to visit next. */
    uint32_t left;
    uint32_t slot;
    /* Slots of the group when its walk began; 0 before. */
    uint32_t capacity;
};

/* What an export wrote or an import read. */
struct sl_keyed_summary {
    uint64_t entries;
    uint64_t bytes;
    /* Sum over the entries of a hash of their bytes, so their order does not matter. */
    uint64_t checksum;
};

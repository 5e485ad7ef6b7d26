/* What C and Lua share of keyed state. This is a bare header. */

/* Keyed state of one task; see stream/state_table.h. */
struct sl_keyed;

/* An entry; Lua may read value_kind, and read and write `number` while that is SL_VALUE_NUMBER. */
struct sl_keyed_entry {
    /* Integer, bits, up to 8 bytes of a string, or the address of a block. */
    uint64_t key;
    union {
        uint64_t value;
        double number;
    };
    /* The upper half of the key's hash. */
    uint32_t hash;
    /* enum sl_keyed_key_kind, and in the upper byte the length of a string or SL_KEYED_IN_BLOCK. */
    uint16_t key_kind;
    /* enum sl_value_tag, and the upper byte in the same way. */
    uint16_t value_kind;
};

/* Entries that were remembered; a short cut to those that are used over and over. */
struct sl_keyed_places {
    /* Grows whenever an entry may have moved or gone: indexes given before mean nothing then. */
    double moves;
    /* By index; NULL until the first one is remembered. */
    struct sl_keyed_entry **entries;
    uint32_t count;
};

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

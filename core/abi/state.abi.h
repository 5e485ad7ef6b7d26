/*
 * Keyed state for Lua. A key is a number, a string, or an encoded value in the key form
 * (stream/value.abi.h); functions end in _number, _string and _encoded accordingly. Values go in
 * as a number or as a tag with bytes and come out through a struct sl_value, whose bytes are valid
 * until the next change of the state. This is a bare header.
 *
 * Those that return int32_t and do not say otherwise return 0 or SL_EINVAL (NULL pointers, unknown
 * tags, strings above 4 GiB), SL_EPROTO (malformed encoding), SL_ELIMIT (byte limit), SL_ENOMEM.
 * After an error the state is what it was before.
 */

/*
 * Makes an empty state of key_groups groups that takes at most limit_bytes (0 = no limit), to be
 * freed with sl_keyed_free. NULL with SL_EINVAL, SL_ELIMIT or SL_ENOMEM in the error record.
 */
struct sl_keyed *sl_keyed_new(uint32_t key_groups, uint64_t limit_bytes);

/* Frees a state with all entries; NULL is fine. */
void sl_keyed_free(struct sl_keyed *state);

/* Returns how many entries there are. */
double sl_keyed_size(const struct sl_keyed *state);

/* Returns the bytes that all entries take outside the Lua heap. */
double sl_keyed_memory(const struct sl_keyed *state);

/* Returns the state's places, which live as long as the state; NULL for NULL. */
const struct sl_keyed_places *sl_keyed_places(const struct sl_keyed *state);

/*
 * Remembers the entry of a string key of len bytes. Returns its index in the places' entries, which
 * holds until their `moves` changes, or SL_ENOTFOUND, or SL_ELIMIT when all places are taken.
 */
int32_t sl_keyed_remember_string(struct sl_keyed *state, const char *key, size_t len);

/* Frees all places, which changes their `moves`. */
void sl_keyed_forget_all(struct sl_keyed *state);

/* Removes all entries. */
void sl_keyed_remove_all(struct sl_keyed *state);

/* Stores the value of a key in *out. Returns 1, 0 when there is none (*out is nil), or an error. */
int32_t sl_keyed_get_number(const struct sl_keyed *state, double key, struct sl_value *out);

/* As sl_keyed_get_number for a string of len bytes. */
int32_t sl_keyed_get_string(const struct sl_keyed *state, const char *key, size_t len,
                            struct sl_value *out);

/* As sl_keyed_get_number for an encoded key of len bytes. */
int32_t sl_keyed_get_encoded(const struct sl_keyed *state, const uint8_t *key, size_t len,
                             struct sl_value *out);

/* Sets the value of a key to a number. */
int32_t sl_keyed_put_number_number(struct sl_keyed *state, double key, double value);

/* As sl_keyed_put_number_number for a string key of len bytes. */
int32_t sl_keyed_put_string_number(struct sl_keyed *state, const char *key, size_t len,
                                   double value);

/*
 * Sets the value of a key to value_len bytes: those of a string with SL_VALUE_STRING, any encoded
 * value with SL_VALUE_TABLE.
 */
int32_t sl_keyed_put_number(struct sl_keyed *state, double key, uint32_t tag, const void *value,
                            size_t value_len);

/* As sl_keyed_put_number for a string key of len bytes. */
int32_t sl_keyed_put_string(struct sl_keyed *state, const char *key, size_t len, uint32_t tag,
                            const void *value, size_t value_len);

/* As sl_keyed_put_number for an encoded key of len bytes. */
int32_t sl_keyed_put_encoded(struct sl_keyed *state, const uint8_t *key, size_t len, uint32_t tag,
                             const void *value, size_t value_len);

/*
 * Adds delta to the number of a key (a missing one counts as 0) and stores the result in *out. A
 * value that is an int64 or uint64 stays one and takes whole deltas only. SL_EINVAL when the value
 * is no number.
 */
int32_t sl_keyed_add_number(struct sl_keyed *state, double key, double delta, struct sl_value *out);

/* As sl_keyed_add_number for a string key of len bytes. */
int32_t sl_keyed_add_string(struct sl_keyed *state, const char *key, size_t len, double delta,
                            struct sl_value *out);

/* As sl_keyed_add_number for an encoded key of len bytes. */
int32_t sl_keyed_add_encoded(struct sl_keyed *state, const uint8_t *key, size_t len, double delta,
                             struct sl_value *out);

/* Removes a key. Returns 1, 0 when it was not there, or an error. */
int32_t sl_keyed_remove_number(struct sl_keyed *state, double key);

/* As sl_keyed_remove_number for a string of len bytes. */
int32_t sl_keyed_remove_string(struct sl_keyed *state, const char *key, size_t len);

/* As sl_keyed_remove_number for an encoded key of len bytes. */
int32_t sl_keyed_remove_encoded(struct sl_keyed *state, const uint8_t *key, size_t len);

/*
 * Stores the next entry of a walk and returns 1, or returns 0 at its end. A zeroed iterator starts
 * at the first entry. The entry just given may be removed and values may be replaced; keys added
 * meanwhile may be missed, and may make others be missed or seen twice.
 */
int32_t sl_keyed_walk(const struct sl_keyed *state, struct sl_keyed_iter *iter,
                      struct sl_value *key, struct sl_value *value);

/*
 * Returns the entries of one key group as bytes, their number in *len and what they hold in
 * *summary; valid until the next export of this state or its end. NULL with SL_EINVAL for a group
 * that does not exist. The bytes count in no limit.
 */
const uint8_t *sl_keyed_export(struct sl_keyed *state, uint32_t group, size_t *len,
                               struct sl_keyed_summary *summary);

/*
 * Returns the bytes of the first entries that fit into `most`, at least one, of len bytes of an
 * export behind its first 8, and stores how many they are in *count. SL_EPROTO.
 */
int64_t sl_keyed_entries_fit(const uint8_t *bytes, size_t len, size_t most, uint32_t *count);

/*
 * Puts the entries of len exported bytes (one or more groups, one after the other) and stores what
 * they held in *summary. With SL_EPROTO nothing was put; SL_ELIMIT and SL_ENOMEM leave what was put
 * so far.
 */
int32_t sl_keyed_import_bytes(struct sl_keyed *state, const uint8_t *bytes, size_t len,
                              struct sl_keyed_summary *summary);

/*
 * Takes over every key group in which another state has entries, in place of its own, and leaves
 * the other one empty. SL_EINVAL when their numbers of key groups differ.
 */
int32_t sl_keyed_take(struct sl_keyed *state, struct sl_keyed *from);

/* Removes the entries of one key group. */
void sl_keyed_remove_group(struct sl_keyed *state, uint32_t group);

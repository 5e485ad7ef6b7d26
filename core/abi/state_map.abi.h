/*
 * State of stateful streams for Lua: a map from keys to values, each with a time (of its last
 * update, or any number the caller keeps there). Keys and values as in abi/state.abi.h. A map may
 * be used from any thread, by one at a time. This is a bare header.
 *
 * Those that return int32_t and do not say otherwise return 0 or SL_EINVAL (NULL pointers, unknown
 * tags, strings above 4 GiB), SL_EPROTO (malformed encoding), SL_ENOMEM; after an error the map is
 * what it was before. Values that come out are valid until the next change of the map.
 */

/* Makes an empty map, to be freed with sl_abi_state_map_free. NULL with SL_ENOMEM. */
struct sl_state_map *sl_abi_state_map_new(void);

/* Frees a map with all entries; NULL is fine. */
void sl_abi_state_map_free(struct sl_state_map *map);

/* Returns how many entries there are. */
double sl_abi_state_map_size(const struct sl_state_map *map);

/* Returns the bytes that all entries take outside the Lua heap. */
double sl_abi_state_map_memory(const struct sl_state_map *map);

/* Removes all entries. */
void sl_abi_state_map_clear(struct sl_state_map *map);

/* Stores the value and the time of a key. Returns 1, 0 when there is none, or an error. */
int32_t sl_abi_state_map_get_number(const struct sl_state_map *map, double key,
                                    struct sl_value *value, int64_t *time);

/* As sl_abi_state_map_get_number for a string of len bytes. */
int32_t sl_abi_state_map_get_string(const struct sl_state_map *map, const char *key, size_t len,
                                    struct sl_value *value, int64_t *time);

/* As sl_abi_state_map_get_number for an encoded key of len bytes. */
int32_t sl_abi_state_map_get_encoded(const struct sl_state_map *map, const uint8_t *key, size_t len,
                                     struct sl_value *value, int64_t *time);

/* Sets the value of a key to a number, with a time. */
int32_t sl_abi_state_map_put_number_number(struct sl_state_map *map, double key, double value,
                                           int64_t time);

/* As sl_abi_state_map_put_number_number for a string key of len bytes. */
int32_t sl_abi_state_map_put_string_number(struct sl_state_map *map, const char *key, size_t len,
                                           double value, int64_t time);

/* As sl_abi_state_map_put_number_number for an encoded key of len bytes. */
int32_t sl_abi_state_map_put_encoded_number(struct sl_state_map *map, const uint8_t *key,
                                            size_t len, double value, int64_t time);

/*
 * Sets the value of a key, with a time, to value_len bytes: those of a string with
 * SL_VALUE_STRING, any encoded value with SL_VALUE_TABLE.
 */
int32_t sl_abi_state_map_put_number(struct sl_state_map *map, double key, uint32_t tag,
                                    const void *value, size_t value_len, int64_t time);

/* As sl_abi_state_map_put_number for a string key of len bytes. */
int32_t sl_abi_state_map_put_string(struct sl_state_map *map, const char *key, size_t len,
                                    uint32_t tag, const void *value, size_t value_len,
                                    int64_t time);

/* As sl_abi_state_map_put_number for an encoded key of len bytes. */
int32_t sl_abi_state_map_put_encoded(struct sl_state_map *map, const uint8_t *key, size_t len,
                                     uint32_t tag, const void *value, size_t value_len,
                                     int64_t time);

/* Removes a key. Returns 1, 0 when it was not there, or an error. */
int32_t sl_abi_state_map_remove_number(struct sl_state_map *map, double key);

/* As sl_abi_state_map_remove_number for a string of len bytes. */
int32_t sl_abi_state_map_remove_string(struct sl_state_map *map, const char *key, size_t len);

/* As sl_abi_state_map_remove_number for an encoded key of len bytes. */
int32_t sl_abi_state_map_remove_encoded(struct sl_state_map *map, const uint8_t *key, size_t len);

/*
 * Stores the next entry of a walk and returns 1, or returns 0 at its end. A zeroed iterator starts
 * at the first entry. The entry just given may be removed and values may be replaced; keys added
 * meanwhile may be missed, and may make others be missed or seen twice.
 */
int32_t sl_abi_state_map_walk(const struct sl_state_map *map, struct sl_keyed_iter *iter,
                              struct sl_value *key, struct sl_value *value, int64_t *time);

/*
 * Stores the entry with the smallest time if that is below the threshold and returns 1, else
 * returns 0. It comes again until it is removed or put with another time. Takes time in proportion
 * to what it gives; the first call orders all entries once.
 */
int32_t sl_abi_state_map_expired(struct sl_state_map *map, int64_t threshold, struct sl_value *key,
                                 struct sl_value *value, int64_t *time);

/*
 * Writes all entries to a new file at a path, checksummed; the file appears whole or not at all.
 * SL_ESYS when it can not be written.
 */
int32_t sl_abi_state_map_save(const struct sl_state_map *map, const char *path);

/*
 * Puts the entries of a saved file. SL_ENOTFOUND without one, SL_EPROTO when it is not whole
 * (nothing is put then), SL_ESYS when it can not be read.
 */
int32_t sl_abi_state_map_load(struct sl_state_map *map, const char *path);

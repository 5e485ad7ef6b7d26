/*
 * Packing for Lua: requests and plans as the plain arrays of packing/packing.abi.h. Functions
 * return 0 or a negative SL_E code, whose message sl_error_message() has.
 * This is a bare header: no preprocessor lines, only what both gcc and LuaJIT's parser accept.
 */

/*
 * Packs a request (its `current` is NULL) or repacks it with an sl_packing_packer. *plan is a new
 * plan, to be freed with sl_abi_packing_plan_free, or NULL. SL_EINVAL: malformed request;
 * SL_ELIMIT, SL_ERANGE: too large; SL_EUNSATISFIABLE: no plan, the message names component,
 * resource, need and room.
 */
int32_t sl_abi_packing_pack(int32_t packer, const struct sl_packing_request *request,
                            struct sl_packing_plan **plan);

/* Frees a plan of sl_abi_packing_pack. NULL is allowed. */
void sl_abi_packing_plan_free(struct sl_packing_plan *plan);

/* Returns "round_robin" and so on, NULL for other numbers. The string is static. */
const char *sl_abi_packing_packer_name(int32_t packer);

/*
 * Compares two plans whose instances number the components alike, from 0 to component_count - 1.
 * *delta is to be freed with sl_abi_packing_delta_free. SL_EINVAL when a plan is malformed.
 */
int32_t sl_abi_packing_delta_new(const struct sl_packing_plan *old_plan,
                                 const struct sl_packing_plan *new_plan, int32_t component_count,
                                 struct sl_packing_delta **delta);

/* Frees a delta of sl_abi_packing_delta_new. NULL is allowed. */
void sl_abi_packing_delta_free(struct sl_packing_delta *delta);

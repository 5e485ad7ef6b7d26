/*
 * A limit on code that may never return: a loop that the JIT compiled can only be ended together
 * with its process. This is a bare header.
 */

/*
 * Unless sl_abi_deadline_clear() comes first, after `ms` milliseconds (more than 0) the
 * NUL-terminated `text`, which is copied, is written to standard error and the process ends with
 * exit code `code`, whatever its threads are doing. Setting it again replaces it. Returns 0, or
 * SL_EINVAL without a text or for a time that is not above 0, SL_ESYS when no thread can be made.
 */
int32_t sl_abi_deadline_set(double ms, const char *text, int32_t code);

/* Takes the deadline back; without one it does nothing. The process goes on when this has returned.
 */
void sl_abi_deadline_clear(void);

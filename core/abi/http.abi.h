/*
 * The HTTP API of a cluster: its server, and the proofs of the cluster's secret that its clients
 * send and get. This is a bare header.
 */

/* A server that runs. */
struct sl_http_api;

/*
 * Serves the API on `listen` ("127.0.0.1:9000"; port 0 picks one) on threads of its own. secret is
 * the cluster's, or NULL. Each request is carried out by a process `program arguments...
 * api-request`; arguments is NULL-terminated. Returns NULL with SL_EINVAL for a bad address,
 * SL_EFENCED for one that other machines can reach when there is no secret, SL_EEXIST when it is in
 * use, SL_EUNAVAIL.
 */
struct sl_http_api *sl_abi_http_api_start(const char *listen, const char *secret,
                                          const char *program, const char *const *arguments);

/* The address with its real port, as long as the server runs. NULL for NULL. */
const char *sl_abi_http_api_address(const struct sl_http_api *api);

/* Ends the server and the requests that are under way. NULL is allowed. */
void sl_abi_http_api_stop(struct sl_http_api *api);

/* Blocks until the process is told to end (SIGINT, SIGTERM). Returns the number of the signal, or
 * an error: SL_EIO. */
int32_t sl_abi_http_wait_for_end(void);

/* Returns the SHA-256 of bytes as 64 hexadecimal digits, valid until the next call in this thread.
 * NULL with SL_EINVAL when they are missing. */
const char *sl_abi_http_hash(const uint8_t *data, size_t size);

/* Returns the HMAC-SHA-256 of a text under a secret in the same way. */
const char *sl_abi_http_mac(const char *secret, const char *text, size_t size);

/* Returns 32 hexadecimal digits that nobody can guess, valid until the next call in this thread. */
const char *sl_abi_http_nonce(void);

#pragma once
/*
 * The proof that a request over HTTP comes from somebody who knows the cluster's secret, which
 * itself never travels, and that an answer comes from such a server:
 *
 *     Authorization: streamlua-hmac time=SECONDS, nonce=HEX, body=HEX, mac=HEX
 *         mac  = HMAC-SHA-256(secret, "streamlua request\nMETHOD\nTARGET\nSECONDS\nNONCE\nBODY\n")
 *         body = SHA-256 of the body; TARGET is the path with the query, as it is sent
 *     Streamlua-Proof: HEX
 *         HMAC-SHA-256(secret, "streamlua answer\nNONCE\nSTATUS\nBODY\n")
 *
 * A time that is too far from the server's and a nonce that was there before are refused, so a
 * request that somebody recorded is worth nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of a hash in hexadecimal digits with the NUL. */
    SL_HTTP_HEX_SIZE = 65,
    SL_HTTP_NONCE_MAX = 64,
    /* How far clocks may be apart, in seconds. */
    SL_HTTP_SKEW_S = 300,
};

/* SHA-256 of bytes, and the HMAC of a text, as hexadecimal digits. */
void sl_http_hash(const void *data, size_t size, char hex[SL_HTTP_HEX_SIZE]);
void sl_http_mac(const char *secret, const char *text, size_t size, char hex[SL_HTTP_HEX_SIZE]);

/* What a header says. */
struct sl_http_authorization {
    int64_t time_s;
    char nonce[SL_HTTP_NONCE_MAX + 1];
    char body[SL_HTTP_HEX_SIZE];
    char mac[SL_HTTP_HEX_SIZE];
};

/* False for what is no such header. */
bool sl_http_authorization_parse(const char *text, struct sl_http_authorization *out);

/* Is the mac that of this request? The body's hash is compared by the caller, when it has come. */
bool sl_http_authorization_check(const struct sl_http_authorization *self, const char *secret,
                                 const char *method, const char *target);

/* The proof of an answer. */
void sl_http_proof(const char *secret, const char *nonce, unsigned status, const void *body,
                   size_t size, char hex[SL_HTTP_HEX_SIZE]);

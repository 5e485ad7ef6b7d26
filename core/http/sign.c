#include "http/sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/sha256.h"

#define SCHEME "streamlua-hmac "

static void
to_hex(const uint8_t bytes[SL_SHA256_SIZE], char hex[SL_HTTP_HEX_SIZE])
{
    for (size_t i = 0; i < SL_SHA256_SIZE; i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

void
sl_http_hash(const void *data, size_t size, char hex[SL_HTTP_HEX_SIZE])
{
    struct sl_sha256 state;
    uint8_t hash[SL_SHA256_SIZE];
    sl_sha256_create(&state);
    sl_sha256_update(&state, data, size);
    sl_sha256_finish(&state, hash);
    to_hex(hash, hex);
}

void
sl_http_mac(const char *secret, const char *text, size_t size, char hex[SL_HTTP_HEX_SIZE])
{
    struct sl_hmac state;
    uint8_t mac[SL_SHA256_SIZE];
    sl_hmac_create(&state, secret, strlen(secret));
    sl_hmac_update(&state, text, size);
    sl_hmac_finish(&state, mac);
    to_hex(mac, hex);
}

/* Copies the word behind "name=" up to a comma or the end; false when there is none, or it is too
 * long or has other characters than letters and digits. */
static bool
take_field(const char *text, const char *name, char *dst, size_t size)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        if ((at != text && at[-1] != ' ' && at[-1] != ',') || at[length] != '=') {
            continue;
        }
        at += length + 1;
        size_t used = strspn(at, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (used == 0 || used >= size || (at[used] != '\0' && at[used] != ',')) {
            return false;
        }
        memcpy(dst, at, used);
        dst[used] = '\0';
        return true;
    }
    return false;
}

bool
sl_http_authorization_parse(const char *text, struct sl_http_authorization *out)
{
    char time[24];
    char *end;
    if (text == NULL || strncmp(text, SCHEME, strlen(SCHEME)) != 0) {
        return false;
    }
    text += strlen(SCHEME);
    if (!take_field(text, "time", time, sizeof(time)) ||
        !take_field(text, "nonce", out->nonce, sizeof(out->nonce)) ||
        !take_field(text, "body", out->body, sizeof(out->body)) ||
        !take_field(text, "mac", out->mac, sizeof(out->mac))) {
        return false;
    }
    out->time_s = strtoll(time, &end, 10);
    return *end == '\0' && out->time_s >= 0 && strlen(out->nonce) >= 16 &&
           strlen(out->body) == SL_HTTP_HEX_SIZE - 1 && strlen(out->mac) == SL_HTTP_HEX_SIZE - 1;
}

bool
sl_http_authorization_check(const struct sl_http_authorization *self, const char *secret,
                            const char *method, const char *target)
{
    struct sl_buf text = {0};
    char mac[SL_HTTP_HEX_SIZE];
    sl_buf_printf(&text, "streamlua request\n%s\n%s\n%" PRId64 "\n%s\n%s\n", method, target,
                  self->time_s, self->nonce, self->body);
    sl_http_mac(secret, (const char *)text.data, text.size, mac);
    sl_buf_destroy(&text);
    return sl_bytes_equal_secret(mac, self->mac, sizeof(mac));
}

void
sl_http_proof(const char *secret, const char *nonce, unsigned status, const void *body, size_t size,
              char hex[SL_HTTP_HEX_SIZE])
{
    struct sl_buf text = {0};
    char hash[SL_HTTP_HEX_SIZE];
    sl_http_hash(body, size, hash);
    sl_buf_printf(&text, "streamlua answer\n%s\n%u\n%s\n", nonce, status, hash);
    sl_http_mac(secret, (const char *)text.data, text.size, hex);
    sl_buf_destroy(&text);
}

#include "loop/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/text.h"

static int
refuse(const char *text, const char *why)
{
    char quoted[96];
    return sl_err_set(SL_EINVAL, "address %s: %s",
                      sl_text_quote(quoted, sizeof(quoted), text, strlen(text)), why);
}

static int
parse_unix(const char *text, const char *path, struct sl_address *address)
{
    size_t len = strlen(path);
    if (len == 0) {
        return refuse(text, "the path of the socket is missing");
    }
    if (len > SL_ADDRESS_PATH_MAX) {
        return refuse(text, "the path of a socket has at most 107 characters");
    }
    address->kind = SL_ADDRESS_UNIX;
    memcpy(address->host, path, len + 1);
    address->port = 0;
    return 0;
}

static int
parse_port(const char *text, const char *digits, uint16_t *port)
{
    unsigned value = 0;
    if (*digits == '\0') {
        return refuse(text, "the port is missing");
    }
    for (const char *at = digits; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || at - digits > 4) {
            return refuse(text, "a port is a number within 0..65535");
        }
        value = value * 10 + (unsigned)(*at - '0');
    }
    if (value > 65535) {
        return refuse(text, "a port is a number within 0..65535");
    }
    *port = (uint16_t)value;
    return 0;
}

static bool
is_host_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static int
check_host(const char *text, const struct sl_address *address, bool is_bracketed)
{
    if (address->host[0] == '\0') {
        return refuse(text, "the host is missing");
    }
    if (is_bracketed) {
        struct in6_addr ip;
        return inet_pton(AF_INET6, address->host, &ip) == 1
                   ? 0
                   : refuse(text, "what is in brackets is no IPv6 address");
    }
    for (const char *at = address->host; *at != '\0'; at++) {
        if (!is_host_character(*at)) {
            return refuse(text, *at == ':' ? "an IPv6 address needs brackets, [::1]:6123"
                                           : "the host has a character that no host name has");
        }
    }
    return 0;
}

static int
parse_tcp(const char *text, const char *rest, struct sl_address *address)
{
    bool is_bracketed = *rest == '[';
    const char *end = is_bracketed ? strchr(rest, ']') : strrchr(rest, ':');
    if (is_bracketed && (end == NULL || end[1] != ':')) {
        return refuse(text, "expected [IPV6]:PORT");
    }
    if (end == NULL) {
        return refuse(text, "expected HOST:PORT or unix:PATH");
    }
    const char *start = is_bracketed ? rest + 1 : rest;
    size_t len = (size_t)(end - start);
    if (len >= SL_ADDRESS_HOST_SIZE) {
        return refuse(text, "the host is longer than 255 characters");
    }
    address->kind = SL_ADDRESS_TCP;
    memcpy(address->host, start, len);
    address->host[len] = '\0';
    int rc = check_host(text, address, is_bracketed);
    return rc != 0 ? rc : parse_port(text, end + (is_bracketed ? 2 : 1), &address->port);
}

int
sl_address_parse(const char *text, struct sl_address *address)
{
    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text, text + 5, address);
    }
    return parse_tcp(text, strncmp(text, "tcp://", 6) == 0 ? text + 6 : text, address);
}

char *
sl_address_format(const struct sl_address *address, char *dst, size_t size)
{
    if (address->kind == SL_ADDRESS_UNIX) {
        snprintf(dst, size, "unix:%s", address->host);
    } else if (strchr(address->host, ':') != NULL) {
        snprintf(dst, size, "[%s]:%u", address->host, address->port);
    } else {
        snprintf(dst, size, "%s:%u", address->host, address->port);
    }
    return dst;
}

bool
sl_address_is_loopback(const struct sl_address *address)
{
    struct in_addr ip4;
    struct in6_addr ip6;
    if (address->kind == SL_ADDRESS_UNIX || strcasecmp(address->host, "localhost") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, address->host, &ip4) == 1) {
        return (ntohl(ip4.s_addr) >> 24) == 127;
    }
    if (inet_pton(AF_INET6, address->host, &ip6) == 1) {
        return IN6_IS_ADDR_LOOPBACK(&ip6) || (IN6_IS_ADDR_V4MAPPED(&ip6) && ip6.s6_addr[12] == 127);
    }
    return false;
}

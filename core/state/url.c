#include "state/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static int
parse_port(const char *url, const char *text, size_t len, uint16_t *port)
{
    long number = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || number > 65535) {
            number = -1;
            break;
        }
        number = number * 10 + (text[i] - '0');
    }
    if (len == 0 || number < 1 || number > 65535) {
        return sl_err_set(SL_EINVAL, "state URL '%s': port '%.*s' is not in 1..65535", url,
                          (int)len, text);
    }
    *port = (uint16_t)number;
    return 0;
}

/* Splits "name", "name:port", "[v6]" or "[v6]:port". */
static int
parse_host(const char *url, const char *text, size_t len, struct sl_state_host *host)
{
    const char *end = text + len;
    const char *name = text;
    const char *name_end;
    const char *port = NULL;
    if (len > 0 && text[0] == '[') {
        name = text + 1;
        name_end = memchr(name, ']', (size_t)(end - name));
        if (name_end == NULL || (name_end + 1 != end && name_end[1] != ':')) {
            return sl_err_set(SL_EINVAL, "state URL '%s': host '%.*s' lacks its ']'", url, (int)len,
                              text);
        }
        port = name_end + 1 != end ? name_end + 2 : NULL;
    } else {
        const char *colon = memchr(text, ':', len);
        name_end = colon != NULL ? colon : end;
        port = colon != NULL ? colon + 1 : NULL;
    }
    size_t name_len = (size_t)(name_end - name);
    if (name_len == 0) {
        return sl_err_set(SL_EINVAL, "state URL '%s': a host has no name", url);
    }
    if (name_len >= sizeof(host->name)) {
        return sl_err_set(SL_EINVAL, "state URL: host '%.40s...' has more than %zu characters",
                          name, sizeof(host->name) - 1);
    }
    for (size_t i = 0; i < name_len; i++) {
        if (name[i] <= ' ' || name[i] > '~' || strchr("@?#[]\\", name[i]) != NULL) {
            return sl_err_set(SL_EINVAL, "state URL '%s': host '%.*s' is no host name", url,
                              (int)name_len, name);
        }
    }
    memcpy(host->name, name, name_len);
    host->name[name_len] = '\0';
    host->port = SL_STATE_ZOOKEEPER_PORT;
    return port != NULL ? parse_port(url, port, (size_t)(end - port), &host->port) : 0;
}

static int
parse_zookeeper(const char *text, const char *rest, struct sl_state_url *url)
{
    url->scheme = SL_STATE_ZOOKEEPER;
    const char *root = strchr(rest, '/');
    const char *end = root != NULL ? root : rest + strlen(rest);
    for (const char *at = rest;;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *host_end = comma != NULL ? comma : end;
        if (url->host_count == SL_STATE_HOSTS_MAX) {
            return sl_err_set(SL_EINVAL, "state URL '%s' has more than %d hosts", text,
                              SL_STATE_HOSTS_MAX);
        }
        int rc = parse_host(text, at, (size_t)(host_end - at), &url->hosts[url->host_count]);
        if (rc != 0) {
            return rc;
        }
        url->host_count++;
        if (comma == NULL) {
            break;
        }
        at = comma + 1;
    }
    if (root == NULL || root[1] == '\0') {
        root = "/streamlua";
    }
    if (sl_state_path_check(root) != 0 || strlen(root) > SL_STATE_COMPONENT_MAX) {
        return sl_err_set(SL_EINVAL, "state URL '%s': '%s' is no root node", text, root);
    }
    strcpy(url->path, root);
    return 0;
}

static int
parse_localfs(const char *text, const char *rest, struct sl_state_url *url)
{
    url->scheme = SL_STATE_LOCALFS;
    if (rest[0] == '\0') {
        return sl_err_set(SL_EINVAL, "state URL '%s' has no directory", text);
    }
    if (strlen(rest) >= sizeof(url->path) - 64) {
        return sl_err_set(SL_EINVAL, "state URL: the directory's path is too long");
    }
    strcpy(url->path, rest);
    return 0;
}

int
sl_state_url_parse(const char *text, struct sl_state_url *url)
{
    memset(url, 0, sizeof(*url));
    if (strncmp(text, "localfs:", 8) == 0) {
        return parse_localfs(text, text + 8, url);
    }
    if (strncmp(text, "zookeeper://", 12) == 0) {
        return parse_zookeeper(text, text + 12, url);
    }
    if (strcmp(text, "memory:") == 0) {
        url->scheme = SL_STATE_MEMORY;
        return 0;
    }
    return sl_err_set(SL_EINVAL,
                      "state URL '%s': unknown scheme; use localfs:DIR or "
                      "zookeeper://host:port[,host:port]/root",
                      text);
}

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

enum { MODULE_SIZE = 48, ROLE_SIZE = 64, THREAD_SIZE = 32 };

struct log_rule {
    char module[MODULE_SIZE];
    size_t module_len;
    enum sl_log_level level;
};

struct log_levels {
    enum sl_log_level fallback;
    int rule_count;
    struct log_rule rules[SL_LOG_RULES_MAX];
};

static void sink_stderr(void *ctx, enum sl_log_level level, const char *line, size_t len);

/* Written by the configuring thread before others start, then only read. */
static struct log_levels levels = {.fallback = SL_LOG_WARN};
static sl_log_sink_fn sink_fn = sink_stderr;
static void *sink_ctx;
static const struct sl_clock *log_clock;
static char log_role[ROLE_SIZE] = "-";
static _Thread_local char thread_name[THREAD_SIZE] = "main";

static const char *const level_names[] = {"error", "warn", "info", "verbose", "debug"};
enum { LEVEL_COUNT = sizeof(level_names) / sizeof(level_names[0]) };

static void
sink_stderr(void *ctx, enum sl_log_level level, const char *line, size_t len)
{
    (void)ctx;
    (void)level;
    while (len > 0) {
        ssize_t written = write(STDERR_FILENO, line, len);
        if (written <= 0) {
            return;
        }
        line += written;
        len -= (size_t)written;
    }
}

const char *
sl_log_level_name(enum sl_log_level level)
{
    return level_names[level];
}

int
sl_log_level_parse(const char *name, size_t len)
{
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (strlen(level_names[i]) == len && memcmp(level_names[i], name, len) == 0) {
            return i;
        }
    }
    return -1;
}

/* Adds one part of the text, "level" or "module=level". */
static int
levels_add_part(struct log_levels *parsed, const char *part, size_t len)
{
    const char *equals = memchr(part, '=', len);
    const char *name = equals != NULL ? equals + 1 : part;
    int level = sl_log_level_parse(name, len - (size_t)(name - part));
    if (level < 0) {
        return sl_err_set(SL_EINVAL,
                          "log level '%.*s' is none of error, warn, info, verbose, debug",
                          (int)(len - (size_t)(name - part)), name);
    }
    if (equals == NULL) {
        parsed->fallback = (enum sl_log_level)level;
        return 0;
    }
    size_t module_len = (size_t)(equals - part);
    if (module_len == 0 || module_len >= MODULE_SIZE) {
        return sl_err_set(SL_EINVAL, "log module '%.*s' must have 1 to %d characters",
                          (int)module_len, part, MODULE_SIZE - 1);
    }
    if (parsed->rule_count == SL_LOG_RULES_MAX) {
        return sl_err_set(SL_EINVAL, "more than %d log modules", SL_LOG_RULES_MAX);
    }
    struct log_rule *rule = &parsed->rules[parsed->rule_count++];
    memcpy(rule->module, part, module_len);
    rule->module[module_len] = '\0';
    rule->module_len = module_len;
    rule->level = (enum sl_log_level)level;
    return 0;
}

int
sl_log_configure(const char *spec)
{
    struct log_levels parsed = {.fallback = SL_LOG_WARN};
    for (const char *at = spec; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (len > 0) {
            int rc = levels_add_part(&parsed, at, len);
            if (rc != 0) {
                return rc;
            }
        }
        at += len + (at[len] == ',');
    }
    levels = parsed;
    return 0;
}

void
sl_log_set_sink(sl_log_sink_fn fn, void *ctx)
{
    sink_fn = fn != NULL ? fn : sink_stderr;
    sink_ctx = ctx;
}

void
sl_log_set_clock(const struct sl_clock *clock)
{
    log_clock = clock;
}

void
sl_log_set_role(const char *role)
{
    snprintf(log_role, sizeof(log_role), "%s", role != NULL && *role != '\0' ? role : "-");
}

void
sl_log_set_thread(const char *name)
{
    snprintf(thread_name, sizeof(thread_name), "%s", name != NULL && *name != '\0' ? name : "main");
}

bool
sl_log_is_enabled(const char *module, enum sl_log_level level)
{
    enum sl_log_level allowed = levels.fallback;
    size_t best = 0;
    for (int i = 0; i < levels.rule_count; i++) {
        const struct log_rule *rule = &levels.rules[i];
        if (rule->module_len >= best && strncmp(module, rule->module, rule->module_len) == 0 &&
            (module[rule->module_len] == '\0' || module[rule->module_len] == '.')) {
            best = rule->module_len;
            allowed = rule->level;
        }
    }
    return level <= allowed;
}

static size_t
line_start(char *line, size_t size, const char *module, enum sl_log_level level)
{
    const struct sl_clock *clock = log_clock != NULL ? log_clock : sl_clock_system();
    int64_t now_ms = sl_clock_wall_ms(clock);
    int64_t ms = now_ms % 1000;
    if (ms < 0) {
        ms += 1000;
    }
    time_t seconds = (time_t)((now_ms - ms) / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char letter = (char)(level_names[level][0] - 'a' + 'A');
    int used = snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %c %s %s %s ",
                        utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                        utc.tm_sec, (int)ms, letter, log_role, module, thread_name);
    return used < (int)size ? (size_t)used : size - 1;
}

void
sl_log_write(const char *module, enum sl_log_level level, const char *fmt, ...)
{
    char line[SL_LOG_LINE_MAX];
    /* The last byte is kept for the newline. */
    size_t room = sizeof(line) - 1;
    size_t used = line_start(line, room, module, level);
    va_list args;
    va_start(args, fmt);
    int wanted = vsnprintf(line + used, room - used, fmt, args);
    va_end(args);
    size_t message = used;
    if (wanted < 0) {
        wanted = 0;
    }
    if ((size_t)wanted >= room - used) {
        used = room - 1;
        memcpy(line + used - 3, "...", 3);
    } else {
        used += (size_t)wanted;
    }
    for (size_t i = message; i < used; i++) {
        unsigned char c = (unsigned char)line[i];
        if (c < 0x20 || c == 0x7f) {
            line[i] = ' ';
        }
    }
    line[used++] = '\n';
    sink_fn(sink_ctx, level, line, used);
}

bool
sl_log_limit_pass(struct sl_log_limit *limit, uint64_t interval_ms, uint64_t *suppressed)
{
    const struct sl_clock *clock = log_clock != NULL ? log_clock : sl_clock_system();
    uint64_t now_ns = sl_clock_mono_ns(clock);
    uint64_t next_ns = __atomic_load_n(&limit->next_ns, __ATOMIC_RELAXED);
    uint64_t then_ns = now_ns + interval_ms * 1000000u;
    if (now_ns < next_ns || !__atomic_compare_exchange_n(&limit->next_ns, &next_ns, then_ns, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&limit->suppressed, 1, __ATOMIC_RELAXED);
        return false;
    }
    *suppressed = __atomic_exchange_n(&limit->suppressed, 0, __ATOMIC_RELAXED);
    return true;
}

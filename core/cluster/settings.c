#include "cluster/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* Where a row's value is in the struct. */
struct place {
    struct sl_setting row;
    size_t offset;
};

#define ROW_DURATION(name, value, least, text)                                                     \
    {{#name, text, SL_SETTING_DURATION, value, least}, offsetof(struct sl_settings, name##_ms)},
#define ROW_VALUE(name, kind, value, least, text)                                                  \
    {{#name, text, kind, value, least}, offsetof(struct sl_settings, name)},
static const struct place places[] = {SL_SETTINGS_MAP(ROW_DURATION, ROW_VALUE)};

enum { COUNT = sizeof(places) / sizeof(places[0]) };

static int64_t *
value_of(struct sl_settings *settings, const struct place *place)
{
    return (int64_t *)(void *)((char *)settings + place->offset);
}

const struct sl_setting *
sl_settings_row(size_t i)
{
    return i < COUNT ? &places[i].row : NULL;
}

struct sl_settings
sl_settings_default(void)
{
    struct sl_settings settings;
    for (size_t i = 0; i < COUNT; i++) {
        *value_of(&settings, &places[i]) = places[i].row.value;
    }
    return settings;
}

int
sl_settings_set(struct sl_settings *settings, const char *name, int64_t value)
{
    static const int64_t most_of_numbers = (int64_t)1 << 53;
    for (size_t i = 0; i < COUNT; i++) {
        const struct sl_setting *row = &places[i].row;
        int64_t most = row->kind == SL_SETTING_FLAG ? 1 : most_of_numbers;
        if (strcmp(row->name, name) != 0) {
            continue;
        }
        if (value < row->least || value > most) {
            return sl_err_set(SL_ERANGE, "%s must be at least %lld%s", name, (long long)row->least,
                              row->kind == SL_SETTING_DURATION ? " ms" : "");
        }
        *value_of(settings, &places[i]) = value;
        return 0;
    }
    return sl_err_set(SL_ENOTFOUND, "no setting is named %.64s", name);
}

bool
sl_settings_variable(const struct sl_settings *settings, size_t i, char *dst, size_t size)
{
    static const char prefix[] = "STREAMLUA_";
    if (i >= COUNT) {
        return false;
    }
    const struct sl_setting *row = &places[i].row;
    int64_t value = *(const int64_t *)(const void *)((const char *)settings + places[i].offset);
    int used = snprintf(dst, size, "%s%s=", prefix, row->name);
    for (char *at = dst; *at != '=' && *at != '\0'; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    if (used < 0 || (size_t)used >= size) {
        return true;
    }
    if (row->kind == SL_SETTING_FLAG) {
        snprintf(dst + used, size - (size_t)used, "%s", value != 0 ? "true" : "false");
    } else {
        snprintf(dst + used, size - (size_t)used, "%lld%s", (long long)value,
                 row->kind == SL_SETTING_DURATION ? "ms" : "");
    }
    return true;
}

struct sl_registration_config
sl_settings_registration(const struct sl_settings *settings)
{
    return (struct sl_registration_config){
        .initial_timeout_ms = (uint64_t)settings->registration_initial_timeout_ms,
        .max_timeout_ms = (uint64_t)settings->registration_max_timeout_ms,
        .error_delay_ms = (uint64_t)settings->registration_error_delay_ms,
        .refused_delay_ms = (uint64_t)settings->registration_refused_delay_ms,
    };
}

struct sl_heartbeat_config
sl_settings_heartbeat(const struct sl_settings *settings)
{
    return (struct sl_heartbeat_config){
        .interval_ms = (uint64_t)settings->heartbeat_interval_ms,
        .timeout_ms = (uint64_t)settings->heartbeat_timeout_ms,
        .threshold = (int)settings->heartbeat_threshold,
    };
}

int
sl_settings_check(const struct sl_settings *settings)
{
    struct sl_registration_config registration = sl_settings_registration(settings);
    struct sl_heartbeat_config heartbeat = sl_settings_heartbeat(settings);
    int rc = sl_registration_config_check(&registration);
    return rc != 0 ? rc : sl_heartbeat_config_check(&heartbeat);
}

void
sl_settings_apply_rpc(const struct sl_settings *settings, struct sl_rpc_options *options)
{
    options->call_timeout_ms = (uint64_t)settings->rpc_timeout_ms;
    options->frame_timeout_ms = (uint64_t)settings->rpc_frame_timeout_ms;
    options->opening_timeout_ms = (uint64_t)settings->rpc_frame_timeout_ms;
    options->retry_gate_ms = (uint64_t)settings->rpc_retry_delay_ms;
}

void
sl_settings_apply_state(const struct sl_settings *settings, struct sl_state_open_options *options)
{
    options->timeout_ms = (uint64_t)settings->state_timeout_ms;
    options->session_timeout_ms = (uint64_t)settings->zookeeper_session_timeout_ms;
}

void
sl_settings_apply_slots(const struct sl_settings *settings, struct sl_slot_manager_config *config)
{
    config->max_slots = (uint32_t)settings->slots_max;
    config->redundant_supervisors = (uint32_t)settings->redundant_supervisors;
    config->is_spreading = settings->spread_slots != 0;
    config->request_timeout_ms = (uint64_t)settings->slot_request_timeout_ms;
    config->idle_timeout_ms = (uint64_t)settings->supervisor_idle_timeout_ms;
    config->start_timeout_ms = (uint64_t)settings->supervisor_start_timeout_ms;
}

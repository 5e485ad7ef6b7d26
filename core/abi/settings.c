/* Settings of the control plane for Lua. */

#include "cluster/settings.h"

#include <math.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"

const struct sl_setting *
sl_abi_settings_row(uint32_t index)
{
    return sl_settings_row(index);
}

struct sl_settings *
sl_abi_settings_new(void)
{
    struct sl_settings *settings = sl_alloc(sizeof(*settings));
    *settings = sl_settings_default();
    return settings;
}

void
sl_abi_settings_free(struct sl_settings *settings)
{
    sl_free(settings);
}

int32_t
sl_abi_settings_set(struct sl_settings *settings, const char *name, double value)
{
    if (settings == NULL || name == NULL) {
        return sl_err_set(SL_EINVAL, "settings and a name are needed");
    }
    if (!(fabs(value) <= 9007199254740992.0) || value != floor(value)) {
        return sl_err_set(SL_ERANGE, "%.64s must be a whole number", name);
    }
    return sl_settings_set(settings, name, (int64_t)value);
}

int32_t
sl_abi_settings_check(const struct sl_settings *settings)
{
    if (settings == NULL) {
        return sl_err_set(SL_EINVAL, "settings are needed");
    }
    return sl_settings_check(settings);
}

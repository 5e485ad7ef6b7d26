#include "rpc/profile.h"

#include <string.h>

#include "base/assert.h"

struct sl_profile
sl_profile_any(void)
{
    return (struct sl_profile){.kind = SL_PROFILE_ANY};
}

struct sl_profile
sl_profile_unknown(void)
{
    return (struct sl_profile){.kind = SL_PROFILE_UNKNOWN};
}

struct sl_profile
sl_profile_set(double cpu_cores, double ram_bytes, double disk_bytes)
{
    return (struct sl_profile){.kind = SL_PROFILE_SET,
                               .cpu_cores = cpu_cores,
                               .ram_bytes = ram_bytes,
                               .disk_bytes = disk_bytes};
}

bool
sl_profile_add_extra(struct sl_profile *profile, const char *name, double amount)
{
    size_t len = strlen(name);
    if (profile->extra_count == SL_PROFILE_EXTRAS_MAX || len >= SL_PROFILE_EXTRA_NAME_SIZE) {
        return false;
    }
    memcpy(profile->extras[profile->extra_count].name, name, len + 1);
    profile->extras[profile->extra_count].amount = amount;
    profile->extra_count++;
    return true;
}

/* Amount of an extra, 0 when the profile has none of that name. */
static double
extra_amount(const struct sl_profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->extra_count; i++) {
        if (strcmp(profile->extras[i].name, name) == 0) {
            return profile->extras[i].amount;
        }
    }
    return 0;
}

static bool
covers_extras(const struct sl_profile *slot, const struct sl_profile *request)
{
    for (uint32_t i = 0; i < request->extra_count; i++) {
        if (request->extras[i].amount > extra_amount(slot, request->extras[i].name)) {
            return false;
        }
    }
    return true;
}

bool
sl_profile_equals(const struct sl_profile *a, const struct sl_profile *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    return a->kind != SL_PROFILE_SET ||
           (a->cpu_cores == b->cpu_cores && a->ram_bytes == b->ram_bytes &&
            a->disk_bytes == b->disk_bytes && covers_extras(a, b) && covers_extras(b, a));
}

bool
sl_profile_fits(const struct sl_profile *slot, const struct sl_profile *request)
{
    if (slot->kind == SL_PROFILE_ANY || sl_profile_equals(slot, request)) {
        return true;
    }
    if (slot->kind == SL_PROFILE_UNKNOWN) {
        return false;
    }
    if (request->kind == SL_PROFILE_UNKNOWN) {
        return true;
    }
    return request->kind == SL_PROFILE_SET && request->cpu_cores <= slot->cpu_cores &&
           request->ram_bytes <= slot->ram_bytes && request->disk_bytes <= slot->disk_bytes &&
           covers_extras(slot, request);
}

struct sl_profile
sl_profile_divide(const struct sl_profile *total, uint32_t count)
{
    struct sl_profile share = *total;
    sl_assert_ne(count, 0);
    share.cpu_cores /= count;
    share.ram_bytes /= count;
    share.disk_bytes /= count;
    for (uint32_t i = 0; i < share.extra_count; i++) {
        share.extras[i].amount /= count;
    }
    return share;
}

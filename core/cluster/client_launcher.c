#include "cluster/client_launcher.h"

#include <string.h>

#include "base/err.h"

/* The launchers by name. */
static const struct {
    const char *name;
    void (*make)(struct sl_client_launcher *launcher);
} built_in[] = {
    {"local", sl_client_launcher_local},
    {"standalone", sl_client_launcher_standalone},
};

int
sl_client_launcher_open(const char *name, struct sl_client_launcher *launcher)
{
    size_t length = strlen(name);
    /* Their topology masters and guardians are local; the file is theirs. */
    if (length > 4 && strcmp(name + length - 4, ".lua") == 0) {
        sl_client_launcher_local(launcher);
        return 0;
    }
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        if (strcmp(built_in[i].name, name) == 0) {
            built_in[i].make(launcher);
            return 0;
        }
    }
    return sl_err_set(SL_EINVAL, "there is no launcher '%s'", name);
}

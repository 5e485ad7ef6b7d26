#include <pthread.h>
#include <string.h>

#include "abi/abi.h"
#include "base/alloc.h"
#include "base/err.h"
#include "cluster/launcher_asked.h"
#include "cluster/local_roles.h"

struct sl_launcher_role {
    const struct sl_role_options *options;
    const struct sl_settings *settings;
    struct sl_launcher_asked *launcher;
    pthread_t thread;
    int code;
};

static void *
run(void *ctx)
{
    struct sl_launcher_role *role = ctx;
    role->code = sl_topology_master_run_asked(role->options, role->settings, role->launcher);
    /* Also when it could not begin. */
    sl_launcher_asked_close(role->launcher);
    return NULL;
}

struct sl_launcher_role *
sl_abi_launcher_start(const struct sl_role_options *options, const struct sl_settings *settings,
                      const struct sl_launcher_abilities *abilities)
{
    if (options == NULL || settings == NULL || abilities == NULL || options->state_url == NULL ||
        options->topology == NULL || options->program == NULL || options->logs == NULL) {
        sl_err_set(SL_EINVAL, "launcher: a state manager, a name, a program and a folder are "
                              "needed");
        return NULL;
    }
    struct sl_launcher_role *role = sl_calloc(1, sizeof(*role));
    role->options = options;
    role->settings = settings;
    role->launcher = sl_launcher_asked_new(abilities);
    int status = pthread_create(&role->thread, NULL, run, role);
    if (status != 0) {
        sl_launcher_asked_free(role->launcher);
        sl_free(role);
        sl_err_set(SL_ESYS, "launcher: start a thread: %s", strerror(status));
        return NULL;
    }
    return role;
}

int32_t
sl_abi_launcher_next(struct sl_launcher_role *role, double timeout_ms,
                     const struct sl_launcher_command **command)
{
    return role != NULL && command != NULL
               ? sl_launcher_asked_next(role->launcher, (int64_t)timeout_ms, command)
               : sl_err_set(SL_EINVAL, "launcher: a role is needed");
}

int32_t
sl_abi_launcher_done(struct sl_launcher_role *role, const char *failure, const int32_t *ids,
                     uint32_t count)
{
    int code = failure != NULL ? SL_EUSER : 0;
    return role != NULL ? sl_launcher_asked_done(role->launcher, code, failure, ids, count)
                        : sl_err_set(SL_EINVAL, "launcher: a role is needed");
}

void
sl_abi_launcher_ended(struct sl_launcher_role *role, int32_t container, const char *text)
{
    if (role != NULL && text != NULL) {
        sl_launcher_asked_ended(role->launcher, container, text);
    }
}

int32_t
sl_abi_launcher_end(struct sl_launcher_role *role)
{
    if (role == NULL) {
        return sl_err_set(SL_EINVAL, "launcher: a role is needed");
    }
    pthread_join(role->thread, NULL);
    int code = role->code;
    sl_launcher_asked_free(role->launcher);
    sl_free(role);
    return code;
}

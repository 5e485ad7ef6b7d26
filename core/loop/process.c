#include "loop/process.h"

#include <string.h>

#include "base/assert.h"
#include "loop/loop_priv.h"

int
sl_process_spawn(struct sl_loop *loop, const struct sl_process_options *options,
                 struct sl_process **process)
{
    sl_debug_assert(sl_loop_is_owner(loop));
    if (options->argv == NULL || options->argv[0] == NULL || options->on_exit == NULL) {
        return sl_err_set(SL_EINVAL, "a process needs arguments and an exit callback");
    }
    int rc = loop->ops->spawn(loop, options, process);
    if (rc == 0) {
        (*process)->loop = loop;
        (*process)->on_exit = options->on_exit;
        (*process)->ctx = options->ctx;
        (*process)->is_running = true;
        sl_list_push_back(&loop->processes, &(*process)->node);
    }
    return rc;
}

int64_t
sl_process_pid(const struct sl_process *process)
{
    return process->pid;
}

bool
sl_process_is_running(const struct sl_process *process)
{
    return process->is_running;
}

int
sl_process_kill(struct sl_process *process, int number)
{
    if (!process->is_running) {
        return sl_err_set(SL_ENOTFOUND, "process %lld has ended", (long long)process->pid);
    }
    return process->loop->ops->kill(process, number);
}

void
sl_process_free(struct sl_process *process)
{
    if (process != NULL) {
        process->loop->ops->process_free(process);
    }
}

int
sl_signal_open(struct sl_loop *loop, int number, void (*fn)(void *ctx, int number), void *ctx,
               struct sl_signal **watch)
{
    int rc = loop->ops->signal_open(loop, number, watch);
    if (rc == 0) {
        (*watch)->loop = loop;
        (*watch)->number = number;
        (*watch)->fn = fn;
        (*watch)->ctx = ctx;
    }
    return rc;
}

void
sl_signal_close(struct sl_signal *watch)
{
    if (watch != NULL) {
        watch->loop->ops->signal_close(watch);
    }
}

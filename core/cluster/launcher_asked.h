#pragma once
/*
 * A launcher whose work is done by another thread, which takes commands and answers them: how a
 * launcher that is written in Lua is used without ever being called from C. The topology master
 * runs on its own thread and does not wait: a start that takes long is answered later, and a
 * worker counts as running when it has registered.
 *
 *     thread of the topology master          thread of the launcher
 *     seam: a command into the queue  -->    next -> works -> done
 *     on the loop: what it came to    <--
 */

#include "cluster/launcher.h"
#include "cluster/launcher_asked.abi.h"
#include "cluster/roles.h"
#include "loop/loop.h"
#include "packing/packing.h"

struct sl_settings;
struct sl_launcher_asked;

enum {
    /* After a failed start of containers, before the next attempt. */
    SL_LAUNCHER_ASKED_RETRY_MS = 500,
    SL_LAUNCHER_ASKED_RETRY_MAX_MS = 30000,
    SL_LAUNCHER_TEXT_MAX = 256,
};

struct sl_launcher_asked *sl_launcher_asked_new(const struct sl_launcher_abilities *abilities);

/* Both threads have ended with it. NULL is fine. */
void sl_launcher_asked_free(struct sl_launcher_asked *launcher);

/* The seam for a topology master on this loop. */
struct sl_launcher sl_launcher_asked_seam(struct sl_launcher_asked *launcher, struct sl_loop *loop);

/* The loop's side ends: the launcher's thread is told, what it still answers is dropped. */
void sl_launcher_asked_close(struct sl_launcher_asked *launcher);

/*
 * The thread of the launcher. next waits for a command: 1, the caller has to answer it; 0, the wait
 * is over (timeout_ms; -1 waits for ever); SL_ECLOSED, there will be none any more.
 */
int sl_launcher_asked_next(struct sl_launcher_asked *launcher, int64_t timeout_ms,
                           const struct sl_launcher_command **command);

/* Answers the command: code 0, for ADD with the real numbers (NULL: as asked), or an error with a
 * text. SL_EINVAL when there is none to answer, or numbers are missing or doubled. */
int sl_launcher_asked_done(struct sl_launcher_asked *launcher, int code, const char *text,
                           const int32_t *ids, size_t count);

/* A container ended and was started again by the launcher. */
void sl_launcher_asked_ended(struct sl_launcher_asked *launcher, int32_t id, const char *text);

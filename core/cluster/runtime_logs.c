#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "cluster/runtime_priv.h"
#include "cluster/supervisor_messages.h"

/*
 * Logs of workers on the machines of their supervisors, which are all asked at once. When they are
 * to wait for something new, the first one that has something ends the wait for the others.
 */

enum {
    /* One that does not answer, beside what it is to wait. */
    ANSWER_MS = 5000,
};

/* A round of questions. */
struct round {
    struct sl_runtime *runtime;
    const char *topology;
    uint64_t wait_ms;
    size_t open;
    bool has_news;
    /* All are asked. */
    bool is_asked;
    /* Nothing more is waited for. */
    bool is_over;
};

static void
look_at(struct round *round)
{
    round->is_over =
        round->is_asked && (round->open == 0 || (round->wait_ms > 0 && round->has_news));
}

struct asked {
    struct round *round;
    struct sl_log_question *question;
    struct sl_rpc_gateway *gateway;
};

static void
failed(struct sl_log_question *question, int code, const char *reason, struct sl_arena *arena)
{
    question->code = code;
    question->reason = sl_arena_strdup(arena, reason);
}

static void
answered(void *ctx, const struct sl_rpc_result *result)
{
    struct asked *asked = ctx;
    struct round *round = asked->round;
    struct sl_arena *arena = &round->runtime->answer_arena;
    struct sl_log_question *question = asked->question;
    struct sl_log_piece piece;
    const uint8_t *body = sl_arena_memdup(arena, result->body, result->size);
    if (result->status != SL_RPC_SUCCESS) {
        failed(question, result->code, result->reason, arena);
    } else if (sl_log_piece_decode(body, result->size, arena, &piece) != 0) {
        failed(question, SL_EPROTO, sl_err_last()->msg, arena);
    } else {
        question->position = piece.position;
        question->data = piece.data;
        question->size = piece.size;
    }
    round->open--;
    round->has_news = round->has_news || question->size > 0;
    look_at(round);
}

/* Where the supervisor is, by its node. */
static int
ask(struct asked *asked)
{
    struct sl_runtime *self = asked->round->runtime;
    struct sl_log_question *question = asked->question;
    struct sl_supervisor_node node;
    struct sl_buf body = {0};
    struct sl_read_log message = {.topology = asked->round->topology,
                                  .container = question->container,
                                  .position = question->position,
                                  .is_end = question->is_end,
                                  .wait_ms = (uint32_t)asked->round->wait_ms};
    int rc = sl__rt_get_part(self, SL_LAYOUT_SUPERVISOR, question->supervisor);
    if (rc == SL_ENOTFOUND) {
        return sl_err_set(SL_EUNAVAIL, "it is not there");
    }
    if (rc == 0) {
        rc = sl_supervisor_node_decode(self->outcome.value.data, self->outcome.value.size,
                                       &self->answer_arena, &node);
    }
    if (rc == 0) {
        rc = sl_rpc_connect(self->rpc, node.address, SL_ENDPOINT_SUPERVISOR, 0, &asked->gateway);
    }
    if (rc == 0) {
        asked->round->open++;
        sl_read_log_encode(&message, &body);
        sl_rpc_call(asked->gateway, SL_SV_READ_LOG, body.data, body.size,
                    asked->round->wait_ms + ANSWER_MS, answered, asked);
        sl_buf_destroy(&body);
    }
    return rc;
}

void
sl_runtime_logs(struct sl_runtime *self, const char *topology, struct sl_log_question *questions,
                size_t count, uint64_t wait_ms)
{
    struct round round = {.runtime = self,
                          .topology = topology,
                          .wait_ms = wait_ms < SL_LOG_WAIT_MAX_MS ? wait_ms : SL_LOG_WAIT_MAX_MS};
    struct asked *asked = sl_calloc(count + 1, sizeof(*asked));
    sl_arena_reset(&self->answer_arena);
    for (size_t i = 0; i < count; i++) {
        questions[i].code = 0;
        questions[i].reason = "";
        questions[i].data = NULL;
        questions[i].size = 0;
        asked[i] = (struct asked){&round, &questions[i], NULL};
        if (ask(&asked[i]) != 0) {
            failed(&questions[i], sl_err_last()->code, sl_err_last()->msg, &self->answer_arena);
        }
    }
    round.is_asked = true;
    look_at(&round);
    sl__rt_wait(self, &round.is_over, round.wait_ms + 2 * ANSWER_MS);
    for (size_t i = 0; i < count; i++) {
        if (asked[i].gateway != NULL) {
            sl_rpc_gateway_free(asked[i].gateway);
        }
    }
    sl_free(asked);
}

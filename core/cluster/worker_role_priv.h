#pragma once
/* What the files of the worker's role share. All of it belongs to the loop's thread unless told. */

#include <pthread.h>

#include "base/map.h"
#include "base/vec.h"
#include "cluster/data_link.h"
#include "cluster/physical_plan.h"
#include "cluster/settings.h"
#include "cluster/worker_messages.h"
#include "cluster/worker_moves.h"
#include "cluster/worker_registration.h"
#include "cluster/worker_role.h"
#include "loop/loop.h"
#include "rpc/leader_retrieval.h"
#include "state/loop_executor.h"
#include "stream/remote.h"

enum {
    /* How often it is looked whether what is under way is over. */
    SL__WR_LOOK_MS = 2,
};

/* A drain that waits for the end of what is under way. */
struct sl__wr_drain {
    struct sl_rpc_request *request;
    struct sl_timer timer;
    uint64_t until_ms;
    bool only_roots;
    bool may_stay;
    /* Of the question to the owner; 0 = it is answered. */
    uint32_t number;
};

struct sl_worker_role {
    struct sl_worker *worker;
    struct sl_worker_role_options options;
    struct sl_settings settings;
    char topology[SL_NAME_MAX + 1];
    char host[SL_ADDRESS_HOST_SIZE];
    char supervisor[SL_NAME_MAX + 1];
    char resource[SL_NAME_MAX + 1];
    char data_address[SL_ADDRESS_TEXT_SIZE];
    uint8_t *secret;
    struct sl_loop *loop;
    pthread_t thread;
    bool has_thread;
    struct sl_data_bell bell;
    struct sl_data_link *links;
    uint16_t data_port;
    struct sl_rpc *rpc;
    struct sl_register_peer identity;
    struct sl_worker_registration *registration;
    struct sl_state_loop_executor executor;
    struct sl_state_store *store;
    struct sl_leader_retrieval *leader;
    struct sl_timer master_timer;
    struct sl_timer rescue_timer;
    char *state_url;
    char *logs;
    char *program;
    /* Requests that the owner works on: number -> struct sl_rpc_request. */
    struct sl_map_u64 requests;
    uint32_t last_request;
    /* The newest plan that was asked for, and the request that waits until it runs. */
    struct sl_arena plan_arena;
    struct sl_physical_plan plan;
    struct sl_rpc_request *plan_request;
    uint32_t plan_number;
    bool is_plan_run;
    struct sl_timer peers_timer;
    struct sl_timer end_timer;
    uint64_t end_until_ms;
    bool is_active;
    struct sl__wr_drain *drain;
    /* NULL: there is no state of tasks that could move. */
    struct sl_worker_moves *moves;
    /* The question of its that the owner works on. */
    uint32_t export_number;
    struct sl_buf scratch;
    struct sl_arena arena;
    bool is_ending;
    /* What the owner has counted; the names are owned. */
    SL_VEC(struct sl_worker_counters) counted;
    /* Of the owner's thread: pieces of the export that it answers next, of states with so many key
     * groups; and the table that it was given last. */
    SL_VEC(struct sl_worker_piece) pieces;
    uint32_t piece_key_groups;
    struct sl_worker_table staged;
};

/* Something that the owner says, on its way to the loop. */
struct sl__wr_word {
    struct sl_worker_role *role;
    int32_t request;
    int code;
    /* Of a peer. */
    int32_t container;
    uint8_t identity[SL_REMOTE_IDENTITY_SIZE];
    uint16_t port;
    /* Of a report. */
    char *component;
    int32_t task;
    bool is_fatal;
    char *text;
    size_t len;
    /* Of an export. */
    struct sl_worker_piece *pieces;
    size_t piece_count;
    uint32_t key_groups;
};

/* worker_words.c: what is said to the owner and by it. */
void sl__wr_ask(struct sl_worker_role *self, enum sl_worker_ask what, uint32_t number,
                const char *text, size_t len);
/* Has the owner end the process. */
void sl__wr_ask_end(struct sl_worker_role *self, int code, const char *reason);
void sl__wr_word_free(struct sl__wr_word *word);
void sl__wr_pieces_free(struct sl_worker_piece *pieces, size_t count);
/* Asks the owner for pieces of state (sl_worker_moves_options). */
void sl__wr_ask_export(void *role, const struct sl_worker_state_of *what, const char *cursor);
/* The report that heartbeats carry. */
void sl__wr_make_payload(void *ctx, struct sl_buf *out);

/* worker_requests.c: what the topology master asks. */
void sl__wr_handle(void *ctx, struct sl_rpc_request *request);
/* The owner's answer, a word. */
void sl__wr_answered(void *ctx);
/* A connection to a peer came or went. */
void sl__wr_peers_changed(void *ctx);
/* The worker ends: every request gets an answer. */
void sl__wr_requests_end(struct sl_worker_role *self);

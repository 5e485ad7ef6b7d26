/*
 * labels: short
 * Decodes bytes as a plan, a physical plan, a package, a message of a worker, of a client, of the
 * master or of a supervisor, or as what a supervisor remembers: the first byte says which. What is
 * kept can be encoded again when it decodes.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "cluster/control_messages.h"
#include "cluster/master_messages.h"
#include "cluster/package.h"
#include "cluster/supervisor_file.h"
#include "cluster/supervisor_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
decode_worker(uint8_t kind, const uint8_t *data, size_t size, struct sl_arena *arena)
{
    struct sl_worker_drained drained;
    struct sl_worker_move move;
    struct sl_worker_state_of what;
    struct sl_worker_pieces pieces;
    struct sl_worker_taken taken;
    bool is_taken;
    struct sl_worker_report report;
    struct sl_worker_event event;
    switch (kind) {
    case 3:
        sl_worker_drained_decode(data, size, &drained);
        break;
    case 4:
        sl_worker_move_decode(data, size, arena, &move);
        break;
    case 5:
        sl_worker_letter_decode(data, size, arena, &is_taken, &pieces, &taken);
        break;
    case 6:
        sl_worker_measure_decode(data, size, arena, &what);
        break;
    case 7:
        sl_worker_report_decode(data, size, arena, &report);
        break;
    default:
        sl_worker_event_decode(data, size, arena, &event);
    }
}

static void
decode_control(uint8_t kind, const uint8_t *data, size_t size, struct sl_arena *arena)
{
    struct sl_execution_state execution;
    struct sl_control_request request;
    struct sl_control_status status;
    struct sl_update_request wanted;
    struct sl_update_result result;
    switch (kind) {
    case 9:
        sl_execution_state_decode(data, size, arena, &execution);
        break;
    case 10:
        sl_control_request_decode(data, size, arena, &request);
        break;
    case 11:
        sl_control_status_decode(data, size, arena, &status);
        break;
    case 12:
        sl_update_request_decode(data, size, arena, &wanted);
        break;
    default:
        sl_update_result_decode(data, size, arena, &result);
    }
}

static void
decode_master(uint8_t kind, const uint8_t *data, size_t size, struct sl_arena *arena)
{
    struct sl_schedule_template schedule;
    struct sl_master_submit submit;
    struct sl_master_update update;
    struct sl_master_status status;
    struct sl_scheduling scheduling;
    struct sl_buf out = {0};
    switch (kind) {
    case 14:
        if (sl_schedule_template_decode(data, size, arena, &schedule) == 0) {
            sl_schedule_template_encode(&schedule, &out);
            sl_assert_eq(sl_schedule_template_decode(out.data, out.size, arena, &schedule), 0);
        }
        break;
    case 15:
        sl_master_submit_decode(data, size, arena, &submit);
        break;
    case 16:
        sl_master_update_decode(data, size, arena, &update);
        break;
    case 17:
        sl_master_status_decode(data, size, arena, &status);
        break;
    default:
        sl_scheduling_decode(data, size, arena, &scheduling);
    }
    sl_buf_destroy(&out);
}

static void
decode_supervisor(uint8_t kind, const uint8_t *data, size_t size, struct sl_arena *arena)
{
    struct sl_supervisor_node node;
    struct sl_start_master start;
    struct sl_worker_command command;
    struct sl_slot_worker worker;
    struct sl_read_log question;
    struct sl_log_piece piece;
    struct sl_supervisor_record *records;
    size_t damaged;
    switch (kind) {
    case 19:
        sl_supervisor_node_decode(data, size, arena, &node);
        break;
    case 20:
        sl_start_master_decode(data, size, arena, &start);
        break;
    case 21:
        sl_worker_command_decode(data, size, arena, &command);
        break;
    case 22:
        sl_slot_worker_decode(data, size, arena, &worker);
        sl_read_log_decode(data, size, arena, &question);
        sl_log_piece_decode(data, size, arena, &piece);
        break;
    default:
        sl_supervisor_records_decode(data, size, "boot", arena, &records, &damaged);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { KINDS = 24, FIRST_CONTROL = 9, FIRST_MASTER = 14, FIRST_SUPERVISOR = 19 };
    struct sl_arena arena;
    struct sl_buf out = {0};
    struct sl_stored_plan stored;
    struct sl_physical_plan physical;
    struct sl_package package;
    if (size == 0) {
        return 0;
    }
    uint8_t kind = (uint8_t)(*data % KINDS);
    data++;
    size--;
    sl_arena_create(&arena, 0, 16 * 1024 * 1024);
    switch (kind) {
    case 0:
        if (sl_stored_plan_decode(data, size, &arena, &stored) == 0) {
            sl_assert_eq(sl_stored_plan_encode(&stored, &out), 0);
            sl_assert_eq(sl_stored_plan_decode(out.data, out.size, &arena, &stored), 0);
        }
        break;
    case 1:
        if (sl_physical_plan_decode(data, size, &arena, &physical) == 0) {
            sl_assert_eq(sl_physical_plan_encode(&physical, &out), 0);
            sl_assert_eq(sl_physical_plan_decode(out.data, out.size, &arena, &physical), 0);
        }
        break;
    case 2:
        if (sl_package_decode(data, size, &arena, &package) == 0) {
            sl_assert_eq(sl_package_encode(&package, &out), 0);
            sl_assert_eq(sl_package_decode(out.data, out.size, &arena, &package), 0);
        }
        break;
    default:
        if (kind < FIRST_CONTROL) {
            decode_worker(kind, data, size, &arena);
        } else if (kind >= FIRST_SUPERVISOR) {
            decode_supervisor(kind, data, size, &arena);
        } else if (kind >= FIRST_MASTER) {
            decode_master(kind, data, size, &arena);
        } else {
            decode_control(kind, data, size, &arena);
        }
    }
    sl_buf_destroy(&out);
    sl_arena_destroy(&arena);
    return 0;
}

--- What listeners and reports are told: documents made from C's reports. Times are milliseconds; what is
--- not known yet is absent.

local abi = require 'streamlua.abi'

local C, ffi = abi.C, abi.ffi
local UNKNOWN = C.SL_STREAMING_UNKNOWN

local M = {}

--- Events a listener may have a function for.
M.NAMES = {
  streaming_started = true, batch_submitted = true, batch_started = true, batch_completed = true,
  output_operation_started = true, output_operation_completed = true, receiver_started = true,
  receiver_error = true, receiver_stopped = true,
}

local function known(ms)
  local number = tonumber(ms)
  if number ~= UNKNOWN then return number end
end

local function text(pointer)
  if pointer ~= nil then return ffi.string(pointer) end
end

local function operation(raw)
  return {
    id = raw.id,
    name = text(raw.name),
    call_site = text(raw.call_site),
    start = known(raw.start),
    end_ = known(raw['end']),
    failure_reason = text(raw.failure_reason),
  }
end

--- The document of a batch.
---@param report ffi.cdata* struct sl_streaming_report *
---@return table
function M.batch(report)
  local inputs, operations, metadata = {}, {}, nil
  for i = 0, report.input_count - 1 do
    local input = report.inputs[i]
    inputs[input.input_id] = tonumber(input.records)
    local said = text(input.metadata)
    if said and said ~= '' then
      metadata = metadata or {}
      metadata[input.input_id] = said
    end
  end
  for i = 0, report.operation_count - 1 do operations[i + 1] = operation(report.operations[i]) end
  return {
    time = tonumber(report.time),
    records = tonumber(report.records),
    inputs = inputs,
    metadata = metadata,
    submission_time = known(report.submission_time),
    processing_start = known(report.processing_start),
    processing_end = known(report.processing_end),
    scheduling_delay_ms = known(report.scheduling_delay_ms),
    processing_delay_ms = known(report.processing_delay_ms),
    total_delay_ms = known(report.total_delay_ms),
    output_operations = operations,
  }
end

local function one_operation(report)
  local document = operation(report.operations[0])
  document.time = tonumber(report.time)
  return document
end

local function receiver(report)
  local raw = report.receiver
  return {
    stream_id = raw.input_id,
    name = text(raw.name),
    worker = text(raw.worker),
    active = raw.is_active ~= 0,
    last_error = text(raw.last_error),
  }
end

local KINDS = {
  [tonumber(C.SL_STREAMING_EVENT_STARTED)] = { 'streaming_started', function(report)
    return { time = tonumber(report.time) }
  end },
  [tonumber(C.SL_STREAMING_EVENT_BATCH_SUBMITTED)] = { 'batch_submitted', M.batch },
  [tonumber(C.SL_STREAMING_EVENT_BATCH_STARTED)] = { 'batch_started', M.batch },
  [tonumber(C.SL_STREAMING_EVENT_BATCH_COMPLETED)] = { 'batch_completed', M.batch },
  [tonumber(C.SL_STREAMING_EVENT_OPERATION_STARTED)] = { 'output_operation_started', one_operation },
  [tonumber(C.SL_STREAMING_EVENT_OPERATION_COMPLETED)] = { 'output_operation_completed', one_operation },
  [tonumber(C.SL_STREAMING_EVENT_RECEIVER_STARTED)] = { 'receiver_started', receiver },
  [tonumber(C.SL_STREAMING_EVENT_RECEIVER_ERROR)] = { 'receiver_error', receiver },
  [tonumber(C.SL_STREAMING_EVENT_RECEIVER_STOPPED)] = { 'receiver_stopped', receiver },
}

--- The name of an event and its document.
---@param event integer enum sl_streaming_event
---@param report ffi.cdata*
---@return string
---@return table
function M.document(event, report)
  local kind = KINDS[tonumber(event)]
  return kind[1], kind[2](report)
end

local progress = ffi.new('struct sl_streaming_progress')
local FIELDS = { 'started_at', 'received_records', 'processed_records', 'completed_batches',
  'failed_batches', 'waiting_batches', 'running_batches', 'retained_batches', 'skipped_batches',
  'last_completed', 'last_processing_delay_ms', 'last_total_delay_ms', 'receivers', 'active_receivers',
  'slow_batches' }

--- Counters of a context and its retained batches, newest first.
---@param handle ffi.cdata*
---@return table
function M.progress(handle)
  C.sl_abi_streaming_progress(handle, progress)
  local out = { batches = {} }
  for _, field in ipairs(FIELDS) do out[field] = known(progress[field]) end
  for i = 0, tonumber(progress.retained_batches) - 1 do
    local report = C.sl_abi_streaming_completed(handle, i)
    if report == nil then break end
    out.batches[i + 1] = M.batch(report)
  end
  return out
end

return M

-- `streamlua run` on a stream program: progress for each batch, the summary, and how it ended.

local json = require 'streamlua.json'

local M = {}

local function seconds_text(ms) return ms and ('%.3g s'):format(ms / 1000) or '-' end

local function batch_line(batch, queued)
  local failed = 0
  for _, operation in ipairs(batch.output_operations) do
    if operation.failure_reason then failed = failed + 1 end
  end
  return ('batch %d: %d records, scheduling delay %s, processing %s, total %s, queue %d%s'):format(
    batch.time, batch.records, seconds_text(batch.scheduling_delay_ms),
    seconds_text(batch.processing_delay_ms), seconds_text(batch.total_delay_ms), queued,
    failed > 0 and (', %d failed'):format(failed) or '')
end

-- A document as JSON: keys of inputs are texts there, and an empty list is a list.
local function portable(batch)
  local copy = {}
  for name, value in pairs(batch) do copy[name] = value end
  copy.inputs = {}
  for id, records in pairs(batch.inputs) do copy.inputs[tostring(id)] = records end
  if next(copy.inputs) == nil then copy.inputs = nil end
  if batch.metadata then
    copy.metadata = {}
    for id, text in pairs(batch.metadata) do copy.metadata[tostring(id)] = text end
  end
  return copy
end

--- Follows the batches of a run by `on_event`: progress (display:phase(text)), errors (report(text)), and
--- documents, which go to a spool on the disk, since a program may run for a year.
---@param display? table
---@param is_shown boolean
---@param report fun(text: string)
---@param spool? file*
function M.follower(display, is_shown, report, spool)
  local self = { records = 0, waiting = 0, failure = nil }
  function self.on_event(name, document)
    if name == 'batch_submitted' then
      self.waiting = self.waiting + 1
    elseif name == 'receiver_error' or name == 'receiver_stopped' then
      if document.last_error and document.last_error ~= '' then
        report(('receiver %s: %s'):format(document.name, document.last_error))
      end
    elseif name == 'batch_completed' then
      self.waiting = math.max(0, self.waiting - 1)
      if spool and not self.spool_failure then
        local ok, why = spool:write(json.encode(portable(document)), '\n')
        if not ok then self.spool_failure = why end
      end
      self.records = self.records + document.records
      for _, operation in ipairs(document.output_operations) do
        if operation.failure_reason then
          self.failure = self.failure or operation.failure_reason
          report(('batch %d: %s (%s): %s'):format(document.time, operation.name, operation.call_site,
            operation.failure_reason))
        end
      end
      if is_shown then display:phase(batch_line(document, self.waiting)) end
    end
  end
  return self
end

-- What the spool holds, nil without one.
local function documents(context, spool, failure)
  if not spool then return nil end
  -- The seek writes what is still in the buffer.
  local place, why = spool:seek('set')
  if failure or not place then context:fail('failed', 'the batches of the summary', failure or why) end
  local list = {}
  for text in spool:lines() do list[#list + 1] = json.decode(text) end
  spool:close()
  return list
end

-- Fails with an error of the program: its position becomes that of the error.
local function fail(context, code, raised)
  local err = require 'streamlua.err'
  if err.is(raised) then context:fail_with(raised, 'run') end
  local text = tostring(raised)
  local first, more = text:match('^([^\n]*)\n?(.*)$')
  local file, line, rest = first:match('^(.-):(%d+): (.*)$')
  if file then
    context:fail(code, ('%s:%s'):format(file, line), rest, nil,
      { file = file, line = tonumber(line), traceback = more })
  end
  context:fail(code, 'run', first)
end

--- Runs a stream program; the exit code.
---@param context table of the command line
---@param args table of the command
---@param stream streamlua.StreamingContext
---@param options table set, defaults
---@return integer
function M.run(context, args, stream, options)
  local runs = require 'streamlua.streaming.run'
  local is_json = context.output == 'json'
  local is_shown = context.quiet == 0 and not is_json
  local display = context:progress({ quiet = not is_shown })
  local function line(text)
    if is_shown then
      display:phase(text)
    elseif not is_json then
      context.stderr:write(text, '\n')
    end
  end
  stream.warner = function(text) line('warning: ' .. text) end
  stream.noter = line
  local spool = (args.summary or is_json) and assert(io.tmpfile()) or nil
  local follow = M.follower(display, is_shown, line, spool)
  local ok, outcome = pcall(runs.run, stream, {
    executors = args.executors,
    ttl_ms = args.ttl and args.ttl * 1000,
    set = options.set,
    defaults = options.defaults,
    on_event = follow.on_event,
    on_stop = function(reason)
      if reason == 'signal' then line('stopping; interrupt again to end at once') end
    end,
  })
  display:close()
  if not ok then fail(context, 'invalid', outcome) end
  local summary = { context = stream.name, batches = documents(context, spool, follow.spool_failure),
    records = follow.records, seconds = outcome.seconds }
  if args.summary then context:write_json(args.summary, summary, 'summary') end
  if is_json and outcome.reason ~= 'failed' then context:print_json(summary) end
  if outcome.is_stuck then
    context.stderr:write('error: run: a thread does not come back from user code\n')
    context.stderr:flush()
    require('streamlua.abi').C.sl_abi_process_exit(outcome.signal and 128 + outcome.signal
      or outcome.reason == 'ttl' and 0 or 1)
  end
  if outcome.failure then fail(context, 'failed', outcome.failure) end
  return outcome.signal and 128 + outcome.signal or 0
end

return M

-- `streamlua update`: changes a running topology.

local change = require 'streamlua.cluster.change'
local order = require 'streamlua.cli.order'
local packing = require 'streamlua.packing'
local packages = require 'streamlua.cluster.package'
local parallelism = require 'streamlua.cli.parallelism'
local parser = require 'streamlua.cli.parser'
local placement = require 'streamlua.cluster.placement'
local plans = require 'streamlua.cluster.plan'
local running = require 'streamlua.cli.running'
local submission = require 'streamlua.streaming.submission'
local units = require 'streamlua.units'

-- Seconds that another update may hold the lock before this one gives up.
local LOCK_S = 5

-- As masters say it, too.
local NOTHING_MOVES = 'there is nothing to do: every task stays where it is'

local RESULT = { 'topology', 'from_version', 'to_version', 'changes', 'kept', 'started', 'stopped',
  'moved', 'groups_moved', 'bytes_moved', 'paused_ms', 'seconds' }

local function check_usage(context, args)
  if #args.parallelism == 0 and not args.containers and not args.packing and not args.mode then
    context:fail('usage', 'update', 'it needs --parallelism, --containers, --packing or --mode',
      "see 'streamlua update --help'")
  end
end

local function check_script(context, topology, prepared)
  if not prepared then return end
  local hash = context:check(packages.hash(prepared.package))
  if hash ~= topology.execution.package_hash then
    context:fail('conflict', running.label(topology.name),
      'the script differs from the one that runs',
      ("name the topology ('%s') to change what runs, or kill it and submit the script"):format(
        topology.name))
  end
end

local function check_version(context, args, topology)
  if args.if_version and args.if_version ~= topology.plan.version then
    context:fail('conflict', running.label(topology.name),
      ('its plan has version %d, not %d'):format(topology.plan.version, args.if_version))
  end
end

-- The present tasks of the components that a user declared.
local function present(topology)
  local tasks, list = plans.tasks(topology.plan), {}
  for i, component in ipairs(topology.described.components) do
    list[i] = { name = component.name, parallelism = #(tasks[component.name] or {}),
      fixed = submission.fixed(topology.described.config, component.name) }
  end
  return list
end

local function changes_of(context, args, topology)
  local list, failure = parallelism.parse(args.parallelism)
  local result
  if list then
    result, failure = parallelism.resolve(list, present(topology),
      { guard = true, force = args.force })
  end
  if failure then context:fail(failure.code, failure.message, nil, failure.hint) end
  for name, wanted in pairs(result.parallelism) do
    local groups = topology.plan.key_groups[name]
    if groups and wanted > #groups then
      context:fail('invalid', ("component '%s'"):format(name),
        ('%d tasks are more than its %d key groups'):format(wanted, #groups),
        "key_groups in the topology's config is fixed when it is submitted")
    end
  end
  return result.deltas
end

-- How it is to be scheduled from now on; nil: as before.
local function schedule_of(context, args, topology)
  if not args.containers or not running.is_scheduled(context) then return nil end
  return context:check(placement.schedule(topology.described,
    placement.scheduler_of(topology.plan) or 'packed', { containers = args.containers }))
end

-- How many tasks a change starts, stops or moves.
local function count_touched(delta) return delta.moved + delta.started + delta.stopped end

-- What masters are asked for: the tasks, and where a packer made them the containers.
local function propose_to_masters(context, args, topology, changes)
  local plan, failure
  if placement.scheduler_of(topology.plan) then
    plan, failure = placement.resize(topology.plan, changes)
  else
    -- A container without tasks would be no worker, so a number of containers means to even out.
    plan, failure = change.propose(topology.described, plans.shown(topology.plan),
      { changes = changes, containers = args.containers, packing = args.packing,
        mode = args.mode or args.containers and 'minimal' or nil })
  end
  if not plan then context:fail_with(failure) end
  local proposed, groups_moved = plans.rebalance(plan, topology.plan)
  proposed.master = topology.plan.master
  return proposed, groups_moved
end

-- Where the plan says nothing new, what `--mode minimal` would do, as a hint.
local function minimal_hint(context, args, client, topology, changes)
  local is_keep = not args.mode or args.mode == 'keep'
  if not is_keep or not (args.containers or args.mode) then return nil end
  local wanted = setmetatable({ mode = 'minimal' }, { __index = args })
  local ok, plan = pcall(function()
    if not running.is_scheduled(context) then
      return context:check(change.propose(topology.described, plans.shown(topology.plan),
        { changes = changes, containers = args.containers, packing = args.packing, mode = 'minimal' }))
    end
    local proposed = propose_to_masters(context, wanted, topology, changes)
    local result = context:check(client:update(topology.plan, proposed, topology.components,
      { lock_ms = 0, drain_ms = 0, mode = 'minimal', schedule = schedule_of(context, args, topology),
        dry_run = true }))
    return plans.shown(result.plan)
  end)
  local delta = ok and packing.delta(plans.shown(topology.plan), plan)
  if not delta or count_touched(delta) == 0 then return nil end
  return ('--mode minimal makes it %d containers and moves %d of its tasks'):format(#plan.containers,
    delta.moved)
end

local function check_change(context, args, client, topology, changes)
  -- Masters see what would move when the mode is named: supervisors come and go.
  if running.is_scheduled(context) and args.mode then return end
  local same_count = not args.containers or args.containers == #topology.plan.containers
  local is_keep = not args.mode or args.mode == 'keep'
  if not next(changes) and same_count and not args.packing and is_keep then
    context:fail('conflict', running.label(topology.name),
      'there is nothing to do: it is as asked for',
      minimal_hint(context, args, client, topology, changes))
  end
end

-- A process that serves others loads no code of theirs: only packers that are built in.
local function check_packer(context, args, topology)
  local wanted = args.packing or topology.described.config.repacking
  local is_known = wanted == nil or not context.is_service
  for _, name in ipairs(packing.names) do is_known = is_known or name == wanted end
  if not is_known then
    context:fail('invalid', running.label(topology.name),
      ("packer '%s' is not built in, and the API loads no code"):format(wanted),
      "use 'streamlua update', which plans where it runs")
  end
end

-- The plan that is asked for, and how many key groups change their task.
local function propose(context, args, client, topology, changes)
  check_packer(context, args, topology)
  local scheduler = running.is_scheduled(context) and placement.scheduler_of(topology.plan)
  if args.packing and scheduler then
    context:check(packing.packer(args.packing))
    context:warn(("scheduler '%s' makes the containers of this topology, packers do not"):format(
      scheduler))
  end
  if running.is_scheduled(context) then return propose_to_masters(context, args, topology, changes) end
  local plan, failure = change.propose(topology.described, plans.shown(topology.plan),
    { changes = changes, containers = args.containers, packing = args.packing, mode = args.mode })
  if not plan then context:fail_with(failure) end
  local delta = context:check(packing.delta(plans.shown(topology.plan), plan))
  if count_touched(delta) == 0 and #plan.containers == #topology.plan.containers then
    context:fail('conflict', running.label(topology.name), NOTHING_MOVES,
      minimal_hint(context, args, client, topology, changes))
  end
  local proposed, groups_moved = plans.rebalance(plan, topology.plan)
  return proposed, groups_moved, delta
end

local function print_dry_run(context, topology, proposed, changes, moving, delta)
  local old, new = plans.shown(topology.plan), plans.shown(proposed)
  local document = context:check(packing.update_document(old, new, changes))
  document.groups_moved, document.bytes_moved = moving.groups, moving.bytes
  document.moves = change.moves(delta)
  if context.output == 'json' then
    context:print_json(document, order.update)
    return
  end
  context.stdout:write(packing.render_update(old, new, { color = context.color }))
  for _, move in ipairs(document.moves) do
    context:print(('Moves: %s (task %d) from container %d to %d'):format(move.component, move.task,
      move.from, move.to))
  end
  context:print(('Key groups that move: %d%s'):format(moving.groups,
    moving.bytes and (', %d bytes of state'):format(moving.bytes) or ''))
end

local function drain_ms(args, topology)
  if args.drain_timeout then return args.drain_timeout * 1000 end
  local text = topology.described.config.message_timeout
  return (text and units.parse_duration(text) or 30) * 1000
end

-- What the topology master says when tasks or keys that move have too much before them.
local NOT_DRAINED = 'still in flight'

local function check_outcome(context, name, result)
  if result.outcome == 'rolled_back' then
    context:fail('rolled_back', running.label(name),
      ('the update failed and was rolled back: %s'):format(result.reason),
      result.reason:find(NOT_DRAINED, 1, true)
        and 'what was queued has to be worked off first: a longer --drain-timeout or a smaller max_spout_pending '
          .. 'gives it the time (docs/update.md)' or nil)
  elseif result.outcome == 'not_rolled_back' then
    context:fail('not_rolled_back', running.label(name), result.reason,
      ("see 'streamlua describe %s'"):format(name))
  end
end

local function print_result(context, topology, delta, changes, result)
  if context.output == 'json' then
    context:print_json({
      topology = topology.name, from_version = result.from_version,
      to_version = result.to_version, changes = changes, kept = delta.kept,
      started = delta.started, stopped = delta.stopped, moved = delta.moved,
      groups_moved = result.groups_moved, bytes_moved = result.bytes_moved,
      paused_ms = result.paused_ms, seconds = result.total_ms / 1000,
    }, RESULT)
    return
  end
  context:print(('%s: plan %d -> %d in %.2f s, spouts paused for %d ms'):format(topology.name,
    result.from_version, result.to_version, result.total_ms / 1000, result.paused_ms))
  context:print(('tasks: %d kept, %d started, %d stopped, %d moved'):format(delta.kept,
    delta.started, delta.stopped, delta.moved))
end

local function update(context, args, client, name, prepared)
  local topology = running.check(context, name, client:load(name))
  if not (topology.plan and topology.execution) then
    context:fail('failed', running.label(name), 'what is stored of it is not whole')
  end
  check_script(context, topology, prepared)
  check_version(context, args, topology)
  local changes = changes_of(context, args, topology)
  check_change(context, args, client, topology, changes)
  local proposed, groups_moved, delta = propose(context, args, client, topology, changes)
  local result, failure = client:update(topology.plan, proposed, topology.components,
    { lock_ms = (args.lock_timeout or LOCK_S) * 1000, drain_ms = drain_ms(args, topology),
      mode = args.mode, schedule = schedule_of(context, args, topology), dry_run = args.dry_run })
  -- A plan that was made here can be shown when nobody says how many bytes would move.
  if not result and failure.message:find(NOTHING_MOVES, 1, true) then
    context:fail('conflict', running.label(name), NOTHING_MOVES,
      minimal_hint(context, args, client, topology, changes))
  elseif not args.dry_run or running.is_scheduled(context) then
    running.check(context, name, result, failure)
  end
  if result and result.plan then
    proposed = result.plan
    delta = context:check(packing.delta(plans.shown(topology.plan), plans.shown(proposed)))
  end
  if args.dry_run then
    print_dry_run(context, topology, proposed, changes,
      { groups = groups_moved, bytes = result and result.bytes_moved }, delta)
    return
  end
  check_outcome(context, name, result)
  print_result(context, topology, delta, changes, result)
end

return {
  name = 'update',
  summary = 'Change a running topology: parallelism, containers, packing.',
  description = 'Plans the change here and has the topology master carry it out as a transaction: '
    .. 'what fails before the new plan is stored is rolled back (docs/update.md).',
  declare = function(command)
    running.declare_target(command)
    parallelism.declare(command)
    command:option('--containers', 'Number of containers that it must have.'):argname('N')
      :overwrite(false):convert(parser.integer(1, 2000000000))
    command:option('--packing', 'Packer of the change (default: the topology\'s repacking).')
      :argname('P')
    command:option('--mode', 'keep: move nothing that need not move (default); minimal: even out '
      .. 'with the fewest moves; reassign: pack everything anew.'):argname('MODE')
      :choices({ 'keep', 'reassign', 'minimal' })
    command:flag('--force', 'Let a component grow to more than 10 times its tasks.')
    command:flag('--dry-run', 'Print the change; nothing is touched.')
    command:option('--if-version', 'Only if the plan has this version.'):argname('V')
      :convert(parser.integer(1))
    command:option('--lock-timeout', 'How long to wait for another update (default: 5s).')
      :argname('D'):convert(parser.duration)
    command:option('--drain-timeout', 'How long what is in flight may take (default: the '
      .. 'topology\'s message_timeout).'):argname('D'):convert(parser.duration)
  end,
  run = function(context, args)
    check_usage(context, args)
    local name, prepared = running.target(context, args.target)
    running.with_client(context, function(client) update(context, args, client, name, prepared) end,
      { reader = args.dry_run })
  end,
}

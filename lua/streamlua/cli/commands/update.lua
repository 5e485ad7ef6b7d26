-- `streamlua update`: changes a running topology.

local order = require 'streamlua.cli.order'
local packing = require 'streamlua.packing'
local packages = require 'streamlua.cluster.package'
local parallelism = require 'streamlua.cli.parallelism'
local parser = require 'streamlua.cli.parser'
local plans = require 'streamlua.cluster.plan'
local running = require 'streamlua.cli.running'
local units = require 'streamlua.units'

-- Seconds that another update may hold the lock before this one gives up.
local LOCK_S = 5

local RESULT = { 'topology', 'from_version', 'to_version', 'changes', 'kept', 'started', 'stopped',
  'moved', 'groups_moved', 'bytes_moved', 'paused_ms', 'seconds' }
local DRY_RUN = { 'topology', 'repacking', 'from_version', 'old', 'new', 'changes', 'containers',
  'kept', 'started', 'stopped', 'moved', 'groups_moved', old = order.plan, new = order.plan,
  containers = { 'id', 'state', 'added', 'removed' } }

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
    list[i] = { name = component.name, parallelism = #(tasks[component.name] or {}) }
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

local function check_change(context, args, topology, changes)
  local same_count = not args.containers or args.containers == #topology.plan.containers
  if not next(changes) and same_count and not args.packing and args.mode ~= 'reassign' then
    context:fail('conflict', running.label(topology.name),
      'there is nothing to do: it is as asked for')
  end
end

-- Instances of a plan by component, in the order of their indexes.
local function instances_of(plan)
  local by_component = {}
  for _, container in ipairs(plan.containers) do
    for _, instance in ipairs(container.instances) do
      local list = by_component[instance.component] or {}
      by_component[instance.component] = list
      list[#list + 1] = instance
    end
  end
  for _, list in pairs(by_component) do
    table.sort(list, function(a, b) return a.index < b.index end)
  end
  return by_component
end

-- Gives the tasks of a plan that was packed anew the ids and indexes that they have; new ones get
-- max+1 of both.
local function keep_ids(plan, old)
  local known, highest, names = instances_of(old), 0, {}
  for _, list in pairs(known) do
    for _, instance in ipairs(list) do highest = math.max(highest, instance.task) end
  end
  local fresh = instances_of(plan)
  for name in pairs(fresh) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local own = known[name] or {}
    local index = #own > 0 and own[#own].index or -1
    for i, instance in ipairs(fresh[name]) do
      if own[i] then
        instance.task, instance.index = own[i].task, own[i].index
      else
        highest, index = highest + 1, index + 1
        instance.task, instance.index = highest, index
      end
    end
  end
  plan.version = old.version + 1
  return plan
end

-- Everything packed as if for the first time, with the tasks that there are to be.
local function pack_anew(context, args, topology, changes)
  local wanted = {}
  for _, component in ipairs(present(topology)) do
    wanted[component.name] = component.parallelism + (changes[component.name] or 0)
  end
  local request = context:check(packing.validate_request(packing.request_from_topology(
    topology.described, { parallelism = wanted,
      config = { containers = args.containers or #topology.plan.containers } })))
  local plan, result = packing.plan(request, args.packing or packing.default_packer(request),
    { limits = {} })
  if not plan then context:fail_with(result) end
  plan = context:check(packing.validate_plan(keep_ids(plan, topology.plan)))
  local delta = context:check(packing.delta(plans.shown(topology.plan), plan))
  if delta.moved + delta.started + delta.stopped == 0 then
    context:fail('conflict', running.label(topology.name),
      'there is nothing to do: packed anew, every task stays where it is')
  end
  return plan
end

-- The plan that is asked for, and how many key groups change their task.
local function propose(context, args, topology, changes)
  if args.mode == 'reassign' then
    return plans.rebalance(pack_anew(context, args, topology, changes), topology.plan)
  end
  local request = packing.request_from_topology(topology.described,
    { current = plans.shown(topology.plan), changes = changes, containers = args.containers })
  request = context:check(packing.validate_request(request))
  local plan, result = packing.plan(request, args.packing or packing.default_packer(request),
    { limits = {} })
  if not plan then context:fail_with(result) end
  return plans.rebalance(plan, topology.plan)
end

local function print_dry_run(context, topology, proposed, changes, groups_moved)
  local old, new = plans.shown(topology.plan), plans.shown(proposed)
  local document = context:check(packing.update_document(old, new, changes))
  document.groups_moved = groups_moved
  if context.output == 'json' then
    context:print_json(document, DRY_RUN)
    return
  end
  context.stdout:write(packing.render_update(old, new, { color = context.color }))
  context:print(('Key groups that move: %d'):format(groups_moved))
end

local function drain_ms(args, topology)
  if args.drain_timeout then return args.drain_timeout * 1000 end
  local text = topology.described.config.message_timeout
  return (text and units.parse_duration(text) or 30) * 1000
end

local function check_outcome(context, name, result)
  if result.outcome == 'rolled_back' then
    context:fail('rolled_back', running.label(name),
      ('the update failed and was rolled back: %s'):format(result.reason))
  elseif result.outcome == 'not_rolled_back' then
    context:fail('not_rolled_back', running.label(name), result.reason,
      ("see 'streamlua describe %s'"):format(name))
  end
end

local function print_result(context, topology, proposed, changes, result)
  local delta = context:check(packing.delta(plans.shown(topology.plan), plans.shown(proposed)))
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
  check_change(context, args, topology, changes)
  local proposed, groups_moved = propose(context, args, topology, changes)
  if args.dry_run then
    print_dry_run(context, topology, proposed, changes, groups_moved)
    return
  end
  local result, failure = client:update(topology.plan, proposed, topology.components,
    { lock_ms = (args.lock_timeout or LOCK_S) * 1000, drain_ms = drain_ms(args, topology) })
  running.check(context, name, result, failure)
  check_outcome(context, name, result)
  print_result(context, topology, proposed, changes, result)
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
      :convert(parser.integer(1, 2000000000))
    command:option('--packing', 'Packer of the change (default: the topology\'s repacking).')
      :argname('P')
    command:option('--mode', 'keep and minimal: what runs stays where it is (default); reassign: '
      .. 'pack everything anew.'):argname('MODE'):choices({ 'keep', 'reassign', 'minimal' })
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

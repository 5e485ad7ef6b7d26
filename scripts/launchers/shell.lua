-- A launcher that starts workers through shell commands, as a batch system wants it (docs/launchers.md):
--
--     streamlua --set launcher=scripts/launchers/shell.lua submit wordcount.lua
--
-- `start`, `stop` and `is_running` are all that knows what the containers run on. With Slurm they would
-- be `sbatch --parsable --wrap COMMAND`, `scancel JOB` and `squeue -h -j JOB`, and the folder of logs
-- would be on a shared file system. A job's number is kept in a file, so that the next topology master
-- finds what runs.

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read('*a')
  pipe:close()
  return text
end

-- Starts a command in the background; returns the number of its job.
local function start(command, log)
  return output_of(('setsid sh -c %s >> %s 2>&1 < /dev/null & echo $!'):format(
    quoted('exec ' .. command), quoted(log))):match('%d+')
end

local function is_running(job) return os.execute(('kill -0 %s 2> /dev/null'):format(job)) == 0 end

-- Ends a job and waits for it; what does not end within 5 s is ended by force.
local function stop(job)
  os.execute(([[kill -TERM %s 2> /dev/null; n=0
    while kill -0 %s 2> /dev/null && [ $n -lt 100 ]; do sleep 0.05; n=$((n+1)); done
    kill -KILL %s 2> /dev/null]]):format(job, job, job))
end

local function job_file(context, id) return ('%s/container-%d.job'):format(context.logs, id) end

local function job_of(context, id)
  local file = io.open(job_file(context, id))
  local job = file and file:read('*l')
  if file then file:close() end
  return job
end

local function start_container(context, id)
  local job = job_of(context, id)
  if job and is_running(job) then return end
  job = start(context.command(id), ('%s/container-%d.log'):format(context.logs, id))
  local file = assert(io.open(job_file(context, id), 'w'))
  file:write(job, '\n')
  file:close()
end

local function stop_container(context, id)
  local job = job_of(context, id)
  if job then stop(job) end
  os.remove(job_file(context, id))
end

-- Numbers of the containers that have a job.
local function containers(context)
  local ids = {}
  for path in output_of(('ls %s/container-*.job 2> /dev/null'):format(quoted(context.logs)))
    :gmatch('[^\n]+') do
    ids[#ids + 1] = tonumber(path:match('container%-(%d+)%.job$'))
  end
  return ids
end

local function start_all(context, list)
  for _, container in ipairs(list) do start_container(context, container.id) end
end

return {
  initialize = function(context) os.execute('mkdir -p ' .. quoted(context.logs)) end,
  on_schedule = start_all,
  -- The numbers are the ones that were asked for; another system may return its own.
  add_containers = start_all,
  remove_containers = function(context, ids)
    for _, id in ipairs(ids) do stop_container(context, id) end
  end,
  on_restart = function(context, id)
    stop_container(context, id)
    start_container(context, id)
  end,
  on_kill = function(context)
    for _, id in ipairs(containers(context)) do stop_container(context, id) end
  end,
  check = function(context)
    local ended = {}
    for _, id in ipairs(containers(context)) do
      if not is_running(job_of(context, id)) then
        ended[id] = 'its job has ended'
        start_container(context, id)
      end
    end
    return ended
  end,
}

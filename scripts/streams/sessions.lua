-- Sessions of users: what each did until it was quiet for a while.
--
--     nc -lk 9999                                     # in one terminal: type "ada login", "ada buy", ...
--     streamlua run scripts/streams/sessions.lua
--     streamlua run scripts/streams/sessions.lua --set gap=10s
--
-- A line is a user and an action. The state of a user is the session that goes on; it is printed as
-- (user,(actions,milliseconds)) when the user has been quiet for longer than `gap`, or says "logout".

local streaming = require 'streamlua.streaming'

local ssc = streaming.context {
  name = 'sessions',
  batch = '1s',
  checkpoint = 'state/sessions',
  config = { host = '127.0.0.1', port = 9999, gap = '30s' },
}

local function parse(line)
  local user, action = line:match('^(%S+)%s+(%S+)')
  return user and { { user, action } } or {}
end

local function closed(user, session) return { user, { session.actions, session.last - session.first } } end

local function follow(time, user, action, state)
  if state:is_timing_out() then return closed(user, state:get()) end
  local session = state:get_option() or { actions = 0, first = time }
  session.actions, session.last = session.actions + 1, time
  if action == 'logout' then
    if state:exists() then state:remove() end
    return closed(user, session)
  end
  state:update(session)
end

ssc:socket_text_stream(ssc.config.host, ssc.config.port):name('actions')
  :flat_map(parse)
  :map_with_state(streaming.state_spec(follow):timeout(ssc.config.gap)):name('sessions')
  :print()

return ssc

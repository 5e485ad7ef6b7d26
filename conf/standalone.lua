-- Cluster 'standalone': masters and supervisors on machines of your own, coordinated by ZooKeeper.
-- Name the ensemble with --state, STREAMLUA_STATE, or `state = 'zookeeper://...'` in
-- ~/.config/streamlua/config.lua or /etc/streamlua/. Time-outs and intervals of the processes
-- (heartbeat_interval, registration_timeout, ...) are listed in docs/control-plane.md; what is set
-- here holds for all of them.
return {
  launcher = 'standalone',
  scheduler = 'balanced',
  -- Commands load the launcher themselves and put their event on the master's queue.
  scheduler_service = false,
  state_timeout = '5s',
  -- What fails is seen within seconds.
  heartbeat_interval = '2s',
  heartbeat_timeout = '10s',
  registration_error_delay = '1s',
  registration_refused_delay = '1s',
}

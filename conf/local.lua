-- Cluster 'local': topologies run in processes of this machine, no daemon is needed.
return {
  launcher = 'local',
  scheduler = 'packed',
  -- The topology master is the scheduler's endpoint; commands find it through the state manager.
  scheduler_service = true,
  state_timeout = '5s',
  -- Workers tell their counters with heartbeats.
  heartbeat_interval = '2s',
}

-- Watches a folder of log files: how many lines of each level came in the last half minute, and the errors
-- themselves.
--
--     streamlua run scripts/streams/log_monitor.lua --set folder=/var/log/shop
--     mv today.log /var/log/shop/                     # a file counts when it appears, complete
--
-- A line starts with its level: "ERROR disk full". Files whose names start with a dot, and files that are
-- older than the start, are left alone; the run says why.

local streaming = require 'streamlua.streaming'

local ssc = streaming.context {
  name = 'log_monitor',
  batch = '5s',
  config = { folder = '.', window = '30s', slide = '10s' },
}

local lines = ssc:text_file_stream(ssc.config.folder):name('lines')

local levels = lines
  :flat_map(function(line)
    local level = line:match('^%u+')
    return level and { { level, 1 } } or {}
  end)
  :reduce_by_key_and_window(function(a, b) return a + b end, ssc.config.window, ssc.config.slide)
  :name('levels')

levels:transform(function(rdd) return rdd:sort_by_key() end):print()

lines:filter(function(line) return line:sub(1, 5) == 'ERROR' end):name('errors'):print(20)

return ssc

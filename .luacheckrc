-- Settings of luacheck; scripts/lint runs it.
std = 'luajit'
max_line_length = 120
-- A method keeps its `self`, a callback its parameters, also where a body does not need them.
self = false
unused_args = false
exclude_files = { 'build/**', 'lua/streamlua/meta/**' }
files['tests/**/*_spec.lua'] = { std = 'luajit+busted' }
files['.busted'] = { std = 'luajit' }

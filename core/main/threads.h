#pragma once

/*
 * Lets the engine start threads that run Lua, those of executors (streamlua.runtime.boot) and of
 * crews (streamlua.streaming.member): each makes a Lua state with the Lua tree of `home` and calls
 * into it once for its whole life.
 */
void sl_threads_install(const char *home);

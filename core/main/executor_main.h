#pragma once

/*
 * Lets workers of this process start executor threads: each makes a Lua state with the Lua tree of
 * `home` and runs streamlua.runtime.boot in it until the executor is stopped.
 */
void sl_executor_main_install(const char *home);

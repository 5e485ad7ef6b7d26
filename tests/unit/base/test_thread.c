#include "base/thread.h"

#include <stdint.h>
#include <string.h>

#include "unit.h"

static void *
use_stack(void *argument)
{
    volatile uint8_t big[1 << 20];
    memset((void *)big, 1, sizeof(big));
    *(uintptr_t *)argument = (uintptr_t)&big[big[17]];
    return argument;
}

static void
test_thread_start_stack_is_below_4_gib(void **state)
{
    (void)state;
    /* More of them than would fit below 4 GiB if their stacks were kept. */
    for (int i = 0; i < 300; i++) {
        uintptr_t address = 0;
        struct sl_thread thread;
        assert_int_equal(0, sl_thread_start(&thread, use_stack, &address));
        sl_thread_join(&thread);
        assert_true(address != 0);
#if defined(__x86_64__)
        assert_true(address < (UINT64_C(1) << 32));
#endif
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_start_stack_is_below_4_gib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

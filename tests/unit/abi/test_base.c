#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/abi.h"
#include "base/err.h"

static void
test_sl_abi_version_is_that_of_the_header(void **state)
{
    (void)state;
    assert_int_equal(sl_abi_version(), SL_ABI_VERSION);
    assert_non_null(strchr(sl_version(), '.'));
}

static void
test_sl_abi_text_holds_its_own_prototype(void **state)
{
    (void)state;
    assert_non_null(strstr(sl_abi_text(), "const char *sl_abi_text(void);"));
}

static void
test_sl_abi_layouts_give_offset_and_size(void **state)
{
    (void)state;
    const struct sl_abi_layout *found = NULL;
    for (int32_t i = 0; i < sl_abi_layout_count(); i++) {
        const struct sl_abi_layout *entry = &sl_abi_layouts()[i];
        if (strcmp(entry->type, "struct sl_abi_layout") == 0 && strcmp(entry->field, "size") == 0) {
            found = entry;
        }
    }
    assert_non_null(found);
    assert_int_equal(found->offset, offsetof(struct sl_abi_layout, size));
    assert_int_equal(found->size, sizeof(uint32_t));
}

static void
test_sl_error_reads_the_record_of_the_thread(void **state)
{
    (void)state;
    sl_err_set(SL_ENOTFOUND, "no node %s", "/a");
    sl_err_wrap("read plan");
    assert_int_equal(sl_error_code(), SL_ENOTFOUND);
    assert_string_equal(sl_error_name(sl_error_code()), "ENOTFOUND");
    assert_string_equal(sl_error_message(), "read plan");
    assert_int_equal(sl_error_cause_count(), 1);
    assert_string_equal(sl_error_cause(0), "no node /a");
    assert_string_equal(sl_error_file(), "test_base.c");
    assert_true(sl_error_line() > 0);
    sl_error_clear();
    assert_int_equal(sl_error_code(), 0);
    assert_string_equal(sl_error_message(), "");
    assert_string_equal(sl_error_file(), "");
}

static void
test_sl_error_cause_out_of_range_is_empty(void **state)
{
    (void)state;
    sl_error_clear();
    assert_string_equal(sl_error_cause(-1), "");
    assert_string_equal(sl_error_cause(0), "");
    assert_string_equal(sl_error_cause(INT32_MAX), "");
}

static void
test_sl_error_from_name_knows_the_names_only(void **state)
{
    (void)state;
    assert_int_equal(sl_error_from_name("EPROTO"), SL_EPROTO);
    assert_int_equal(sl_error_from_name("ENONSENSE"), 0);
    assert_int_equal(sl_error_from_name(NULL), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sl_abi_version_is_that_of_the_header),
        cmocka_unit_test(test_sl_abi_text_holds_its_own_prototype),
        cmocka_unit_test(test_sl_abi_layouts_give_offset_and_size),
        cmocka_unit_test(test_sl_error_reads_the_record_of_the_thread),
        cmocka_unit_test(test_sl_error_cause_out_of_range_is_empty),
        cmocka_unit_test(test_sl_error_from_name_knows_the_names_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

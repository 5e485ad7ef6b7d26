#include "base/sha256.h"

#include "unit.h"

static void
hex(const uint8_t *bytes, char *text)
{
    for (int i = 0; i < SL_SHA256_SIZE; i++) {
        sprintf(text + 2 * i, "%02x", bytes[i]);
    }
}

/* Vectors of FIPS 180-4 and RFC 4231. */
static void
test_sha256_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t times;
        const char *hash;
    } ROWS[] = {
        {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct sl_sha256 hash;
        uint8_t bytes[SL_SHA256_SIZE];
        char text[65];
        sl_sha256_create(&hash);
        for (size_t n = 0; n < ROWS[i].times; n++) {
            sl_sha256_update(&hash, ROWS[i].text, strlen(ROWS[i].text));
        }
        sl_sha256_finish(&hash, bytes);
        hex(bytes, text);
        assert_string_equal(text, ROWS[i].hash);
    }
}

static void
test_hmac_vectors(void **state)
{
    (void)state;
    uint8_t long_key[131];
    memset(long_key, 0xaa, sizeof(long_key));
    const struct {
        const void *key;
        size_t key_len;
        const char *text;
        const char *mac;
    } ROWS[] = {
        {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 20,
         "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", 4, "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {long_key, sizeof(long_key), "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    for (size_t i = 0; i < array_size(ROWS); i++) {
        struct sl_hmac hmac;
        uint8_t mac[SL_SHA256_SIZE];
        char text[65];
        sl_hmac_create(&hmac, ROWS[i].key, ROWS[i].key_len);
        sl_hmac_update(&hmac, ROWS[i].text, strlen(ROWS[i].text));
        sl_hmac_finish(&hmac, mac);
        hex(mac, text);
        assert_string_equal(text, ROWS[i].mac);
    }
}

static void
test_pieces_do_not_matter(void **state)
{
    (void)state;
    uint8_t data[300];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7);
    }
    for (size_t len = 0; len < sizeof(data); len++) {
        struct sl_sha256 hash;
        uint8_t whole[SL_SHA256_SIZE];
        uint8_t pieces[SL_SHA256_SIZE];
        sl_sha256_create(&hash);
        sl_sha256_update(&hash, data, len);
        sl_sha256_finish(&hash, whole);
        sl_sha256_create(&hash);
        for (size_t at = 0; at < len; at += 13) {
            sl_sha256_update(&hash, data + at, len - at < 13 ? len - at : 13);
        }
        sl_sha256_finish(&hash, pieces);
        assert_memory_equal(whole, pieces, SL_SHA256_SIZE);
    }
}

static void
test_bytes_equal_secret(void **state)
{
    (void)state;
    assert_true(sl_bytes_equal_secret("abc", "abd", 2));
    assert_false(sl_bytes_equal_secret("abc", "abd", 3));
    assert_false(sl_bytes_equal_secret("xbc", "abc", 3));
    assert_true(sl_bytes_equal_secret("a", "b", 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sha256_vectors),
    cmocka_unit_test(test_hmac_vectors),
    cmocka_unit_test(test_pieces_do_not_matter),
    cmocka_unit_test(test_bytes_equal_secret),
};

UNIT_MAIN(tests)

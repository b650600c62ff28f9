/* securec.h: what fits, what does not, and what is left in the destination. Nothing of the library is used. */

#include <stdio.h>
#include <stdlib.h>

#include "securec.h"

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static int all(const char *bytes, size_t len, char value) {
    size_t index = 0;
    while (index < len && bytes[index] == value) {
        index++;
    }
    return index == len;
}

static void bytes(void) {
    char from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];

    CHECK(memset_s(to, sizeof to, 9, sizeof to) == EOK && all(to, 8, 9));
    CHECK(memset_s(to, sizeof to, 7, 3) == EOK && all(to, 3, 7) && all(to + 3, 5, 9));
    CHECK(memset_s(to, 4, 5, 5) == ERANGE_AND_RESET && all(to, 4, 5) && all(to + 4, 4, 9));
    CHECK(memset_s(to, 0, 1, 0) == ERANGE);
    CHECK(memset_s(to, SECUREC_MEM_MAX_LEN + 1, 1, 1) == ERANGE);
    CHECK(memset_s(NULL, 8, 1, 1) == EINVAL);

    CHECK(memcpy_s(to, sizeof to, from, sizeof from) == EOK && memcmp(to, from, 8) == 0);
    CHECK(memcpy_s(to, 8, from, 0) == EOK && memcmp(to, from, 8) == 0);
    CHECK(memcpy_s(to, 8, to, 8) == EOK && memcmp(to, from, 8) == 0);
    CHECK(memcpy_s(to, 4, to + 4, 4) == EOK && memcmp(to, from + 4, 4) == 0);
    CHECK(memcpy_s(to, 4, from, 5) == ERANGE_AND_RESET && all(to, 4, 0) && memcmp(to + 4, from + 4, 4) == 0);
    (void)memset_s(to, 8, 1, 8);
    CHECK(memcpy_s(to, 6, to + 1, 5) == EOVERLAP_AND_RESET && all(to, 6, 0) && all(to + 6, 2, 1));
    (void)memset_s(to, 8, 1, 8);
    CHECK(memcpy_s(to + 1, 6, to, 2) == EOVERLAP_AND_RESET && to[0] == 1 && all(to + 1, 6, 0) && to[7] == 1);
    (void)memset_s(to, 8, 1, 8);
    CHECK(memcpy_s(to, 8, NULL, 1) == EINVAL_AND_RESET && all(to, 8, 0));
    CHECK(memcpy_s(NULL, 8, from, 1) == EINVAL);
    CHECK(memcpy_s(to, 0, from, 0) == ERANGE);

    CHECK(memmove_s(from, 8, from + 1, 7) == EOK && from[0] == 2 && from[6] == 8 && from[7] == 8);
    CHECK(memmove_s(from, 4, from, 5) == ERANGE_AND_RESET && all(from, 4, 0) && from[4] == 6);
    CHECK(memmove_s(from, 4, NULL, 1) == EINVAL_AND_RESET);
}

static void text(void) {
    char to[8] = "before", *const end = to + 6;

    CHECK(strcpy_s(to, sizeof to, "1234567") == EOK && strcmp(to, "1234567") == 0);
    CHECK(strcpy_s(to, sizeof to, to) == EOK && strcmp(to, "1234567") == 0);
    CHECK(strcpy_s(to, sizeof to, "12345678") == ERANGE_AND_RESET && to[0] == '\0');
    CHECK(strcpy_s(to, sizeof to, "") == EOK && to[0] == '\0');
    (void)strcpy_s(to, sizeof to, "abcdef");
    CHECK(strcpy_s(to, sizeof to, to + 2) == EOVERLAP_AND_RESET && to[0] == '\0');
    (void)strcpy_s(to, sizeof to, "abcdef");
    CHECK(strcpy_s(to + 2, 6, to) == ERANGE_AND_RESET && to[2] == '\0');
    CHECK(strcpy_s(to, sizeof to, NULL) == EINVAL_AND_RESET && to[0] == '\0');
    CHECK(strcpy_s(NULL, 8, "a") == EINVAL && strcpy_s(to, 0, "a") == ERANGE);

    CHECK(strncpy_s(to, sizeof to, "123456789", 3) == EOK && strcmp(to, "123") == 0);
    CHECK(strncpy_s(to, sizeof to, "12", 7) == EOK && strcmp(to, "12") == 0);
    CHECK(strncpy_s(to, sizeof to, "123456789", 7) == EOK && strcmp(to, "1234567") == 0);
    CHECK(strncpy_s(to, sizeof to, "123456789", 8) == ERANGE_AND_RESET && to[0] == '\0');
    CHECK(strncpy_s(to, sizeof to, "1", (size_t)-1) == ERANGE_AND_RESET);
    CHECK(strncpy_s(to, sizeof to, NULL, 1) == EINVAL_AND_RESET);

    (void)strcpy_s(to, sizeof to, "123");
    CHECK(strcat_s(to, sizeof to, "4567") == EOK && strcmp(to, "1234567") == 0);
    CHECK(strcat_s(to, sizeof to, "") == EOK && strcmp(to, "1234567") == 0);
    CHECK(strcat_s(to, sizeof to, "8") == ERANGE_AND_RESET && to[0] == '\0');
    (void)strcpy_s(to, sizeof to, "12");
    CHECK(strcat_s(to, sizeof to, to) == EOVERLAP_AND_RESET && to[0] == '\0');
    CHECK(strcat_s(to, sizeof to, NULL) == EINVAL_AND_RESET);
    memset(to, 'x', sizeof to);
    CHECK(strcat_s(to, sizeof to, "a") == EINVAL_AND_RESET && to[0] == '\0');
    CHECK(*end == 'x');
}

static int by_list(char *to, size_t size, size_t count, const char *format, ...) {
    va_list arguments;
    int len;
    va_start(arguments, format);
    len = vsnprintf_s(to, size, count, format, arguments);
    va_end(arguments);
    return len;
}

static void formats(void) {
    char to[8] = "before";
    /* Not a constant: the compiler would see that it is null. */
    const char *volatile none = NULL;

    CHECK(sprintf_s(to, sizeof to, "%s-%d", "ab", 1234) == 7 && strcmp(to, "ab-1234") == 0);
    CHECK(sprintf_s(to, sizeof to, "%s", "12345678") == -1 && to[0] == '\0');
    CHECK(sprintf_s(to, sizeof to, "%s", "") == 0);
    CHECK(sprintf_s(NULL, 8, "%d", 1) == -1 && sprintf_s(to, 0, "%d", 1) == -1);
    (void)strcpy_s(to, sizeof to, "before");
    CHECK(sprintf_s(to, sizeof to, none, 1) == -1 && to[0] == '\0');

    CHECK(snprintf_s(to, sizeof to, 7, "%s", "1234567") == 7 && strcmp(to, "1234567") == 0);
    CHECK(snprintf_s(to, sizeof to, 3, "%s", "123") == 3 && strcmp(to, "123") == 0);
    /* Cut where the caller says is not full. */
    CHECK(snprintf_s(to, sizeof to, 3, "%s", "1234") == -1 && strcmp(to, "123") == 0);
    CHECK(snprintf_s(to, sizeof to, 7, "%s", "12345678") == -1 && strcmp(to, "1234567") == 0);
    CHECK(snprintf_s(to, sizeof to, 8, "%s", "12345678") == -1 && to[0] == '\0');
    CHECK(snprintf_s(to, sizeof to, 99, "%s", "1234567") == 7);
    CHECK(snprintf_s(to, sizeof to, (size_t)-1, "%s", "1234567") == 7);
    CHECK(snprintf_s(to, sizeof to, (size_t)-1, "%s", "12345678") == -1 && to[0] == '\0');
    CHECK(snprintf_s(to, sizeof to, SECUREC_STRING_MAX_LEN + 1, "%s", "1") == -1);
    CHECK(snprintf_s(NULL, 8, 1, "%s", "1") == -1);
    CHECK(by_list(to, sizeof to, 7, "%s%c", "abc", 'd') == 4 && strcmp(to, "abcd") == 0);
}

int main(void) {
    bytes();
    text();
    formats();
    puts("checked text");
    return 0;
}

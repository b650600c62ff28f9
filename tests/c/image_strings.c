/* C functions on memory and strings in the image. These kernels are without HCOMM_KERNEL: ENTRIES names them. PIECE comes from
 * CPPFLAGS. */

#include <stdint.h>
#include <string.h>

/* A function of the kernel's own takes the place of the image's. */
char *strcat(char *dst, const char *src) {
    (void)src;
    dst[0] = '!';
    return dst;
}

static int32_t sign(int32_t x) { return (x > 0) - (x < 0); }

#define MUST(condition)                                                                           \
    if (!(condition)) return __LINE__

uint32_t strings_agree(void *args) {
    (void)args;
    /* Volatile keeps the compiler from computing the answers, and from replacing one function by another. */
    size_t (*volatile len)(const char *) = strlen;
    size_t (*volatile nlen)(const char *, size_t) = strnlen;
    int (*volatile cmp)(const char *, const char *) = strcmp;
    int (*volatile ncmp)(const char *, const char *, size_t) = strncmp;
    char *(*volatile chr)(const char *, int) = strchr;
    char *(*volatile rchr)(const char *, int) = strrchr;
    char *(*volatile find)(const char *, const char *) = strstr;
    size_t (*volatile span)(const char *, const char *) = strspn;
    size_t (*volatile cspan)(const char *, const char *) = strcspn;
    char *(*volatile pbrk)(const char *, const char *) = strpbrk;
    char *(*volatile copy)(char *, const char *) = strcpy;
    char *(*volatile end_copy)(char *, const char *) = stpcpy;
    char *(*volatile ncopy)(char *, const char *, size_t) = strncpy;
    char *(*volatile ncat)(char *, const char *, size_t) = strncat;
    void *(*volatile byte)(const void *, int, size_t) = memchr;
    const char *text = PIECE, *none = "";
    char buffer[12];

    MUST(len(text) == 7 && len(none) == 0);
    MUST(nlen(text, 3) == 3 && nlen(text, 9) == 7 && nlen(text, 0) == 0);
    MUST(cmp(text, "abcabc\xff") == 0 && sign(cmp(text, "abcabc~")) == 1 && sign(cmp("abc", text)) == -1);
    MUST(cmp(none, "") == 0 && sign(cmp(text, none)) == 1);
    MUST(ncmp(text, "abcd", 3) == 0 && sign(ncmp(text, "abcd", 4)) == -1 && ncmp("a", "b", 0) == 0);
    MUST(ncmp("ab", "ab\0x", 9) == 0);
    MUST(chr(text, 'c') == text + 2 && chr(text, 0) == text + 7 && chr(text, 'z') == NULL);
    MUST(chr(text, 0xff) == text + 6 && chr(text, 'b' + 256) == text + 1);
    MUST(rchr(text, 'c') == text + 5 && rchr(text, 0) == text + 7 && rchr(text, 'z') == NULL);
    MUST(find(text, "cab") == text + 2 && find(text, "") == text && find(text, "cb") == NULL && find("a", "ab") == NULL);
    MUST(find(text, "bc\xff") == text + 4);
    MUST(span(text, "ba") == 2 && span(text, "") == 0 && span(text, "abc\xff") == 7);
    MUST(cspan(text, "c") == 2 && cspan(text, "") == 7 && cspan(none, "c") == 0);
    MUST(pbrk(text, "zc") == text + 2 && pbrk(text, "z") == NULL);
    MUST(byte(text, 'c', 2) == NULL && byte(text, 'c', 3) == text + 2 && byte(text, 0xff, 99) == text + 6);

    memset(buffer, '#', sizeof buffer);
    MUST(copy(buffer, text) == buffer && memcmp(buffer, PIECE "\0####", 12) == 0);
    memset(buffer, '#', sizeof buffer);
    MUST(end_copy(buffer, "ab") == buffer + 2 && memcmp(buffer, "ab\0#########", 12) == 0);
    MUST(ncopy(buffer, "xyz", 2) == buffer && memcmp(buffer, "xy\0#########", 12) == 0);
    MUST(ncopy(buffer, "z", 5) == buffer && memcmp(buffer, "z\0\0\0\0#######", 12) == 0);
    MUST(ncat(buffer, "abc", 2) == buffer && memcmp(buffer, "zab\0\0#######", 12) == 0);
    MUST(ncat(buffer, "c", 9) == buffer && memcmp(buffer, "zabc\0#######", 12) == 0);
    memmove(buffer + 1, buffer, 4);
    MUST(memcmp(buffer, "zzabc#######", 12) == 0);
    return 0;
}

uint32_t own_function_wins(void *args) {
    (void)args;
    char buffer[] = "abc";
    char *(*volatile cat)(char *, const char *) = strcat;
    return cat(buffer, "d") == buffer && memcmp(buffer, "!bc", 4) == 0 ? 0 : 1;
}

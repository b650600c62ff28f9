/* Functions of memory and text that check the size of their destination. All of them are in this header; there is no library to
 * link.
 *
 * A function that refuses its arguments leaves a destination that can be written empty: zeroed, or text of length 0. */

#ifndef HCOMM_SIM_SECUREC_H
#define HCOMM_SIM_SECUREC_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int errno_t;

/* Done. */
#ifndef EOK
#define EOK 0
#endif
/* A null pointer or text without an end; the destination has been emptied. */
#define EINVAL_AND_RESET (22 | 0x80)
/* What is to be written does not fit; the destination has been emptied. */
#define ERANGE_AND_RESET (34 | 0x80)
/* Source and destination overlap; the destination has been emptied. */
#define EOVERLAP_AND_RESET (54 | 0x80)

/* Largest size of a destination. A larger one is refused: it was meant to be negative. */
#define SECUREC_MEM_MAX_LEN 0x7fffffffUL
#define SECUREC_STRING_MAX_LEN 0x7fffffffUL

#if defined(__GNUC__)
#define HCOMM_SECUREC_FORMAT(text, first) __attribute__((format(printf, text, first)))
#else
#define HCOMM_SECUREC_FORMAT(text, first)
#endif

/* Whether two ranges of `len` bytes have a byte in common. */
static inline int hcomm_securec_overlaps(const void *one, const void *other, size_t len) {
    const uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return a < b ? b - a < len : a - b < len;
}

/* Bytes of `text` before its end, or `max` if it has none there. */
static inline size_t hcomm_securec_length(const char *text, size_t max) {
    size_t len = 0;
    while (len < max && text[len] != '\0') {
        len++;
    }
    return len;
}

/* Sets the first `count` of `destMax` bytes to `c`. If they do not fit, all are set: ERANGE_AND_RESET. */
static inline errno_t memset_s(void *dest, size_t destMax, int c, size_t count) {
    if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN) {
        return ERANGE;
    }
    if (dest == NULL) {
        return EINVAL;
    }
    memset(dest, c, count > destMax ? destMax : count);
    return count > destMax ? ERANGE_AND_RESET : EOK;
}

/* Copies `count` bytes to a destination of `destMax`. The ranges must not overlap, unless they are the same. */
static inline errno_t memcpy_s(void *dest, size_t destMax, const void *src, size_t count) {
    errno_t result = EOK;
    if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN) {
        return ERANGE;
    }
    if (dest == NULL) {
        return EINVAL;
    }
    if (src == NULL) {
        result = EINVAL_AND_RESET;
    } else if (count > destMax) {
        result = ERANGE_AND_RESET;
    } else if (dest != src && hcomm_securec_overlaps(dest, src, count)) {
        result = EOVERLAP_AND_RESET;
    }
    if (result != EOK) {
        memset(dest, 0, destMax);
    } else {
        /* Not memcpy: compilers would warn of ranges that overlap, which have been refused above. */
        memmove(dest, src, count);
    }
    return result;
}

/* Copies `count` bytes to a destination of `destMax`, where the ranges may overlap. */
static inline errno_t memmove_s(void *dest, size_t destMax, const void *src, size_t count) {
    if (destMax == 0 || destMax > SECUREC_MEM_MAX_LEN) {
        return ERANGE;
    }
    if (dest == NULL) {
        return EINVAL;
    }
    if (src == NULL || count > destMax) {
        memset(dest, 0, destMax);
        return src == NULL ? EINVAL_AND_RESET : ERANGE_AND_RESET;
    }
    memmove(dest, src, count);
    return EOK;
}

/* What strcpy_s and strcat_s have in common: `len` bytes of `src` and an end go to `dest + at`. */
static inline errno_t hcomm_securec_put(char *dest, size_t destMax, size_t at, const char *src, size_t len) {
    /* With its end the text has len + 1 bytes; those that `dest` has already are in the way, too. */
    const uintptr_t to = (uintptr_t)dest, from = (uintptr_t)src;
    const int overlaps = to < from ? from - to <= at + len : to - from <= len;
    if (len >= destMax - at) {
        dest[0] = '\0';
        return ERANGE_AND_RESET;
    }
    if (overlaps) {
        dest[0] = '\0';
        return EOVERLAP_AND_RESET;
    }
    memmove(dest + at, src, len);
    dest[at + len] = '\0';
    return EOK;
}

/* The checks of a text destination. */
static inline errno_t hcomm_securec_check(char *dest, size_t destMax, const char *src) {
    if (destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) {
        return ERANGE;
    }
    if (dest == NULL) {
        return EINVAL;
    }
    if (src == NULL) {
        dest[0] = '\0';
        return EINVAL_AND_RESET;
    }
    return EOK;
}

/* Copies text with its end to a destination of `destMax` bytes. */
static inline errno_t strcpy_s(char *dest, size_t destMax, const char *src) {
    const errno_t result = hcomm_securec_check(dest, destMax, src);
    if (result != EOK || dest == src) {
        return result;
    }
    return hcomm_securec_put(dest, destMax, 0, src, hcomm_securec_length(src, destMax));
}

/* Copies at most `count` bytes of text, and an end, to a destination of `destMax` bytes. */
static inline errno_t strncpy_s(char *dest, size_t destMax, const char *src, size_t count) {
    const errno_t result = hcomm_securec_check(dest, destMax, src);
    if (result != EOK) {
        return result;
    }
    if (count > SECUREC_STRING_MAX_LEN) {
        dest[0] = '\0';
        return ERANGE_AND_RESET;
    }
    if (dest == src) {
        const size_t len = hcomm_securec_length(src, count < destMax ? count : destMax);
        dest[len < destMax ? len : 0] = '\0';
        return len < destMax ? EOK : ERANGE_AND_RESET;
    }
    return hcomm_securec_put(dest, destMax, 0, src, hcomm_securec_length(src, count < destMax ? count : destMax));
}

/* Appends text to that in a destination of `destMax` bytes. */
static inline errno_t strcat_s(char *dest, size_t destMax, const char *src) {
    const errno_t result = hcomm_securec_check(dest, destMax, src);
    size_t at;
    if (result != EOK) {
        return result;
    }
    at = hcomm_securec_length(dest, destMax);
    if (at == destMax) {
        dest[0] = '\0';
        return EINVAL_AND_RESET;
    }
    return hcomm_securec_put(dest, destMax, at, src, hcomm_securec_length(src, destMax - at));
}

/* Writes text by a format to a destination of `destMax` bytes. Gives its length, or -1 if it does not fit or an argument is
 * wrong; then the destination is empty. */
static inline int vsprintf_s(char *dest, size_t destMax, const char *format, va_list arguments) HCOMM_SECUREC_FORMAT(3, 0);
static inline int vsprintf_s(char *dest, size_t destMax, const char *format, va_list arguments) {
    int len = -1;
    if (dest == NULL || destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) {
        return -1;
    }
    if (format != NULL) {
        len = vsnprintf(dest, destMax, format, arguments);
    }
    if (len < 0 || (size_t)len >= destMax) {
        dest[0] = '\0';
        return -1;
    }
    return len;
}

/* As vsprintf_s. */
static inline int sprintf_s(char *dest, size_t destMax, const char *format, ...) HCOMM_SECUREC_FORMAT(3, 4);
static inline int sprintf_s(char *dest, size_t destMax, const char *format, ...) {
    va_list arguments;
    int len;
    va_start(arguments, format);
    len = vsprintf_s(dest, destMax, format, arguments);
    va_end(arguments);
    return len;
}

/* Writes at most `count` bytes of text by a format, and an end, to a destination of `destMax` bytes. Gives its length; -1 if
 * the text has been cut after `count` bytes, which then are in the destination, or as vsprintf_s. */
static inline int vsnprintf_s(char *dest, size_t destMax, size_t count, const char *format, va_list arguments)
    HCOMM_SECUREC_FORMAT(4, 0);
static inline int vsnprintf_s(char *dest, size_t destMax, size_t count, const char *format, va_list arguments) {
    int len = -1;
    if (dest == NULL || destMax == 0 || destMax > SECUREC_STRING_MAX_LEN) {
        return -1;
    }
    if (format != NULL && (count <= SECUREC_STRING_MAX_LEN || count == (size_t)-1)) {
        len = vsnprintf(dest, count < destMax ? count + 1 : destMax, format, arguments);
    }
    if (len < 0 || ((size_t)len > count && count >= destMax) || ((size_t)len <= count && (size_t)len >= destMax)) {
        dest[0] = '\0';
        return -1;
    }
    return (size_t)len > count ? -1 : len;
}

/* As vsnprintf_s. */
static inline int snprintf_s(char *dest, size_t destMax, size_t count, const char *format, ...)
    HCOMM_SECUREC_FORMAT(4, 5);
static inline int snprintf_s(char *dest, size_t destMax, size_t count, const char *format, ...) {
    va_list arguments;
    int len;
    va_start(arguments, format);
    len = vsnprintf_s(dest, destMax, count, format, arguments);
    va_end(arguments);
    return len;
}

#ifdef __cplusplus
}
#endif

#endif /* HCOMM_SIM_SECUREC_H */

/* Log lines of kernels, and `assert`, on every AI CPU.
 *
 *     hcomm_log(HCOMM_LOG_INFO, "%u pieces of %llu bytes", pieces, (unsigned long long)len);
 *     assert(pieces != 0);
 *
 * The compiler checks arguments against the format. A line has up to HCOMM_LOG_MAX bytes; a longer one is cut and ends with
 * "...". The same code formats it on every CPU, without heap and without the C library: the conversions d i u x X o c s p %,
 * the lengths hh h l ll z j t, the flags - 0 # + and space, width and precision, also as `*`. A floating-point conversion
 * (f F e E g G a A) shows the value with up to six decimals. Another conversion is shown as it is in the format, and so is what
 * follows it.
 *
 * Where no one keeps a log, as on a card, a line is dropped. docs/debugging.md says where lines are shown.
 *
 * `assert` is that of <assert.h>. In the image a failed one ends the launch with text, file and line; in a process it ends the
 * process, as everywhere, after the same text on standard error.
 */

#ifndef HCOMM_SIM_HCOMM_LOG_H
#define HCOMM_SIM_HCOMM_LOG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { HCOMM_LOG_ERROR = 1, HCOMM_LOG_WARN = 2, HCOMM_LOG_INFO = 3, HCOMM_LOG_DEBUG = 4, HCOMM_LOG_TRACE = 5 };

/* Bytes of the longest line. */
#define HCOMM_LOG_MAX 255

#ifdef __cplusplus
extern "C" {
#endif

/* Logs a line of up to HCOMM_LOG_MAX bytes: 0, or 1 for a level that is none, 2 for a null `text`. A longer text is cut. */
#if defined(HCOMM_DEVICE_IMAGE)
#define HCOMM_LOG_IS_THERE 1
int32_t hcomm_log_line(int32_t level, const char *text);
#else
/* Weak: a library must load where nothing has this function. */
#define HCOMM_LOG_IS_THERE (hcomm_log_line != NULL)
__attribute__((weak)) int32_t hcomm_log_line(int32_t level, const char *text);
#endif

#ifdef __cplusplus
}
#endif

typedef struct HcommLogText {
    char bytes[HCOMM_LOG_MAX + 1];
    size_t len;
} HcommLogText;

static inline void hcomm_log_put(HcommLogText *line, char byte) {
    if (line->len < HCOMM_LOG_MAX) {
        line->bytes[line->len] = byte;
    }
    line->len += line->len <= HCOMM_LOG_MAX;
}

static inline void hcomm_log_fill(HcommLogText *line, char byte, int count) {
    for (; count > 0 && line->len <= HCOMM_LOG_MAX; count--) {
        hcomm_log_put(line, byte);
    }
}

/* One conversion of a format. */
typedef struct HcommLogSpec {
    int left, zero, alternative, width, precision;
    char sign;
} HcommLogSpec;

static inline void hcomm_log_string(HcommLogText *line, const HcommLogSpec *spec, const char *text, int len) {
    if (!spec->left) {
        hcomm_log_fill(line, ' ', spec->width - len);
    }
    for (int at = 0; at < len; at++) {
        hcomm_log_put(line, text[at]);
    }
    if (spec->left) {
        hcomm_log_fill(line, ' ', spec->width - len);
    }
}

static inline void hcomm_log_number(HcommLogText *line, const HcommLogSpec *spec, unsigned long long value, char sign,
                                    char conversion) {
    const unsigned base = conversion == 'x' || conversion == 'X' ? 16 : conversion == 'o' ? 8 : 10;
    const char *all = conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    char digits[24], prefix[3];
    int count = 0, before = 0;
    for (unsigned long long left = value; left != 0; left /= base) {
        digits[count++] = all[left % base];
    }
    if (count == 0 && spec->precision != 0) {
        digits[count++] = '0';
    }
    int zeros = spec->precision > count ? spec->precision - count : 0;
    if (sign != 0) {
        prefix[before++] = sign;
    }
    if (spec->alternative && base == 16 && value != 0) {
        prefix[before++] = '0';
        prefix[before++] = conversion;
    } else if (spec->alternative && base == 8 && zeros == 0 && (count == 0 || digits[count - 1] != '0')) {
        zeros = 1;
    }
    int pad = spec->width - before - zeros - count;
    if (spec->zero && !spec->left && spec->precision < 0 && pad > 0) {
        zeros += pad;
        pad = 0;
    }
    if (!spec->left) {
        hcomm_log_fill(line, ' ', pad);
    }
    for (int at = 0; at < before; at++) {
        hcomm_log_put(line, prefix[at]);
    }
    hcomm_log_fill(line, '0', zeros);
    while (count > 0) {
        hcomm_log_put(line, digits[--count]);
    }
    if (spec->left) {
        hcomm_log_fill(line, ' ', pad);
    }
}

/* A floating-point number in decimals. */
static inline void hcomm_log_double(HcommLogText *line, const HcommLogSpec *spec, double value) {
    char text[40];
    int len = 0;
    const char sign = value < 0 ? '-' : spec->sign;
    const double size = value < 0 ? -value : value;
    if (value != value || size >= 1e18) {
        const char *name = value != value ? "nan" : size > 1.7976931348623157e308 ? "inf" : ">=1e18";
        if (sign != 0 && value == value) {
            text[len++] = sign;
        }
        for (; *name != 0; name++) {
            text[len++] = *name;
        }
        hcomm_log_string(line, spec, text, len);
        return;
    }
    const int decimals = spec->precision < 0 || spec->precision > 6 ? 6 : spec->precision;
    unsigned long long scale = 1;
    for (int at = 0; at < decimals; at++) {
        scale *= 10;
    }
    unsigned long long whole = (unsigned long long)size;
    unsigned long long rest = (unsigned long long)((size - (double)whole) * (double)scale + 0.5);
    whole += rest / scale;
    rest %= scale;
    for (int at = 0; at < decimals; at++, rest /= 10) {
        text[39 - len++] = (char)('0' + rest % 10);
    }
    if (decimals != 0) {
        text[39 - len++] = '.';
    }
    do {
        text[39 - len++] = (char)('0' + whole % 10);
        whole /= 10;
    } while (whole != 0);
    if (sign != 0) {
        text[39 - len++] = sign;
    }
    hcomm_log_string(line, spec, text + 40 - len, len);
}

/* Digits of a width or precision, at most 999. */
static inline int hcomm_log_digits(const char **format) {
    int value = 0;
    for (; **format >= '0' && **format <= '9'; ++*format) {
        value = value < 100 ? value * 10 + (**format - '0') : 999;
    }
    return value;
}

/* Logs a line in the form of printf: `hcomm_log(HCOMM_LOG_DEBUG, "%u bytes", count)`. */
__attribute__((format(printf, 2, 3), unused)) static void hcomm_log(int32_t level, const char *format, ...) {
    HcommLogText line;
    va_list arguments;
    line.len = 0;
    if (!HCOMM_LOG_IS_THERE || format == NULL) {
        return;
    }
    va_start(arguments, format);
    while (*format != 0) {
        const char *const begin = format;
        HcommLogSpec spec = {0, 0, 0, 0, -1, 0};
        int size = 0;
        if (*format != '%') {
            hcomm_log_put(&line, *format++);
            continue;
        }
        for (format++;; format++) {
            if (*format == '-') {
                spec.left = 1;
            } else if (*format == '0') {
                spec.zero = 1;
            } else if (*format == '#') {
                spec.alternative = 1;
            } else if (*format == '+' || (*format == ' ' && spec.sign == 0)) {
                spec.sign = *format;
            } else if (*format != ' ') {
                break;
            }
        }
        if (*format == '*') {
            const int width = va_arg(arguments, int);
            spec.left |= width < 0;
            spec.width = width < -999 || width > 999 ? 999 : width < 0 ? -width : width;
            format++;
        } else {
            spec.width = hcomm_log_digits(&format);
        }
        if (*format == '.') {
            format++;
            if (*format == '*') {
                spec.precision = va_arg(arguments, int);
                format++;
            } else {
                spec.precision = hcomm_log_digits(&format);
            }
        }
        for (; *format == 'h' || *format == 'l' || *format == 'z' || *format == 'j' || *format == 't'; format++) {
            size += *format == 'h' ? -1 : *format == 'l' ? 1 : 2;
        }
        const char conversion = *format;
        if (conversion == 'd' || conversion == 'i') {
            long long value = size > 1    ? va_arg(arguments, long long)
                              : size == 1 ? va_arg(arguments, long)
                                          : va_arg(arguments, int);
            value = size == -1 ? (short)value : size == -2 ? (signed char)value : value;
            hcomm_log_number(&line, &spec, value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value,
                             value < 0 ? '-' : spec.sign, 'd');
        } else if (conversion == 'u' || conversion == 'x' || conversion == 'X' || conversion == 'o') {
            unsigned long long value = size > 1    ? va_arg(arguments, unsigned long long)
                                       : size == 1 ? va_arg(arguments, unsigned long)
                                                   : va_arg(arguments, unsigned);
            value = size == -1 ? (unsigned short)value : size == -2 ? (unsigned char)value : value;
            hcomm_log_number(&line, &spec, value, 0, conversion);
        } else if (conversion == 'p') {
            const void *pointer = va_arg(arguments, const void *);
            spec.alternative = 1;
            if (pointer == NULL) {
                hcomm_log_string(&line, &spec, "(nil)", 5);
            } else {
                hcomm_log_number(&line, &spec, (unsigned long long)(uintptr_t)pointer, 0, 'x');
            }
        } else if (conversion == 's') {
            const char *text = va_arg(arguments, const char *);
            const int max = spec.precision < 0 || spec.precision > HCOMM_LOG_MAX ? HCOMM_LOG_MAX + 1 : spec.precision;
            int len = 0;
            text = text == NULL ? "(null)" : text;
            while (len < max && text[len] != 0) {
                len++;
            }
            hcomm_log_string(&line, &spec, text, len);
        } else if (conversion == 'c') {
            const char byte = (char)va_arg(arguments, int);
            hcomm_log_string(&line, &spec, &byte, 1);
        } else if (conversion == 'f' || conversion == 'F' || conversion == 'e' || conversion == 'E' || conversion == 'g' ||
                   conversion == 'G' || conversion == 'a' || conversion == 'A') {
            hcomm_log_double(&line, &spec, va_arg(arguments, double));
        } else if (conversion == '%') {
            hcomm_log_put(&line, '%');
        } else {
            /* The type of its argument is not known, so those of the others are not either. */
            for (const char *rest = begin; *rest != 0; rest++) {
                hcomm_log_put(&line, *rest);
            }
            break;
        }
        format++;
    }
    va_end(arguments);
    if (line.len > HCOMM_LOG_MAX) {
        line.len = HCOMM_LOG_MAX;
        line.bytes[HCOMM_LOG_MAX - 3] = line.bytes[HCOMM_LOG_MAX - 2] = line.bytes[HCOMM_LOG_MAX - 1] = '.';
    }
    line.bytes[line.len] = 0;
    (void)hcomm_log_line(level, line.bytes);
}

#if !defined(__has_include)
#include <assert.h>
#elif __has_include(<assert.h>)
#include <assert.h>
#elif !defined(assert)
/* A compiler for the device alone has no C library. */
#ifdef __cplusplus
extern "C"
#endif
__attribute__((noreturn)) void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, __FILE__, __LINE__, __func__))
#endif
#endif

#endif /* HCOMM_SIM_HCOMM_LOG_H */

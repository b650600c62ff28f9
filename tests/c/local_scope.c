/* A program that loads the library by itself, so that nothing that is loaded later sees its names, as ctypes of Python does.
 * C11, Linux.
 *
 *   local_scope LIBRARY DESCRIPTION OPERATOR      prints the codes of aclrtSetDevice, the load and the name, and the message
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* POSIX says that an address that dlsym gives is that of a function. */
#define FIND(function, name)                                      \
    do {                                                          \
        void *const address = dlsym(library, name);               \
        if (address == NULL) {                                    \
            return 3;                                             \
        }                                                         \
        memcpy(&(function), &address, sizeof address);            \
    } while (0)

int main(int argc, char **argv) {
    int (*set)(int);
    int (*load)(const char *, void *, void **);
    int (*get)(void *, const char *, void **);
    const char *(*message)(void);
    void *binary = NULL, *function = NULL;
    void *const library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        return 2;
    }
    FIND(set, "aclrtSetDevice");
    FIND(load, "aclrtBinaryLoadFromFile");
    FIND(get, "aclrtBinaryGetFunction");
    FIND(message, "aclrtGetRecentErrMsg");
    const int codes[3] = {set(0), load(argv[2], NULL, &binary), get(binary, argv[3], &function)};
    const char *const text = message();
    printf("%d %d %d %s\n", codes[0], codes[1], codes[2], text ? text : "");
    /* Its threads continue after this. */
    return dlclose(library);
}

/* A program that ends without closing its device. */

#include "acl/acl.h"
#include "check.h"

int main(void) {
    void *buffer = NULL;
    CHECK(aclrtSetDevice(0), ACL_SUCCESS);
    CHECK(aclrtMalloc(&buffer, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    CHECK(aclrtMemset(buffer, 64, 7, 64), ACL_SUCCESS);
    return 0;
}

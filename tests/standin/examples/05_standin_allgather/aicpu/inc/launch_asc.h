#ifndef STANDIN_LAUNCH_ASC_H
#define STANDIN_LAUNCH_ASC_H

#include "acl/acl_rt.h"
#include "common.h"

HcclResult LaunchAsc(const Param &param, aclrtStream stream);

#endif

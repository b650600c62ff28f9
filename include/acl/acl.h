/* The runtime: everything of acl_base.h and acl_rt.h. */

#ifndef HCOMM_SIM_ACL_H
#define HCOMM_SIM_ACL_H

#include "acl_base.h"
#include "acl_rt.h"

#endif /* HCOMM_SIM_ACL_H */

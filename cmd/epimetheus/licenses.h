/* The licences of all code that is linked into the programs or embedded in the page. */
#ifndef CMD_EPIMETHEUS_LICENSES_H
#define CMD_EPIMETHEUS_LICENSES_H

#include "base/str.h"

void licenses_print(struct buf *out);

#endif

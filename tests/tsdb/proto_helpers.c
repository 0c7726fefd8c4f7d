/* The profile folder's comparison and real profiles, for these tests too. */
#include "tests/proto/profile_compare.c"
#include "tests/proto/testdata.c"

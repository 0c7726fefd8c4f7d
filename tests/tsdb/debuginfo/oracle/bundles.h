/* Bundles of files that tests have made: a binary and what a shell's pattern finds beside it. */
#ifndef TESTS_TSDB_DEBUGINFO_ORACLE_BUNDLES_H
#define TESTS_TSDB_DEBUGINFO_ORACLE_BUNDLES_H

#include "base/str.h"

/*
 * The bundle of DIR/binary and the files that match DIR/pattern, in the order of their names: *.dwp
 * is a package, *.dwo and *.o have units, others are dwz's common file. False: a file cannot be
 * read, or no file matches.
 */
bool oracle_bundle(struct buf *out, const char *dir, const char *binary, const char *pattern);

#endif

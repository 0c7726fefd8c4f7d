/*
 * Torture: makes the nth allocation, or the nth system call, of a request fail, for every n.
 *
 * The programs of this folder are linked so that the calls of our own code go through torture.c:
 * malloc and its kin, the arena's, and the libc functions that reach the kernel (the lists are in
 * tests.mk). Libraries call their own: C++ ends the program where `new` fails (LevelDB, RE2), so
 * nothing of that is claimed here.
 *
 * Threads: counting is for all threads but those that torture_spare; one test arms at a time.
 */
#ifndef TESTS_TORTURE_TORTURE_H
#define TESTS_TORTURE_TORTURE_H

#include "base/str.h"

enum torture_what { TORTURE_MEMORY, TORTURE_CALLS };
enum torture_how { TORTURE_ONCE, TORTURE_FROM_THEN_ON };

/* The nth of them from now on fails (1: the next), or all from it on; 0: none, they are counted. */
void torture_arm(enum torture_what what, enum torture_how how, uint64_t nth);
/* Back to normal; gives how many there were. */
uint64_t torture_disarm(void);
bool torture_struck(void); /* something failed since torture_arm */
void torture_spare(void); /* the calling thread fails and counts nothing from now on */
void torture_print_site(void); /* where the first failure was, by addr2line */

/*
 * A request. It leaves its answer in *out (text that is the same each time), or fails with a code
 * and a message.
 */
struct torture_path {
	const char *name;
	enum err_code (*run)(const struct torture_path *p, struct buf *out, struct err *err);
	const char *request; /* for run */
	bool all; /* each failure is tried, whatever EPI_TORTURE_POINTS says */
};

/*
 * Runs the path with each failure in turn: it must give the right answer, or an error that says
 * something, or an answer with warnings; and afterwards, undisturbed, the right answer.
 * EPI_TORTURE_POINTS bounds how many failures are tried per path and kind (0: all); they are spread
 * evenly.
 */
void torture_path(const struct torture_path *p);

#endif

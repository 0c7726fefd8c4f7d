#include "tests/proto/legacy/bodies.h"

#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}
#define Z4 "\0\0\0\0"
#define MAPS \
	"00400000-00e00000 r-xp 00000000 00:00 15953927    /bin/server\n" \
	"00e00000-00f00000 rw-p 00a00000 00:00 15953927    /bin/server\n" \
	"7f0000000000-7f0000100000 r-xp 00001000 fc:00 12 /lib/libc-2.15.so\n" \
	"7f0000100000-7f0000200000 r-xp 00101000 fc:00 12 /lib/libc-2.15.so\n" \
	"7fff00000000-7fff00001000 r-xp 00000000 00:00 0 [vdso]\n"

const struct legacy_body legacy_bodies[] = {
	{ "cpu",
		LIT(Z4 "\3\0\0\0" Z4 "\x10\x27\0\0" Z4 "\2\0\0\0"
			   "\3\0\0\0"
			   "\0\x10\x40\0"
			   "\1\x10\x40\0"
			   "\0\x20\x40\0"
			   "\1\0\0\0"
			   "\2\0\0\0"
			   "\0\x10\x40\0"
			   "\0\x30\x40\0" Z4 "\1\0\0\0" Z4 MAPS) },
	{ "cpu without a map",
		LIT(Z4 Z4 "\3\0\0\0" Z4 Z4 Z4 "\x10\x27\0\0" Z4 Z4 Z4 "\2\0\0\0" Z4 "\1\0\0\0" Z4
				  "\0\x10\0\0" Z4 Z4 Z4 "\1\0\0\0" Z4 Z4 Z4) },
	{ "cpu of Java",
		LIT(Z4 "\3\0\0\0"
			   "\1\0\0\0"
			   "\x10\x27\0\0" Z4 "\2\0\0\0"
			   "\1\0\0\0"
			   "\0\x10\0\0" Z4 "\1\0\0\0" Z4 "0x1000 a.b (c.java:1)\n") },
	{ "heap",
		LIT("heap profile:    250: 1024000 [  500: 2048000] @ heap_v2/524288\n"
			"   1: 4096 [ 3: 12288] @ 0x401000 0x402000 0x7f0000000010\n"
			"  10: 10485760 [ 10: 10485760] @ 0x401000 0x403000\n"
			"   0: 0 [ 7: 7777] @ 0x401000 0x404000\n"
			"\n# a comment\nMAPPED_LIBRARIES:\n" MAPS) },
	{ "heap of handlers",
		LIT("heap profile: 1: 4096 [ 1: 4096] @ heapprofile\n"
			"1: 4096 [1: 4096] @ 0x401000 0x402000\n  -1: -4096 [ 0: 0 ] @ 0x401000\n"
			"MAPPED_LIBRARIES:\nbuild=/bin/server\n00400000-00e00000 r-xp 00000000 00:00 1 "
			"$build\n") },
	{ "heap of Go",
		LIT("heap profile: 2: 9000 [4: 20000] @ heap/1048576\n"
			"1: 8192 [2: 16384] @ 0x1000 0x2000\n#\t0x1000\tmain.f+0x1\t/src/a.go:3\n\n"
			"1: 808 [2: 3616] @ 0x3000\n\n# runtime.MemStats\n# Alloc = 1\n") },
	{ "heap without sampling",
		LIT("heap profile: 1: 4096 [1: 4096] @ heapz_v2\n1: 4096 [1: 4096] @ 0x1000 0x2000\n") },
	{ "growth",
		LIT("heap profile:   3: 8192 [   3: 8192] @ growthz\n"
			"   2: 4096 [  2: 4096] @ 0x401000 0x402000\n   1: 4096 [  1: 4096] "
			"@\nMAPPED_LIBRARIES:\n" MAPS) },
	{ "fragmentation",
		LIT("heap profile: 1: 1 [1: 1] @ fragmentationz\n1: 1 [1: 1] @ 0x401000\n") },
	{ "goroutines",
		LIT("\n# a comment\ngoroutine profile: total 5\n3 @ 0x401001 0x402001\n"
			"#\t0x401000\tmain.f+0x1\t/src/a.go:3\n\n2 @ 0x401001 0x403001\n1 @ 0x0 0x1\n010 @ "
			"0x401001\n") },
	{ "counts with a map",
		LIT("sub/dir-ect_o.ry profile: total 1\r\n1 @ 0x401000\r\n--- "
			"any\nMAPPED_LIBRARIES:\n" MAPS) },
	{ "threads",
		LIT("--- threadz 1 ---\n\n--- Thread 7eff063d9940 (name: main/25376) stack: ---\n"
			"  PC: 0x40b688 0x40b688 0x4d5f51\n  0x40be31: symbol\n--- Thread 7eff(name: x/1) "
			"stack: ---\n"
			"--- Thread 7f (name: main/12) stack: ---\n  [same as previous thread]\n"
			"--- Thread 7e (name: a/b/13) stack: ---\n 0x401000\n 0x401001\n"
			"--- Memory map: ---\n  00400000-00fcb000: /bin/server\n") },
	{ "threads to the end",
		LIT("--- Thread 7f (name: main/12) stack: ---\n  0x401000\n---- no stack trace for x\n"
			"--- Memory map: ---\n" MAPS) },
	{ "contentions",
		LIT("--- contentionz 1 ---\ncycles/second = 3201000000\nsampling period = 100\n"
			"ms since reset = 16502830\ndiscarded samples = 0\n  19490304       27 @ 0x401000 "
			"0x402000\n"
			" 77 @ 0x401000\n#\n  1 2 3 @ 0x403000\n--- Memory map: ---\n" MAPS) },
	{ "mutex of Go",
		LIT("--- mutex:\ncycles/second=2400000000\nsampling period=5\n"
			"100 3 @ 0x1000 0x2000\n#\t0x1000\tmain.f+0x1\n") },
	{ "block of Go", LIT("--- contention:\ncycles/second=0x10\n\n7 1 @ 0x1000 0x2000\n") },
	{ "contentions of Java",
		LIT("--- contentionz 1 ---\nformat = java\nresolution = microseconds\n"
			"sampling period = 100\n 1 2 @ 0x1\n0x1 a.b (c.java:1)\n") },
	{ "heap of Java",
		LIT("--- heapz 1 ---\nformat = java\nresolution=bytes\n 1 4096 @ 0x1000\n0x1000 a.b "
			"(c.java:1)\n") },
	{ "maps",
		LIT("heap profile: 1: 1 [1: 1] @ growth\n"
			"1: 1 [1: 1] @ 0x3ff000 0x401000 0x500000 0x600001 0x700001 0x800001 0x10001 0x40001 "
			"0x9000000001\n"
			"--- Memory map: ---\n"
			"W1220 15:07:15.202776    8272 logger.cc:12036]   0x40000-0x80000 /path/to/binary      "
			"(@FF00)  abc123456\n"
			"  00401000-00500000: /bin/first (@1000)\n"
			"a = /bin/$other\nother=x\n600000-700000 r-xp 0 00:00 1 $a$other/$\n"
			"700000 800000 --xp 00002000 00:00 1531        myprogram\n"
			"0x800000 0x900000 r-xp abc_exe 87c4d547f895cfd6a370e08dc5c5ee7bd4199d5b\n"
			"  02e00000-02e8a000: /foo/bin (deleted)\n9000000000-9000100000 ---p 00002000 00:00 "
			"1531 data\n"
			"9000000000-9000100000 r-xp 00003000 00:00 0\n7f5e5435e000-7f5e5455e000 process_exe\n"
			"deadbeef\nbad one\n0x\n0x1 f\n10000x20000 x\n") },
	{ "hugepage",
		LIT("heap profile: 1: 1 [1: 1] @ growth\n1: 1 [1: 1] @ 0x401000 "
			"0x601000\nMAPPED_LIBRARIES:\n"
			"00400000-00600000 r-xp 00000000 00:00 1 /anon_hugepage(deleted)\n"
			"00600000-00700000 r-xp 00200000 00:00 1 /bin/server\n") },
	{ "overlapping maps",
		LIT("heap profile: 1: 1 [1: 1] @ growth\n1: 1 [1: 1] @ 0x401000 0x501000 0x601000 0x1000\n"
			"MAPPED_LIBRARIES:\n00500000-00700000 r-xp 00100000 00:00 1 /a.so\n00400000-00600000 "
			"r-xp 00000000 00:00 1 /b.so\n"
			"600000-500000 r-xp 0 00:00 1 /c.so\n") },
};
const size_t legacy_bodies_n = sizeof(legacy_bodies) / sizeof(legacy_bodies[0]);

static void add_word(struct buf *out, unsigned form, uint64_t v)
{
	unsigned bytes = form & 2 ? 8 : 4;

	for (unsigned i = 0; i < bytes; i++)
		buf_add_char(out, (char)(v >> 8 * (form & 1 ? bytes - 1 - i : i)));
}

void legacy_cpu_body(struct buf *out, unsigned form, unsigned similar)
{
	static const uint64_t header[] = { 0, 3, 0, 10000, 0 };

	for (size_t i = 0; i < sizeof(header) / sizeof(header[0]); i++)
		add_word(out, form, header[i]);
	for (unsigned i = 0; i < similar + 2; i++) {
		uint64_t leaf = 0x401000 + i % 7;
		/* The handler's frames, the leaf again as a return, and callers. */
		const uint64_t stack[] = { leaf, i == 3 ? 0x409999 : 0x408888, 0x407777, leaf,
			0x500000 + i % 3, 0x600000 };
		unsigned depth = i == 5 ? 1 : 6;

		add_word(out, form, i + 1);
		add_word(out, form, depth);
		for (unsigned k = 0; k < depth; k++)
			add_word(out, form, stack[k]);
	}
	add_word(out, form, 0);
	add_word(out, form, 1);
	add_word(out, form, 0);
	buf_add_cstr(out, MAPS);
}

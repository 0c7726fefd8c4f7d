/* What differs from run to run is not in a name. */
#include "proto/jfr/decoder.h"
#include "tests/check.h"

static const struct {
	const char *name, *want;
} cases[] = {
	{ "java/util/ArrayList", "java/util/ArrayList" },
	{ "[Ljava/lang/String;", "[Ljava/lang/String;" },
	{ "", "" },
	{ "OrderService$$Lambda$669.0x0000000800fd7318", "OrderService$$Lambda_" },
	{ "Fib$$Lambda.0x00007ffa600c4da0", "Fib$$Lambda_" },
	{ "Fib$$Lambda/0x00007ffa600c4da0", "Fib$$Lambda_" },
	{ "a/Work$$Lambda$14/1234567", "a/Work$$Lambda_" },
	{ "a.b.Work$$Lambda$72+0x00007fd544042338/1418334255", "a/b/Work$$Lambda_" },
	{ "a/Work$$LambdaForm", "a/Work$$LambdaForm" },
	{ "java/lang/invoke/LambdaForm$MH.0x0000000800c18000", "java/lang/invoke/LambdaForm$MH_" },
	{ "java.lang.invoke.LambdaForm$DMH+0x00007f02e8087598/12", "java/lang/invoke/LambdaForm$DMH_" },
	{ "a/b.0xzz", "a/b.0xzz" },
	{ "a/b.0x12/+", "a/b.0x12/+" },
	{ "jdk/internal/reflect/GeneratedMethodAccessor31",
		"jdk/internal/reflect/GeneratedMethodAccessor_" },
	{ "sun/reflect/GeneratedConstructorAccessor4", "sun/reflect/GeneratedConstructorAccessor_" },
	{ "jdk/internal/reflect/GeneratedMethodAccessor",
		"jdk/internal/reflect/GeneratedMethodAccessor" },
	{ "app/GeneratedMethodAccessor31", "app/GeneratedMethodAccessor31" },
	{ "jdk/proxy2/$Proxy31", "jdk/proxy2/$Proxy31" },
	{ "libjvm.so", "libjvm.so" },
	{ "libc-2.31.so", "libc-2.31.so" },
	{ "libzstd-jni-1.5.1-16931311898282279136.so", "libzstd-jni-1.5.1-_.so" },
	{ "libamazonCorrettoCryptoProvider109b39cf33c563eb.so", "libamazonCorrettoCryptoProvider_.so" },
	{ "/tmp/snappy-1.1.8-6fb9393a-3093-4706-a7e4-837efe01d078-libsnappyjava.so",
		"/tmp/snappy-1.1.8-_-libsnappyjava.so" },
	{ "libasyncProfiler-linux-arm64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
		"libasyncProfiler-linux-arm64-_.so" },
};

TEST(names)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		buf_clear(&out);
		jfr_add_class_name(&out, str_of(cases[i].name));
		CHECK_STR(buf_str(&out), cases[i].want);
	}
	buf_release(&out);
}

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;

/** Threads whose costs are known by name: cpu, allocation, a contended monitor, parking, sleeping. */
public class Work {
	static volatile long sink;
	static volatile Object keep;
	static final Object lock = new Object();

	static long hotLeaf(long n) {
		long x = 1;
		for (long i = 0; i < n; i++)
			x = x * 6364136223846793005L + i;
		return x;
	}

	static long hotCaller(long n) {
		return hotLeaf(n) ^ hotLeaf(n / 2);
	}

	static long deep(int depth, long n) {
		return depth == 0 ? hotLeaf(n) : deep(depth - 1, n) + 1;
	}

	static void allocateSmall() {
		for (int i = 0; i < 500; i++)
			keep = new int[200];
	}

	static void allocateLarge() {
		keep = new byte[3 << 20];
	}

	static void holdLock() throws InterruptedException {
		synchronized (lock) {
			Thread.sleep(15);
		}
	}

	static void parkAWhile() {
		LockSupport.parkNanos(12_000_000);
	}

	interface Body {
		void run() throws Exception;
	}

	static void start(String name, long until, Body body, List<Thread> all) {
		Thread t = new Thread(() -> {
			try {
				while (System.nanoTime() < until)
					body.run();
			} catch (Exception e) {
				throw new RuntimeException(e);
			}
		}, name);
		all.add(t);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		long until = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
		int depth = Integer.parseInt(args[1]);
		LongUnaryOperator lambda = n -> hotLeaf(n);
		List<Thread> all = new ArrayList<>();

		start("hot", until, () -> sink = hotCaller(200_000), all);
		start("deep", until, () -> sink = deep(depth, 300_000), all);
		start("lambda", until, () -> sink = lambda.applyAsLong(300_000), all);
		start("allocate", until, () -> { allocateSmall(); allocateLarge(); Thread.sleep(5); }, all);
		start("lock-\u00e9", until, Work::holdLock, all);
		start("lock-\u4e2d", until, Work::holdLock, all);
		start("park", until, Work::parkAWhile, all);
		for (Thread t : all)
			t.join();
	}
}

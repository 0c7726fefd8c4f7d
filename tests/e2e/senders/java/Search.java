import java.io.IOException;
import java.lang.management.ManagementFactory;

/** A program that Pyroscope's agent for Java profiles: it computes and allocates until its standard input ends, then it says
 * how much CPU time it used. */
public class Search {
	static final byte[][] kept = new byte[64][];
	static long sum;
	static volatile boolean over;

	static void scoreDocuments(int n) {
		long s = sum;
		for (int i = 0; i < n; i++)
			s = s * 6364136223846793005L + (s >>> 7) + i;
		sum = s;
	}

	static void readIndex(int i) {
		kept[i % kept.length] = new byte[64 << 10];
	}

	public static void main(String[] args) throws Exception {
		Thread wait = new Thread(() -> {
			try {
				while (System.in.read() >= 0) {
				}
			} catch (IOException e) {
				throw new RuntimeException(e);
			}
			over = true;
		});
		wait.setDaemon(true);
		wait.start();
		for (int i = 0; !over; i++) {
			scoreDocuments(20 << 20);
			readIndex(i);
			Thread.sleep(10);
		}
		long used = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
		// The agent sends every two seconds, and nothing at the end.
		Thread.sleep(5000);
		System.out.println("{\"cpu_ns\": " + used + "}");
	}
}

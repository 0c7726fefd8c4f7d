import io.pyroscope.labels.v2.LabelsSet;
import io.pyroscope.labels.v2.Pyroscope;

/** Two threads whose samples carry labels, and one whose samples carry none, under the agent. */
public class Labelled {
	public static void main(String[] args) throws Exception {
		long until = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
		Thread a = new Thread(() -> Pyroscope.LabelsWrapper.run(
			new LabelsSet("vehicle", "car", "region", "\u00fcber"), () -> {
				while (System.nanoTime() < until)
					Work.sink = Work.hotCaller(200_000);
			}), "car");
		Thread b = new Thread(() -> {
			while (System.nanoTime() < until)
				Pyroscope.LabelsWrapper.run(new LabelsSet("vehicle", "bike"), () -> {
					Work.sink = Work.deep(30, 300_000);
					Work.allocateSmall();
				});
		}, "bike");
		Thread c = new Thread(() -> {
			while (System.nanoTime() < until)
				Work.sink = Work.hotLeaf(300_000);
		}, "plain");
		for (Thread t : new Thread[] { a, b, c })
			t.start();
		for (Thread t : new Thread[] { a, b, c })
			t.join();
	}
}

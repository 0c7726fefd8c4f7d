// Explore before the first profile: how to get one.
import { CopyButton } from "./copybutton";
import "./nothingstored.css";

const CONFIG = `scrape_configs:
  - job_name: my-service
    static_configs: [{ targets: ["localhost:6060"] }]
`;

export function NothingStored() {
	return (
		<section class="panel nothing-stored">
			<h2>No profiles are stored yet</h2>
			<p>
				Name a program that serves <code>/debug/pprof/</code> in the configuration file, and
				have it read again (SIGHUP, or a restart):
			</p>
			<div class="nothing-config">
				<pre>{CONFIG}</pre>
				<CopyButton text={CONFIG} />
			</div>
			<p>
				The page of <a href="targets">targets</a> shows what is scraped now and what went
				wrong; the first profiles are here after one scrape interval.
			</p>
		</section>
	);
}

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { installDebug } from "./lib/debug";
import { UrlContext } from "./lib/hooks";
import { installTheme } from "./lib/theme";
import { UrlStore } from "./lib/urlstate";

installTheme();
installDebug(window);
render(
	<UrlContext.Provider value={new UrlStore(window)}>
		<App />
	</UrlContext.Provider>,
	document.getElementById("app")!,
);

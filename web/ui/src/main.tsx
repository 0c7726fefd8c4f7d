import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { App } from "./app";
import { installDebug } from "./shared/debug";
import { UrlContext } from "./shared/hooks";
import { must } from "./shared/must";
import { watchPresses } from "./shared/press";
import { installTheme } from "./shared/theme";
import { UrlStore } from "./shared/urlstate";

installTheme();
installDebug(window);
watchPresses(window);
render(
	<UrlContext.Provider value={new UrlStore(window)}>
		<App />
	</UrlContext.Provider>,
	must(document.getElementById("app"), "#app"),
);

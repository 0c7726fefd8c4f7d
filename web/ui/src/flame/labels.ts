// The text on a frame: the longest form of a name that fits. Forms and widths are computed when a
// name is first drawn, and cached.
import { nameForms } from "./names";

interface Label {
	forms: string[];
	widths: number[];
	/** If no form fits, the last one is cut; this is the last result. */
	cutAt: number;
	cutText: string;
}

export class FrameLabels {
	private names: string[] = [];
	private labels: (Label | undefined)[] = [];
	private charW = new Float64Array(128);
	private wideW: number;

	/** `measure` returns the width of a text in the font of the graph. */
	constructor(measure: (s: string) => number) {
		for (let c = 32; c < 127; c++) this.charW[c] = measure(String.fromCharCode(c));
		this.wideW = measure("…");
	}

	setNames(names: string[]): void {
		if (names === this.names) return;
		this.names = names;
		this.labels = new Array(names.length);
	}

	private width(s: string): number {
		let w = 0;
		for (let k = 0; k < s.length; k++) w += this.charAt(s, k);
		return w;
	}

	private charAt(s: string, k: number): number {
		const c = s.charCodeAt(k);
		return c < 128 ? this.charW[c] : this.wideW;
	}

	/** The text for `room` pixels; "" if nothing readable fits. */
	fit(name: number, room: number): string {
		let label = this.labels[name];
		if (!label) {
			const forms = nameForms(this.names[name]);
			const widths = forms.map((s) => this.width(s));
			label = { forms, widths, cutAt: -1, cutText: "" };
			this.labels[name] = label;
		}
		for (let k = 0; k < label.forms.length; k++)
			if (label.widths[k] <= room) return label.forms[k];
		const last = label.forms[label.forms.length - 1];
		let w = this.wideW;
		let cut = 0;
		while (cut < last.length && w <= room) w += this.charAt(last, cut++);
		if (cut <= 2) return "";
		if (cut !== label.cutAt) {
			label.cutAt = cut;
			label.cutText = last.slice(0, cut - 1) + "…";
		}
		return label.cutText;
	}
}

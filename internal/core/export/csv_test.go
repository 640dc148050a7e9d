package export

import "testing"

func TestATextThatASpreadsheetWouldCalculateIsText(t *testing.T) {
	for text, want := range map[string]string{"+1": "'+1", "-x": "'-x", "@a": "'@a", "=a": "'=a", "runc": "runc", "": "", "\t=a": `\t=a`} {
		if got := harmless(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

package terms

import (
	"slices"
	"testing"
	"time"
)

func TestALoadIsOfTheWorkloadsOwnOrACommandBesideIt(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"http://:8080/": true, "https://:8443/a?b=c": true, "exec:/usr/bin/ab -n 10": true,
		"http://example.org:80/": false, "http:///": false, "http://me:word@:80/": false, "ftp://:21/": false, "exec:ab": false, "exec:": false, `exec:/bin/sh -c "a`: false, "": false,
	} {
		if err := CheckLoad(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if words, is := LoadCommand("exec:/bin/x  a 'b c'"); !is || !slices.Equal(words, []string{"/bin/x", "a", "b c"}) {
		t.Errorf("a command is %q", words)
	}
	if l := (Load{Connections: 3}).Filled(); l.Connections != 3 || l.Duration != 10*time.Second || l.Answer != 3*time.Second {
		t.Errorf("filled it is %+v", l)
	}
}

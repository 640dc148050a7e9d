package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/testing/must"
)

// served starts tare serve and returns its address, with a token.
func served(t *testing.T, dir string) string {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- cli.Execute(ctx, []string{"serve", dir}, cli.Streams{Out: write, Err: io.Discard})
		write.Close()
	}()
	t.Cleanup(func() {
		interrupt()
		if got := <-code; got != cli.ExitDone {
			t.Errorf("tare serve: exit %d", got)
		}
	})
	address, err := bufio.NewReader(read).ReadString('\n')
	must.OK(t, err)
	return strings.TrimSpace(address)
}

func TestServedPagesCanBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS("../../../record/testdata/v1")))
	const hostile = "<img src=x onerror=alert(1)>.jsonl"
	must.Write(t, filepath.Join(dir, hostile), "garbled")
	text := must.Read(t, filepath.Join(dir, "lifecycle.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	growing, err := os.Create(filepath.Join(dir, "growing.jsonl")) // without its end, which comes later
	must.OK(t, err)
	defer growing.Close()
	grow := func(lines []string) {
		if _, err := growing.WriteString(strings.Join(lines, "")); err != nil {
			t.Fatal(err)
		}
	}
	grow(lines[:8])

	p := newTab(t)
	address := served(t, dir)
	p.home, _, _ = strings.Cut(address, "?")
	p.in("the address in the end has no token", func() {
		p.open(address)
		if at := eval[string](p, `() => location.href`); at != p.home {
			p.Errorf("it is %s", at)
		}
		if shown := eval[string](p, `() => document.body.textContent`); !strings.Contains(shown, hostile) {
			p.Errorf("a name of others is not there as a text:\n%s", shown)
		}
	})
	for _, at := range []string{"", "?q=storage", "live?r=growing.jsonl", "live?r=lifecycle.jsonl"} {
		for width, theme := range looks {
			p.in(fmt.Sprintf("/%s, %s, %d px wide", at, theme, width), func() {
				p.resize(width)
				p.medium(theme)
				p.open(p.home + at)
				p.run(painted, nil)
				p.isUsable()
			})
		}
	}
	p.in("two are chosen and compared", func() {
		p.open(p.home)
		eval[bool](p, `() => { for (const [name, value] of [['a', 'startup.jsonl'], ['b', 'startup.jsonl']]) document.querySelector('[name=' + name + '][value="' + value + '"]').click(); return true }`)
		if at := eval[string](p, `() => location.origin + '/compare?' + new URLSearchParams(new FormData(document.querySelector('form[action="/compare"]')))`); at != p.home+"compare?a=startup.jsonl&b=startup.jsonl" {
			p.Errorf("asked for is %s", at)
		}
	})
	p.in("a report is opened, and leads back", func() {
		p.open(p.home + "report?r=lifecycle.jsonl")
		p.await(drawn)
		if back := eval[string](p, `() => document.querySelector('.beside a').href`); back != p.home {
			p.Errorf("to %s", back)
		}
	})
	p.in("a run under way is seen to go on, and to end", func() {
		p.open(p.home + "live?r=growing.jsonl")
		before := eval[string](p, `() => document.getElementById('samples').textContent`)
		grow(lines[8:20])
		p.await(`() => document.getElementById('samples').textContent !== '` + before + `'`)
		grow(lines[20:])
		p.await(`() => document.getElementById('state').textContent === 'done'`)
		rec, n := load(t, growing.Name()), 0
		for _, b := range rec.Batches {
			n += len(b.Samples)
		}
		if shown := eval[string](p, `() => document.getElementById('samples').textContent`); shown != fmt.Sprint(n) {
			p.Errorf("%s samples and not %d", shown, n)
		}
	})
}

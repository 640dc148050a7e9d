package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// lookFor limits the time in which one request reads new and changed files, newest first.
// The next request continues.
const lookFor = 20 * time.Second

// index caches data about the records below a folder. Changed files are read again, or only
// their appended part.
type index struct {
	root  *os.Root
	lines *record.Lines

	mu      sync.Mutex
	entries map[string]*entry // by path below root
	walked  time.Time
	bounded string // exceeded limit, or ""
}

// found is a file with its current index data.
type found struct {
	path string
	entry
}

var errNoRecord = errors.New("no such record")

// list updates and returns the whole index.
func (x *index) list(ctx context.Context) (all []found, bounded string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refresh(ctx)
	for path, e := range x.entries {
		all = append(all, found{path, *e})
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(b.began().Compare(a.began()), strings.Compare(a.path, b.path))
	})
	return all, x.bounded
}

// find updates and returns one record with a header, by its key. Only listed files can be
// found, which excludes links and files outside of the folder.
func (x *index) find(ctx context.Context, key string) (found, error) {
	path, err := url.PathUnescape(key)
	if err != nil {
		return found{}, errNoRecord
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.entries[path] == nil {
		x.refresh(ctx)
	}
	e := x.entries[path]
	if e == nil {
		return found{}, errNoRecord
	}
	x.look(path, e)
	if e.header == nil {
		return found{}, e.err
	}
	return found{path, *e}, nil
}

// open opens a file below the folder.
func (x *index) open(path string) (*os.File, fs.FileInfo, error) {
	// Do not block on a pipe that another user created in the folder.
	f, err := x.root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func (x *index) look(path string, e *entry) {
	f, info, err := x.open(path)
	if err != nil {
		*e = entry{info: e.info, err: err}
		return
	}
	defer f.Close()
	e.look(x.lines, f, info)
}

// refresh reads the folder again, at most once a second.
func (x *index) refresh(ctx context.Context) {
	if time.Since(x.walked) < time.Second {
		return
	}
	var there map[string]fs.FileInfo
	there, x.bounded = record.Walk(x.root.FS())
	maps.DeleteFunc(x.entries, func(path string, _ *entry) bool { return there[path] == nil })
	newest := func(a, b string) int { return there[b].ModTime().Compare(there[a].ModTime()) }
	began := time.Now()
	for _, path := range slices.SortedFunc(maps.Keys(there), newest) {
		e := x.entries[path]
		if e == nil {
			e = &entry{}
			x.entries[path] = e
		}
		switch {
		case e.same(there[path]):
		case time.Since(began) > lookFor || ctx.Err() != nil:
			x.bounded = fmt.Sprintf("not all records were read within %v: reload the page", lookFor)
			if e.header == nil { // otherwise keep the data read so far
				*e = entry{err: errors.New("not read yet")}
			}
		default:
			x.look(path, e)
		}
	}
	x.walked = time.Now()
}

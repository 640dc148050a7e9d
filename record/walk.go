package record

import (
	"fmt"
	"io/fs"
	"strings"
)

// Bounds of [Walk]. What is beyond them is told of.
const (
	maxWalked  = 10_000  // files that may be records
	maxVisited = 100_000 // files and folders that are looked at
	maxDepth   = 16
)

// Hidden begins the names of files and folders that are not whole yet.
const Hidden = ".tare-"

// Walk finds the files below a folder that may be records, by their names, and says
// which bound was met, "" if none. It follows no link, and finds nothing that is [Hidden].
func Walk(files fs.FS) (there map[string]fs.FileInfo, bounded string) {
	there = map[string]fs.FileInfo{}
	visited := 0
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		visited++
		switch {
		case visited > maxVisited:
			bounded = fmt.Sprintf("only the first %d files and folders were looked at", maxVisited)
			return fs.SkipAll
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir // the other folders can be read
		case err != nil:
			return nil
		case d.IsDir() && strings.HasPrefix(d.Name(), Hidden):
			return fs.SkipDir
		case d.IsDir() && strings.Count(name, "/") >= maxDepth:
			bounded = fmt.Sprintf("folders below %d others were not looked at", maxDepth)
			return fs.SkipDir
		case !d.Type().IsRegular() || !IsName(name):
			return nil
		case len(there) == maxWalked:
			bounded = fmt.Sprintf("only the first %d records are listed", maxWalked)
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil {
			there[name] = info
		}
		return nil
	})
	return there, bounded
}

package record

import (
	"fmt"
	"io/fs"
	"strings"
)

// Limits of [Walk].
const (
	maxWalked  = 10_000  // files that may be records
	maxVisited = 100_000 // files and folders
	maxDepth   = 16
)

// Hidden is the prefix of files and folders that are incomplete.
const Hidden = ".tare-"

// Walk returns the files below a folder that are named like records. bounded describes the limit
// that ended the search, or is "". Walk does not follow symbolic links, and skips [Hidden] names.
func Walk(files fs.FS) (found map[string]fs.FileInfo, bounded string) {
	found = map[string]fs.FileInfo{}
	visited := 0
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		visited++
		switch {
		case visited > maxVisited:
			bounded = fmt.Sprintf("only the first %d files and folders were looked at", maxVisited)
			return fs.SkipAll
		case err != nil && d != nil && d.IsDir():
			return fs.SkipDir // unreadable
		case err != nil:
			return nil
		case d.IsDir() && strings.HasPrefix(d.Name(), Hidden):
			return fs.SkipDir
		case d.IsDir() && strings.Count(name, "/") >= maxDepth:
			bounded = fmt.Sprintf("folders below %d others were not looked at", maxDepth)
			return fs.SkipDir
		case !d.Type().IsRegular() || !IsName(name):
			return nil
		case len(found) == maxWalked:
			bounded = fmt.Sprintf("only the first %d records are listed", maxWalked)
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil {
			found[name] = info
		}
		return nil
	})
	return found, bounded
}

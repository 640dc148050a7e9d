package tool

import (
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// options are those that all jobs have alike.
func (out *fioOutput) options() FioOptions {
	o := FioOptions{
		RW: out.option("rw", "readwrite"), Engine: out.option("ioengine"),
		BS: sizeOrNone(out.option("bs", "blocksize")), Size: sizeOrNone(out.option("size")),
		NumJobs: numberOrNone(out.option("numjobs")), IODepth: numberOrNone(out.option("iodepth")),
	}
	// An option without a value is switched on.
	direct := out.option("direct")
	o.Direct = direct == "1" || direct == "" && out.has("direct")
	if o.Size == 0 {
		each, files := sizeOrNone(out.option("filesize")), int64(numberOrNone(out.option("nrfiles")))
		if each > 0 && each <= maxBytes/max(files, 1) {
			o.Size = each * max(files, 1)
		}
	}
	return o
}

// option is the value of one of these names, "" where jobs differ. What is no
// plain word is not given on.
func (out *fioOutput) option(names ...string) string {
	value := ""
	for i := range out.Jobs {
		own := ""
		for _, name := range names {
			if v, ok := out.Jobs[i].Options[name]; ok {
				own = v
			} else if v, ok := out.Global[name]; ok && own == "" {
				own = v
			}
		}
		if i > 0 && own != value {
			return ""
		}
		value = own
	}
	if len(value) > 100 || !printable(value) {
		return ""
	}
	return value
}

func (out *fioOutput) has(name string) bool {
	for i := range out.Jobs {
		_, own := out.Jobs[i].Options[name]
		_, global := out.Global[name]
		if !own && !global {
			return false
		}
	}
	return true
}

// sizeOrNone reads one of fio's sizes; 0 for any other form, such as different
// blocks for reads and writes, or a part of a device.
func sizeOrNone(s string) int64 {
	n, err := storage.ParseFioSize(s)
	if err != nil {
		return 0
	}
	return n
}

func numberOrNone(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

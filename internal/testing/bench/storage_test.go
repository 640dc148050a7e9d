package bench

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/testing/must"
)

// BenchmarkStorage sets the time of a MiB as fio tells it when tare storage runs it
// beside that of plain fio: the same command line, on a file of the same size and
// disk, after the same caches were dropped. The set-up of a cell, without layout
// and job, is to take 1.5 s at most, and tare at most 1 % of a core while a job runs.
func BenchmarkStorage(b *testing.B) {
	if _, err := exec.LookPath("fio"); err != nil {
		b.Skip(err)
	}
	dir, _, err := owned(b).Dirs("bare")
	must.OK(b, err)
	for _, job := range []string{"randread", "write"} {
		b.Run(job, func(b *testing.B) {
			var setUps, own []float64
			var command string
			byTare := func() float64 {
				r := recorded(b, "storage", "host", "--volume", "bind", "--size", "256M", "--jobs", job, "--rounds", "1", "--ceiling", "0")
				c := r.Cells[0]
				command = c.Command
				setUps, own = append(setUps, float64(c.SetUp)/1e6), append(own, 100*float64(c.Observed.OwnCPU)/float64(c.Ended-c.Begun))
				return (1 << 20) / (c.Reported.Read.Bandwidth + c.Reported.Write.Bandwidth) * 1e9
			}
			byTare()
			var args []string
			for arg := range strings.FieldsSeq(command) {
				if strings.HasPrefix(arg, "--filename=") {
					arg = "--filename=" + filepath.Join(dir, "file")
				}
				args = append(args, arg)
			}
			plain := func() float64 {
				must.OK(b, disk.DropCaches(b.Context()))
				var said struct {
					Jobs []struct {
						Read, Write struct {
							BW float64 `json:"bw_bytes"`
						}
					}
				}
				must.OK(b, json.Unmarshal(output(b, exec.Command(args[0], args[1:]...)), &said))
				return (1 << 20) / (said.Jobs[0].Read.BW + said.Jobs[0].Write.BW) * 1e9
			}
			plain() // lays the file out
			compare(b, side{"fio, for a MiB", plain}, side{"the same again (A/A)", plain}, side{"fio by tare storage", byTare})
			middle(b, "set-up-ms", setUps)
			middle(b, "own-CPU-%", own)
		})
	}
}

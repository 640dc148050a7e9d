package storage

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// fioOptions are the options allowed in a job file. They define how bytes are moved, and
// their values are neither paths nor programs. fio has some 250 more and adds new ones, so
// unknown options are rejected.
var fioOptions = strings.Fields(`
	rw readwrite rw_sequencer bs blocksize bsrange blocksize_range bssplit ba blockalign bs_unaligned blocksize_unaligned bs_is_seq_rand
	size io_size io_limit filesize filename nrfiles openfiles file_service_type number_ios loops offset offset_align offset_increment
	numjobs thread iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min
	iodepth_batch_complete_max iodepth_low io_submit_mode serialize_overlap ioengine hipri registerfiles fixedbufs
	sqthread_poll nonvectored nowait force_async userspace_reap iomem_align mem_align
	runtime timeout time_based ramp_time
	randrepeat randseed allrandrepeat norandommap softrandommap random_generator random_distribution percentage_random
	rwmixread rwmixwrite fsync fdatasync end_fsync fsync_on_close sync overwrite invalidate fallocate fadvise_hint
	thinktime thinktime_spin thinktime_blocks rate rate_min rate_iops rate_iops_min rate_process
	latency_target latency_window latency_percentile max_latency
	buffer_compress_percentage buffer_compress_chunk refill_buffers scramble_buffers zero_buffers dedupe_percentage
	nice prio prioclass cpus_allowed cpumask cpus_allowed_policy
	gtod_reduce disable_lat disable_clat disable_slat exitall create_serialize create_fsync description`)

// ourOptions are allowed in a job file but not passed to fio. tare sets them itself, or they
// do not affect what it reads.
var ourOptions = strings.Fields(`direct buffered group_reporting percentile_list clat_percentiles lat_percentiles slat_percentiles description`)

// fioEngines are the engines that read and write files. Others use the network or libraries,
// run programs, or move nothing.
var fioEngines = strings.Fields(`sync psync vsync pvsync pvsync2 libaio posixaio io_uring mmap splice`)

// refusals explain why common options are rejected, by patterns of names. The first match
// counts.
var refusals = []struct{ names, why string }{
	{"directory opendir filename_format", "files are in tare's own directory on every volume, with fio's own names: remove the line"},
	{"stonewall wait_for_previous wait_for new_group startdelay", "consecutive jobs have no common figure: use a separate job file for each"},
	{"unified_rw_reporting", "reads and writes are compared separately: remove the line"},
	{"create_only fill_device fill_fs file_append unlink unlink_each_loop pre_read create_on_open allow_file_create",
		"tare creates and removes the files: remove the line"},
	{"client server hostname port protocol listen", "tare does not use the network: run it in each place"},
	{"write_* log_* *_log per_job_logs", "it writes other files: remove the line"},
	{"read_iolog* replay_* merge_blktrace*", "it replays another file: write its I/O as options"},
	{"exec_* program arguments include* trigger*", "it runs a program or reads another file: remove the line"},
}

// IsOurs reports whether tare sets the option itself.
func (o *FioOption) IsOurs() bool { return slices.Contains(ourOptions, o.Name) }

// check rejects options unless they are known to stay within tare's own files.
func (o *FioOption) check() error {
	if !o.IsOurs() && !slices.Contains(fioOptions, o.Name) {
		for _, r := range refusals {
			for pattern := range strings.FieldsSeq(r.names) {
				if fits, _ := path.Match(pattern, o.Name); fits {
					return fmt.Errorf("option %.40q cannot be used: %s", o.Name, r.why)
				}
			}
		}
		return fmt.Errorf("option %.40q is not passed to fio by tare: remove the line, or write it as in fio(1)", o.Name)
	}
	if err := o.checkValue(); err != nil {
		return fmt.Errorf("%s=%.100q cannot be used: %w", o.Name, o.Value, err)
	}
	return nil
}

// checkValue accepts the characters of plain values: fio passes values with a $ to a shell.
// Slashes are allowed only in distributions. The options that tare sets are not passed to
// fio, so any line of text is allowed.
func (o *FioOption) checkValue() error {
	letters := alphanumeric + "_.,:%+-"
	if o.Name == "bssplit" || o.Name == "random_distribution" {
		letters += "/"
	}
	switch {
	case len(o.Value) > maxValue:
		return fmt.Errorf("it is %d bytes long: at most %d are allowed", len(o.Value), maxValue)
	case o.IsOurs() && strings.ContainsFunc(o.Value, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }):
		return errors.New("it is not one line of text")
	case o.IsOurs():
		return nil
	case strings.Trim(o.Value, letters) != "" || strings.Contains(o.Value, ".."):
		return errors.New("a value is a number or a plain name, without /, .. and $")
	}
	return o.checkMeaning()
}

// checkMeaning rejects values that leave tare's directory, run anything other than jobs on
// files, or have no predictable size.
func (o *FioOption) checkMeaning() error {
	switch o.first() {
	case "rw":
		word, _, _ := strings.Cut(o.Value, ":")
		if !slices.Contains([]string{"read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"}, word) {
			return errors.New("write read, write, randread, randwrite, rw or randrw")
		}
	case "ioengine":
		if !slices.Contains(fioEngines, o.Value) {
			return fmt.Errorf("it is no engine for files: write one of %s", strings.Join(fioEngines, ", "))
		}
	case "filename":
		for name := range strings.SplitSeq(o.Value, ":") {
			if name == "" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
				return fmt.Errorf("%.40q is no name of a file in tare's folder", name)
			}
		}
	case "runtime":
		_, err := ParseFioTime(o.Value)
		return err
	case "size", "io_size", "filesize", "offset", "offset_increment", "offset_align":
		_, err := ParseFioSize(o.Value)
		return err
	case "numjobs", "nrfiles":
		if n, err := strconv.Atoi(o.Value); err != nil || n < 1 || n > 1<<30 {
			return fmt.Errorf("write a whole number from 1 to %d", MaxJobFiles)
		}
	}
	return nil
}

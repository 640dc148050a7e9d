package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// crioConfig is the relevant part of CRI-O's configuration.
type crioConfig struct {
	CRIO struct {
		Root    string   `toml:"root"`
		RunRoot string   `toml:"runroot"`
		Driver  string   `toml:"storage_driver"`
		Options []string `toml:"storage_option"`
		Runtime struct {
			Default  string `toml:"default_runtime"`
			Cgroups  string `toml:"cgroup_manager"`
			PodCPUs  string `toml:"infra_ctr_cpuset"`
			DropPod  *bool  `toml:"drop_infra_ctr"`
			Runtimes map[string]struct {
				Path   string `toml:"runtime_path"`
				Type   string `toml:"runtime_type"`
				Config string `toml:"runtime_config_path"` // for "vm" only; absent in older versions
			} `toml:"runtimes"`
		} `toml:"runtime"`
		Image struct {
			Pause string `toml:"pause_image"`
		} `toml:"image"`
	} `toml:"crio"`
}

// fromCRIO reads CRI-O's configuration, over HTTP on the same socket.
func (f *facts) fromCRIO(ctx context.Context, socket string) error {
	text, err := crioGet(ctx, socket, "/config")
	if err != nil {
		return err
	}
	var config crioConfig
	if err := toml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("parse CRI-O's /config: %w", err)
	}
	c := config.CRIO
	f.standard, f.pause, f.cgroups = c.Runtime.Default, c.Image.Pause, c.Runtime.Cgroups
	f.storage = storage{driver: c.Driver, root: c.Root, runroot: c.RunRoot, options: c.Options}
	f.podless = c.Runtime.DropPod != nil && *c.Runtime.DropPod
	f.more = map[string]string{"infra_ctr_cpuset": c.Runtime.PodCPUs, "storage options": strings.Join(c.Options, " ")}
	if c.Runtime.DropPod != nil {
		f.more["drop_infra_ctr"] = strconv.FormatBool(*c.Runtime.DropPod)
	}
	for name, r := range c.Runtime.Runtimes {
		f.handlers[name] = handler{kind: r.Type, path: r.Path, shim: cmp.Or(r.Path, name), config: r.Config, configKnown: r.Type == "vm"}
	}
	// /info reports the values in use for settings that the configuration does not set.
	var info struct {
		Driver  string `json:"storage_driver"`
		Root    string `json:"storage_root"`
		Cgroups string `json:"cgroup_driver"`
	}
	if text, err = crioGet(ctx, socket, "/info"); err == nil && json.Unmarshal(text, &info) == nil {
		f.storage.driver, f.storage.root = cmp.Or(info.Driver, f.storage.driver), cmp.Or(info.Root, f.storage.root)
		f.cgroups = cmp.Or(info.Cgroups, f.cgroups)
	}
	return nil
}

func crioGet(ctx context.Context, socket, path string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://crio"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask CRI-O for %s: %w", path, err)
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask CRI-O for %s: %s", path, reply.Status)
	}
	return io.ReadAll(io.LimitReader(reply.Body, 4<<20))
}

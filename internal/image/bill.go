package image

import (
	"bytes"
	"net/url"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/opencontainers/go-digest"
)

// billType is the media type of a bill of materials.
const billType = "application/vnd.cyclonedx+json"

// bill lists the modules of a binary from its build information. It has no serial
// number, so that it is reproducible.
func (b *Binary) bill(at time.Time) ([]byte, error) {
	tare := component(cyclonedx.ComponentTypeApplication, "tare", module, b.version())
	tare.PackageURL += "?goarch=" + b.Arch + "&goos=linux&type=module"
	tare.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: digest.FromBytes(b.content).Encoded()}}
	tare.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: licence}}}

	goes, _, _ := strings.Cut(b.info.GoVersion, " ")
	parts := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "stdlib", "stdlib", strings.TrimPrefix(goes, "go"))}
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, component(cyclonedx.ComponentTypeLibrary, m.Path, m.Path, m.Version))
	}
	refs := make([]string, len(parts))
	for i, p := range parts {
		refs[i] = p.BOMRef
	}

	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: at.UTC().Format(time.RFC3339), Component: &tare}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: tare.BOMRef, Dependencies: &refs}}
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// component returns a component identified by its package URL (purl).
func component(kind cyclonedx.ComponentType, name, path, version string) cyclonedx.Component {
	purl := "pkg:golang/" + path + "@" + url.QueryEscape(version)
	return cyclonedx.Component{Type: kind, BOMRef: purl, Name: name, Version: version, PackageURL: purl}
}

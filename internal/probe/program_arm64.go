package probe

import _ "embed"

//go:embed probe-arm64.elf
var program []byte

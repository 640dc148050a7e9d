package lane

import _ "embed"

//go:embed lane-arm64.elf
var program []byte

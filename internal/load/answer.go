package load

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"fortio.org/fortio/fhttp"
)

// buffer is what fortio's client holds of an answer, and the most that one may be,
// bytes. Only what an answer fills is ever occupied.
const buffer = 128 << 10

// answer is what one says of itself. fortio's client writes it whole, headers
// first, and takes an answer for good that was cut off or did not fit.
type answer string

const (
	answerWhole   answer = ""
	answerCut     answer = "an answer that was cut off"
	answerLarge   answer = "an answer of more than 128 KiB"
	answerForeign answer = "an answer that is no HTTP"
	answerLength  answer = "an answer whose length is no number"
)

// Write takes an answer.
func (a *answer) Write(p []byte) (int, error) {
	*a = judge(p)
	return len(p), nil
}

func judge(p []byte) answer {
	const proto = "HTTP/"
	if !strings.HasPrefix(proto, string(p[:min(len(p), len(proto))])) || len(p) >= statusAt && strings.Trim(string(p[statusAt-3:statusAt]), "0123456789") != "" {
		return answerForeign
	}
	if len(p) >= buffer {
		return answerLarge
	}
	end := bytes.Index(p, []byte("\r\n\r\n"))
	if end < 0 {
		return answerCut
	}
	headers, body := p[:end+2], p[end+4:]
	if found, at := fhttp.FoldFind(headers, []byte("\r\ncontent-length:")); found {
		switch n := fhttp.ParseDecimal(headers[at+len("\r\ncontent-length:"):]); {
		case n < 0:
			return answerLength
		case int64(len(body)) < n:
			return answerCut
		}
		return answerWhole
	}
	if found, _ := fhttp.FoldFind(headers, []byte("\r\ntransfer-encoding: chunked")); found && !bytes.HasSuffix(body, []byte("0\r\n\r\n")) {
		return answerCut
	}
	return answerWhole
}

// statusAt is how much of an answer fortio's client wants before it reads the
// status: "HTTP/1.1 200".
const statusAt = 12

// wrong is why an answer is a failure, "" where it is none, or where fortio's log
// says why. A status that is no number fortio takes for an error of the connection,
// and does not log.
func (a answer) wrong(code int) string {
	if a == answerForeign {
		return string(a)
	}
	if code == fhttp.SocketError {
		return ""
	}
	if code/100 != 2 {
		return statusText(code)
	}
	return string(a)
}

// statusText is how a failure by status is called.
func statusText(code int) string {
	text := "status " + strconv.Itoa(code)
	if name := http.StatusText(code); name != "" {
		text += " " + name
	}
	return text
}

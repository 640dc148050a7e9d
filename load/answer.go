package load

import (
	"bytes"

	"fortio.org/fortio/fhttp"
)

// buffer is what fortio's client holds of an answer, and the most that one may be,
// bytes. Only what an answer fills is ever occupied.
const buffer = 128 << 10

// answer is what one says of itself. fortio's client writes it whole, headers
// first, and takes an answer for good that was cut off or did not fit.
type answer string

const (
	answerNone  answer = "no answer"
	answerWhole answer = ""
	answerCut   answer = "an answer that was cut off"
	answerLarge answer = "an answer of more than 128 KiB"
)

// Write takes an answer.
func (a *answer) Write(p []byte) (int, error) {
	*a = judge(p)
	return len(p), nil
}

func judge(p []byte) answer {
	if len(p) >= buffer {
		return answerLarge
	}
	end := bytes.Index(p, []byte("\r\n\r\n"))
	if end < 0 {
		return answerCut
	}
	headers, body := p[:end+2], p[end+4:]
	if found, at := fhttp.FoldFind(headers, []byte("\r\ncontent-length:")); found {
		if n := fhttp.ParseDecimal(headers[at+len("\r\ncontent-length:"):]); n >= 0 && int64(len(body)) < n {
			return answerCut
		}
		return answerWhole
	}
	if found, _ := fhttp.FoldFind(headers, []byte("\r\ntransfer-encoding: chunked")); found && !bytes.HasSuffix(body, []byte("0\r\n\r\n")) {
		return answerCut
	}
	return answerWhole
}

// wrong is why an answer is a failure, "" where it is none.
func (a answer) wrong(code int) string {
	if code/100 != 2 {
		return statusText(code)
	}
	return string(a)
}

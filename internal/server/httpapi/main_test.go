package httpapi_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("CST", 8*60*60) // once, since timers that outlive a test read it
	goleak.VerifyTestMain(m)
}

package bench_test

import (
	"os"
	"testing"

	"github.com/leaf-id/leaf/bench"
)

func TestMemoryOf(t *testing.T) {
	m, err := bench.MemoryOf(os.Getpid())
	if err != nil || m.Own <= 0 || m.Own > m.Resident || m.Resident < 1<<20 || m.Most < m.Own {
		t.Errorf("%+v, %v", m, err)
	}
}

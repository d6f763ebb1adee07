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

// The parts add up to the resident memory, and a program has code.
func TestPartsOf(t *testing.T) {
	parts, err := bench.PartsOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	m, err := bench.MemoryOf(os.Getpid())
	sum := 0.
	for _, bytes := range parts {
		sum += bytes
	}
	if err != nil || parts[0] < 1<<20 || parts[4] < 1<<18 || sum < m.Resident*.8 || sum > m.Resident*1.2 {
		t.Errorf("%v of %+v, %v", parts, m, err)
	}
}

package mask

import (
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

const (
	rounds = 10
	size   = 16 // bytes of a block
)

// An ff1 is FF1 under one key and tweak, for numbers of at most 2^63 or two halves of 64 bits. The
// names are those of SP 800-38G.
type ff1 struct {
	Domain
	block  cipher.Block
	b, d   int        // bytes of a half, and of a round's result
	prefix [size]byte // the state of CBC-MAC after P and the full blocks of Q before the round number
	last   [size]byte // the last block of Q: the rest of the tweak, zeros, the round and the half
}

func newFF1(block cipher.Block, domain Domain, tweak []byte) ff1 {
	f := ff1{Domain: domain, block: block}
	f.b = (bits.Len64(f.mv-1) + 7) / 8
	f.d = 4*((f.b+3)/4) + 4
	p := [size]byte{1, 2, 1, 0, 0, byte(f.radix), rounds, byte(f.u)}
	binary.BigEndian.PutUint32(p[8:], uint32(f.u+f.v))
	binary.BigEndian.PutUint32(p[12:], uint32(len(tweak)))
	block.Encrypt(f.prefix[:], p[:])
	q := append([]byte{}, tweak...)
	for (len(q)+1+f.b)%size != 0 {
		q = append(q, 0)
	}
	for ; len(q) >= size; q = q[size:] {
		f.chain(&f.prefix, q)
	}
	copy(f.last[:], q)
	return f
}

// chain continues a CBC-MAC with one block.
func (f *ff1) chain(state *[size]byte, q []byte) {
	for i := range state {
		state[i] ^= q[i]
	}
	f.block.Encrypt(state[:], state[:])
}

// A round writes into buffers. They are on the heap, since AES is behind an interface.
type buffers struct{ q, r [size]byte }

// round returns the number y of round i modulo m.
func (f *ff1) round(buf *buffers, i int, half, m uint64) uint64 {
	buf.q, buf.r = f.last, f.prefix
	buf.q[size-1-f.b] = byte(i)
	for j := range f.b {
		buf.q[size-1-j] = byte(half >> (8 * j))
	}
	f.chain(&buf.r, buf.q[:])
	high, low := binary.BigEndian.Uint64(buf.r[:8]), binary.BigEndian.Uint64(buf.r[8:])
	if drop := uint(size-f.d) * 8; drop > 0 { // y is the first d bytes; d is 8 or 12
		low = low>>drop | high<<(64-drop)
		high >>= drop
	}
	return bits.Rem64(high%m, low, m)
}

func (f *ff1) encrypt(a, b uint64) (uint64, uint64) {
	buf := new(buffers)
	for i := range rounds {
		m := f.mu
		if i%2 == 1 {
			m = f.mv
		}
		a, b = b, (a+f.round(buf, i, b, m))%m
	}
	return a, b
}

func (f *ff1) decrypt(a, b uint64) (uint64, uint64) {
	buf := new(buffers)
	for i := rounds - 1; i >= 0; i-- {
		m := f.mu
		if i%2 == 1 {
			m = f.mv
		}
		a, b = (b+m-f.round(buf, i, a, m))%m, a
	}
	return a, b
}

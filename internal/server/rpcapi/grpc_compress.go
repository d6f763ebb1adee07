package rpcapi

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
)

func init() { encoding.RegisterCompressor(inPieces{encoding.GetCompressor(gzip.Name)}) }

// compressedPiece is the size of one write of compressed output, in bytes.
const compressedPiece = 32 << 10

var pieceWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, compressedPiece) }}

// An inPieces writes its output in large pieces. Gzip writes 240 bytes at a time, and a
// [chargingPool] charges none of that.
type inPieces struct{ encoding.Compressor }

// Compress implements [encoding.Compressor].
func (c inPieces) Compress(w io.Writer) (io.WriteCloser, error) {
	out := pieceWriters.Get().(*bufio.Writer)
	out.Reset(w)
	z, err := c.Compressor.Compress(out)
	return &pieces{z, out}, err
}

// A pieces is the output of one message.
type pieces struct {
	io.WriteCloser
	out *bufio.Writer
}

// Close implements [io.Closer].
func (p *pieces) Close() error {
	err := errors.Join(p.WriteCloser.Close(), p.out.Flush())
	p.out.Reset(nil)
	pieceWriters.Put(p.out)
	return err
}

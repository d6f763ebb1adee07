package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A relay takes the place of the switch between hosts. It passes each frame on late, and loses some.
type relay struct {
	delay time.Duration // of each frame
	loss  float64       // the share of lost frames
	ports []*os.File
}

const (
	relayQueue = 4096     // frames on the way from one host; later ones wait
	relayFrame = 66 << 10 // one that the sender's card would still split
)

// startRelay has a relay pass on the frames of a switch's cables, which are unplugged from the switch.
func startRelay(lan *host, cables []string, delay time.Duration, loss float64) (*relay, error) {
	r := &relay{delay: delay, loss: loss}
	for _, cable := range cables {
		port, err := openPort(strings.TrimPrefix(lan.inside[1], "--net="), cable)
		if err != nil {
			r.stop()
			return nil, err
		}
		r.ports = append(r.ports, port)
	}
	for _, port := range r.ports {
		r.forward(port)
	}
	return r, nil
}

// stop ends the relay. Frames on the way are lost.
func (r *relay) stop() {
	for _, port := range r.ports {
		port.Close()
	}
}

// forward passes the frames of a port on to all others: cards discard those for others.
func (r *relay) forward(from *os.File) {
	type frame struct {
		data []byte
		at   time.Time
	}
	queue := make(chan frame, relayQueue)
	go func() {
		defer close(queue)
		buf := make([]byte, relayFrame)
		for {
			n, err := from.Read(buf)
			if errors.Is(err, os.ErrClosed) {
				return
			}
			if err == nil && rand.Float64() >= r.loss {
				queue <- frame{append([]byte(nil), buf[:n]...), time.Now().Add(r.delay)}
			}
		}
	}()
	go func() {
		for f := range queue {
			time.Sleep(time.Until(f.at))
			for _, to := range r.ports {
				if to != from {
					_, _ = to.Write(f.data) // a frame may be lost
				}
			}
		}
	}()
}

// openPort returns a packet socket on a cable's end in a network namespace. Each frame begins with
// what its sender leaves to the card, such as the checksum, and so passes to another card.
func openPort(namespace, cable string) (port *os.File, err error) {
	done := make(chan struct{})
	go func() { // its thread ends with it, in the other namespace
		defer close(done)
		runtime.LockOSThread()
		port, err = openPortHere(namespace, cable)
	}()
	<-done
	return port, err
}

func openPortHere(namespace, cable string) (*os.File, error) {
	ns, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter %s: %w", namespace, err)
	}
	card, err := net.InterfaceByName(cable)
	if err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	var all [2]byte
	binary.BigEndian.PutUint16(all[:], unix.ETH_P_ALL)
	err = errors.Join(unix.SetsockoptInt(socket, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(socket, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(all[:]), Ifindex: card.Index}))
	if err != nil {
		unix.Close(socket)
		return nil, fmt.Errorf("open a packet socket on %s: %w", cable, err)
	}
	return os.NewFile(uintptr(socket), cable), nil
}

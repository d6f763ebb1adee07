//go:build !leaflab

package server

import (
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/worker"
)

// forLab changes nothing: only builds for the fault lab have wrong clocks.
func forLab(*worker.Options, *backend.RegistryOptions) {}

// Package deploy tests the files in this folder: the packages, the systemd unit, the image and the
// examples.
package deploy

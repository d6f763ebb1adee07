package sim

// A liftWorld is a tagWorld whose store loses writes again and again, also while a server lifts a
// counter after the loss before.
type liftWorld struct{ *tagWorld }

func newLiftWorld(seed uint64, sabotage string) *liftWorld {
	w := &liftWorld{newTagWorld(seed, sabotage)}
	w.db.lossy, w.calm, w.fixed = true, false, false
	w.opts.RegressionJump = 1 << 40 // so that two lifts of a counter never meet by chance
	return w
}

// run carries out the schedule.
func (w *liftWorld) run() {
	for _, m := range w.machines {
		w.launch(m)
		w.warmUp(m)
	}
	w.db.replicate()
	for range 3 + w.rng.IntN(5) {
		w.loseLift()
	}
	w.heal()
}

// loseLift loses the answer to a server's lift. Another server takes the next grants. Then
// a second server of the store takes over without either.
func (w *liftWorld) loseLift() {
	i := w.rng.IntN(len(w.machines))
	lifts, follows := w.machines[i], w.machines[(i+1)%len(w.machines)]
	w.db.failOver()
	w.use(follows) // which lifts the counter, too
	w.note("the network loses every other message")
	w.db.weather.Store(500)
	w.warmUp(lifts)
	w.db.weather.Store(0)
	w.use(follows)
	w.db.failOver()
	w.use(lifts)
	w.use(follows)
	if w.rng.IntN(2) == 0 {
		w.db.replicate()
	}
}

// use takes more IDs of a server than it holds.
func (w *liftWorld) use(m *machine) {
	for range 10 {
		w.warmUp(m)
	}
}

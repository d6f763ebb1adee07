/*
 * The lease of one worker ID: registry, network, state files, crashes, copied disks.
 *
 * What is modelled
 *   Registry   one cell (instance, term, horizon), changed only by compare-and-swap of
 *              the whole cell. Instance 0 is nobody.
 *   Network    a swap is answered, or its outcome stays unknown: then it arrives at any
 *              later time, or never, and also after the death of the sender.
 *   Process    a "life" from start to death, on a disk. Its keeper does one step at a
 *              time, its generator issues ticks between any two of them. A pause is a
 *              life that is not scheduled. It may crash after every step.
 *   Disk       one state file, written in one step; what was written survives a crash.
 *              Disk B may start as a copy of disk A, taken at any time. A life starts
 *              with the proof that the writer of the file is dead, or without.
 *   Clock      any value at each use, forwards and backwards. So a claim may find any
 *              horizon passed, and sets any new one; no step reads a clock.
 *
 * The property: no tick is issued twice (the assertion in the issue step). Reserving a
 * tick and issuing it is one step here: whoever has reserved may issue at any time, so
 * two reservations are as bad as two issues. generator.pml has the two steps.
 *
 * Reading the cell and the swap that follows are one step, too: if the cell changes in
 * between, the swap fails, and nothing has happened.
 *
 * Bounds: TICKS, HORIZON (the most a horizon is moved at once), LIVES0 and LIVES1 (lives
 * on disks A and B), CLAIMS (attempts of each life), FLIGHT (swaps of unknown outcome at
 * once). FILELESS=1 adds lives that keep no file, also beside one that has the lock.
 *
 * Not modelled: a process restored from a memory snapshot, a directory rolled back in
 * place without a reboot, other worker IDs. loss.pml has a registry that loses writes.
 *
 * Each rule below can be taken out: -DRULE=0.
 */
#ifndef TICKS
#define TICKS 4
#endif
#ifndef HORIZON
#define HORIZON 2
#endif
#ifndef LIVES0
#define LIVES0 2
#endif
#ifndef LIVES1
#define LIVES1 1
#endif
#ifndef CLAIMS
#define CLAIMS 1
#endif
#ifndef FLIGHT
#define FLIGHT 1
#endif
#ifndef FILELESS
#define FILELESS 0
#endif

/* Ticks are issued below the mark in the file; the mark is written ahead of use. */
#ifndef MARK_BEFORE_USE
#define MARK_BEFORE_USE 1
#endif
/* The mark never goes back. Out: a life that goes on from the file alone sets it by its
 * clock, which may be behind. */
#ifndef MARK_ONLY_GROWS
#define MARK_ONLY_GROWS 1
#endif
/* The file of a new term is written before its first tick. Out: it is written later,
 * and says what was true at the claim: that nothing was issued. */
#ifndef FILE_BEFORE_FIRST_TICK
#define FILE_BEFORE_FIRST_TICK 1
#endif
/* The generator is sealed before the lease is released. */
#ifndef SEAL_BEFORE_RELEASE
#define SEAL_BEFORE_RELEASE 1
#endif
/* The file is voided before a release is sent. */
#ifndef VOID_BEFORE_RELEASE
#define VOID_BEFORE_RELEASE 1
#endif
/* The file is voided before the lease of a dead process is handed back. */
#ifndef VOID_BEFORE_HAND_BACK
#define VOID_BEFORE_HAND_BACK 1
#endif
/* A release leaves a horizon above the last tick that was issued. */
#ifndef RELEASE_ABOVE_LAST
#define RELEASE_ABOVE_LAST 1
#endif
/* The first tick of a term is the horizon of the one before. Out: the clock's. */
#ifndef FLOOR_IS_OLD_HORIZON
#define FLOOR_IS_OLD_HORIZON 1
#endif
/* A swap compares the whole cell. Out: it writes whatever the cell holds. */
#ifndef SWAP_COMPARES
#define SWAP_COMPARES 1
#endif
/* Cells are never deleted. Out: the cell vanishes once, at any time. */
#ifndef PERMANENT_RECORDS
#define PERMANENT_RECORDS 1
#endif
/* Each claim has an instance of its own. Out: the name of the node, which a copied disk
 * carries along. */
#ifndef FRESH_INSTANCE
#define FRESH_INSTANCE 1
#endif
/* Each claim bumps the term. */
#ifndef TERM_BUMP
#define TERM_BUMP 1
#endif
/* A file is proof only on the disk that it was written on. */
#ifndef PROOF_IDENTITY
#define PROOF_IDENTITY 1
#endif
/* A process touches the file only with the lock of its disk, which it holds for life. */
#ifndef PROOF_LOCK
#define PROOF_LOCK 1
#endif
/* A lease is handed back only where the cell still has the file's instance and term. */
#ifndef HAND_BACK_OWN
#define HAND_BACK_OWN 1
#endif

#define NAME 'A' + d, rank + 1 /* of a life, for printf */

typedef Cell { byte inst, term, horizon }
typedef File { bool valid; byte disk, inst, term, horizon, mark }
typedef Request { bool live; Cell old, new }

Cell cell;
File file[2];
Request flight[FLIGHT];
bool locked[2];
byte begun[2];      /* lives that have started, by disk */
bit issued[TICKS];
bool vanished;

#define same(a, b) (a.inst == b.inst && a.term == b.term && a.horizon == b.horizon)

#define put(c, i, t, h) c.inst = i; c.term = t; c.horizon = h
#define copy(to, from) put(to, from.inst, from.term, from.horizon)

#define set_file(n, v, on, i, t, h, m) \
	file[n].valid = v; file[n].disk = on; file[n].inst = i; file[n].term = t; file[n].horizon = h; file[n].mark = m
#define write_file() set_file(d, true, d, inst, term, horizon, mark); \
	printf("%c%d writes its file: term %d, horizon %d, mark %d\n", NAME, term, horizon, mark)
#define void_file() set_file(d, false, 0, 0, 0, 0, 0)

/* pick_horizon sets a horizon of any size beyond the last one. */
inline pick_horizon() {
	want.horizon = seen.horizon + 1;
	do
	:: want.horizon < seen.horizon + HORIZON && want.horizon < TICKS -> want.horizon++
	:: break
	od
}

#define drop(r) flight[r].live = false; put(flight[r].old, 0, 0, 0); put(flight[r].new, 0, 0, 0)

/* With all rules in place the cell never comes back to what it held: of two values
 * the later one has the larger term, or is the release, or has the larger horizon. So a
 * swap under way that expects something else than the cell holds is in vain for good. */
#define ORDERED (SWAP_COMPARES && PERMANENT_RECORDS && TERM_BUMP && FRESH_INSTANCE && HAND_BACK_OWN)
#define later(a, b) (a.term > b.term || \
	(a.term == b.term && b.inst != 0 && (a.inst == 0 || (a.inst == b.inst && a.horizon > b.horizon))))

inline write_cell(c) {
	assert(!ORDERED || later(c, cell));
	copy(cell, c);
	if
	:: ORDERED && flight[0].live && !same(cell, flight[0].old) -> drop(0)
	:: else
	fi;
#if FLIGHT > 1
	if
	:: ORDERED && flight[1].live && !same(cell, flight[1].old) -> drop(1)
	:: else
	fi
#endif
}

/* swap replaces the cell, which holds seen, by want, or has that under way. */
inline swap() {
	if
	:: write_cell(want); got = OK; printf("\n")
	:: !flight[0].live -> flight[0].live = true; copy(flight[0].old, seen); copy(flight[0].new, want);
		got = UNKNOWN; printf(": no answer\n")
#if FLIGHT > 1
	:: flight[0].live && !flight[1].live -> flight[1].live = true; copy(flight[1].old, seen); copy(flight[1].new, want);
		got = UNKNOWN; printf(": no answer\n")
#endif
	fi
}

#define mine (cell.inst == inst && cell.term == term)

/* Where a keeper stands: the step that it does next. */
mtype = { START, BACK_LOAD, BACK_VOID, BACK_SWAP, CLAIM, CLAIM_CHECK, FIRST_FILE, HOLD, LATE_FILE, VOID, RELEASE, DEAD };
/* What came of a swap. */
mtype = { OK, UNKNOWN };

#define holding (at == HOLD || at == LATE_FILE || (!SEAL_BEFORE_RELEASE && (at == VOID || at == RELEASE)))

#define forget() inst = 0; term = 0; cursor = 0; horizon = 0; mark = 0
#define claim_again() forget(); at = CLAIM; if :: claims == CLAIMS -> break :: else fi
#define forget_swap() put(seen, 0, 0, 0); put(want, 0, 0, 0); got = 0

proctype life(byte id; byte d; byte rank) {
	mtype at = START;
	mtype got;
	Cell seen, want;
	byte inst, term, cursor, horizon, mark, claims;
	bool fileless;

end:	do
	/* the generator */
	:: atomic { holding && cursor < horizon && (cursor < mark || fileless || !MARK_BEFORE_USE || at == LATE_FILE) ->
		printf("%c%d issues tick %d\n", NAME, cursor);
		assert(!issued[cursor]);
		issued[cursor] = true;
		cursor++
	   }

	/* start: with the proof that the process that wrote the file is dead, or without */
	:: atomic { at == START && begun[d] == rank && !(PROOF_LOCK && locked[d]) ->
		locked[d] = true;
		begun[d]++;
		if
		:: d == 1 && rank == 0 && file[0].valid ->
			printf("disk B is a copy of disk A\n");
			set_file(1, true, file[0].disk, file[0].inst, file[0].term, file[0].horizon, file[0].mark)
		:: true
		fi;
		printf("%c%d starts on disk %c\n", NAME, 'A' + d);
		at = CLAIM;
		if
		:: file[d].valid && (file[d].disk == d || !PROOF_IDENTITY) ->
			inst = file[d].inst; term = file[d].term; horizon = file[d].horizon; mark = file[d].mark;
			if
			:: at = BACK_LOAD
			:: cursor = mark; at = HOLD; mark = (MARK_ONLY_GROWS -> mark : 0);
				printf("%c%d goes on from the file alone: term %d, ticks %d to %d\n", NAME, term, cursor, horizon)
			fi
		:: true /* no file, or no proof: the machine was rebooted, the file system is remote */
		fi
	   }

	/* without the lock, or on a node that keeps no file */
	:: atomic { at == START && begun[d] == rank && FILELESS ->
		begun[d]++;
		fileless = true;
		printf("%c%d starts without a file\n", NAME);
		at = CLAIM
	   }

	/* hand the lease of the dead process back at its mark */
	:: atomic { at == BACK_LOAD ->
		if
		:: mine || !HAND_BACK_OWN -> at = (VOID_BEFORE_HAND_BACK -> BACK_VOID : BACK_SWAP)
		:: else -> claim_again()
		fi
	   }
	:: atomic { at == BACK_VOID -> printf("%c%d voids the file\n", NAME); void_file(); at = BACK_SWAP }
	:: atomic { at == BACK_SWAP && (mine || !HAND_BACK_OWN) ->
		copy(seen, cell);
		put(want, 0, seen.term, mark);
		printf("%c%d hands term %d back at %d", NAME, want.term, want.horizon);
		swap();
		if
		:: got == OK -> forget_swap(); claim_again()
		:: else -> forget_swap()
		fi
	   }
	:: atomic { at == BACK_SWAP -> claim_again() }

	/* claim */
	:: atomic { at == CLAIM && claims < CLAIMS && cell.horizon < TICKS ->
		claims++;
		inst = (FRESH_INSTANCE -> (id - 1) * CLAIMS + claims : 1);
		copy(seen, cell);
		put(want, inst, seen.term + TERM_BUMP, 0);
		pick_horizon();
		printf("%c%d claims as instance %d: term %d, horizon %d after %d", NAME, inst, want.term, want.horizon, seen.horizon);
		swap();
		at = (got == OK -> FIRST_FILE : CLAIM_CHECK);
		got = 0
	   }
	:: atomic { at == CLAIM_CHECK && same(cell, want) ->
		printf("%c%d finds its instance %d in the cell\n", NAME, inst);
		at = FIRST_FILE
	   }
	:: atomic { at == CLAIM_CHECK && same(cell, seen) ->
		printf("%c%d repeats its claim", NAME);
		swap();
		at = (got == OK -> FIRST_FILE : CLAIM_CHECK);
		got = 0
	   }
	:: atomic { at == CLAIM_CHECK -> forget_swap(); claim_again() }
	:: atomic { at == FIRST_FILE ->
		term = want.term; horizon = want.horizon; cursor = seen.horizon;
		forget_swap();
		if
		:: !FLOOR_IS_OLD_HORIZON && cursor > 0 -> cursor--
		:: else
		fi;
		mark = cursor;
		at = LATE_FILE;
		if
		:: fileless -> at = HOLD
		:: !fileless && FILE_BEFORE_FIRST_TICK -> write_file(); at = HOLD
		:: else
		fi
	   }
	:: atomic { at == LATE_FILE -> write_file(); at = HOLD }

	/* hold: raise the mark, extend, release */
	:: atomic { at == HOLD && mark < horizon && !fileless -> mark++; write_file() }
	:: atomic { at == HOLD && mine && horizon < cell.horizon ->
		printf("%c%d finds its horizon extended to %d\n", NAME, cell.horizon);
		horizon = cell.horizon
	   }
	:: atomic { at == HOLD && mine && horizon == cell.horizon && horizon < TICKS ->
		copy(seen, cell);
		put(want, inst, term, 0);
		pick_horizon();
		printf("%c%d extends term %d from %d to %d", NAME, term, seen.horizon, want.horizon);
		swap();
		horizon = (got == OK -> want.horizon : horizon);
		forget_swap()
	   }
	:: atomic { at == HOLD && !mine -> printf("%c%d finds another instance and stops\n", NAME); claim_again() }
	:: atomic { at == HOLD -> at = VOID }
	:: atomic { at == VOID ->
		if
		:: VOID_BEFORE_RELEASE && !fileless -> printf("%c%d voids the file\n", NAME); void_file()
		:: else
		fi;
		at = RELEASE
	   }
	:: atomic { at == RELEASE && mine ->
		copy(seen, cell);
		put(want, 0, term, (RELEASE_ABOVE_LAST || cursor == 0 -> cursor : cursor - 1));
		printf("%c%d releases term %d at %d", NAME, term, want.horizon);
		swap();
		if
		:: got == OK && SEAL_BEFORE_RELEASE -> forget_swap(); claim_again()
		:: else -> forget_swap()
		fi
	   }
	:: atomic { at == RELEASE -> claim_again() }

	:: atomic { at != START -> printf("%c%d dies\n", NAME); break }
	od;
	atomic {
		forget();
		forget_swap();
		claims = 0;
		at = DEAD;
		locked[d] = locked[d] && fileless;
		fileless = false
	}
}

inline deliver(r) {
	if
	:: same(cell, flight[r].old) || !SWAP_COMPARES ->
		write_cell(flight[r].new);
		printf("a late swap arrives: instance %d, term %d, horizon %d\n", cell.inst, cell.term, cell.horizon)
	:: true /* lost, or in vain */
	fi;
	drop(r)
}

/* The network delivers what is under way, or loses it. */
proctype network() {
end:	do
	:: atomic { flight[0].live -> deliver(0) }
#if FLIGHT > 1
	:: atomic { flight[1].live -> deliver(1) }
#endif
	:: atomic { !PERMANENT_RECORDS && !vanished -> printf("the cell vanishes\n"); put(cell, 0, 0, 0); vanished = true }
	od
}

init {
	byte i;
	atomic {
		run network();
		do
		:: i < LIVES0 + LIVES1 ->
			i++;
			run life(i, i > LIVES0, (i > LIVES0 -> i - LIVES0 : i) - 1)
		:: else -> break
		od;
		i = 0
	}
}

/*
 * The leases of one worker ID of a pool.
 *
 * What is modelled
 *   Registry   the cell of the worker ID (secret, horizon, floor, epoch). With LOSSY=0 its disk may
 *              hang: it shows a write before the write is safe, and a crash loses it; and it is
 *              restored from a backup, after which no server answers for the longest TTL. With
 *              LOSSY=1 a replica takes over, without the latest writes and with another clock.
 *   Server     keeps nothing: a call reads the cell, the epoch and the time, swaps the cell, and on
 *              a registry that may lose writes reads the epoch and the time again. Any time may pass
 *              in between, and an answer may be lost.
 *   Program    claims, issues times of its lease in any hurry, renews as often as it likes and at
 *              any time, even after the limit, releases, and forgets its lease.
 *
 * The property: no time is issued twice.
 *
 * Bounds: TICKS, TTL (the longest), PROGRAMS, CLAIMS (of all), EPOCHS, TOLERANCE.
 *
 * Each rule below can be taken out: -DRULE=0.
 */
#ifndef TICKS
#define TICKS 4
#endif
#ifndef TTL
#define TTL 2
#endif
#ifndef PROGRAMS
#define PROGRAMS 2
#endif
#ifndef CLAIMS
#define CLAIMS 3
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef TOLERANCE
#define TOLERANCE 0
#endif
#ifndef LOSSY
#define LOSSY 0
#endif

/* Every claim has a secret of its own. Out: all have the same. */
#ifndef FRESH_SECRET
#define FRESH_SECRET 1
#endif
/* A lease begins at the horizon that it replaces. Out: at 0, without the next rule. */
#ifndef FLOOR_IS_OLD_HORIZON
#define FLOOR_IS_OLD_HORIZON 1
#endif
/* A lease begins no earlier than now, since a restored backup does not know the horizons since. */
#ifndef FLOOR_IS_NOW
#define FLOOR_IS_NOW 1
#endif
/* A renewal compares the secret. Out: any lease of the worker ID is renewed. */
#ifndef RENEWAL_NAMES_SECRET
#define RENEWAL_NAMES_SECRET 1
#endif
/* A renewal writes. Out: it tells what it reads. */
#ifndef RENEWAL_WRITES
#define RENEWAL_WRITES 1
#endif
/* A renewal without an answer counts after a second one. Out: it counts if a read shows it. */
#ifndef SECOND_SWAP
#define SECOND_SWAP 1
#endif
/* A renewal never lowers the horizon. Out: it sets it. */
#ifndef NEVER_LOWER
#define NEVER_LOWER 1
#endif
/* A renewal counts only if it is answered before the old limit. Out: at any time. */
#ifndef RENEWED_IN_TIME
#define RENEWED_IN_TIME 1
#endif
/* A renewal counts only in the epoch of the record, which is still there afterwards. */
#ifndef RENEWED_IN_EPOCH
#define RENEWED_IN_EPOCH 1
#endif
/* The program stops before it sends the release. */
#ifndef SEAL_BEFORE_RELEASE
#define SEAL_BEFORE_RELEASE 1
#endif
/* A release leaves a horizon above the time used. Out: at it. */
#ifndef RELEASE_ABOVE_USED
#define RELEASE_ABOVE_USED 1
#endif
/* A release does not go below the floor. Out: an unused lease leaves 0. */
#ifndef RELEASE_ABOVE_FLOOR
#define RELEASE_ABOVE_FLOOR 1
#endif
/* A program compares the time in each ID. Out: it looks at its clock, and issues later. */
#ifndef TIME_IN_ID
#define TIME_IN_ID 1
#endif
/* A claim begins when every lost lease has ended. Out: at the old horizon. */
#ifndef FLOOR_AFTER_LOSS
#define FLOOR_AFTER_LOSS 1
#endif
/* The claim delay exceeds the longest TTL by the tolerance. Out: it is shorter. */
#ifndef DELAY_COVERS_TTL
#define DELAY_COVERS_TTL 1
#endif
/* A claim counts by the epoch after its swap. Out: by the one before. */
#ifndef EPOCH_AFTER_SWAP
#define EPOCH_AFTER_SWAP 1
#endif

#define NAME 'A' + id
#define DELAY (TTL + TOLERANCE - !DELAY_COVERS_TTL)

typedef Cell { byte secret, horizon, floor, epoch }

Cell cell, disk, replica;      /* disk: what survives a crash, or the backup */
bool stalled, restored;
byte clock, epoch = 1, secrets, up;
short off;                     /* of the registry's clock */
short since = 0 - TTL - 1 - TOLERANCE; /* of the present epoch, by the registry's clock */
bit issued[TICKS];

#define registryTime (clock + off)
#define copy(to, from) to.secret = from.secret; to.horizon = from.horizon; to.floor = from.floor; to.epoch = from.epoch
#define same(a, b) (a.secret == b.secret && a.horizon == b.horizon && a.floor == b.floor && a.epoch == b.epoch)
#define most(a, b) (a > b -> a : b)
#define least(a, b) (a < b -> a : b)
#define mine (secret != 0 && (cell.secret == secret || !RENEWAL_NAMES_SECRET && cell.secret != 0))
#define answers (clock >= up)
#define gone (!LOSSY && epoch != e) /* the server was ended for a restore */

mtype = { IDLE, CLAIM, LOOK, HOLD, RENEW, CHECK, CLOCKED, RELEASE };

#define forget() secret = 0; floor = 0; limit = 0; cursor = 0; used = false; again = false; before = 0; e = 0; t = 0; begin = 0; o.secret = 0; o.horizon = 0; o.floor = 0; o.epoch = 0
#define read() copy(o, cell); e = epoch; t = registryTime; begin = since

proctype program(byte id) {
	mtype at = IDLE;
	byte secret, limit, cursor, e, before, want;
	short floor, t, begin;
	bool used, again;
	Cell o;

end:	do
	:: atomic { at == IDLE && answers && cell.horizon <= registryTime && clock < TICKS && secrets < CLAIMS ->
		read(); at = CLAIM; printf("%c reads the cell at %d to claim it: horizon %d\n", NAME, clock, o.horizon) }
	:: atomic { at == CLAIM ->
		if
		:: same(cell, o) && !gone ->
			secrets++;
			secret = (FRESH_SECRET -> secrets : 1);
			floor = (FLOOR_IS_OLD_HORIZON -> o.horizon : 0);
			floor = (FLOOR_IS_NOW -> most(floor, t) : floor);
			floor = (LOSSY && FLOOR_AFTER_LOSS -> most(floor, begin + DELAY) : floor);
			limit = least(t + TTL, TICKS);
			cell.secret = secret; cell.floor = floor; cell.horizon = most(limit, o.horizon); cell.epoch = e;
			printf("%c claims with secret %d at %d: %d to %d\n", NAME, secret, clock, floor, limit);
			at = LOOK
		:: else -> forget(); at = IDLE
		fi
	   }
	:: atomic { at == LOOK ->
		if
		:: !stalled && !gone && mine && floor <= t && (!LOSSY || epoch == e || !EPOCH_AFTER_SWAP) ->
			cursor = floor; at = HOLD; printf("%c has the lease at %d\n", NAME, clock)
		:: true -> forget(); at = IDLE /* given back when it ends, or the answer is lost */
		fi
	   }

	:: atomic { (at == HOLD || at == RENEW || at == CHECK) && cursor < limit ->
		if
		:: cursor++ /* left out */
		:: printf("%c issues %d\n", NAME, cursor);
			assert(!issued[cursor]);
			issued[cursor] = true; used = true; cursor++
		fi
	   }
	:: atomic { at == HOLD && !TIME_IN_ID && clock < limit && cursor < TICKS -> at = CLOCKED; printf("%c looks at its clock: %d\n", NAME, clock) }
	:: atomic { at == CLOCKED ->
		cursor = most(cursor, clock);
		if
		:: cursor < TICKS -> printf("%c issues %d\n", NAME, cursor); assert(!issued[cursor]); issued[cursor] = true; used = true; cursor++
		:: else
		fi;
		at = HOLD
	   }

	:: atomic { at == HOLD && answers && mine && clock < TICKS ->
		read();
		before = (again -> before : o.horizon);
		at = RENEW; printf("%c reads the cell at %d to renew its lease\n", NAME, clock) }
	:: atomic { at == HOLD && answers && mine && (!RENEWAL_WRITES || !SECOND_SWAP && again) && limit < cell.horizon ->
		limit = cell.horizon; printf("%c is told the limit %d\n", NAME, limit) }
	:: atomic { at == RENEW ->
		if
		:: same(cell, o) && !gone && t < before + !RENEWED_IN_TIME * TICKS && (!LOSSY || o.epoch == e || !RENEWED_IN_EPOCH) ->
			if
			:: want = t + 1
			:: want = t + TTL
			fi;
			want = least(want, TICKS);
			want = (NEVER_LOWER -> most(want, o.horizon) : want);
			cell.horizon = want; cell.epoch = e;
			printf("%c writes the limit %d at %d\n", NAME, want, clock);
			at = CHECK
		:: else -> at = HOLD
		fi
	   }
	:: atomic { at == CHECK ->
		if
		:: !stalled && !gone && mine && (registryTime < before || !RENEWED_IN_TIME) && (!LOSSY || epoch == e || !RENEWED_IN_EPOCH) ->
			limit = want; again = false; at = HOLD; printf("%c has the limit %d at %d\n", NAME, limit, clock)
		:: again = true; at = HOLD /* without an answer, or refused */
		fi
	   }

	:: atomic { at == HOLD && mine && cell.secret == secret -> at = RELEASE }
	:: atomic { at == RELEASE && !SEAL_BEFORE_RELEASE && cursor < limit ->
		printf("%c issues %d\n", NAME, cursor); assert(!issued[cursor]); issued[cursor] = true; cursor++ }
	:: atomic { at == RELEASE && answers ->
		if
		:: cell.secret == secret && cursor <= cell.horizon ->
			cell.secret = 0;
			cell.horizon = (used -> (RELEASE_ABOVE_USED -> cursor : cursor - 1) : 0);
			cell.horizon = (RELEASE_ABOVE_FLOOR -> most(cell.horizon, cell.floor) : cell.horizon);
			printf("%c releases its lease at %d: horizon %d\n", NAME, clock, cell.horizon)
		:: true
		fi;
		if
		:: SEAL_BEFORE_RELEASE -> forget(); at = IDLE
		:: else -> secret = 0
		fi
	   }
	:: atomic { at == RELEASE && secret == 0 -> forget(); at = IDLE }
	:: atomic { at == HOLD -> forget(); at = IDLE; printf("%c ends\n", NAME) }
	od
}

proctype registry() {
end:	do
	:: atomic { clock < TICKS -> clock++ }
	:: atomic { !LOSSY && !stalled && !restored -> stalled = true; copy(disk, cell); printf("the disk hangs\n") }
	:: atomic { stalled ->
		stalled = false;
		if
		:: true
		:: copy(cell, disk); printf("the registry crashes: horizon %d\n", cell.horizon)
		fi
	   }
	:: atomic { !LOSSY && !stalled && !restored -> copy(replica, cell) } /* a backup */
	:: atomic { !LOSSY && !stalled && !restored ->
		restored = true; epoch++; up = clock + TTL;
		copy(cell, replica);
		printf("a backup is restored at %d: secret %d, horizon %d\n", clock, cell.secret, cell.horizon) }
	:: atomic { LOSSY && epoch < EPOCHS -> copy(replica, cell) }
	:: atomic { LOSSY && epoch < EPOCHS ->
		epoch++;
		copy(cell, replica);
		if
		:: off = 0
		:: TOLERANCE > 0 -> off = 0 - TOLERANCE
		fi;
		since = registryTime;
		printf("epoch %d begins at %d by the clock %d: secret %d, horizon %d\n", epoch, clock, registryTime, cell.secret, cell.horizon)
	   }
	od
}

init {
	byte i;
	atomic {
		run registry();
		do
		:: i < PROGRAMS -> run program(i); i++
		:: else -> break
		od;
		i = 0
	}
}

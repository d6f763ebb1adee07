/*
 * The generators of one process: callers, sealing, release and the next claim.
 *
 * What is modelled
 *   Process    one keeper that claims a worker ID, has its generators begin, seals them,
 *              releases, and claims the same or another worker ID. It also finds its
 *              lease taken, and claims again.
 *   Generator  a pointer to a lease, and in the lease a cursor for each generator: the
 *              next tick. 0 is the sealed lease, whose cursor is at its end.
 *   Caller     reads the pointer, reads the cursor, reserves a tick by compare-and-swap
 *              of the cursor, and issues it. It may pause between any two of these.
 *   Rival      another process, which takes any worker ID at any time (its clock is
 *              arbitrary), from the horizon on, and issues one tick of each generator.
 *
 * The property: no tick of a generator and a worker ID is issued twice (the assertion
 * in issue).
 *
 * Bounds: TICKS, WORKERS, LEASES (claims of the keeper), CALLS (of each caller). Two
 * generators; two callers of the first, one of the second.
 *
 * Not modelled: delays of the registry, state files, crashes; see lease.pml.
 *
 * Each rule below can be taken out: -DRULE=0.
 */
#ifndef TICKS
#define TICKS 3
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef LEASES
#define LEASES 2
#endif
#ifndef CALLS
#define CALLS 1
#endif

/* Sealing swaps the cursor to its end. Out: it takes the pointer away, reads the cursor. */
#ifndef CURSOR_SWAP
#define CURSOR_SWAP 1
#endif
/* The released horizon lies above the last tick of every generator. Out: of the first. */
#ifndef EVERY_GENERATOR
#define EVERY_GENERATOR 1
#endif
/* Worker ID and cursor are read through one load of the pointer. Out: through two. */
#ifndef ONE_OBJECT
#define ONE_OBJECT 1
#endif

#define GENERATORS 2
#define END 255

typedef Lease { byte worker, limit; byte cursor[GENERATORS] }

Lease lease[LEASES + 1];
byte current[GENERATORS]; /* the lease that a generator issues under */
byte horizon[WORKERS];    /* the cells of the registry */
bool held[WORKERS];       /* by the keeper */
bit issued[GENERATORS * WORKERS * TICKS];

#define slot(g, w, t) (((g) * WORKERS + (w)) * TICKS + (t))

inline issue(g, w, t) {
	assert(!issued[slot(g, w, t)]);
	issued[slot(g, w, t)] = true
}

proctype caller(byte id; byte g) {
	byte p, w, c, calls;
end:	do
	:: atomic { calls < CALLS && current[g] != 0 ->
		calls++;
		p = current[g];
		w = lease[p].worker;
		printf("caller %d finds worker %d\n", id, w)
	   };
		do
		:: atomic {
			if
			:: !ONE_OBJECT -> p = current[g]
			:: else
			fi;
			c = lease[p].cursor[g];
			if
			:: c >= lease[p].limit -> break
			:: else
			fi
		   };
		   atomic {
			if
			:: lease[p].cursor[g] == c -> lease[p].cursor[g] = c + 1;
				printf("caller %d reserves tick %d of generator %d\n", id, c, g)
			:: else -> skip; goto again
			fi
		   };
		   atomic { printf("caller %d issues tick %d of worker %d, generator %d\n", id, c, w, g); issue(g, w, c) };
		   break;
again:		   skip
		od;
		atomic { p = 0; w = 0; c = 0 }
	od
}

inline seal(g) {
	atomic {
		c = lease[k].cursor[g];
		if
		:: CURSOR_SWAP -> lease[k].cursor[g] = END
		:: else -> current[g] = 0
		fi;
		printf("keeper seals generator %d at %d\n", g, c);
		last = (c > last && (g == 0 || EVERY_GENERATOR) -> c : last);
		c = 0
	}
}

proctype keeper() {
	byte k, w, c, last;
	for (k : 1 .. LEASES) {
		atomic {
			select(w : 0 .. WORKERS - 1);
			lease[k].worker = w;
			lease[k].cursor[0] = horizon[w];
			lease[k].cursor[1] = horizon[w];
			horizon[w] = (horizon[w] + 2 < TICKS -> horizon[w] + 2 : TICKS);
			lease[k].limit = horizon[w];
			held[w] = true;
			printf("keeper claims worker %d, ticks %d to %d\n", w, lease[k].cursor[0], horizon[w]);
			w = 0
		}
		current[0] = k;
		current[1] = k;
		if
		:: atomic { held[lease[k].worker] && lease[k].limit < TICKS ->
			lease[k].limit++;
			horizon[lease[k].worker]++;
			printf("keeper extends worker %d to %d\n", lease[k].worker, lease[k].limit)
		   }
		:: true
		fi;
		seal(0);
		seal(1);
		atomic {
			if
			:: held[lease[k].worker] ->
				printf("keeper releases worker %d at %d\n", lease[k].worker, last);
				horizon[lease[k].worker] = last;
				held[lease[k].worker] = false
			:: else /* taken */
			fi;
			last = 0
		}
	}
}

proctype rival() {
	byte w;
end:	do
	:: atomic {
		select(w : 0 .. WORKERS - 1);
		if
		:: horizon[w] < TICKS ->
			printf("rival claims worker %d and issues tick %d\n", w, horizon[w]);
			issue(0, w, horizon[w]);
			issue(1, w, horizon[w]);
			horizon[w]++;
			held[w] = false
		:: else
		fi;
		w = 0
	   }
	od
}

init {
	atomic {
		lease[0].cursor[0] = END;
		lease[0].cursor[1] = END;
		run keeper();
		run rival();
		run caller(1, 0);
		run caller(2, 0);
		run caller(3, 1)
	}
}

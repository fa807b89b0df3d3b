/**
 * Tracks the other replicas by their Leases. A replica is alive while its Lease changes; clocks of different machines
 * are not compared.
 */
interface Note {
  readonly id: string
  readonly address: string
  /** Another text after each renewal. */
  readonly renewal: string
}

interface Neighbour extends Note {
  readonly changedMs: number
}

/** Leases of replicas that are gone stay so many times their life, for others to see. */
const KEPT_LIVES = 4

export class NeighbourTable {
  readonly #leaseMs: number
  #known = new Map<string, Neighbour>()

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs
  }

  /** Replaces what is known. A Lease that is not among the notes was deleted: its replica has stopped. */
  learn(notes: readonly Note[], nowMs: number): void {
    this.#known = new Map(
      notes.map((note) => {
        const before = this.#known.get(note.id)
        const isRenewed = before === undefined || before.renewal !== note.renewal
        return [note.id, { ...note, changedMs: isRenewed ? nowMs : before.changedMs }]
      }),
    )
  }

  /** Addresses by id. */
  alive(nowMs: number): ReadonlyMap<string, string> {
    const alive = [...this.#known.values()].filter(({ changedMs }) => nowMs - changedMs < this.#leaseMs)
    return new Map(alive.map(({ id, address }) => [id, address]))
  }

  /** The ids of replicas whose Leases can be deleted. */
  expired(nowMs: number): readonly string[] {
    const limitMs = KEPT_LIVES * this.#leaseMs
    return [...this.#known.values()].filter(({ changedMs }) => nowMs - changedMs >= limitMs).map(({ id }) => id)
  }
}

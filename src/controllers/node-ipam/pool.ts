/** Who has which piece of each range of addresses. Two nodes never have the same, whatever becomes of writes and news. */
import type { Node } from '#apis/core/v1.ts'
import type { CidrAllocator } from '#lib/cidr-allocator.ts'
import { type Cidr, formatCidr, parseCidr } from '#lib/cidr.ts'

interface Held {
  readonly uid: string | undefined
  readonly pieces: readonly Cidr[]
  /** Whether it says so on the node. */
  readonly isWritten: boolean
}

export class Pool {
  readonly #ranges: readonly CidrAllocator[]
  /** By the name of the node. */
  readonly #held = new Map<string, Held>()

  constructor(ranges: readonly CidrAllocator[]) {
    this.#ranges = ranges
  }

  /** What the node says that it has. Throws when it does not belong to any range. */
  occupy({ metadata: { name = '', uid }, spec: { podCIDR, podCIDRs = [] } }: Node): void {
    if (podCIDRs.length === 0) return
    const pieces = podCIDRs.map((text, at) => {
      const piece = parseCidr(text, { sloppy: true })
      if (piece === undefined) throw new Error(`failed to parse node ${name}, CIDR ${podCIDR}`)
      if (at >= this.#ranges.length)
        throw new Error(
          `node:${name} has an allocated cidr: ${text} at index:${at} that does not exist in cluster cidrs configuration`,
        )
      return piece
    })
    this.forget(name, undefined)
    for (const [at, piece] of pieces.entries()) {
      try {
        this.#ranges[at]?.occupy(piece)
      } catch (cause) {
        const why = `failed to mark cidr[${podCIDRs[at]}] at idx [${at}] as occupied for node: ${name}`
        throw new Error(`${why}: ${(cause as Error).message}`, { cause })
      }
    }
    this.#held.set(name, { uid, pieces, isWritten: true })
  }

  /**
   * A piece of each range, the same again until it is written; undefined when it is. Throws when a range has nothing left,
   * and then nothing is taken.
   */
  give({ metadata: { name = '', uid } }: Node): string[] | undefined {
    const held = this.#held.get(name)
    if (held !== undefined) return held.isWritten ? undefined : held.pieces.map(formatCidr)
    const pieces: Cidr[] = []
    this.#held.set(name, { uid, pieces, isWritten: false })
    for (const [at, range] of this.#ranges.entries()) {
      try {
        pieces.push(range.allocateNext())
      } catch (cause) {
        this.forget(name, undefined)
        throw new Error(`failed to allocate cidr from cluster cidr at idx:${at}: ${(cause as Error).message}`, {
          cause,
        })
      }
    }
    return pieces.map(formatCidr)
  }

  written(name: string): void {
    const held = this.#held.get(name)
    if (held !== undefined) this.#held.set(name, { ...held, isWritten: true })
  }

  /** What the node had comes back, unless it is still the same one. */
  forget(name: string, uid: string | undefined): void {
    const held = this.#held.get(name)
    if (held === undefined || (uid !== undefined && held.uid === uid)) return
    for (const [at, piece] of held.pieces.entries()) this.#ranges[at]?.release(piece)
    this.#held.delete(name)
  }
}

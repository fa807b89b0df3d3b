/** Records which CIDRs each node has. Two nodes never share a CIDR, even if writes fail or events arrive late. */
import type { Node } from '#apis/core/v1.ts'
import type { CidrAllocator } from '#lib/net/cidr-allocator.ts'
import { type Cidr, formatCidr, parseCidr } from '#lib/net/cidr.ts'

interface NodeCidrs {
  readonly uid: string | undefined
  readonly pieces: readonly Cidr[]
  /** Whether the Node object has it. */
  readonly isWritten: boolean
}

export class Pool {
  readonly #ranges: readonly CidrAllocator[]
  /** By node name. */
  readonly #nodeCidrsByName = new Map<string, NodeCidrs>()

  constructor(ranges: readonly CidrAllocator[]) {
    this.#ranges = ranges
  }

  /** Reserves the CIDRs of the node. Throws if one is outside all ranges. */
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
    this.#nodeCidrsByName.set(name, { uid, pieces, isWritten: true })
  }

  /**
   * One CIDR of each range, the same until it is written; undefined if it is. Throws if a range is exhausted, and then
   * allocates nothing.
   */
  give({ metadata: { name = '', uid } }: Node): string[] | undefined {
    const nodeCidrs = this.#nodeCidrsByName.get(name)
    if (nodeCidrs !== undefined) return nodeCidrs.isWritten ? undefined : nodeCidrs.pieces.map(formatCidr)
    const pieces: Cidr[] = []
    this.#nodeCidrsByName.set(name, { uid, pieces, isWritten: false })
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
    const nodeCidrs = this.#nodeCidrsByName.get(name)
    if (nodeCidrs !== undefined) this.#nodeCidrsByName.set(name, { ...nodeCidrs, isWritten: true })
  }

  /** Releases the node's CIDRs, unless the name belongs to another node by now. */
  forget(name: string, uid: string | undefined): void {
    const nodeCidrs = this.#nodeCidrsByName.get(name)
    if (nodeCidrs === undefined || (uid !== undefined && nodeCidrs.uid === uid)) return
    for (const [at, piece] of nodeCidrs.pieces.entries()) this.#ranges[at]?.release(piece)
    this.#nodeCidrsByName.delete(name)
  }
}

/**
 * Node IPAM: every node gets a piece of the addresses of pods (`spec.podCIDRs`), once and for as long as it is there. Pieces
 * are given out in turn, so that one just given back is the last to be given again.
 */
import { type Node, Nodes } from '#apis/core/v1.ts'
import type { CidrAllocator } from '#lib/cidr-allocator.ts'
import { type Cidr, formatCidr, parseCidr } from '#lib/cidr.ts'
import { sleep } from '#lib/clock.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { StatusError } from '#meta/status.ts'

import {
  type Controller,
  type ControllerContext,
  defineController,
  EVENTS,
  itself,
  perRun,
  rule,
} from '../controller.ts'
import { tellNodeStatus } from '../node-events.ts'
import { planRanges } from './ranges.ts'

const PATCH_TRIES = 3
/** How long the server may take to come, and how often it is asked. */
const LIST_MS = 600_000
const LIST_PERIOD_MS = 10_000

export const nodeIpamController: Controller = defineController({
  name: 'node-ipam-controller',
  aliases: ['nodeipam'],
  account: 'node-controller',
  component: 'cidrAllocator',
  workers: 30,
  watches: [itself(Nodes)],
  rules: [rule('', 'nodes', 'get list patch watch'), EVENTS],

  /** What nodes have is taken before anything is given out. */
  async prepare(context) {
    if (!context.settings['allocate-node-cidrs']) return false
    const pool = poolOf(context)
    for (const node of await listNodes(context)) pool.occupy(node)
    return true
  },

  async reconcile(name, context) {
    const pool = poolOf(context)
    const node = context.cache.get(Nodes, name)
    pool.forget(name, node?.metadata.uid)
    if (node === undefined || isBeingDeleted(node)) return
    if ((node.spec.podCIDRs ?? []).length > 0) pool.occupy(node)
    else if (!pool.has(name)) await give(node, pool, context)
  },
})

const poolOf = perRun(({ settings }) => new Pool(planRanges(settings)))

async function listNodes({ client, clock, log, signal }: ControllerContext): Promise<readonly Node[]> {
  const endMs = clock.elapsed() + LIST_MS
  for (;;) {
    try {
      return (await client.list(Nodes, { signal })).items
    } catch (error) {
      log.error(error, 'Failed to list all nodes')
    }
    if (clock.elapsed() + LIST_PERIOD_MS > endMs)
      throw new Error('failed to list all nodes in 10m0s, cannot proceed without updating CIDR map')
    await sleep(clock, LIST_PERIOD_MS, signal)
  }
}

async function give(node: Node, pool: Pool, context: ControllerContext): Promise<void> {
  const { client, signal } = context
  const { name = '' } = node.metadata
  let given: readonly string[]
  try {
    given = pool.give(node)
  } catch (error) {
    tellNodeStatus(node, 'CIDRNotAvailable', context)
    throw error
  }
  const value = { spec: { podCIDR: given[0], podCIDRs: given } }
  for (let tries = 1; ; tries++) {
    try {
      await client.patch(Nodes, { name }, { type: 'strategic', value }, { signal })
      return
    } catch (error) {
      if (tries < PATCH_TRIES) continue
      tellNodeStatus(node, 'CIDRAssignmentFailed', context)
      // Who got no answer in time may have been heard.
      if (!(error instanceof StatusError && error.status.reason === 'ServerTimeout')) pool.forget(name, undefined)
      throw error
    }
  }
}

interface Held {
  readonly uid: string | undefined
  readonly pieces: readonly Cidr[]
}

/** Who has which piece of each range. */
class Pool {
  readonly #ranges: readonly CidrAllocator[]
  /** By the name of the node. */
  readonly #held = new Map<string, Held>()

  constructor(ranges: readonly CidrAllocator[]) {
    this.#ranges = ranges
  }

  has(name: string): boolean {
    return this.#held.has(name)
  }

  /** Throws when a node has what does not belong to any range. */
  occupy({ metadata: { name = '', uid }, spec: { podCIDR, podCIDRs = [] } }: Node): void {
    if (podCIDRs.length === 0) return
    const pieces = podCIDRs.map((text, at) => {
      const piece = parseCidr(text, { sloppy: true })
      if (piece === undefined) throw new Error(`failed to parse node ${name}, CIDR ${podCIDR}`)
      const range = this.#ranges[at]
      if (range === undefined)
        throw new Error(
          `node:${name} has an allocated cidr: ${text} at index:${at} that does not exist in cluster cidrs configuration`,
        )
      occupyOne(range, piece, `failed to mark cidr[${text}] at idx [${at}] as occupied for node: ${name}`)
      return piece
    })
    this.#held.set(name, { uid, pieces })
  }

  /** Throws when one of the ranges has nothing left; nothing is taken then. */
  give({ metadata: { name = '', uid } }: Node): string[] {
    const pieces: Cidr[] = []
    this.#held.set(name, { uid, pieces })
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

  /** What the node had comes back, unless it is still the same one. */
  forget(name: string, uid: string | undefined): void {
    const held = this.#held.get(name)
    if (held === undefined || held.uid === uid) return
    for (const [at, piece] of held.pieces.entries()) this.#ranges[at]?.release(piece)
    this.#held.delete(name)
  }
}

function occupyOne(range: CidrAllocator, piece: Cidr, why: string): void {
  try {
    range.occupy(piece)
  } catch (cause) {
    throw new Error(`${why}: ${(cause as Error).message}`, { cause })
  }
}

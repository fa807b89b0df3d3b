/** The interface of a scenario: a script of API requests in a separate namespace, whose outcome is compared. */
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { isNotFound } from '#meta/status.ts'

import type { VirtualNodes } from '../virtual-nodes.ts'

export interface Scenario {
  /** A sentence; also what `--focus` looks at. */
  readonly name: string
  readonly run: (act: Act) => Promise<void>
  /** Kinds in no namespace whose objects belong to it: those whose names begin with its namespace. */
  readonly clusterKinds?: readonly Kind[]
  /** How long after the last step nothing may have happened before it is over. */
  readonly quietMs?: number
  /** Runs when all others have ended: it changes what they stand on. */
  readonly isAlone?: boolean
  /** Takes away what would be in the way of others, after it has been recorded. */
  readonly clean?: (act: Act) => Promise<void>
  /** The accepted differences, each with its reason. */
  readonly allows?: readonly Allowance[]
}

export interface Allowance {
  /** Of a recording, with `-` before what only upstream's did, and `+` before what only ours did. */
  readonly line: RegExp
  /** Only the count of the event may differ. */
  readonly isCount?: boolean
  readonly why: string
}

/** How long anything may take to happen. */
const PATIENCE_MS = 90_000
const LOOK_EVERY_MS = 100

export class Act {
  readonly client: ApiClient
  /** The namespace of the scenario. */
  readonly ns: string
  readonly nodes: VirtualNodes
  readonly clock: Clock
  /** Hopes that did not come true. */
  readonly lost: string[] = []

  constructor(nodes: VirtualNodes, ns: string) {
    this.client = nodes.client
    this.ns = ns
    this.nodes = nodes
    this.clock = nodes.clock
  }

  #where(kind: Kind, name: string): { namespace?: string; name: string } {
    return kind.namespaced ? { namespace: this.ns, name } : { name }
  }

  /** `more`: everything but metadata; metadata besides the name as `metadata`. */
  async make<T extends KubeObject>(kind: Kind<T>, name: string, more: object = {}): Promise<T> {
    const { metadata = {}, ...rest } = more as { metadata?: object }
    const draft = { ...rest, metadata: { ...this.#where(kind, name), ...metadata } }
    return this.client.create(kind, draft as never)
  }

  /** A merge patch. */
  async change<T extends KubeObject>(kind: Kind<T>, name: string, value: object, subresource?: string): Promise<T> {
    const where = { ...this.#where(kind, name), ...(subresource !== undefined && { subresource }) }
    return this.client.patch(kind, where, { type: 'merge', value })
  }

  async remove(kind: Kind, name: string, options: DeleteOptions = {}): Promise<void> {
    await this.client.delete(kind, this.#where(kind, name), options)
  }

  async get<T extends KubeObject>(kind: Kind<T>, name: string): Promise<T | undefined> {
    return this.client.get(kind, this.#where(kind, name)).catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
  }

  async list<T extends KubeObject>(kind: Kind<T>, labelSelector = ''): Promise<T[]> {
    return (await this.client.list(kind, { ...(kind.namespaced && { namespace: this.ns }), labelSelector })).items
  }

  /** Goes on when it is true of the object, or after a while, noting what did not come true. */
  async until<T extends KubeObject>(kind: Kind<T>, name: string, isTrue: (object: T) => boolean): Promise<void> {
    await this.#patiently(`${kind.kind} ${name}: ${textOf(isTrue)}`, async () => {
      const object = await this.get(kind, name)
      return object !== undefined && isTrue(object)
    })
  }

  async untilAll<T extends KubeObject>(kind: Kind<T>, isTrue: (objects: T[]) => boolean, selector = ''): Promise<void> {
    await this.#patiently(`${kind.plural}: ${textOf(isTrue)}`, async () => isTrue(await this.list(kind, selector)))
  }

  async gone(kind: Kind, name: string): Promise<void> {
    await this.#patiently(`${kind.kind} ${name} gone`, async () => (await this.get(kind, name)) === undefined)
  }

  async #patiently(what: string, ask: () => Promise<boolean>): Promise<void> {
    for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += LOOK_EVERY_MS) {
      if (await ask()) return
      await sleep(this.clock, LOOK_EVERY_MS)
    }
    this.lost.push(what)
  }

  async wait(ms: number): Promise<void> {
    await sleep(this.clock, ms)
  }
}

/** The condition as it is written. */
function textOf(isTrue: (...args: never[]) => boolean): string {
  return String(isTrue)
    .replace(/^[^=]*=>\s*/, '')
    .replaceAll(/\s+/g, ' ')
}

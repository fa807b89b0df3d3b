/**
 * Writes random objects of several kinds at random virtual times, and records after each commit what the API shows:
 * lists and tables of every kind. The past must later show the same.
 */
import assert from 'node:assert/strict'

import type { Random } from '#lib/random.ts'

import { definition } from '../custom-kit.ts'
import { type Bed, type Json, TABLE } from './bed.ts'

export interface WrittenKind {
  /** The path of the collection; `NS` is the namespace. */
  readonly path: string
  /** The path of all objects. */
  readonly all: string
  make(name: string, value: string, namespace: string): object
  /** Its status, as the body of a merge patch; absent: it has none. */
  status?(value: string): object
}

const NAMESPACES = ['red', 'green']
const WIDGETS = '/apis/ex.io/v1/widgets'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

const labels = (value: string): object => ({ labels: { value } })

const namespaced = (root: string, plural: string, make: WrittenKind['make']): WrittenKind => ({
  path: `${root}/namespaces/NS/${plural}`,
  all: `${root}/${plural}`,
  make,
})

const global = (path: string, make: WrittenKind['make']): WrittenKind => ({ path, all: path, make })

export const KINDS: readonly WrittenKind[] = [
  namespaced('/api/v1', 'configmaps', (name, value) => ({ metadata: { name, ...labels(value) }, data: { value } })),
  namespaced('/api/v1', 'secrets', (name, value) => ({ metadata: { name, ...labels(value) }, stringData: { value } })),
  {
    ...namespaced('/api/v1', 'pods', (name, value) => ({
      metadata: { name, ...labels(value) },
      spec: { containers: [{ name: 'main', image: 'web' }], automountServiceAccountToken: false },
    })),
    status: (value) => ({ status: { phase: 'Running', message: value } }),
  },
  namespaced('/api/v1', 'services', (name, value) => ({
    metadata: { name, ...labels(value) },
    spec: { ports: [{ port: 80 }] },
  })),
  namespaced('/api/v1', 'events', (name, value, namespace) => ({
    metadata: { name, ...labels(value) },
    involvedObject: { namespace, kind: 'Pod', name: 'p' },
    message: value,
  })),
  namespaced('/apis/rbac.authorization.k8s.io/v1', 'roles', (name, value) => ({
    metadata: { name, ...labels(value) },
    rules: [],
  })),
  {
    ...global('/api/v1/nodes', (name, value) => ({ metadata: { name, ...labels(value) } })),
    status: (value) => ({
      status: { conditions: [{ type: 'Ready', status: value.length % 2 === 0 ? 'True' : 'False', reason: value }] },
    }),
  },
  global('/apis/scheduling.k8s.io/v1/priorityclasses', (name, value) => ({
    metadata: { name, ...labels(value) },
    value: 7,
    description: value,
  })),
  {
    ...namespaced('/apis/ex.io/v1', 'widgets', (name, value) => ({
      apiVersion: 'ex.io/v1',
      kind: 'Widget',
      metadata: { name, ...labels(value) },
      spec: { value },
    })),
    status: (value) => ({ status: { seen: value } }),
  },
  global(DEFINITIONS, () => ({})),
]

/** The answers of the collections at a revision, by path of all objects. */
export interface Shown {
  readonly revision: number
  readonly timeMs: number
  readonly lists: ReadonlyMap<string, string>
  readonly tables: ReadonlyMap<string, string>
}

const MERGE = { 'content-type': 'application/merge-patch+json' }

export class Recorder {
  /** In order of revision. */
  readonly shown: Shown[] = []
  /** The seconds in which the server itself wrote after the last record: only their revisions are known. */
  readonly busySeconds: Set<number> = new Set()
  readonly #bed: Bed
  readonly #random: Random
  readonly #objects = new Map<string, { readonly kind: WrittenKind; readonly path: string }>()
  #made = 0

  constructor(bed: Bed, random: Random) {
    this.#bed = bed
    this.#random = random
  }

  async prepare(): Promise<void> {
    for (const name of NAMESPACES) await this.#bed.must('POST', '/api/v1/namespaces', { metadata: { name } })
    // The publishers of the bed write into new namespaces.
    for (const name of NAMESPACES) await this.#until(`/api/v1/namespaces/${name}/configmaps/kube-root-ca.crt`, 200)
    await this.record()
  }

  /** One write, or some seconds without any. */
  async step(): Promise<void> {
    await this.#bed.clock.advance(this.#random.int(3) * this.#random.int(1500))
    const draw = this.#random.int(10)
    if (draw < 5 || this.#objects.size < 4) await this.#create()
    else await this.#change(draw)
    await this.record()
  }

  async defineWidgets(): Promise<void> {
    const versions = [{ name: 'v1', subresources: { status: {} } }, { name: 'v2' }]
    await this.#bed.must('POST', DEFINITIONS, definition('Widget', { versions }))
    await this.#until(WIDGETS, 200)
    await this.record()
  }

  async removeWidgets(): Promise<void> {
    await this.#bed.must('DELETE', `${DEFINITIONS}/widgets.ex.io`)
    await this.#until(WIDGETS, 404)
    for (const [path, { kind }] of this.#objects) if (kind.all === WIDGETS) this.#objects.delete(path)
    await this.record()
  }

  /** Answers of one revision only: nothing else writes while time stands still. */
  async record(): Promise<void> {
    const lists = new Map<string, string>()
    const tables = new Map<string, string>()
    const revision = await this.#bed.revision()
    for (const { all } of KINDS) {
      lists.set(all, await this.#answer(all))
      tables.set(all, await this.#answer(all, TABLE))
    }
    assert.equal(await this.#bed.revision(), revision)
    this.shown.push({ revision, timeMs: this.#bed.clock.now(), lists, tables })
  }

  async #answer(path: string, accept?: string): Promise<string> {
    const { status, text } = await this.#bed.send(path, accept === undefined ? {} : { accept })
    return status === 200 ? text : String(status)
  }

  async #create(): Promise<void> {
    const writable = KINDS.filter(({ all }) => all !== DEFINITIONS && this.#isServed(all))
    const kind = writable[this.#random.int(writable.length)] as WrittenKind
    const name = `n${this.#made++}`
    const namespace = NAMESPACES[this.#random.int(NAMESPACES.length)] as string
    const path = kind.path.replace('NS', namespace)
    await this.#bed.must('POST', path, kind.make(name, `first-${name}`, namespace))
    this.#objects.set(`${path}/${name}`, { kind, path: `${path}/${name}` })
  }

  async #change(draw: number): Promise<void> {
    const all = [...this.#objects.values()]
    const { kind, path } = all[this.#random.int(all.length)] as (typeof all)[number]
    const value = `later-${this.#made++}`
    if (draw === 9) {
      await this.#bed.must('DELETE', path, { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 })
      this.#objects.delete(path)
      return
    }
    if (draw === 8 && kind.status !== undefined)
      return this.#bed.must('PATCH', `${path}/status`, kind.status(value), MERGE)
    await this.#bed.must('PATCH', path, { metadata: { labels: { value } } }, MERGE)
  }

  #isServed(all: string): boolean {
    return this.shown.at(-1)?.lists.get(all) !== '404'
  }

  async #until(path: string, status: number): Promise<void> {
    const wait = async (): Promise<void> => {
      this.busySeconds.add(Math.floor(this.#bed.clock.now() / 1000))
      await this.#bed.clock.advance(100)
    }
    for (let tries = 0; (await this.#bed.send(path)).status !== status; tries++) {
      assert.ok(tries < 200, `${path} never became ${status}`)
      await wait()
    }
    await wait()
  }
}

/** Secrets of the past have no values. The texts of other lists stay. */
export function withoutValues(path: string, text: string): string {
  if (!path.endsWith('/secrets') || text === '404') return text
  const list: Json = JSON.parse(text)
  for (const secret of list.items) for (const key of Object.keys(secret.data ?? {})) secret.data[key] = ''
  return `${JSON.stringify(list)}\n`
}

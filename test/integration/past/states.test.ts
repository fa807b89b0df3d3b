/**
 * Tests that the past shows at each revision and time what the API showed when that revision was the newest: random
 * writes of several kinds, then random reads.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

import { createSeededRandom, type Random } from '#lib/random.ts'

import { type Bed, type Json, past, startBed, TABLE } from './bed.ts'
import { KINDS, Recorder, type Shown, withoutValues } from './recorder.ts'

const STEPS = 220
const READS = 300
const SEED = Number(process.env['PROPERTY_SEED'] ?? 1364) || 1364

interface Moment {
  readonly text: string
  readonly shown: Shown
}

/** A moment and the state it must have: a revision, or the last one in the second of a time. */
function draw(random: Random, { shown, busySeconds }: Recorder, nowMs: number): Moment {
  const drawn = shown[random.int(shown.length)] as Shown
  // Ages are those at the commit: a write that changed nothing has no revision.
  const atCommit = ({ revision }: Shown): Shown => shown.find((one) => one.revision === revision) as Shown
  const chosen = atCommit(drawn)
  const second = Math.floor(chosen.timeMs / 1000)
  if (random.int(2) === 0 || busySeconds.has(second)) return { text: `rv:${chosen.revision}`, shown: chosen }
  const last = shown.findLast(({ timeMs }) => Math.floor(timeMs / 1000) <= second) as Shown
  return { text: timeText(random, second * 1000, nowMs), shown: atCommit(last) }
}

function timeText(random: Random, secondMs: number, nowMs: number): string {
  const timeMs = Math.min(secondMs + random.int(1000), nowMs)
  const forms = [
    () => new Date(timeMs).toISOString(),
    () => new Date(timeMs + 3_600_000).toISOString().replace('Z', '+01:00'),
    () => new Date(timeMs - 5_400_000).toISOString().replace('Z', '-01:30'),
    () => `-${nowMs - timeMs}ms`,
  ]
  return forms[random.int(forms.length)]?.() ?? ''
}

async function listed(bed: Bed, moment: string, path: string): Promise<string> {
  const { status, text } = await bed.send(past(moment, path))
  return status === 200 ? text : String(status)
}

/** All items of a list that is read in pages. */
async function paged(bed: Bed, moment: string, path: string, limit: number): Promise<Json[]> {
  const items: Json[] = []
  for (let token = ''; ;) {
    const { status, json } = await bed.send(past(moment, `${path}?limit=${limit}&continue=${token}`))
    assert.equal(status, 200)
    const page = json()
    assert.ok(page.items.length <= limit)
    items.push(...page.items)
    token = page.metadata.continue ?? ''
    if (token === '') return items
  }
}

class Reader {
  /** The number of compared answers. */
  compared = 0
  readonly #bed: Bed
  readonly #random: Random
  /** Paths of all objects that ever were, of each collection. */
  readonly #everMade: ReadonlyMap<string, ReadonlySet<string>>

  constructor(bed: Bed, random: Random, shown: readonly Shown[]) {
    this.#bed = bed
    this.#random = random
    const names = (all: string): Set<string> =>
      new Set(shown.flatMap(({ lists }) => pathsIn(all, lists.get(all) ?? '')))
    this.#everMade = new Map(KINDS.map(({ all }) => [all, names(all)]))
  }

  async compare({ text, shown }: Moment): Promise<void> {
    for (const { all } of KINDS) {
      const expected = withoutValues(all, shown.lists.get(all) ?? '')
      assert.equal(sameRevision(await listed(this.#bed, text, all)), sameRevision(expected), `${text} ${all}`)
      this.compared++
    }
    const { all } = KINDS[this.#random.int(KINDS.length)] as (typeof KINDS)[number]
    const list = withoutValues(all, shown.lists.get(all) ?? '')
    if (list === '404') return
    const items = JSON.parse(list).items as Json[]
    await this.#comparePages(text, all, items)
    await this.#compareTable(text, shown, all)
    await this.#compareObject(text, all, items)
  }

  async #comparePages(moment: string, all: string, items: readonly Json[]): Promise<void> {
    assert.deepEqual(await paged(this.#bed, moment, all, 1 + this.#random.int(5)), items, `pages of ${moment} ${all}`)
    this.compared++
  }

  async #compareTable(moment: string, shown: Shown, all: string): Promise<void> {
    const { text } = await this.#bed.send(past(moment, all), { accept: TABLE })
    assert.equal(sameRevision(text), sameRevision(shown.tables.get(all) ?? ''), `table of ${moment} ${all}`)
    this.compared++
  }

  async #compareObject(moment: string, all: string, items: readonly Json[]): Promise<void> {
    const paths = [...(this.#everMade.get(all) ?? [])]
    if (paths.length === 0) return
    const path = paths[this.#random.int(paths.length)] as string
    const item = items.find((one) => pathOf(all, one) === path)
    const { status, json } = await this.#bed.send(past(moment, path))
    assert.equal(status, item === undefined ? 404 : 200, `${moment} ${path}`)
    if (item !== undefined) {
      const { apiVersion: _version, kind: _kind, ...rest } = json()
      const { apiVersion: _same, kind: _alike, ...expected } = item
      assert.deepEqual(rest, expected, `${moment} ${path}`)
    }
    this.compared++
  }
}

/** Without the revision of a list: the server renews its own leases in the same second, which are not recorded. */
function sameRevision(text: string): string {
  return text.replace(/"metadata":\{"resourceVersion":"\d+"\}/, '"metadata":{}')
}

function pathOf(all: string, { metadata }: Json): string {
  const at = all.lastIndexOf('/')
  const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
  return `${all.slice(0, at)}${scope}${all.slice(at)}/${metadata.name}`
}

function pathsIn(all: string, text: string): string[] {
  return text === '404' || text === '' ? [] : (JSON.parse(text).items as Json[]).map((item) => pathOf(all, item))
}

async function record(bed: Bed, random: Random): Promise<Recorder> {
  const recorder = new Recorder(bed, random)
  await recorder.prepare()
  for (let step = 0; step < STEPS; step++) {
    if (step === STEPS / 4) await recorder.defineWidgets()
    if (step === STEPS - 20) await recorder.removeWidgets()
    await recorder.step()
  }
  return recorder
}

describe('the past of random writes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'past-states-'))

  after(() => rmSync(folder, { recursive: true, force: true }))
  const stores = [
    { name: 'memory', settings: { datastore: 'memory' } },
    { name: 'sqlite', settings: { datastore: `sqlite:${join(folder, 'store.db')}` } },
    { name: 'only a history file', settings: { datastore: 'memory', 'history-file': join(folder, 'history.db') } },
  ]

  for (const { name, settings } of stores) {
    it(`shows at every revision and time what the API showed then, with ${name}`, async (t) => {
      const random = createSeededRandom(SEED)
      await using bed = await startBed({ settings })
      const recorder = await record(bed, random)
      // Between the last write and now.
      await bed.clock.advance(60_000)
      if ('history-file' in settings) await bed.leaveToHistory()
      const reader = new Reader(bed, random, recorder.shown)
      for (let read = 0; read < READS; read++) await reader.compare(draw(random, recorder, bed.clock.now()))
      t.diagnostic(`${recorder.shown.length} states, ${READS} moments, ${reader.compared} answers`)
    })
  }
})

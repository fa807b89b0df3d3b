/**
 * Tests the processor time of large requests to a server in a separate process: every kind and patch type, with long
 * lists and maps. The time is compared with that of a reference computation in the same process. `npm run reliability
 * -- cost` sends many more requests.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'

import { CostServer, isOffence, lineOf, type Measured, measureSeries } from '../reliability/api/cost/cost.ts'
import type { Field } from '../reliability/api/cost/fields.ts'
import { LIKENESSES } from '../reliability/api/cost/fields.ts'
import type { Growth } from '../reliability/api/cost/growing.ts'
import { seriesOf, type Subject, subjects } from '../reliability/api/cost/requests.ts'
import { specialSeries } from '../reliability/api/cost/specials.ts'

const SIZE_BYTES = 60_000
const DELIVERIES = ['create', 'json', 'merge', 'elements', 'strategic', 'update', 'apply', 'protobuf', 'strict']
const DELIVERIES_EACH = 3

/** Four times the size may cost so many times as much: 4.5 at n log n, 16 at n². */
const MAX_RATIO = 9
/** Less is lost in what every request costs. */
const MEASURABLE_MS = 30

let server: CostServer
const all = subjects()
before(async () => {
  server = await CostServer.start('memory')
  await server.prepare(all)
})
after(() => server[Symbol.asyncDispose]())

function growable({ fields }: Subject): readonly Field[] {
  return fields.filter(({ schema }) => schema.type === 'list' || schema.type === 'map')
}

/** Another field, likeness and filling for each number. */
function growthFor(subject: Subject, number: number, bytes = SIZE_BYTES): Growth | undefined {
  const fields = growable(subject)
  const field = fields[(number * 7) % Math.max(1, fields.length)]
  const likeness = LIKENESSES[number % LIKENESSES.length] ?? 'distinct'
  return field && { field, likeness, filling: number % 2 === 0 ? 'sample' : 'filled', bytes }
}

function series(subject: Subject, number: number, delivery: string, bytes?: number): ReturnType<typeof seriesOf> {
  const growth = growthFor(subject, number, bytes)
  return growth === undefined ? [] : seriesOf(subject, growth, delivery, createSeededRandom(number))
}

function assertCheap(measured: readonly Measured[]): void {
  for (const one of measured) assert.ok(!isOffence(one), lineOf(one))
}

describe('a single request blocks the event loop for at most 100 ms and needs at most 64 MB', () => {
  for (const requests of specialSeries()) {
    it(requests[0]?.about ?? '', async () => assertCheap(await measureSeries(server, requests)))
  }

  for (const [at, subject] of all.entries()) {
    const { kind } = subject.cases
    it(`for kind ${kind.group} ${kind.version} ${kind.kind}`, async () => {
      for (let n = 0; n < DELIVERIES_EACH; n++) {
        const number = at * DELIVERIES_EACH + n
        const delivery = DELIVERIES[number % DELIVERIES.length] ?? 'create'
        assertCheap(await measureSeries(server, series(subject, number, delivery)))
      }
    })
  }
})

describe('cost of a request grows at most as n log n', () => {
  const workOf = async (subject: Subject, number: number, bytes: number): Promise<number> => {
    const measured: Measured[] = []
    for (const request of series(subject, number, 'create', bytes)) measured.push(await server.measure(request))
    return measured.reduce((sum, { sample }) => sum + sample.workMs, 0)
  }

  const ratioOf = async (subject: Subject, number: number): Promise<number> => {
    const small = await workOf(subject, number, SIZE_BYTES)
    const large = await workOf(subject, number, 4 * SIZE_BYTES)
    return large < MEASURABLE_MS ? 0 : large / small
  }

  for (const [number, subject] of all.entries()) {
    const { kind } = subject.cases
    it(`for kind ${kind.group} ${kind.version} ${kind.kind}`, async () => {
      let ratio = await ratioOf(subject, number)
      for (let again = 0; again < 3 && ratio > MAX_RATIO; again++)
        ratio = Math.min(ratio, await ratioOf(subject, number))
      const path = growthFor(subject, number)?.field.path.join('.')
      assert.ok(ratio <= MAX_RATIO, `${path}: four times the size costs ${ratio.toFixed(1)} times as much`)
    })
  }
})
